# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from distinput.files.source import FileStream, stamp_of
from distinput.formats import text_records
from distinput.formats.csv import Csv
from distinput.formats.text_records import MOST_RECORD_BYTES, LineStarts, count_newlines

TEXT = b'a,b\n1,"x\ny"\n\n2,"z\n\n\nz"\n3,w'


def starts(near: int, path: str, anywhere: bool = False, most: int = MOST_RECORD_BYTES) -> int:
    scan = Csv(column_names=("a", "b")).scan
    return LineStarts.of(path, stamp_of(path), "csv").first_from(near, 4, scan, anywhere, most)


def test_a_line_begins_outside_of_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)
    begins = [4, 12, 13, 23, len(TEXT)]
    for near in [*range(5, len(TEXT) + 1), *range(len(TEXT), 4, -1)]:  # known and unknown
        assert starts(near, str(path)) == next(begin for begin in begins if begin >= near)


def test_every_newline_counts_where_values_have_none(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)
    for near in range(5, len(TEXT) + 1):
        place = TEXT.find(b"\n", near - 1) + 1
        assert starts(near, str(path), anywhere=True) == (place or len(TEXT))


def test_what_is_known_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,2\n" * 1000)
    opened: list[int] = []

    def source(path: str, start: int) -> FileStream:
        opened.append(start)
        return FileStream(path, start=start)

    monkeypatch.setattr(text_records, "FileStream", source)
    assert [starts(near, str(path)) for near in (1001, 3001, 3004, 3005)] == [1004, 3004, 3004, 3008]
    assert opened == [4, 1004, 3004]


def test_a_quote_that_is_not_closed_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\n1,"' + b"x\n" * 100_000)
    assert starts(150_000, str(path), most=5000) == path.stat().st_size


def test_newlines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)
    assert [count_newlines(str(path), stop) for stop in (0, 3, 4, 9, 999)] == [0, 0, 1, 2, 8]
