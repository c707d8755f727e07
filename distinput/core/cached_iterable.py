# SPDX-License-Identifier: Apache-2.0
"""Items that are made one at a time, when they are first needed, and kept."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["CachedIterable"]

T = TypeVar("T")


class CachedIterable(Generic[T]):
    """The items of an iterable, which may be iterated again; who stops early causes no further items to be made.

    Args:
      items: iterated once, as far as anybody goes.

    >>> squares = CachedIterable(print(n) or n * n for n in range(100))
    >>> any(square > 3 for square in squares), any(square == 1 for square in squares)
    0
    1
    2
    (True, True)
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._rest = iter(items)
        self._made: list[T] = []

    def __iter__(self) -> Iterator[T]:
        index = 0
        while True:
            if index == len(self._made):
                try:
                    self._made.append(next(self._rest))
                except StopIteration:
                    return
            yield self._made[index]
            index += 1
