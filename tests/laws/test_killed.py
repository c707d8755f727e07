# SPDX-License-Identifier: Apache-2.0
"""kill -9 at any step of writing, saving, caching and snapshots leaves the old dataset or the new one, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.depth import cases

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_writers_leave_the_old_dataset_or_the_new_one() -> None:
    command = [sys.executable, "-m", "tests.laws.killed", str(cases(1, 0)), str(cases(10, 200))]
    environment = {**os.environ, "DISTINPUT_KERNELS": "reference", "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=570, check=False)
    assert found.returncode == 0, found.stderr[-3000:]
    assert " killed, of " in found.stdout
