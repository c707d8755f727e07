# SPDX-License-Identifier: Apache-2.0
"""Lines as TextLineDataset tells them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.kernels.lines import scan_lines, scan_reference


def lines(text: bytes, room: int = 99) -> tuple[list[bytes], bytes]:
    """The lines, and what is left."""
    buffer = np.frombuffer(text, np.uint8)
    starts, lengths = np.empty(room, np.int64), np.empty(room, np.int64)
    count, at = scan_lines.compiled()(buffer, 0, buffer.size, starts, lengths)
    return [text[a : a + n] for a, n in zip(starts[:count], lengths[:count], strict=True)], text[at:]


@pytest.mark.parametrize(
    "text, expected",
    [
        (b"", ([], b"")),
        (b"no end", ([], b"no end")),
        (b"\n", ([b""], b"")),
        (b"\r\n", ([b""], b"")),
        (b"a\r\r\nb\rc\n\r", ([b"a\r", b"b\rc"], b"\r")),
        (b"one\ntwo\r\n\nthree", ([b"one", b"two", b""], b"three")),
    ],
)
def test_a_line_ends_with_a_newline_and_loses_one_return(text: bytes, expected: tuple[list[bytes], bytes]) -> None:
    assert lines(text) == expected


def test_newlines_are_found_wherever_they_are() -> None:
    for before in range(140):
        for between in (0, 1, 63, 64, 65):
            text = b"x" * before + b"\n" + b"y" * between + b"\r\n" + b"z" * (before % 7)
            assert lines(text) == ([b"x" * before, b"y" * between], b"z" * (before % 7))


@given(
    pieces=st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"a", b"x" * 61, b"x" * 600]), min_size=20, max_size=200),
    start=st.integers(0, 20),
    room=st.integers(60, 300),
)
def test_lines_are_found_with_much_room_as_with_little(pieces: list[bytes], start: int, room: int) -> None:
    buffer = np.frombuffer(b"".join(pieces), np.uint8)
    told = []
    for scan in (scan_lines.compiled(), scan_reference):
        starts, lengths = np.empty((2, room), np.int64)
        count, at = scan(buffer, start, buffer.size, starts, lengths)
        told.append((starts[:count].tolist(), lengths[:count].tolist(), at))
    assert told[0] == told[1]


def test_a_full_output_stops_the_scan() -> None:
    assert lines(b"a\nb\nc\n" * 50, room=4) == ([b"a", b"b", b"c", b"a"], b"b\nc\n" + b"a\nb\nc\n" * 48)
    assert lines(b"a\n", room=0) == ([], b"a\n")


def test_a_return_before_the_start_does_not_count() -> None:
    buffer = np.frombuffer(b"\r\nab\n", np.uint8)
    starts, lengths = np.empty(9, np.int64), np.empty(9, np.int64)
    assert scan_lines.compiled()(buffer, 1, 5, starts, lengths) == (2, 5)
    assert lengths[:2].tolist() == [0, 2]
