# SPDX-License-Identifier: Apache-2.0
"""Compressed data comes back however it is cut, and every kind of damage is named with its place."""

import bz2
import gzip
import re
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.compression import (
    CODECS,
    MARK_BYTES,
    Compression,
    Inflater,
    as_compression,
    codec_of_bytes,
    compression_of,
    encoder_of,
)

KINDS: tuple[Compression, ...] = ("GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY")
CHECKED: tuple[Compression, ...] = ("GZIP", "ZLIB", "BZ2", "SNAPPY")
"""Those whose streams have checksums."""


def packed(kind: Compression, data: bytes, level: int = -1, each: int = 1000) -> bytes:
    encoder = encoder_of(kind, level)
    parts = [encoder.encode(data[start : start + each]) for start in range(0, len(data), each)]
    return b"".join(parts) + encoder.finish()


def reader(data: bytes, each: int) -> Callable[[int], bytes]:
    """Hands out `data`, at most `each` bytes at a time."""
    left = memoryview(data)

    def read(size: int) -> bytes:
        nonlocal left
        part, left = left[: min(size, each)], left[min(size, each) :]
        return bytes(part)

    return read


def inflated(kind: Compression, data: bytes, each: int = 7, most: int = 5) -> bytes:
    """All that is in `data`, handed in and taken out a few bytes at a time."""
    inflater, found, room = Inflater(kind, "a.gz", reader(data, each)), bytearray(), bytearray(most)
    while got := inflater.readinto(memoryview(room)):
        found += room[:got]
    assert inflater.readinto(memoryview(room)) == 0
    return bytes(found)


@given(st.sampled_from(KINDS), st.binary(max_size=60), st.integers(1, 20), st.integers(1, 20), st.integers(1, 70))
def test_data_comes_back_however_it_is_cut(kind: Compression, data: bytes, each: int, most: int, piece: int) -> None:
    assert inflated(kind, packed(kind, data, each=piece), each, most) == data


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_any_buffer_comes_back(kind: Compression) -> None:
    data = bytes(range(256)) * 3000 + bytes(300_000)
    assert inflated(kind, packed(kind, data, each=200_000), 1 << 20, 100_000) == data
    assert inflated(kind, packed(kind, data, each=1 << 20), 50_000, 1 << 20) == data


@pytest.mark.parametrize("kind", [kind for kind in KINDS if CODECS[kind].levels])
def test_the_lowest_and_the_highest_level_work_and_others_are_refused(kind: Compression) -> None:
    low, high = CODECS[kind].levels or (0, 0)
    data = bytes(range(50)) * 20
    assert all(inflated(kind, packed(kind, data, level)) == data for level in (low, high))
    with pytest.raises(InvalidArgumentError, match=f"compression {kind} has levels from {low} to {high}, got level 99"):
        encoder_of(kind, 99)


def test_snappy_has_no_levels() -> None:
    with pytest.raises(InvalidArgumentError, match="compression SNAPPY has no levels, got level 1"):
        encoder_of("SNAPPY", 1)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ZLIB"])
def test_streams_that_follow_each_other_are_one(kind: Compression) -> None:
    parts = [b"abc" * 10, b"", b"def"]
    for each in (1, 7, 1000):
        assert inflated(kind, b"".join(packed(kind, part) for part in parts), each) == b"".join(parts)


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=3), st.integers(0, 9), st.integers(1, 9))
def test_members_of_gzip_follow_each_other_with_zeros_at_the_end(parts: list[bytes], zeros: int, each: int) -> None:
    assert inflated("GZIP", b"".join(map(gzip.compress, parts)) + bytes(zeros), each) == b"".join(parts)


def test_others_read_what_was_compressed() -> None:
    data = b"abc" * 100
    assert gzip.decompress(packed("GZIP", data)) == data
    assert zlib.decompress(packed("ZLIB", data)) == data
    assert bz2.decompress(packed("BZ2", data)) == data
    for kind, codec in (("ZSTD", "zstd"), ("LZ4", "lz4")):
        assert pa.input_stream(pa.py_buffer(packed(kind, data)), compression=codec).read() == data  # type: ignore[arg-type]


@pytest.mark.parametrize("kind, codec", [("ZSTD", "zstd"), ("LZ4", "lz4"), ("BZ2", "bz2"), ("GZIP", "gzip")])
def test_what_others_compressed_is_read(kind: Compression, codec: str) -> None:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, codec) as stream:
        stream.write(b"abc" * 100_000)
    assert inflated(kind, out.getvalue().to_pybytes(), 1000, 10_000) == b"abc" * 100_000


def test_a_stream_of_snappy_has_chunks_of_every_kind() -> None:
    whole = packed("SNAPPY", b"abc" * 50)
    padded = whole[:10] + b"\xfe\x02\0\0xx" + whole[10:] + b"\x80\x01\0\0x" + whole
    assert inflated("SNAPPY", padded) == b"abc" * 100
    # Written as in framing_format.txt, by hand: a plain chunk of one byte, whose masked CRC32C is this.
    assert packed("SNAPPY", b"a")[:10] == b"\xff\x06\0\0sNaPpY"
    assert packed("SNAPPY", b"a")[10:14] == b"\x01\x05\0\0"


@pytest.mark.parametrize(
    "chunk, what",
    [
        (b"\x02\x01\0\0x", "a chunk of the unknown kind 0x02"),
        (b"\x01\x01\0\0x", "too short for its checksum"),
        (b"\x00\x0a\0\0abcd\xff\xff\xff\xff\x0fx", "a chunk of .* bytes, more than the 65536 that are allowed"),
        (b"\x01\x05\0\0abcdx", "the checksum of a chunk should be 0x64636261, but is"),
        (b"\xff\x06\0\0sNaPpX", "the identifier of the stream is not Snappy's"),
    ],
)
def test_chunks_of_snappy_that_cannot_be_are_errors(chunk: bytes, what: str) -> None:
    with pytest.raises(DataLossError, match=f"a.gz: corrupted SNAPPY data at or before byte .*{what}"):
        inflated("SNAPPY", packed("SNAPPY", b"a") + chunk)


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB", "ZSTD", "LZ4", "SNAPPY"])
def test_what_was_flushed_can_be_read_before_the_end(kind: Compression) -> None:
    encoder, room = encoder_of(kind), bytearray(3)
    inflater = Inflater(kind, "a", reader(encoder.encode(b"abc") + encoder.flush(), 100))
    assert inflater.readinto(memoryview(room)) == 3
    assert room == b"abc"


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_file_is_an_empty_stream(kind: Compression) -> None:
    assert inflated(kind, b"") == b""
    assert inflated(kind, packed(kind, b"")) == b""


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_is_noticed(kind: Compression) -> None:
    data = packed(kind, bytes(range(50)))
    whole = {0, 10} if kind == "SNAPPY" else {0}  # what ends after the identifier is an empty stream
    for end in set(range(len(data))) - whole:
        with pytest.raises(DataLossError, match=f"a.gz: corrupted {kind} data at or before byte {end}: .* cut short$"):
            inflated(kind, data[:end])


@pytest.mark.parametrize("kind", CHECKED)
def test_every_changed_bit_is_noticed_or_means_nothing(kind: Compression) -> None:
    whole = packed(kind, bytes(range(50)))
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        try:
            assert inflated(kind, bytes(data), 100, 100) in (bytes(range(50)), b"")  # b"": a chunk that may be skipped
        except DataLossError as error:
            assert f"corrupted {kind} data at or before byte" in str(error)  # noqa: PT017 - not all are errors


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_changed_bytes_are_noticed_with_the_place(kind: Compression) -> None:
    data = bytearray(packed(kind, bytes(range(50))))
    data[-3] ^= 1
    with pytest.raises(DataLossError, match=rf"a.gz: corrupted {kind} data at or before byte \d+: .*incorrect"):
        inflated(kind, bytes(data))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_compressed_is_an_error(kind: Compression) -> None:
    with pytest.raises(DataLossError, match=f"corrupted {kind} data at or before byte .*; pass compression_type='' if"):
        inflated(kind, b"no compressed data, but a line of text\n" * 5)


def test_nothing_may_follow_the_end() -> None:
    with pytest.raises(DataLossError, match="something follows the end of the compressed data"):
        inflated("ZLIB", packed("ZLIB", b"abc") + b"x")
    with pytest.raises(DataLossError, match="incorrect header check"):
        inflated("GZIP", packed("GZIP", b"abc") + b"no member")
    for kind in ("BZ2", "ZSTD", "LZ4", "SNAPPY"):
        with pytest.raises(DataLossError, match=f"corrupted {kind} data"):
            inflated(kind, packed(kind, b"abc") + b"no member")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_the_file_stays_what_it_is(kind: Compression) -> None:
    def read(size: int) -> bytes:
        raise PermissionError("no")

    with pytest.raises(PermissionError, match="no"):
        Inflater(kind, "a", read).readinto(memoryview(bytearray(5)))


@pytest.mark.parametrize(
    "given, wanted",
    [
        (None, ""),
        ("", ""),
        (b"", ""),
        ("GZIP", "GZIP"),
        (b"ZLIB", "ZLIB"),
        ("AUTO", "AUTO"),
        *zip(KINDS, KINDS, strict=True),
    ],
)
def test_names_of_compressions(given: Any, wanted: str) -> None:
    assert as_compression(given) == wanted


@pytest.mark.parametrize("name", ["gzip", "BROTLI", b"zlib", [], False])
def test_names_of_no_compression_are_refused(name: Any) -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=f"Unsupported compression_type: {re.escape(repr(name))}; known are '' for none, 'GZIP'",
    ):
        as_compression(name)


@pytest.mark.parametrize(
    "path, kind",
    [
        ("a.txt", ""),
        ("a.gz", "GZIP"),
        ("a.tar.GZ", "GZIP"),
        ("a.jsonl.zst", "ZSTD"),
        ("s3://b/a.lz4", "LZ4"),
        ("https://host/a.bz2?key=a.gz", "BZ2"),
        ("what?.gz", "GZIP"),
        ("zip://a.sz::b.gz", "SNAPPY"),
        ("a.zz", "ZLIB"),
        ("gz", ""),
    ],
)
def test_auto_goes_by_the_suffix(path: str, kind: str) -> None:
    assert compression_of("AUTO", path) == kind
    assert compression_of("ZLIB", path) == "ZLIB"


@pytest.mark.parametrize("path", ["a.jsonl.xz", "s3://b/a.XZ?v=1", "a.lzma", "a.csv.br", "a.txt.Z"])
def test_suffixes_of_compressions_that_are_not_there_are_refused(path: str) -> None:
    with pytest.raises(UnimplementedError, match=r"cannot be decompressed; .*'\.gz'.*compression_type=''"):
        compression_of("AUTO", path)
    assert compression_of("", path) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_first_bytes_tell_the_codec(kind: Compression) -> None:
    lowest, highest = CODECS[kind].levels or (-1, -1)
    wanted = "" if kind == "ZLIB" else kind
    assert {codec_of_bytes(packed(kind, b"one", level)[:MARK_BYTES]) for level in (lowest, highest)} == {wanted}


def test_first_bytes_of_text_tell_no_codec() -> None:
    assert [codec_of_bytes(text) for text in (b"", b"BZhang is a name", b"BZh9,1\n2,3\n")] == ["", "", ""]
    assert codec_of_bytes(bz2.compress(b"")[:MARK_BYTES]) == "BZ2"
