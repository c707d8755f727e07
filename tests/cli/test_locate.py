# SPDX-License-Identifier: Apache-2.0
"""`distinput locate` prints what the distributed dataset says, for the job that the words describe."""

import json
import sys
from pathlib import Path

import pytest

import distinput as di
from distinput.cli import main

PROGRAM = """
import distinput as di

ds = di.data.TextLineDataset(["a.txt", "b.txt"], index=True).global_shuffle(seed=3).batch(8)
filtered = ds.filter(lambda lines: True)
several = [ds]

def distributed():
    return di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(ds)
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "job_to_look_at", raising=False)
    Path("a.txt").write_text("".join(f"a{n}\n" for n in range(30)), encoding="utf-8")
    Path("b.txt").write_text("".join(f"b{n}\n" for n in range(20)), encoding="utf-8")
    Path("job_to_look_at.py").write_text(PROGRAM, encoding="utf-8")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["locate", *words]) == 0
    return capsys.readouterr().out


def test_a_step_and_its_inverse(capsys: pytest.CaptureFixture[str]) -> None:
    job = ["./job_to_look_at.py:ds", "--replicas", "2"]
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = di.data.TextLineDataset(["a.txt", "b.txt"], index=True).global_shuffle(seed=3).batch(8)
    lines = strategy.experimental_local_results(list(strategy.experimental_distribute_dataset(dataset))[4])
    found = json.loads(said(capsys, *job, "--step", "4", "--json"))
    assert [(row["replica"], f"{row['file'][0]}{row['record']}") for row in found["rows"]] == [
        (replica, line.decode()) for replica, part in enumerate(lines) for line in part.tolist()
    ]
    first = found["rows"][0]
    (seen,) = json.loads(said(capsys, *job, "--file", first["file"], "--record", str(first["record"]), "--json"))
    assert seen == {"epoch": 0, "step": 4, "replica": 0, "row": 0}
    table = said(capsys, *job, "--step", "4", "--replica", "1").splitlines()
    assert table[0].split() == ["replica", "row", "file", "record"]
    assert [line.split()[0] for line in table[1:]] == ["1"] * 4


def test_a_distributed_dataset_says_it_for_its_own_job(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--step", "2", "--json"]
    whole = said(capsys, "job_to_look_at:distributed", *asked)
    assert whole == said(capsys, "job_to_look_at:ds", "--replicas", "2", *asked)
    assert json.loads(whole) != json.loads(said(capsys, "job_to_look_at:ds", "--replicas", "2", "--epoch", "1", *asked))


def test_workers_of_a_job_read_what_they_are_said_to(capsys: pytest.CaptureFixture[str]) -> None:
    job = ["job_to_look_at:ds", "--workers", "2", "--replicas", "1", "--step", "1"]
    located = [f"{row['file'][0]}{row['record']}" for row in json.loads(said(capsys, *job, "--json"))["rows"]]
    assert main(["replay", *job, "--json"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert [line for part in replayed for line in part["batch"]] == located


def test_a_record_that_is_in_no_step(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["job_to_look_at:ds", "--file", "a.txt", "--record", "99"]
    for more, shown in ([], "there is no record 99: a.txt has 30 records, numbered from 0 on\n"), (["--json"], "[]\n"):
        assert main(["locate", *words, *more]) == 1
        assert capsys.readouterr().out == shown
    assert main(["locate", *words[:-1], "9", "--first", "1"]) == 1
    assert capsys.readouterr().out == "record 9 of a.txt is in no step of epoch 0 before step 1\n"
    assert said(capsys, *words[:-1], "9").splitlines()[0].split() == ["epoch", "step", "replica", "row"]


@pytest.mark.parametrize(
    "words, says",
    [
        (["ds"], "give --step N, or --file FILE and --record N"),
        (["ds", "--file", "a.txt"], "give --step N, or --file FILE and --record N"),
        (["ds", "--step", "1", "--file", "a.txt", "--record", "1"], "give --step N, or --file FILE and --record N"),
        (["ds", "--step", "99"], "there is no step 99"),
        (["ds", "--step", "1", "--replica", "3"], "there are 1 replicas"),
        (["filtered", "--step", "1"], "filter(predicate=<lambda>), made at .*job_to_look_at.py:5"),
        (["distributed", "--step", "1", "--workers", "2"], "is distributed already.*leave out --workers"),
        (["several", "--step", "1"], "must be a Dataset or a DistributedDataset.* got list"),
    ],
)
def test_what_cannot_be_said(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["locate", f"job_to_look_at:{words[0]}", *words[1:]]) == 1
    assert __import__("re").search(says.replace("(", r"\(").replace(")", r"\)"), capsys.readouterr().err)
