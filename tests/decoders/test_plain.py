# SPDX-License-Identifier: Apache-2.0
import pytest

from distinput.decoders.members import decode_bytes, decode_class, decode_text
from distinput.errors import InvalidArgumentError


def test_text_and_numbers() -> None:
    assert decode_text("caf\u00e9".encode()) == "caf\u00e9".encode()
    assert decode_class(b" -12\n") == -12
    assert decode_bytes(b"\xff") == b"\xff"


@pytest.mark.parametrize("text", [b"", b"1.5", b"--1", b"9" * 19, b"9" * 10_000, b"1_0", b"cat"])
def test_what_is_no_integer_of_64_bits_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="must be an integer of 64 bits"):
        decode_class(text)


def test_text_must_be_utf_8() -> None:
    with pytest.raises(InvalidArgumentError, match="not UTF-8"):
        decode_text(b"\xff")
