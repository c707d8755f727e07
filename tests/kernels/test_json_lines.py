# SPDX-License-Identifier: Apache-2.0
"""Lines with an object each."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.kernels.lines import json_lines, json_lines_reference

MANY = sys.maxsize


def scan(text: bytes, until: int = MANY, rows: int = MANY) -> tuple[int, ...]:
    buffer = np.frombuffer(text, np.uint8)
    return json_lines.compiled()(buffer, 0, buffer.size, until, rows)


@pytest.mark.parametrize(
    "text, expected",
    [
        (b"", (0, 0, 0, -1)),
        (b'{"a":1}\n{}\r\n\n \t\r\n {"b":{}} \n{', (3, 28, 5, -1)),
        (b"{}\n[1]\n", (1, 3, 1, 3)),
        (b'{"a":\n1}\n', (0, 0, 0, 0)),
        (b"{}\n}\n", (1, 3, 1, 3)),
    ],
)
def test_each_line_is_an_object_or_blank(text: bytes, expected: tuple[int, ...]) -> None:
    assert scan(text) == expected


def test_it_stops_at_a_line_and_after_rows() -> None:
    text = b'{"a":1}\n' * 100
    assert scan(text, until=0) == (0, 0, 0, -1)
    assert scan(text, until=9) == (2, 16, 2, -1)
    assert scan(text, rows=70) == (70, 560, 70, -1)


@given(
    parts=st.lists(st.sampled_from([b"{", b"}", b"{}", b"\n", b"{}\n", b" ", b"\r\n", b"x" * 70]), max_size=60),
    until=st.sampled_from([MANY, 5, 64, 100]),
    rows=st.sampled_from([MANY, 1, 3, 0]),
)
def test_it_equals_its_reference(parts: list[bytes], until: int, rows: int) -> None:
    buffer = np.frombuffer(b"".join(parts), np.uint8)
    assert json_lines.compiled()(buffer, 0, buffer.size, until, rows) == json_lines_reference(
        buffer, 0, buffer.size, until, rows
    )


def test_offsets_outside_of_the_buffer_are_refused() -> None:
    for function in (json_lines.compiled(), json_lines_reference):
        with pytest.raises(ValueError, match="size of the buffer"):
            function(np.zeros(3, np.uint8), 0, 4, MANY, MANY)
