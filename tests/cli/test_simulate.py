# SPDX-License-Identifier: Apache-2.0
"""`distinput simulate` reads quantities with units, and prints one job or several side by side."""

import json
import sys
from pathlib import Path

import pytest

from distinput.cli import main
from tests.reports.pictures import parsed, words_of

PROGRAM = """
import distinput as di
ds = di.data.Dataset.range(6400).batch(64)
"""


@pytest.fixture(autouse=True)
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "train_to_simulate", raising=False)
    Path("train_to_simulate.py").write_text(PROGRAM, encoding="utf-8")


def test_one_job_is_simulated_and_its_limit_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "train_to_simulate:ds", "--workers", "4", "--step-time", "20ms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("4 workers with 1 replica each, policy DATA: 100 steps in 2")
    assert lines[1] == "  limit:   trainer"


def test_several_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "train_to_simulate:ds", "--workers", "1,2,4096", "--step-time", "1s", "--slow", "1%"]
    assert main([*words, "--kill-every", "30min", "--latency", "20ms", "--storage-bandwidth", "40Gbit/s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["workers", "policy", "steps", "a"]
    assert [line.split()[0] for line in lines[1:4]] == ["1", "2", "4,096"]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["workers"], one["steps"], one["limit"]) for one in told] == [
        (1, 100, "trainer"),
        (2, 100, "trainer"),
        (4096, 100, "trainer"),
    ]


@pytest.mark.parametrize(
    "words, says",
    [
        (["--step-time", "2"], "must be a number with one of us, ms, s, min, h, such as 200ms, got 2"),
        (["--step-time", "1s", "--storage-bandwidth", "5Gb"], "such as 40Gbit/s, got 5Gb"),
        (["--step-time", "1s", "--request-limit", "-5/s"], "request-limit"),
        (["--step-time", "1s", "--seconds", "nan"], "must be a number of seconds from 0 on, such as 2.5, got 'nan'"),
        ([], "--step-time"),
    ],
)
def test_quantities_have_units(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "train_to_simulate:ds", *words])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_what_does_not_add_up_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "train_to_simulate:ds", "--step-time", "1s", "--kill-every", "1min"]) == 1
    assert "the job never ends" in capsys.readouterr().err


def test_a_plot_of_several(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["simulate", "train_to_simulate:ds", "--workers", "1,2,8", "--step-time", "1s", "--svg", "jobs.svg"]
    assert main(words) == 0
    root = parsed((tmp_path / "jobs.svg").read_text("utf-8"))
    assert len([*root.iter("{http://www.w3.org/2000/svg}circle")]) == 3
    assert "trainer" in words_of(root)
    assert capsys.readouterr().out.splitlines()[0].startswith("workers")
