# SPDX-License-Identifier: Apache-2.0
"""A newcomer's first hour: look at files, write the pipeline of the tutorial, break it, find the record, measure, judge.

Everything is typed at the command line, in a folder of its own; the chapters stand alone, so that they can run side by side.
"""

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import distinput as di
from tests.depth import DEEP
from tests.docs.pages import snippets

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorials" / "first_pipeline.md"


class Said(NamedTuple):
    """What a command printed."""

    out: str
    err: str


class Shell:
    """A terminal in a folder.

    Args:
      folder: where commands run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, status: int = 0, program: tuple[str, ...] = ("-m", "distinput")) -> Said:
        """Type a command, and see that it ends with this status."""
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        done = subprocess.run(
            [sys.executable, *program, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            # Nothing is compiled: on a machine without compiled kernels that would be most of the hour.
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", "DISTINPUT_KERNELS": "reference"},
            timeout=300,
        )
        assert done.returncode == status, f"distinput {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return Said(done.stdout, done.stderr)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def typed(page: Path) -> list[str]:
    """What a reader of a page types, block by block: without what only shows a result."""
    blocks = []
    for snippet in snippets(page.read_text(encoding="utf-8")):
        if ">>>" not in snippet.code:
            blocks.append(snippet.code)
            continue
        examples = doctest.DocTestParser().get_examples(snippet.code)
        blocks.append("".join([example.source for example in examples if not example.want]))
    return blocks


def write_the_tutorial(folder: Path) -> None:
    """The files of the tutorial, and `train.py` with its pipeline, up to where the model begins."""
    files, *rest = typed(TUTORIAL)
    end = next(number for number, block in enumerate(rest) if "weights" in block)
    (folder / "make_files.py").write_text(files, encoding="utf-8")
    imports = "".join(line for line in files.splitlines(keepends=True) if line.startswith("import"))
    (folder / "train.py").write_text(imports + "\n".join(rest[:end]), encoding="utf-8")


def edit(path: Path, line: int, text: str) -> None:
    """Change a line of a file, counted from 1 as editors do."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[line - 1] = text
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_files_of_every_format_are_looked_at_converted_and_verified(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shell.folder)
    rows = di.data.Dataset.from_tensor_slices({"id": np.arange(40), "name": [b"row %d" % n for n in range(40)]})
    for written in ("arrow", "csv", "jsonl", "parquet", "tar", "tfrecord"):
        rows.write(written, written, shards=1)
    np.save("numbers.npy", np.arange(40))
    np.savez("numbers.npz", id=np.arange(40))
    Path("lines.txt").write_text("".join(f"row {n}\n" for n in range(40)), encoding="utf-8")
    files = [path.relative_to(shell.folder).as_posix() for path in sorted(shell.folder.rglob("*.*"))]
    files = [file for file in files if not file.endswith(".json")]
    assert len(files) == 9

    shown = shell("head", "-n", "1", *files).out
    assert [line for line in shown.splitlines() if line.startswith("==>")] == [f"==> {file} <==" for file in files]
    assert shown.count("row 0") == 7

    told = json.loads(shell("convert", "csv", "--to", "parquet", "-o", "converted", "--shards", "3", "--json").out)
    assert (told["records"], len(told["files"])) == (40, 3)
    assert di.data.FileDataset("converted").to_list() == rows.to_list()
    (shell.folder / told["files"][1]).write_bytes(b"overwritten")
    shell("verify", "converted", status=3)


def test_the_pipeline_of_the_tutorial_breaks_and_the_line_is_found(shell: Shell) -> None:
    write_the_tutorial(shell.folder)
    shell(program=("make_files.py",))
    assert "filter(predicate=is_whole)" in shell("explain", "train.py:batches").out

    edit(shell.folder / "day-1.csv", 250, "st3,noon,21.0")
    said = shell("bench", "train.py:batches", status=1).err
    assert "day-1.csv: line 250: column 'hour': expected int64, got 'noon'" in said

    edit(shell.folder / "day-1.csv", 250, "st3,12,21.0")
    told = json.loads(shell("bench", "train.py:batches", "--html", "report.html", "--json").out)
    assert (told["elements"], told["ended"], told["stats"]["5:batch"]["rows"]) == (5, True, 5)
    assert told["bottleneck"]
    page = (shell.folder / "report.html").read_text(encoding="utf-8")
    assert told["stats"].keys() <= set(
        json.loads(page.split('id="distinput">', 1)[1].split("</script>", 1)[0])["steps"]
    )


CHECKED = """
def checked(row):
    if row["temperature"] < -50:
        raise ValueError(f"the sensor of {row['station'].decode()} is broken")
    return to_example(row)


table = di.data.CsvDataset("day-*.csv", index=True)
whole = table.global_shuffle(seed=5).batch(32)
examples = table.map(checked).global_shuffle(seed=5).batch(32)
"""


def test_a_record_that_a_function_refuses_is_found_in_its_step(shell: Shell) -> None:
    write_the_tutorial(shell.folder)
    shell(program=("make_files.py",))
    with (shell.folder / "train.py").open("a", encoding="utf-8") as program:
        program.write(CHECKED)
    edit(shell.folder / "day-1.csv", 300, "st3,5,-999.0")
    said = shell("bench", "train.py:examples", status=1).err
    assert "ValueError: the sensor of st3 is broken" in said
    assert "record 298 of day-1.csv" in said

    # Where was it in a job of two replicas, and what else did that replica get?
    job = ("train.py:whole", "--replicas", "2")
    (seen,) = json.loads(shell("locate", *job, "--file", "day-1.csv", "--record", "298", "--json").out)
    step, replica = str(seen["step"]), str(seen["replica"])
    (part,) = json.loads(shell("replay", *job, "--step", step, "--replica", replica, "--json").out)
    assert part["batch"]["temperature"][seen["row"]] == -999.0


LOADER = """
import torch
from torch.utils.data import DataLoader, DistributedSampler


def make(records, rank, ranks, batch, epoch):
    numbers = torch.arange(records)
    sampler = DistributedSampler(numbers, num_replicas=ranks, rank=rank)
    sampler.set_epoch(epoch)
    return DataLoader(numbers, batch_size=batch, sampler=sampler)
"""


def test_the_loader_that_was_there_before_is_judged(shell: Shell) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    (shell.folder / "loader.py").write_text(LOADER, encoding="utf-8")
    words = ("loader:make", "--records", "10", "--ranks", "1,3", "--batch", "2", "--law", "exactly once")
    said = shell(*words, "--law", "equal steps", status=1, program=("-m", "distinput.testing.judge")).out
    assert "BROKEN   exactly once  10 records, 3 ranks, batches of 2: 2 delivered again" in said
    assert "kept     equal steps" in said


JOB = """
import distinput as di


def price(row):
    if row["amount"] < 0:
        raise ValueError("a negative amount")
    return row["amount"] / row["count"]


batches = di.data.FileDataset("sales-*.jsonl").map(price).global_shuffle(seed=1).batch(32)

if __name__ == "__main__":
    with di.distribute.MultiWorkerMirroredStrategy() as strategy:
        rows = 0
        for step in strategy.experimental_distribute_dataset(batches):
            rows += strategy.reduce("SUM", strategy.run(len, args=(step,)), axis=None)
        if strategy.cluster_resolver.task_id == 0:
            print(rows, "rows")
"""


@pytest.mark.needs("torch")
@pytest.mark.loads("torch")
def test_data_of_ones_own_on_two_processes_breaks_and_is_mended(shell: Shell) -> None:
    """As the start page, the tutorial of several machines, troubleshooting and the page of reports say."""
    for number, count in enumerate((120, 240, 360)):
        rows = [json.dumps({"shop": f"s{n % 9}", "amount": n / 7, "count": n % 5 + 1}) for n in range(count)]
        (shell.folder / f"sales-{number}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    shell("index", "sales-*.jsonl")
    (shell.folder / "job.py").write_text(JOB.replace('.jsonl"', '.jsonl", index=True'), encoding="utf-8")
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    assert shell("job.py", program=torchrun).out == "720 rows\n"
    assert "policy " in shell("plan", "job.py:batches", "--workers", "2").out

    broken = json.dumps({"shop": "s4", "amount": -12.0, "count": 2})
    whole = (shell.folder / "sales-1.jsonl").read_text(encoding="utf-8")
    edit(shell.folder / "sales-1.jsonl", 77, broken)
    shell("index", "sales-*.jsonl")
    said = shell("job.py", status=1, program=torchrun).err
    assert "ValueError: a negative amount" in said
    assert "record 76 of sales-1.jsonl" in said
    record = di.data.FileDataset(str(shell.folder / "sales-1.jsonl")).skip(76).take(1).to_list()
    assert record[0]["amount"] == -12.0
    words = ("--workers", "2", "--file", "sales-1.jsonl", "--record", "76", "--json")
    assert len(json.loads(shell("locate", "job.py:batches", *words).out)) == 1

    (shell.folder / "sales-1.jsonl").write_text(whole, encoding="utf-8")
    shell("index", "sales-*.jsonl")
    if DEEP:  # that it can be read is seen below
        assert shell("job.py", program=torchrun).out == "720 rows\n"
    told = json.loads(shell("bench", "job.py:batches", "--html", "report.html", "--json").out)
    assert (told["elements"], told["ended"]) == (23, True)
    assert "di-verdict" in (shell.folder / "report.html").read_text(encoding="utf-8")
