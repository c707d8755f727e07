# SPDX-License-Identifier: Apache-2.0
import gzip
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.formats import tfrecord
from distinput.formats.tfrecord import IndexedTFRecords, TFRecordOptions, TFRecords, TFRecordWriter
from tests.checksum import masked_checksum
from tests.formats.reading import (
    check_positions,
    cut_short,
    flipped,
    records,
    records_until_error,
    small_pieces,
)
from tests.traced_memory import peak_memory

COMPRESSIONS = [None, "", "GZIP", "ZLIB", "BZ2"]


def write(path: str, items: list[bytes], compression: str | None = None) -> str:
    with TFRecordWriter(path, compression) as writer:
        for item in items:
            writer.write(item)
    return path


def header(length: int) -> bytes:
    packed = struct.pack("<Q", length)
    return packed + masked_checksum(packed)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("items", [[], [b""], [b"", b"a", b"bb" * 40, b""], [b"x" * i for i in range(20)]])
def test_round_trip(tmp_path: Path, items: list[bytes], compression: str | None) -> None:
    path = write(str(tmp_path / "a.tfr"), items, compression)
    with small_pieces():
        check_positions(TFRecords(compression), path, items)


@given(st.lists(st.binary(max_size=60)), st.sampled_from(COMPRESSIONS), st.integers(1, 70))
def test_any_records_in_any_chunks(items: list[bytes], compression: str | None, chunk: int) -> None:
    path = write("memory://tfrecord/any.tfr", items, compression)
    with small_pieces(chunk):
        check_positions(TFRecords(compression), path, items)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_large_records(tmp_path: Path, compression: str | None) -> None:
    items = [b"a" * 3, bytes(range(256)) * 20_000, b"", b"b" * 700_000, b"c"]
    path = write(str(tmp_path / "a.tfr"), items, compression)
    check_positions(TFRecords(compression), path, items)


def test_the_bytes_are_tensorflows(tmp_path: Path) -> None:
    path = write(str(tmp_path / "a.tfr"), [b"hello"])
    assert Path(path).read_bytes() == header(5) + b"hello" + masked_checksum(b"hello")
    assert masked_checksum(b"123456789") == struct.pack("<I", 0xC78AB0E5)


def test_a_file_cut_short_is_an_error_unless_between_records(tmp_path: Path) -> None:
    items = [b"one", b"", b"three"]
    file = tmp_path / "a.tfr"
    content = Path(write(str(file), items)).read_bytes()
    borders = {0: 0, 19: 1, 35: 2}
    for damaged in cut_short(content):
        file.write_bytes(damaged)
        with small_pieces():
            found, error = records_until_error(TFRecords(), file)
        whole = max(count for border, count in borders.items() if border <= len(damaged))
        assert found == items[:whole]
        if len(damaged) in borders:
            assert error is None
        else:
            start = max(border for border in borders if border <= len(damaged))
            assert isinstance(error, DataLossError)
            assert f"{file}: truncated record at {start} (record {whole})" in str(error)


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    items = [b"one", b"", b"three"]
    file = tmp_path / "a.tfr"
    content = Path(write(str(file), items)).read_bytes()
    for bit, damaged in enumerate(flipped(content)):
        file.write_bytes(damaged)
        found, error = records_until_error(TFRecords(), file)
        whole = sum(bit // 8 >= border for border in (19, 35))
        assert found == items[:whole]
        assert isinstance(error, DataLossError)
        start = (0, 19, 35)[whole]
        assert f"{file}: corrupted record at {start} (record {whole}): the checksum of its " in str(error)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_damage_in_compressed_files(tmp_path: Path, compression: str) -> None:
    items = [b"one" * 9, b"", b"three" * 7]
    file = tmp_path / "a.tfr"
    content = Path(write(str(file), items, compression)).read_bytes()
    for damaged in (*cut_short(content), *flipped(content)):
        file.write_bytes(damaged)
        found, error = records_until_error(TFRecords(compression), file)
        assert found == items[: len(found)]
        if error is None:
            assert not damaged or found == items
        else:
            assert isinstance(error, DataLossError)
            assert str(file) in str(error)


@pytest.mark.parametrize("length", [1 << 20, 1 << 31, 1 << 60, (1 << 64) - 1])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_length_beyond_the_file_takes_no_memory(tmp_path: Path, length: int, compressed: bool) -> None:
    content = header(1) + b"a" + masked_checksum(b"a") + header(length) + b"b" * 1000
    file = tmp_path / "a.tfr"
    file.write_bytes(gzip.compress(content) if compressed else content)
    format = TFRecords("GZIP" if compressed else None)
    records_until_error(format, file)  # whatever is loaded at the first use is no matter here

    def read() -> None:
        found, error = records_until_error(format, file)
        assert found == [b"a"]
        assert isinstance(error, DataLossError)
        assert f"{file}: truncated record at 17 (record 1): it takes" in str(error)

    assert peak_memory(read) < 4 << 20


def test_what_is_no_tfrecord_file(tmp_path: Path) -> None:
    file = tmp_path / "bad.tfr"
    file.write_bytes(b"not a record file at all........")
    with pytest.raises(DataLossError, match=r"bad\.tfr: corrupted record at 0 \(record 0\).*compression_type"):
        records(TFRecords(), file)
    with pytest.raises(DataLossError, match=r"bad\.tfr: corrupted GZIP data"):
        records(TFRecords("GZIP"), file)


def test_a_position_stays_before_a_damaged_record(tmp_path: Path) -> None:
    file = tmp_path / "a.tfr"
    content = Path(write(str(file), [b"one", b"two"])).read_bytes()
    file.write_bytes(content[:-1])
    reader = TFRecords().read(str(file))
    _, position = next(reader)
    for _ in range(2):
        with pytest.raises(DataLossError, match=r"truncated record at 19 \(record 1\)"):
            records(TFRecords(), file, position)
    with pytest.raises(DataLossError):
        next(reader)


def test_the_writer_leaves_nothing_after_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.tfr"
    write(str(file), [b"old"])
    with suppress(KeyError), TFRecordWriter(file) as writer:
        writer.write(b"new")
        raise KeyError
    assert records(TFRecords(), file) == [b"old"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.tfr"]


@pytest.mark.parametrize("options", [None, "GZIP", TFRecordOptions("ZLIB", compression_level=9)])
def test_a_writer_goes_on_after_a_flush(tmp_path: Path, options: str | TFRecordOptions | None) -> None:
    file = tmp_path / "a.tfr"
    writer = TFRecordWriter(str(file), options)
    writer.write(b"one")
    assert not file.exists()
    writer.flush()
    assert not file.exists()
    compression = options.compression_type if isinstance(options, TFRecordOptions) else options
    writer.write(b"two")
    writer.close()
    writer.close()
    assert records(TFRecords(compression), file) == [b"one", b"two"]
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"three")


PIECES = st.one_of(
    st.none(),
    st.binary(max_size=9),
    st.binary(max_size=9).map(bytearray),
    st.sampled_from([4096, 4097, 40_000]).map(bytes),
)


@given(st.lists(PIECES, max_size=20), st.integers(1, 20))
def test_records_that_wait_are_written_as_one_by_one(pieces: list[Any], places: int) -> None:
    path = "memory://tfrecord/waiting.tfr"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tfrecord, "_PLACES", places)
        writer = TFRecordWriter(path, index=True)
        for piece in pieces:
            if piece is None:
                writer.flush()
            else:
                writer.write(piece)
                if isinstance(piece, bytearray):
                    piece.append(0)  # which is no matter any more
            assert len(writer._waiting) <= places
        writer.close()
    items = [bytes(piece[:-1] if isinstance(piece, bytearray) else piece) for piece in pieces if piece is not None]
    assert records(TFRecords(), path) == items
    assert records(IndexedTFRecords(), path) == items
    for refused in (b"a", bytearray(b"a")):
        writer.flush()
        with pytest.raises(ValueError, match="closed"):
            writer.write(refused)


def test_a_writer_that_was_given_up_takes_no_record(tmp_path: Path) -> None:
    with suppress(KeyError), TFRecordWriter(tmp_path / "a.tfr") as writer:
        raise KeyError
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"a")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [MemoryError("no room"), KeyboardInterrupt()])
def test_records_that_could_not_be_framed_leave_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    writer = TFRecordWriter(tmp_path / "a.tfr", index=True)
    writer.write(b"one")
    with monkeypatch.context() as patched:
        patched.setattr("distinput.formats.tfrecord.frame_records", Mock(side_effect=error))
        with pytest.raises(type(error)):
            writer.flush()
    for go_on in (lambda: writer.write(b"two"), writer.flush, writer.close):
        with pytest.raises(OSError, match=r"a\.tfr: was given up.*since writing failed"):
            go_on()
    assert not list(tmp_path.iterdir())


def test_writing_where_no_folder_is(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No such file or directory"):
        TFRecordWriter(tmp_path / "no" / "a.tfr")
    with pytest.raises(InvalidArgumentError, match="Unsupported compression_type"):
        TFRecordWriter(tmp_path / "a.tfr", "BROTLI")


@pytest.mark.parametrize("record", [np.array(b"abc"), np.array(b"abc", object), np.frombuffer(b"abc", np.uint8), "abc"])
def test_what_holds_bytes_is_a_record(tmp_path: Path, record: Any) -> None:
    path = write(str(tmp_path / "a"), [record])
    assert records(TFRecords(), path) == [b"abc"]


@pytest.mark.parametrize("record", [3, np.int64(3), [1, 2], np.array([1, 2]), np.array(["a"], object), None, 2.5])
def test_what_is_no_bytes_is_no_record(tmp_path: Path, record: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="TFRecordWriter: expected byte strings, got "):
        write(str(tmp_path / "a"), [record])
    assert not list(tmp_path.iterdir())
