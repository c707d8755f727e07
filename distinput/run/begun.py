# SPDX-License-Identifier: Apache-2.0
"""An iterator that a sample has begun, kept for the pass that reads on: some can be begun only once."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

__all__ = ["Begun"]

_MOST = 1000
"""Items that are kept; a sample that has to go further is read again."""


class Begun:
    """What samples have read of something, and the iterator that goes on behind it.

    >>> begun, numbers = Begun(), iter(range(4))
    >>> sample = begun.items(lambda: numbers, int, sampling=True)
    >>> next(sample), sample.close()
    (0, None)
    >>> list(begun.items(lambda: numbers, int, sampling=False))
    [0, 1, 2, 3]
    """

    def __init__(self) -> None:
        self._kept: list[tuple[list[Any], Iterator[Any]]] = []  # at most one; who takes it has it alone

    def __getstate__(self) -> dict[str, Any]:
        return {"_kept": []}  # another process begins anew

    def items(
        self, begin: Callable[[], Iterator[Any]], copied: Callable[[Any], Any], *, sampling: bool
    ) -> Iterator[Any]:
        """All items from the first one on.

        Args:
          begin: makes an iterator.
          copied: a copy of an item, for a sample, which may change it.
          sampling: whether they are read to see what they look like.
        """
        try:
            read, rest = self._kept.pop()
        except IndexError:
            read, rest = [], begin()
        if sampling:
            return self._sampled(read, rest, copied)
        return chain(read, rest) if read else rest

    def _sampled(self, read: list[Any], rest: Iterator[Any], copied: Callable[[Any], Any]) -> Iterator[Any]:
        try:
            yield from map(copied, list(read))
            for item in rest:
                if len(read) <= _MOST:
                    read.append(item)
                yield copied(item)
        except Exception:
            read += [None] * (_MOST + 1)  # nothing follows the error, which comes again in a pass from the beginning
            raise
        finally:
            if len(read) <= _MOST:
                self._kept[:] = [(read, rest)]
