# SPDX-License-Identifier: Apache-2.0
"""`distinput convert` writes files of another format."""

from pathlib import Path

import pytest

from distinput.cli import main
from distinput.inspect.records import head
from tests.cli.commands_of_files import shown, told


def test_files_of_another_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("x,name\n1,Ada\n,Alan\n")
    words = ("convert", str(tmp_path / "a.csv"), "--to", "jsonl")
    assert told(capsys, *words, "-o", str(tmp_path / "b"))["records"] == 2
    assert (tmp_path / "b" / "part-00000.jsonl").read_text().splitlines()[1] == '{"x":null,"name":"Alan"}'
    more = ("--null", "x=0", "--compression", "GZIP", "--shard-rows", "1")
    found = told(capsys, *words, "-o", str(tmp_path / "c"), *more)
    assert (found["records"], [Path(path).name for path in found["files"]]) == (
        2,
        ["part-00000.jsonl.gz", "part-00001.jsonl.gz"],
    )
    assert [record.value for record in head(str(tmp_path / "c"))] == [
        {"x": 1, "name": b"Ada"},
        {"x": 0, "name": b"Alan"},
    ]
    assert "2 records, " in shown(capsys, *words, "-o", str(tmp_path / "d"), "--null", "x=0")
    text = ("convert", str(tmp_path / "d"), "--to", "text", "-o", str(tmp_path / "e"), "--value", "name")
    assert told(capsys, *text)["records"] == 2
    assert (tmp_path / "e" / "part-00000.txt").read_text() == "Ada\nAlan\n"


def test_wrong_arguments_end_with_status_2(tmp_path: Path) -> None:
    for words in (["--to", "nope"], ["--to", "csv", "--shards", "2", "--shard-rows", "3"], ["--to", "csv"]):
        with pytest.raises(SystemExit) as end:
            main(["convert", str(tmp_path / "a.csv"), *words])
        assert end.value.code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "--to", "jsonl", "-o", "b", "--writer-option"),
        ("verify", "--option"),
        ("head", "--option"),
        ("count", "--option"),
    ],
)
def test_what_has_a_word_of_its_own_is_no_option(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    name = {"convert": "shards", "verify": "workers"}.get(words[0], "format")
    assert main([words[0], str(tmp_path / "a.csv"), *words[1:], f"{name}=1"]) == 1
    assert f"{words[-1]} {name}: is no such option, but has a word of its own" in capsys.readouterr().err
