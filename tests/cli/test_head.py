# SPDX-License-Identifier: Apache-2.0
"""`distinput head` shows the first records of any format."""

from pathlib import Path

import pytest

import distinput as di
from distinput.cli.main import main
from tests.cli.commands_of_files import shown, told
from tests.inspect import kept

ROWS = [{"n": number, "x": number / 2, "t": b"abc"} for number in range(9)]


@pytest.mark.parametrize("format", kept.TABLES)
@pytest.mark.parametrize("n", [0, 4, 20])
def test_the_first_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str, n: int) -> None:
    (path,) = kept.write(tmp_path / "a", ROWS, format)
    found = told(capsys, "head", path, "-n", str(n))
    found = found if isinstance(found, list) else [found]
    values = [record["value"] for record in found]
    if format == "tfrecord":
        values = [{key: value[0] for key, value in each.items()} for each in values]
    assert values == [{**row, "t": "abc"} for row in ROWS[:n]]


def test_several_files_have_titles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with di.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        writer.write(di.io.encode_example({"id": 7, "name": "Ada"}))
    (tmp_path / "b.txt").write_text("one\ntwo\n")
    text = shown(capsys, "head", str(tmp_path / "a.tfrecord"), str(tmp_path / "b.txt"), "-n", "1")
    assert text == (
        f"==> {tmp_path}/a.tfrecord <==\n0:\n  id    int64[1] 7\n  name  bytes[1] 'Ada'\n\n"
        f"==> {tmp_path}/b.txt <==\n0: 'one'\n\n"
    )


def test_a_format_that_is_not_that_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = kept.write(tmp_path / "a", ROWS, "parquet")
    for command in ("head", "count", "stats"):
        assert main([command, path, "--format", "tfrecord"]) == 1
        told = capsys.readouterr().err.splitlines()[-1]
        assert told == f"  {path} is a Parquet file, by its first bytes: ParquetDataset reads it"


def test_files_without_records_are_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        Path(name).touch()
    assert shown(capsys, "head", "a.csv") == shown(capsys, "sample", "a.csv", "b.csv") == "no records\n"
    assert shown(capsys, "head", "a.csv", "b.csv") == "==> a.csv <==\nno records\n\n==> b.csv <==\nno records\n\n"
    assert shown(capsys, "schema", "a.csv") == shown(capsys, "stats", "a.csv") == "no columns\n"
    assert shown(capsys, "head", "a.csv", "-n", "0") == ""
