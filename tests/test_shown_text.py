# SPDX-License-Identifier: Apache-2.0
"""Names and values of strangers are shown as text: a page, a terminal, a table takes nothing of them for its own."""

import os
from pathlib import Path

import pytest

import distinput as di
from distinput.cli.main import main

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def test_a_page_takes_no_markup_of_names() -> None:
    dataset = di.data.Dataset.range(3).map(lambda x: x, name=MARKUP)
    page = dataset._repr_html_()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize("value", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r\x08\x08"])
def test_a_terminal_is_told_nothing_by_records(tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str) -> None:
    (tmp_path / "a.txt").write_bytes(f"before{value}after\n".encode())
    assert main(["head", str(tmp_path / "a.txt")]) == 0
    shown = capsys.readouterr().out
    assert "before" in shown
    assert not any((ord(character) < 32 and character != "\n") or 0x7F <= ord(character) < 0xA0 for character in shown)


@pytest.mark.parametrize("value", ["=1+1", "+1", "-1+1", "@SUM(A1)", "=cmd|' /C calc'!A0", '"=1"', "=1,2"])
def test_formulas_in_csv_are_values_and_stay_what_they_are(tmp_path: Path, value: str) -> None:
    di.data.Dataset.from_tensor_slices({"x": [value], "y": [1]}).write(str(tmp_path), "csv")
    assert [row["x"] for row in di.data.FileDataset(str(tmp_path))] == [value.encode()]
    assert di.data.FileDataset(str(tmp_path)).to_list()[0]["y"] == 1


def test_a_link_in_the_place_of_an_unfinished_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    for number in range(3):
        os.symlink("precious", tmp_path / f".a.tfrecord.{number}.distinput-unfinished")
    with di.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        writer.write(b"1")
    assert (tmp_path / "precious").read_text() == "precious"
    assert di.data.TFRecordDataset(str(tmp_path / "a.tfrecord")).to_list() == [b"1"]
