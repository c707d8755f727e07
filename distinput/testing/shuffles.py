# SPDX-License-Identifier: Apache-2.0
"""A check of the order that a shuffle gives."""

from collections import Counter
from typing import Any

from distinput.testing.elements import exact

__all__ = ["checked_shuffle"]


def checked_shuffle(before: list[Any], seen: list[Any], buffer_size: int | None) -> list[Any]:
    """`seen`, if it can be the shuffled `before`: the same elements, none of them earlier than the buffer allows.

    Raises:
      AssertionError: an element is missing or new, or came before it could be in the buffer.

    >>> checked_shuffle([b"a", b"b", b"c"], [b"b", b"a", b"c"], buffer_size=2)
    [b'b', b'a', b'c']
    """
    keys, given = [exact(element) for element in before], [exact(element) for element in seen]
    if Counter(keys) != Counter(given):
        raise AssertionError(f"shuffle: {seen!r} are not the elements {before!r} in another order")
    if buffer_size is not None:
        inside: Counter[Any] = Counter(keys[: buffer_size - 1])
        for place, key in enumerate(given):
            inside.update(keys[place + buffer_size - 1 : place + buffer_size])
            if not inside[key]:
                raise AssertionError(f"shuffle: element {place} of {seen!r} was not in a buffer of {buffer_size} yet")
            inside[key] -= 1
    return seen
