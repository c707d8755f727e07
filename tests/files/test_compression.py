# SPDX-License-Identifier: Apache-2.0
"""Compressed data comes back however it is cut, and every kind of damage is named with its place."""

import gzip
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.compression import Compression, Deflater, Inflater, as_compression

KINDS: tuple[Compression, ...] = ("GZIP", "ZLIB")


def packed(kind: Compression, data: bytes, level: int = -1) -> bytes:
    deflater = Deflater(kind, level)
    return deflater.deflate(data) + deflater.finish()


def inflated(kind: Compression, data: bytes, each: int = 7, most: int = 5) -> bytes:
    """All that is in `data`, handed in and taken out a few bytes at a time."""
    inflater, found = Inflater(kind, "a.gz"), bytearray()
    for start in range(0, len(data), each):
        assert inflater.hungry
        inflater.feed(data[start : start + each])
        while True:
            made = inflater.inflate(most)
            assert len(made) <= most
            found += made
            if not made and inflater.hungry:
                break
    while made := inflater.inflate(most):
        found += made
    inflater.finish()
    return bytes(found)


@given(st.sampled_from(KINDS), st.binary(max_size=60), st.integers(1, 20), st.integers(1, 20), st.integers(-1, 9))
def test_data_comes_back_however_it_is_cut(kind: Compression, data: bytes, each: int, most: int, level: int) -> None:
    assert inflated(kind, packed(kind, data, level), each, most) == data


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=3), st.integers(0, 9), st.integers(1, 9))
def test_members_of_gzip_follow_each_other_with_zeros_at_the_end(parts: list[bytes], zeros: int, each: int) -> None:
    assert inflated("GZIP", b"".join(map(gzip.compress, parts)) + bytes(zeros), each) == b"".join(parts)


def test_others_read_what_was_compressed() -> None:
    assert gzip.decompress(packed("GZIP", b"abc" * 100)) == b"abc" * 100
    assert zlib.decompress(packed("ZLIB", b"abc" * 100)) == b"abc" * 100


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_flushed_can_be_read_before_the_end(kind: Compression) -> None:
    deflater, inflater = Deflater(kind), Inflater(kind, "a")
    inflater.feed(deflater.deflate(b"abc") + deflater.flush())
    assert inflater.inflate(10) == b"abc"


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_file_is_an_empty_stream(kind: Compression) -> None:
    assert inflated(kind, b"") == b""
    inflater = Inflater(kind, "a")
    inflater.feed(b"")
    assert inflater.inflate(5) == b""
    inflater.finish()


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_is_noticed(kind: Compression) -> None:
    data = packed(kind, bytes(range(50)))
    for end in range(1, len(data)):
        with pytest.raises(DataLossError, match=f"a.gz: corrupted {kind} data at or before byte {end}: .* cut short"):
            inflated(kind, data[:end])


@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes_are_noticed_with_the_place(kind: Compression) -> None:
    data = bytearray(packed(kind, bytes(range(50))))
    data[-3] ^= 1
    with pytest.raises(DataLossError, match=rf"a.gz: corrupted {kind} data at or before byte \d+: .*incorrect"):
        inflated(kind, bytes(data))


def test_nothing_may_follow_the_end() -> None:
    with pytest.raises(DataLossError, match="something follows the end of the compressed data"):
        inflated("ZLIB", packed("ZLIB", b"abc") + b"x")
    with pytest.raises(DataLossError, match="incorrect header check"):
        inflated("GZIP", packed("GZIP", b"abc") + b"no member")


@pytest.mark.parametrize(
    "given, wanted", [(None, ""), ("", ""), (b"", ""), ("GZIP", "GZIP"), (b"ZLIB", "ZLIB")]
)  # fmt: skip
def test_names_of_compressions(given: Any, wanted: str) -> None:
    assert as_compression(given) == wanted


@pytest.mark.parametrize("name", ["gzip", "BZ2", b"zlib"])
def test_names_of_no_compression_are_refused(name: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Unsupported compression_type: {name!r}; known are '', 'GZIP'"):
        as_compression(name)
