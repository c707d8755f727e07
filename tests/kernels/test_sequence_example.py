# SPDX-License-Identifier: Apache-2.0
"""Steps of sequences: what is told of each odd way to write them, and of too little room."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distinput.kernels import example_values
from distinput.kernels.example_values import NO_ROOM
from distinput.kernels.sequence_messages import ABSENT, locate_steps


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def step(*values: int) -> bytes:
    return field(1, field(3, field(1, bytes(values))))


def message(*entries: bytes) -> bytes:
    return field(2, b"".join(field(1, entry) for entry in entries))


def entry(key: bytes, *pieces: bytes) -> bytes:
    return field(1, key) + b"".join(field(2, piece) for piece in pieces)


def locate(contents: list[bytes], keys: list[bytes], rooms: list[int]) -> Any:
    """What is returned, the counts by key, and the values of the steps by key."""
    data, sizes = np.frombuffer(b"".join(contents), np.uint8), np.array([len(each) for each in contents])
    places = np.cumsum([0, *rooms])
    counts, kinds = np.empty(len(keys) * len(contents), np.int64), np.zeros(places[-1], np.uint8)
    starts, lengths = np.zeros((2, places[-1]), np.int64)
    given = np.frombuffer(b"".join(keys), np.uint8), np.cumsum([0, *map(len, keys)]), places
    told = locate_steps.compiled()(data, np.cumsum(sizes) - sizes, sizes, *given, counts, kinds, starts, lengths)
    rows = counts.reshape(len(keys), -1)
    if told[0] != example_values.OK:
        return told, rows.tolist(), None
    spans = [data[a + 2 : a + n].tolist() if kind else None for kind, a, n in zip(kinds, starts, lengths, strict=True)]
    totals = np.maximum(rows, 0).sum(axis=1)
    return told, rows.tolist(), [spans[at : at + total] for at, total in zip(places, totals, strict=False)]


A = message(entry(b"x", step(1, 2) + step() + step(3)), entry(b"y", step(9)), entry(b"z", b""))


def test_the_steps_of_each_key_follow_one_another() -> None:
    other = message(entry(b"y", step(7) + field(1, b"")))
    assert locate([A, other], [b"y", b"x", b"z"], [3, 3, 0]) == (
        (example_values.OK, 2),
        [[1, 2], [3, ABSENT], [0, ABSENT]],
        [[[9], [7], None], [[1, 2], [], [3]], []],
    )


def test_room_that_is_too_small_is_told_with_what_is_needed() -> None:
    told, counts, _ = locate([A, A], [b"y", b"x"], [2, 5])
    assert told == (NO_ROOM, 1)
    assert counts == [[1, 1], [3, 3]]
    assert locate([A, A], [b"y", b"x"], [2, 6])[0] == (example_values.OK, 0)


@pytest.mark.parametrize(
    "content, expected",
    [
        (
            message(entry(b"x", step(1))) + message(entry(b"x", step(2), step(3))),
            [[2], [3]],
        ),  # the last entry, in pieces
        (message(field(2, step(4)) + field(1, b"x")), [[4]]),  # the value before the key
        (message(entry(b"x")), []),
        (message(entry(b"x", b"\x10\x01" + step(5) + field(7, b"?"))), [[5]]),  # unknown fields
        (
            message(entry(b"x", field(1, field(1, field(1, b"text")) + field(3, field(1, b"\x06"))))),
            [[6]],
        ),  # the last kind
        (message(entry(b"x", b"\x0a\x85\x00" + step(7)[2:])), [[7]]),  # a length with a byte too many
    ],
)
def test_odd_messages_that_are_right(content: bytes, expected: list[Any]) -> None:
    told, counts, found = locate([content], [b"x"], [9])
    assert (told, counts, found) == ((example_values.OK, 0), [[len(expected)]], [expected])


@pytest.mark.parametrize(
    "content",
    [
        b"\x12",
        message(entry(b"x", b"\x0a\x05")),
        message(entry(b"x", field(1, b"\x1a\x05"))),
        message(entry(b"x", field(1, field(3, b"") + field(3, b"")))),  # a list in pieces
        message(entry(b"x", step(1)), b"\x0b"),
        message(entry(b"x", b"\x0b")) + message(entry(b"x", step(1))),  # of no use, and damaged
    ],
)
def test_malformed_messages_are_told(content: bytes) -> None:
    assert locate([A, content, A], [b"x"], [99])[0] == (example_values.MALFORMED, 1)
