# SPDX-License-Identifier: Apache-2.0
"""How a state differs from the one before, in a few bytes: positions are small numbers that grow a little."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["changed", "joined", "numbers_of", "read_varint", "taken_apart", "varint"]

_HOLE = {"#": 0}


def taken_apart(value: Any) -> tuple[str, list[int]]:
    """A JSON value without its integers, as text, and the integers in their order.

    >>> taken_apart({"row": 7, "input": {"row": 3, "any": True}})
    ('{"input":{"any":true,"row":{"#":0}},"row":{"#":0}}', [3, 7])
    """
    found: list[int] = []
    return json.dumps(_without(value, found), separators=(",", ":")), found


def _without(value: Any, found: list[int]) -> Any:
    if isinstance(value, dict):
        return {name: _without(value[name], found) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_without(item, found) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        found.append(value)
        return _HOLE
    return value


def joined(form: str, numbers: Sequence[int]) -> Any:
    """The JSON value that `taken_apart` took apart.

    >>> joined(*taken_apart([1, {"a": 2}, None, "x"]))
    [1, {'a': 2}, None, 'x']
    """
    left = iter(numbers)

    def filled(value: Any) -> Any:
        if value == _HOLE:
            return next(left)
        if isinstance(value, dict):
            return {name: filled(item) for name, item in value.items()}
        return [filled(item) for item in value] if isinstance(value, list) else value

    return filled(json.loads(form))


def changed(before: Sequence[int], after: Sequence[int]) -> bytes:
    """What makes `after` of `before`, which has as many numbers.

    >>> len(changed([5, 100, 7], [5, 196, 7]))
    3
    """
    made = bytearray()
    last = -1
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new:
            made += varint(place - last - 1)
            change = new - old
            made += varint(2 * change if change >= 0 else -2 * change - 1)
            last = place
    return bytes(made)


def numbers_of(before: Sequence[int], change: bytes) -> list[int]:
    """The numbers that `changed` was given.

    >>> numbers_of([5, 100, 7], changed([5, 100, 7], [5, 4, 8]))
    [5, 4, 8]
    """
    found = list(before)
    place = -1
    given = _varints(change)
    for gap in given:
        place += gap + 1
        coded = next(given)
        found[place] += coded >> 1 if coded % 2 == 0 else -(coded + 1 >> 1)
    return found


def varint(value: int) -> bytes:
    """A number from 0 on in as many bytes as it needs, seven bits in each.

    >>> list(varint(5)), list(varint(300))
    ([5], [172, 2])
    """
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def read_varint(data: bytes, at: int) -> tuple[int, int] | None:
    """The number at a place, and the place behind it; None if the bytes end before it does."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    return None


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while (found := read_varint(data, at)) is not None:
        value, at = found
        yield value
