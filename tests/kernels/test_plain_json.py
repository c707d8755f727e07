# SPDX-License-Identifier: Apache-2.0
"""Plain objects of JSON in memory: text with escapes, and values that only look like JSON."""

from typing import Any

import numpy as np
import pytest

from distinput.kernels.plain_csv import FLOAT64, INT64, LEFT_OUT, TEXT
from distinput.kernels.plain_json import ESCAPED, NOT_PLAIN, OK, plain_json

KEY = np.frombuffer(b'"a"', np.uint8)


def one(kind: int, value: bytes, room: bool = True) -> tuple[int, Any]:
    data = np.frombuffer(b'{"a": %s}\n' % value, np.uint8)
    out, text = np.zeros(16, np.uint8), data.copy() if room else np.empty(0, np.uint8)
    status, _ = plain_json.compiled()(data, 1, KEY, np.array([3, kind, 0]), out, text)
    if kind == TEXT:
        start, size = out.view(np.int64)
        return status, text[start : start + size].tobytes()
    return status, out[:8].view(np.float64 if kind == FLOAT64 else np.int64)[0]


@pytest.mark.parametrize(
    "written, meant",
    [
        (rb"\"\\\/\b\f\n\r\t", b'"\\/\b\f\n\r\t'),
        (rb"\u0041\u00e9\u20AC\ud83d\ude00", "Aé€😀".encode()),
        (b"a" * 70 + rb"\n" + b"b" * 70, b"a" * 70 + b"\n" + b"b" * 70),
        (b"\xff", b"\xff"),
    ],
)
def test_text_is_unescaped(written: bytes, meant: bytes) -> None:
    assert one(TEXT, b'"%s"' % written) == (OK, meant)


def test_room_for_text_is_asked_for_when_there_is_an_escape_in_a_value_that_is_read() -> None:
    assert one(TEXT, rb'"\n"', room=False)[0] == ESCAPED
    assert one(TEXT, rb'"n"', room=False)[0] == OK
    assert one(LEFT_OUT, rb'"\n"', room=False)[0] == OK


@pytest.mark.parametrize("value", [rb'"\ud800"', rb'"\udc00"', rb'"\u0000"', rb'"\x"', b'"\t"', b'"', b"1", b"null"])
def test_text_that_is_left_to_others(value: bytes) -> None:
    assert one(TEXT, value)[0] == NOT_PLAIN


@pytest.mark.parametrize("value", [b"007", b"1.", b".5", b"+1", b"NaN", b"0e999", b"1e400", b"1 2", b"null", b"[1]"])
def test_numbers_that_are_left_to_others(value: bytes) -> None:
    assert one(FLOAT64, value)[0] == one(INT64, value)[0] == NOT_PLAIN
