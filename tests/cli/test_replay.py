# SPDX-License-Identifier: Apache-2.0
"""`distinput replay` prints the batches of a step, replica by replica."""

import json
import sys
from pathlib import Path

import pytest

from distinput.cli import main

PROGRAM = """
import distinput as di
ds = di.data.Dataset.range(20).map(lambda x: {"x": x, "y": (x, 1.5)}).batch(8)
"""


@pytest.fixture(autouse=True)
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "job_to_replay", raising=False)
    Path("job_to_replay.py").write_text(PROGRAM, encoding="utf-8")
    return "job_to_replay.py:ds"


@pytest.mark.parametrize("workers, replicas", [(1, 2), (2, 1)])
def test_each_replica_has_its_part(name: str, workers: int, replicas: int, capsys: pytest.CaptureFixture[str]) -> None:
    job = [name, "--step", "2", "--workers", str(workers), "--replicas", str(replicas)]
    assert main(["replay", *job, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [part["replica"] for part in found] == [0, 1]
    assert [part["batch"] for part in found] == [
        {"x": [16, 17], "y": [[16, 17], [1.5, 1.5]]},
        {"x": [18, 19], "y": [[18, 19], [1.5, 1.5]]},
    ]
    assert main(["replay", *job, "--replica", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("replica 1:\n{'x': array([18, 19])")
    assert "replica 0" not in shown


@pytest.mark.parametrize(
    "words, says", [(["--step", "3"], "no step 3"), (["--step", "1", "--replica", "1"], "1 replicas")]
)
def test_what_is_not_there_is_said(name: str, words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", name, *words]) == 1
    assert says in capsys.readouterr().err
