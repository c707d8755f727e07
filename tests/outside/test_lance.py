# SPDX-License-Identifier: Apache-2.0
"""LanceDB's cases of elastic loaders, with our entrant in the place of its `StreamingDataset`.

They are in LanceDB's repository and not in its package, so `LANCEDB` names a checkout.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lancedb", reason="left out: lancedb is not installed")

PLUGIN = """
import lancedb.streaming
from tests.outside.lance_entrant import Entrant
lancedb.streaming.StreamingDataset = Entrant
"""


@pytest.mark.timeout(900)
def test_elastic_loaders(tmp_path: Path) -> None:
    found = sorted(Path(os.environ.get("LANCEDB", "no-such-folder")).rglob("test_elastic_dataloader.py"))
    if not found:
        pytest.skip("left out: LANCEDB names no checkout of LanceDB with test_elastic_dataloader.py")
    (tmp_path / "entrant_plugin.py").write_text(PLUGIN, encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "entrant_plugin", str(found[0])],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
