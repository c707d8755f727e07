# SPDX-License-Identifier: Apache-2.0
"""Files, their format and options as words."""

import argparse
import json
from pathlib import Path

import pytest

import distinput as di
from distinput.cli import main
from distinput.cli.arguments import pair
from distinput.cli.files import add_files, opened, together
from distinput.errors import InvalidArgumentError


def words(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_files(parser)
    return parser.parse_args(list(given))


def test_each_word_stands_for_files(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("one\n")
    one, both = str(tmp_path / "a.txt"), str(tmp_path)
    assert [files.paths for files in opened(words(one, both))] == [(one,), (one, str(tmp_path / "b.txt"))]
    assert together(words(one, str(tmp_path / "b.txt"))).paths == (one, str(tmp_path / "b.txt"))


def test_options_and_formats(tmp_path: Path) -> None:
    path = str(tmp_path / "a.data")
    Path(path).write_bytes(b"aabb")
    files = together(words(path, "--format", "fixed_length", "--option", "record_bytes=2"))
    assert files.dataset().to_list() == [b"aa", b"bb"]
    with pytest.raises(InvalidArgumentError, match=r"fixed_length: .*record_bytes"):
        together(words(path, "--format", "fixed_length"))
    with pytest.raises(InvalidArgumentError, match="unknown format 'nope'"):
        together(words(path, "--format", "nope"))
    with pytest.raises(InvalidArgumentError, match="storage_options need URLs"):
        together(words(path, "--storage-option", "anon=true"))


def test_options_are_pairs_of_name_and_value() -> None:
    assert pair('columns=["x"]') == ("columns", ["x"])
    assert pair("a=b=c") == ("a", "b=c")
    for wrong in ("a", "=1", "a b=1"):
        with pytest.raises(argparse.ArgumentTypeError, match="must be NAME=VALUE"):
            pair(wrong)


def test_wrong_words_are_not_tried(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["head"])
    assert end.value.code == 2
    with pytest.raises(SystemExit) as end:
        main(["head", "a.txt", "--option", "x"])
    assert end.value.code == 2
    assert "must be NAME=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["head", "sample", "info", "schema", "count", "stats", "verify", "index"])
def test_a_file_that_is_not_there(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(tmp_path / "none.csv")]) == 1
    assert "none.csv; No such file or directory" in capsys.readouterr().err


def test_memory_urls(capsys: pytest.CaptureFixture[str]) -> None:

    with di.io.TFRecordWriter("memory://cli/a.tfrecord") as writer:
        writer.write(b"one")
    assert main(["head", "memory://cli/*.tfrecord", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == "one"
