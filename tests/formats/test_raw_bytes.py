# SPDX-License-Identifier: Apache-2.0
"""Byte strings as numbers, and other forms of them; the answers are TensorFlow 2.21's."""

import gzip
import zlib
from typing import Any

import numpy as np
import pytest

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.formats import raw_bytes
from distinput.formats.raw_bytes import decode_base64, decode_compressed, decode_raw, encode_base64


@pytest.mark.parametrize(
    "strings, dtype, how, expected",
    [
        (b"\x01\x02\x03\x04", "int16", {}, [513, 1027]),
        (b"\x01\x02\x03\x04", "int16", {"little_endian": False}, [258, 772]),
        ([b"\x01\x02\x03\x04", b"\x05\x06\x07\x08"], "int16", {}, [[513, 1027], [1541, 2055]]),
        ([b"\x01\x02\x03\x04", b"\x05"], "uint8", {"fixed_length": 2}, [[1, 2], [5, 0]]),
        ([b"\x01\x02\x03\x04", b"\x05"], "int16", {"fixed_length": 4}, [[513, 1027], [5, 0]]),
        (b"\x01\x00", "bool", {}, [True, False]),
        (b"", "int16", {}, []),
        ([[b"\x01"], [b"\x02"]], "uint8", {}, [[[1]], [[2]]]),
    ],
)
def test_bytes_are_numbers(strings: Any, dtype: str, how: dict[str, Any], expected: Any) -> None:
    found = decode_raw(strings, dtype, **how)
    assert (found.tolist(), found.dtype) == (expected, np.dtype(dtype))


@pytest.mark.parametrize(
    "strings, dtype, how, says",
    [
        (b"\x01\x02\x03", "int16", {}, "the length of a string, 3, must be a multiple of 2, the size of int16"),
        ([b"\x01\x02", b"\x01"], "uint8", {}, "all strings must have the same length, got 1 and 2; give fixed_length"),
        (b"\x01", "int16", {"fixed_length": 3}, r"fixed_length .3. must be a multiple of the size of out_type .2."),
        (b"\x01", "string", {}, "out_type must be a dtype of numbers, got string"),
        (3, "int16", {}, "expected byte strings, got 3"),
    ],
)
def test_lengths_and_dtypes_are_checked(strings: Any, dtype: str, how: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"decode_raw: {says}"):
        decode_raw(strings, dtype, **how)


def test_strings_are_decompressed() -> None:
    assert decode_compressed(zlib.compress(b"abc"), "ZLIB") == b"abc"
    assert decode_compressed([gzip.compress(b"abc"), gzip.compress(b"")], "GZIP").tolist() == [b"abc", b""]
    assert decode_compressed(b"abc") == b"abc"
    with pytest.raises(
        InvalidArgumentError, match="decode_compressed: compression_type must be one of '', 'GZIP', 'ZLIB', g"
    ):
        decode_compressed(b"abc", "LZ")


def test_all_members_of_a_gzip_string_are_decompressed() -> None:
    # Only the first one was; TensorFlow gives all, too.
    one, two = gzip.compress(b"one"), gzip.compress(b"two" * 9)
    assert decode_compressed(one + two, "GZIP") == b"one" + b"two" * 9
    assert decode_compressed(gzip.compress(b"") + one + gzip.compress(b""), "GZIP") == b"one"
    for damaged in (one + b"junk", one + bytes(8), one + two[:9], one + two[:-1]):
        with pytest.raises(DataLossError, match="decode_compressed: a string is damaged"):
            decode_compressed(damaged, "GZIP")
    assert decode_compressed(zlib.compress(b"one") + b"more", "ZLIB") == b"one"  # as TensorFlow


@pytest.mark.parametrize("data", [b"abc", zlib.compress(b"abc" * 9)[:-4], b""])
def test_damaged_strings_are_errors(data: bytes) -> None:
    with pytest.raises(DataLossError, match="decode_compressed: a string is damaged"):
        decode_compressed(data, "ZLIB")


def test_a_string_that_becomes_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_bytes, "_MOST_BYTES", 1000)
    assert len(decode_compressed(zlib.compress(bytes(1000)), "ZLIB")) == 1000
    with pytest.raises(DataLossError, match=r"a string of .* bytes becomes more than 1000 bytes"):
        decode_compressed(zlib.compress(bytes(100_000)), "ZLIB")
    with pytest.raises(DataLossError, match=r"a string of .* bytes becomes more than 1000 bytes"):
        decode_compressed(gzip.compress(bytes(600)) * 2, "GZIP")


def test_text_that_is_safe_in_urls() -> None:
    assert encode_base64(b"\xff\xfe\xfd?") == b"__79Pw"
    assert encode_base64(b"a", pad=True) == b"YQ=="
    assert encode_base64([b"a", b"b"]).tolist() == [b"YQ", b"Yg"]
    assert decode_base64("__79Pw") == b"\xff\xfe\xfd?"
    assert decode_base64(["YQ==", "YQ"]).tolist() == [b"a", b"a"]
    with pytest.raises(InvalidArgumentError, match="decode_base64: Invalid character found in base64"):
        decode_base64(b"****")
    for text in (b"+/", b"YQ=", b"YQ===", b"=", b"====", b"YWJj=", b"YWI==", b"Y"):
        with pytest.raises(InvalidArgumentError, match="decode_base64: Invalid character found in base64"):
            decode_base64(text)
    assert [decode_base64(text) for text in (b"", b"YWI=", b"YR")] == [b"", b"ab", b"a"]
    with pytest.raises(InvalidArgumentError, match="encode_base64: expected byte strings, got 3"):
        encode_base64([3])
