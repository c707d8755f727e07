# SPDX-License-Identifier: Apache-2.0
"""`distinput demo` does what it says, and fails when something is wrong."""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

import distinput as di
from distinput.cli import main
from distinput.cli.demo.program import (
    FEATURES,
    Softmax,
    evaluate,
    evaluation_batches,
    ids_of,
    load_digits,
    mirrored,
    paths_of,
    training_batches,
    write_files,
)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    words = [sys.executable, "-m", "distinput", *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, env=environment)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "files"


@pytest.fixture(scope="module")
def demo(place: Path) -> subprocess.CompletedProcess[str]:
    return command("demo", "--quick", "--directory", str(place))


@pytest.fixture
def copy(demo: subprocess.CompletedProcess[str], place: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(place, tmp_path / "copy"))


def said(output: str, name: str) -> list[str]:
    """What the output says after each line that begins with this name."""
    return re.findall(rf"^  {re.escape(name)} {{2,}}(.*)$", output, re.MULTILINE)


def test_every_check_passes(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert re.search(r"^All 8 checks passed, in \d+\.\d seconds\.$", demo.stdout, re.MULTILINE)
    assert len(re.findall(r"^  .{26}yes, ", demo.stdout, re.MULTILINE)) == 8


def test_nothing_is_on_standard_error_where_nobody_watches(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.stderr == ""


def test_the_output_fits_a_terminal(demo: subprocess.CompletedProcess[str]) -> None:
    assert [line for line in demo.stdout.splitlines() if len(line) > 100 or not line.isascii() or "\r" in line] == []


def test_records_delivered_are_those_of_three_epochs(demo: subprocess.CompletedProcess[str]) -> None:
    assert said(demo.stdout, "records delivered") == [f"{3 * 1437:,} in 3 epochs"]


def test_one_replica_has_the_accuracy_of_four(demo: subprocess.CompletedProcess[str]) -> None:
    four, one = (said(demo.stdout, f"accuracy, {who}")[0].split() for who in ("4 replicas", "1 replica"))
    assert four == one
    assert four[0] == four[2]
    assert float(one[0]) > 90


def test_the_pipeline_is_explained(demo: subprocess.CompletedProcess[str]) -> None:
    explained = demo.stdout.partition("explain()")[2]
    ops = re.findall(r"^ +(\w+)\(", explained, re.MULTILINE)
    assert ops[:5] == ["batch", "shuffle", "map_rows", "parse_example", "tfrecord"]
    assert "rules: " in explained


@pytest.mark.parametrize("file_format", ["tfrecord", "parquet"])
def test_the_files_hold_the_digits(copy: Path, file_format: str) -> None:
    digits = load_digits()
    found = {}
    for split in ("train", "test"):
        for batch in evaluation_batches(copy, file_format, 100, split):
            for number, image, label in zip(batch["id"], batch["image"], batch["label"], strict=True):
                assert number not in found
                found[number] = ((image * 16).tolist(), label)
    assert found == {n: (image.tolist(), label) for n, image, label in zip(*digits, strict=True)}


@pytest.mark.parametrize("replicas", [1, 3, 4, 7, 60])
def test_both_formats_are_cut_alike_and_completely(copy: Path, replicas: int) -> None:
    strategy = mirrored(replicas)
    passes = [evaluate(strategy, Softmax(64, 10), evaluation_batches(copy, f, 50)) for f in ("tfrecord", "parquet")]
    assert passes[0].sizes == passes[1].sizes
    assert sorted(passes[0].ids) == sorted(passes[1].ids) == list(range(0, 1797, 5))
    assert all(max(sizes) - min(sizes) <= 1 for sizes in passes[0].sizes[:-1])


def test_records_parsed_after_batching_are_cut_as_those_parsed_before(copy: Path) -> None:
    files = di.data.TFRecordDataset(paths_of(copy, "test", "tfrecord"))
    strategy = mirrored(4)
    orders = [files.parse_example(FEATURES).batch(50), files.batch(50).parse_example(FEATURES)]
    ids = [[ids_of(strategy, b) for b in strategy.experimental_distribute_dataset(dataset)] for dataset in orders]
    assert ids[0] == ids[1]


def test_a_new_process_goes_on_exactly_where_the_state_was_saved(copy: Path) -> None:
    steps = json.loads(command("demo", "--resume", str(copy / "digits-state.json")).stdout)
    strategy = mirrored(4)
    whole = strategy.experimental_distribute_dataset(training_batches(copy, 64))
    assert steps == [ids_of(strategy, batch) for batch in islice(whole, 7, None)]
    assert len(steps) == 16


def test_a_damaged_file_is_a_failure_that_says_where(copy: Path) -> None:
    damaged = paths_of(copy, "train", "tfrecord")[1]
    content = bytearray(damaged.read_bytes())
    content[5000] ^= 1
    damaged.write_bytes(content)
    run = command("demo", "--quick", "--directory", str(copy))
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    first, *notes = run.stderr.strip().splitlines()
    assert re.fullmatch(
        rf"distinput demo failed: DataLossError: {re.escape(str(damaged))}: corrupted record at \d+ .*", first
    )
    assert notes[-1] == f"  remove the demo's files from {copy} to have them written anew"
    assert "passed" not in run.stdout


def test_a_lost_and_a_repeated_record_are_found(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = paths_of(copy, "train", "tfrecord")[0]
    records = list(di.data.TFRecordDataset(changed))
    with di.io.TFRecordWriter(changed) as writer:
        for record in [*records[:-1], records[0]]:
            writer.write(record)
    assert main(["demo", "--quick", "--epochs", "2", "--directory", str(copy)]) == 1
    output = capsys.readouterr().out
    assert re.fullmatch(
        r"NO: epoch 1: 1 missing \(id \d+\), 1 repeated \(id \d+\)", said(output, "each exactly once")[0]
    )
    assert "2 of 8 checks FAILED: each exactly once; together the whole." in output


def test_files_without_records_are_found(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (*paths_of(copy, "train", "tfrecord"), *paths_of(copy, "test", "tfrecord")):
        path.write_bytes(b"")
    assert main(["demo", "--quick", "--epochs", "1", "--directory", str(copy)]) == 1
    found = said(capsys.readouterr().out, "each exactly once")
    assert found == ["NO: epoch 1: 1437 missing (id 1, ...)", "NO: tfrecord on 4 replicas: 360 missing (id 0, ...)"]


def test_one_replica_is_enough(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["demo", "--quick", "--epochs", "2", "--replicas", "1", "--directory", str(copy)]
    assert main(words) == 0, capsys.readouterr()


def test_a_missing_file_is_written_again(copy: Path) -> None:
    path = paths_of(copy, "test", "parquet")[0]
    content = path.read_bytes()
    path.unlink()
    assert write_files(copy)[1]
    assert path.read_bytes() == content
    assert not write_files(copy)[1]


@pytest.mark.parametrize("arguments", [["--replicas", "0"], ["--epochs", "-1"], ["--replicas", "four"]])
def test_numbers_must_be_positive(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["demo", *arguments])
    assert end.value.code == 2
    assert f"argument {arguments[0]}" in capsys.readouterr().err


def test_a_file_is_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as end:
        main(["demo", "--directory", str(tmp_path / "file")])
    assert end.value.code == 2
    assert "argument --directory: must be a directory" in capsys.readouterr().err


def test_a_state_that_is_not_there_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--resume", str(tmp_path / "state.json")]) == 1
    assert "distinput demo failed: FileNotFoundError" in capsys.readouterr().err


def test_a_reader_that_leaves_early_sees_no_error() -> None:
    words = [sys.executable, "-m", "distinput", "demo", "--quick", "--epochs", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        errors = run.stderr.read()
    assert (run.returncode, errors) == (1, b"")
