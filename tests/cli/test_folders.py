# SPDX-License-Identifier: Apache-2.0
"""Commands over a folder in which other files lie beside the data: all of them mean the same files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.cli import main

FORMATS = ["arrow", "csv", "jsonl", "npy", "parquet", "text", "tfrecord"]
BESIDE = [
    "_SUCCESS", "_committed_1", "_temporary/part-7", "README", "README.md", "LICENSE.txt", ".hidden", ".DS_Store",
    ".part-00000-of-00002.crc", "part-00000-of-00002.md5", ".ipynb_checkpoints/notes", "SHA256SUMS", "CHANGELOG",
]  # fmt: skip


def written(name: str) -> di.data.Dataset[Any]:
    numbers = di.data.Dataset.range(4)
    if name in ("text", "tfrecord"):
        return numbers.map(lambda x: b"%d" % int(x))
    return numbers if name == "npy" else numbers.map(lambda x: {"x": x})


def make(name: str) -> Path:
    """A folder without a manifest, with files of others in it."""
    for path in written(name).write("written", name, shards=2).paths:
        Path("data").mkdir(exist_ok=True)
        os.rename(path, Path("data", os.path.basename(path)))
    for other in BESIDE:
        place = Path("data", other)
        place.parent.mkdir(exist_ok=True)
        place.write_text("words of others, 7\n")
    return Path("data")


@pytest.mark.parametrize("name", FORMATS)
def test_every_command_means_the_same_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = make(name)
    for word in ("data", "data/", str(folder.resolve())):
        for how in ([], ["--format", name]):

            def told(*words: str, how: list[str] = how) -> Any:
                assert main([*words, *how]) == 0, words
                return [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[:1] in "[{"]

            assert told("count", word, "--json")[0]["records"] == 4
            assert len(told("head", word, "--json")) == 4
            assert len(told("sample", word, "--json")) == 4
            assert {column["rows"] for column in told("stats", word, "--json")[0]} == {4}
            assert len(told("schema", word, "--json")[0]) == 1
            assert len(told("info", word, "--json")[0]["files"]) == 2
            assert told("verify", word, "--json")[0]["records"] == 4
            assert told("convert", word, "--to", "jsonl", "-o", "made", "--overwrite", "--json")[0]["records"] == 4
    assert len(di.data.FileDataset("data").to_list()) == 4
    assert len(di.data.FileDataset("data", name).to_list()) == 4


def test_notes_beside_tables_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = make("parquet")
    Path(folder, "notes.txt").write_text("a note\n")
    Path(folder, "info.json").write_text("{}\n")
    os.rename(
        Path(folder, "part-00000-of-00002.parquet"), Path(folder, "part-0")
    )  # what begins as the others do is one
    assert main(["count", "data"]) == 0
    assert len(di.data.FileDataset("data").to_list()) == 4


def test_files_are_not_read_as_text_because_the_name_of_the_first_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make("parquet")
    with pytest.raises(di.errors.InvalidArgumentError, match="README is text, as its first bytes are UTF-8 text, and"):
        di.data.FileDataset(["data/README", "data/part-00000-of-00002.parquet"])
    assert main(["count", "data/*"]) == 1
    assert "name files of one format at a time" in capsys.readouterr().err
    Path("plain").write_text("x\n1\n")
    Path("named.csv").write_text("x\n2\n")
    assert [int(row["x"]) for row in di.data.FileDataset(["plain", "named.csv"])] == [1, 2]


def test_several_folders_are_files_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        di.data.Dataset.range(2).map(lambda x: {"x": x}).write(folder, "parquet")
    for words in (
        ["schema"],
        ["stats"],
        ["sample"],
        ["count"],
        ["verify"],
        ["plan"],
        ["verify", "a", "b", "--against"],
    ):
        assert main([*words, "a", "b", "--json"]) == 0, words
    capsys.readouterr()
    assert main(["convert", "a", "b", "--to", "jsonl", "-o", "c", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 4
    assert main(["convert", "a", "b", "--to", "jsonl", "-o", "c"]) == 1
    assert "overwrite=True (--overwrite in the command line) replaces it" in capsys.readouterr().err
