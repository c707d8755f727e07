# SPDX-License-Identifier: Apache-2.0
"""A batch that is on its way to a device, or whose memory an engine uses, is not overwritten by a later one."""

import re
import subprocess
import sys

import pytest

from tests.engines.processes import ROOT


@pytest.mark.parametrize("engine", ["torch", "jax"])
def test_batches_arrive_whole(engine: str) -> None:
    words = [sys.executable, "-m", "tests.engines.device_copies", engine]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert said.returncode == 0, said.stderr
    counts = re.findall(r"(\d+) of (\d+) batches arrived whole", said.stdout)
    assert len(counts) >= 3
    assert all(whole == sent == "24" for whole, sent in counts), said.stdout
