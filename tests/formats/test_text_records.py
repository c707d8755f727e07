# SPDX-License-Identifier: Apache-2.0
"""Where records of text are: in pieces that are cut where one ends, of files that are what they are said to be."""

import bz2
import gzip
import lzma
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from distinput.errors import DataLossError, DistinputError
from distinput.formats import text_records
from distinput.formats.csv import Csv
from distinput.formats.text_records import TextRecords
from tests.formats.reading import records, records_until_error
from tests.formats.test_text_table import FORMATS, ROWS, SCHEMA, written


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_records, "FIRST_BYTES", 40)
    monkeypatch.setattr(text_records, "CHUNK_BYTES", 40)


def test_pieces_are_the_file_cut_where_records_end(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(written(Csv, ROWS))
    format: TextRecords = Csv(schema=SCHEMA)
    head = format.head(str(file))
    pieces = list(format._pieces(str(file), format.start(), None, head))
    assert len(pieces) > 3
    assert file.read_bytes()[head.byte :].startswith(b"".join(piece.data.tobytes() for piece in pieces))
    for piece in pieces:
        assert piece.line == file.read_bytes()[: piece.byte].count(b"\n") + 1
        assert format.scan(piece.data, 0, sys.maxsize, sys.maxsize)[0] == piece.count
    assert [piece.row for piece in pieces] == [sum(each.count for each in pieces[:i]) for i in range(len(pieces))]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_compressed_file_says_so(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(written(kind, ROWS)))
    with pytest.raises(DataLossError, match=r"looks like a GZIP file; pass compression_type='GZIP' or 'AUTO'"):
        records(kind(schema=SCHEMA), file)
    assert records(kind(schema=SCHEMA, compression_type="AUTO"), file) == ROWS
    file.write_bytes(bz2.compress(written(kind, ROWS), 1))
    with pytest.raises(DataLossError, match="looks like a BZ2 file"):
        records(kind(schema=SCHEMA), file)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_is_not_decompressed_says_so(kind: Any, tmp_path: Path) -> None:
    packed, archive = tmp_path / "a.data", tmp_path / "b.zip"
    packed.write_bytes(lzma.compress(written(kind, ROWS)))
    with pytest.raises(DataLossError, match=r"a\.data: looks like an XZ file; decompress it"):
        records(kind(schema=SCHEMA), packed)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.data", written(kind, ROWS))
    with pytest.raises(DataLossError, match=r"looks like a zip archive; name a file in it"):
        records(kind(schema=SCHEMA), archive)
    assert records(kind(schema=SCHEMA), f"zip://a.data::{archive}") == ROWS


@pytest.mark.parametrize("kind", FORMATS)
def test_a_record_may_be_longer_than_a_chunk_but_not_without_end(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_bytes(written(kind, [ROWS[1], {**ROWS[2], "t": b"x" * 5000}, ROWS[3]]))
    assert len(records(kind(), file)) == 3
    monkeypatch.setattr(text_records, "MOST_RECORD_BYTES", 1000)
    found, error = records_until_error(kind(schema=SCHEMA), file)
    assert len(found) == 1
    assert "the record that begins here does not end" in str(error)


def test_a_position_behind_the_end_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(written(Csv, ROWS))
    for position in ({"byte": 9999, "row": 20}, {"row": 20}):
        with pytest.raises(DistinputError, match="the file has changed"):
            records(Csv(schema=SCHEMA), file, position)
