# SPDX-License-Identifier: Apache-2.0
"""Where records of CSV end."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from distinput.kernels.lines import BLANKS, MULTILINE, RETURNS, csv_records, csv_records_reference

MANY = sys.maxsize


def scan(text: bytes, until: int = MANY, rows: int = MANY, quote: int = 34, rules: int = MULTILINE) -> tuple[int, ...]:
    buffer = np.frombuffer(text, np.uint8)
    return csv_records.compiled()(buffer, 0, buffer.size, until, rows, 44, quote, rules)


@pytest.mark.parametrize(
    "text, records, rest, lines",
    [
        (b"", 0, b"", 0),
        (b"a,b", 0, b"a,b", 0),
        (b"a,b\r\n\n\r\nc,d\ne", 2, b"e", 4),
        (b'"a\nb",c\nd', 1, b"d", 2),
        (b'"a ""b""\n",c\nd\n', 2, b"", 3),
        (b'a"b\nc\n', 2, b"", 2),  # a quote inside of a value stands for itself
        (b'"a"b"c\nd\n', 2, b"", 2),  # also behind quotes
        (b'"a\nb', 0, b'"a\nb', 0),
        (b'1,"', 0, b'1,"', 0),
        (b"a\r", 0, b"a\r", 0),
    ],
)
def test_newlines_in_quotes_end_no_record(text: bytes, records: int, rest: bytes, lines: int) -> None:
    for before in (0, 1, 30, 63, 64, 65, 127):  # wherever the 64 bytes that are looked at together begin
        found = scan(b"x" * before + b"\n" + text)
        assert found == (records + (before > 0), before + 1 + len(text) - len(rest), lines + 1, -1)


def test_a_return_alone_and_an_unwanted_newline_are_found() -> None:
    assert scan(b"a\nb\rc\n") == (1, 2, 1, 3)
    assert scan(b'a\n"b\nc"\n', rules=0) == (1, 2, 1, 4)
    assert scan(b'a\n"b\rc"\n') == (2, 8, 2, -1)


def test_a_return_may_end_a_line_and_an_empty_line_be_a_record() -> None:
    assert scan(b"a\rb\r\n\r\nc\n", rules=RETURNS) == (3, 9, 3, -1)
    assert scan(b"a\rb\r\n\r\nc\n\r\r\n", rules=RETURNS | BLANKS) == (6, 12, 4, -1)


def test_without_quotes_every_newline_ends_a_record() -> None:
    assert scan(b'"a\nb"\n', quote=-1) == (2, 6, 2, -1)


def test_it_stops_at_a_line_and_after_rows() -> None:
    text = b"ab\n" * 100
    assert scan(text, until=0) == (0, 0, 0, -1)
    assert scan(text, until=1) == (1, 3, 1, -1)
    assert scan(text, until=150) == (50, 150, 50, -1)
    assert scan(text, rows=70) == (70, 210, 70, -1)


PARTS = [b",", b"\n", b"\r\n", b"abc", b'"a,b"', b'"a""b"', b'""', b'"a\nb\r"', b'"', b'a"', b"\r", b"x" * 70]


@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=60),
    until=st.sampled_from([MANY, 5, 64, 100]),
    rows=st.sampled_from([MANY, 1, 3, 0]),
    quote=st.sampled_from([34, 34, 34, -1]),
    rules=st.integers(0, 7),
)
@example(
    [b'"a\nb\r"', b"\r", b"abc"], MANY, MANY, 34, MULTILINE | RETURNS
)  # a newline in quotes, then a return that ends
def test_it_equals_its_reference(parts: list[bytes], until: int, rows: int, quote: int, rules: int) -> None:
    buffer = np.frombuffer(b"".join(parts), np.uint8)
    arguments = (buffer, 0, buffer.size, until, rows, 44, quote, rules)
    assert csv_records.compiled()(*arguments) == csv_records_reference(*arguments)


def test_offsets_outside_of_the_buffer_are_refused() -> None:
    for function in (csv_records.compiled(), csv_records_reference):
        with pytest.raises(ValueError, match="size of the buffer"):
            function(np.zeros(3, np.uint8), 0, 4, MANY, MANY, 44, 34, 1)
