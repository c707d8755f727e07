# SPDX-License-Identifier: Apache-2.0
"""`distinput plan` prints the plan of the library, or several side by side with what they say."""

import json
from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.cli import main

PROGRAM = """
import distinput as di
ds = di.data.TextLineDataset(["0.txt", "1.txt", "2.txt"])
batches = ds.batch(4)
numbers = di.data.Dataset.range(3).batch(2)
endless = numbers.repeat()
uneven = di.data.TextLineDataset(["long.txt", "0.txt"]).batch(4)
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for number in range(3):
        Path(f"{number}.txt").write_text(f"{number}\n" * 8, encoding="utf-8")
    Path("long.txt").write_text("line\n" * 100, encoding="utf-8")
    Path("train_for_plans.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.delitem(__import__("sys").modules, "train_for_plans", raising=False)


def test_one_plan_is_the_librarys(capsys: pytest.CaptureFixture[str]) -> None:
    plan = di.data.experimental.shard_plan(di.data.TextLineDataset(["0.txt", "1.txt", "2.txt"]).batch(4), 3, 2)
    assert main(["plan", "train_for_plans:batches", "--workers", "3", "--replicas", "2"]) == 0
    assert capsys.readouterr().out == f"{plan}\n"
    assert main(["plan", "train_for_plans.py:batches", "--workers", "3", "--replicas", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(plan.to_json())


def test_files_and_a_batch_of_the_command_give_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", "train_for_plans:ds", "--batch", "4", "--policy", "balanced"])
    shown = capsys.readouterr().out
    main(["plan", "0.txt", "1.txt", "2.txt", "--batch", "4", "--policy", "balanced"])
    assert capsys.readouterr().out == shown
    assert "policy BALANCED" in shown


def test_several_numbers_of_workers_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "train_for_plans:batches", "--workers", "1,3,4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:4]] == [
        ["workers", "policy"],
        ["1", "FILE"],
        ["3", "FILE"],
        ["4", "DATA"],
    ]
    assert lines[-1] == (
        "per worker: the least and the most. Where `reads` is `whole files`, every worker reads what others deliver; "
        "--policy balanced avoids it."
    )
    assert main(["plan", "train_for_plans:batches", "--workers", "1,3,4", "--json"]) == 0
    assert [one["num_workers"] for one in json.loads(capsys.readouterr().out)] == [1, 3, 4]


@pytest.mark.parametrize(
    "name, workers, says",
    [
        ("numbers", "2,8", "Of 8 workers, 6 have no rows: fewer workers would do the same work."),
        ("uneven", "1,2", "With 2 workers the busiest one reads 1.9 times the mean: --policy balanced"),
        ("endless", "1,2", "The work is even"),
    ],
)
def test_what_a_table_says(name: str, workers: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", f"train_for_plans:{name}", "--workers", workers]) == 0
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, status, says",
    [
        (["0.txt", "train_for_plans:ds"], 1, "give one dataset, or files, got"),
        (["train_for_plans:batches", "--policy", "fil"], 1, "no policy 'FIL'; did you mean FILE?"),
        (["train_for_plans:batches", "--policy", "file", "--workers", "9"], 1, "9"),
        (["train_for_plans:batches", "--workers", "2,x"], 2, "--workers"),
        (["no_such.txt", "--format", "text"], 1, "no_such.txt"),
        (["0.txt", "--format", "nope"], 1, "unknown format 'nope'; known are"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        found = main(["plan", *words])
    except SystemExit as end:
        found = end.code  # type: ignore[assignment]
    assert found == status
    assert says in capsys.readouterr().err


def test_records_of_parquet_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    di.io.write_parquet("a.parquet", {"x": np.arange(100)}, row_group_size=10)
    assert main(["plan", "a.parquet", "--workers", "2", "--policy", "balanced", "--json"]) == 0
    assert sum(worker["rows"] for worker in json.loads(capsys.readouterr().out)["workers"]) == 100


def test_a_program_without_the_name_of_a_dataset_is_no_text_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "train_for_plans.py"]) == 1
    assert "is a program; name a dataset in it, such as train_for_plans.py:ds" in capsys.readouterr().err
    assert main(["plan", "train_for_plans.py", "--format", "text"]) == 0
