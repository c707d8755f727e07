# SPDX-License-Identifier: Apache-2.0
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.sink import Sink
from distinput.formats.fixed_length import FixedLengthRecords
from tests.formats.reading import check_positions, records, records_until_error, small_pieces
from tests.traced_memory import peak_memory

COMPRESSIONS = [None, "GZIP", "ZLIB", "LZ4", "AUTO"]


@given(
    items=st.lists(st.binary(min_size=3, max_size=3)),
    header=st.sampled_from([0, 1, 40]),
    footer=st.sampled_from([0, 2, 50]),
    compression=st.sampled_from(COMPRESSIONS),
    chunk=st.integers(1, 70),
)
def test_round_trip(items: list[bytes], header: int, footer: int, compression: str | None, chunk: int) -> None:
    path = "memory://fixed/any.bin"
    with Sink(path, compression or "") as sink:  # type: ignore[arg-type]
        sink.write(b"H" * header + b"".join(items) + b"F" * footer)
    with small_pieces(chunk):
        check_positions(FixedLengthRecords(3, header, footer, compression), path, items)


def test_rows_and_fragments_by_arithmetic(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"HH" + bytes(1_000_000) * 3)
    format = FixedLengthRecords(1000, header_bytes=2)
    assert format.rows(str(file)) == 3000
    assert [fragment.rows for fragment in format.fragments(str(file))] == [1048, 1048, 904]
    assert format.seek(str(file), 7) == {"row": 7}


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_cut_short_in_a_record(tmp_path: Path, compression: str | None) -> None:
    content = b"HHaabbccF"
    for size in range(len(content)):
        path = str(tmp_path / "a.bin")
        with Sink(path, compression or "") as sink:  # type: ignore[arg-type]
            sink.write(content[:size])
        found, error = records_until_error(FixedLengthRecords(2, 2, 1, compression), path)
        if size in (3, 5, 7):
            assert error is None
            assert len(found) == (size - 3) // 2
        else:
            assert isinstance(error, InvalidArgumentError)
            assert path in str(error)
            assert ("fewer than its header of 2" if size < 3 else "Excess trailing bytes") in str(error)


def test_an_uncompressed_file_is_refused_before_its_first_record(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"aabbc")
    found, error = records_until_error(FixedLengthRecords(2), file)
    assert found == []
    assert "Excess trailing bytes: header 0, body 5, footer 0 bytes" in str(error)
    with pytest.raises(InvalidArgumentError, match="Excess trailing bytes"):
        FixedLengthRecords(2).rows(str(file))


@pytest.mark.parametrize("compressed", [False, True])
def test_a_huge_record_length_takes_no_memory(tmp_path: Path, compressed: bool) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(gzip.compress(b"a" * 70_000) if compressed else b"a" * 70_000)
    format = FixedLengthRecords(1 << 60, compression_type="GZIP" if compressed else None)

    def read() -> None:
        with pytest.raises(InvalidArgumentError, match="Excess trailing bytes"):
            records(format, file)

    read()
    assert peak_memory(read) < 4 << 20


def test_no_body_and_huge_records(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"F" * 65_536)
    assert records(FixedLengthRecords(1 << 60, footer_bytes=65_536), file) == []


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.bin").touch()
    check_positions(FixedLengthRecords(4), tmp_path / "a.bin", [])


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_position_behind_the_end_is_an_error(tmp_path: Path, compression: str | None) -> None:
    path = str(tmp_path / "a.bin")
    with Sink(path, compression or "") as sink:  # type: ignore[arg-type]
        sink.write(b"aabb")
    with pytest.raises(
        DataLossError, match="has 2 records, but reading must continue at record 3; the file has changed"
    ):
        records(FixedLengthRecords(2, compression_type=compression), path, {"row": 3})


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0,), "record_bytes must be at least 1, got 0"),
        ((2, -1), "header_bytes must be at least 0, got -1"),
        ((2, 0, -1), "footer_bytes must be at least 0, got -1"),
    ],
)
def test_arguments_are_checked(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        FixedLengthRecords(*arguments)


def test_numbers_of_small_types_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"h" * 200 + bytes(1000))
    format = FixedLengthRecords(np.uint8(100), header_bytes=np.uint8(200))  # type: ignore[arg-type]
    assert [len(record) for record in records(format, str(path))] == 10 * [100]
    assert format == FixedLengthRecords(100, header_bytes=200)
    with pytest.raises(TypeError, match=r"fixed_length: record_bytes must be an integer, got 2\.0"):
        FixedLengthRecords(2.0)  # type: ignore[arg-type]
