# SPDX-License-Identifier: Apache-2.0
"""What an iterator has in hand: the elements of one block, and the place after each of them.

An iterator takes over a block by putting another hand in the place of the one before. After that, only C code changes it: it
counts down with each element that is taken. So an interrupt finds the iterator before an element or behind it, never between.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress, repeat
from operator import length_hint
from threading import RLock
from typing import Any, Self

from distinput.core.block import Block
from distinput.core.state import State

__all__ = ["NONE", "Hand"]

NONE: Iterator[Any] = iter(())
"""No elements."""

_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
"""True if only one thread at a time runs inside an iterator written in C."""


@dataclass(slots=True)
class Hand:
    """The elements of a block, of which some were taken.

    Args:
      at: the state of the tree before the block.
      after: the state of the tree after it.
      over: how many elements have to be passed over before the first one that is delivered.
      before: elements before the block, if they are known; elements that an error stands for are missing.
      passed: the code of an error that was raised, and comes once more on the way.
      since: whether there were elements since then.
      size: elements of the block.
      left: its length hint is the number of elements that were not taken.
      parts: the elements, in iterators of which each is used up before the next one. Each element that is taken must take one
        from `left`.
    """

    at: State
    after: State
    over: int = 0
    before: int | None = None
    passed: str | None = None
    since: bool = False
    size: int = 0
    left: Iterator[Any] = NONE
    parts: Iterator[Iterator[Any]] = NONE

    def part(self) -> Iterator[Any] | None:
        """The next part of the elements; None if there is none."""
        for part in self.parts:
            return compress(part, self.left)
        return None

    def drop(self) -> None:
        """Let go of a block that is used up, so that its memory can be reused for the next one."""
        self.left = self.parts = NONE

    def behind(self, after: State, over: int, *, passed: str | None, since: bool) -> Self:
        """Behind this block, with none in hand."""
        before = None if self.before is None else self.before + self.size
        return type(self)(self.after, after, over, before, passed, since)

    def hold(self, block: Block, over: int) -> Iterator[Any]:
        """Take a block, of which the first elements are passed over; the first part of the others.

        Several threads may take elements from a part at a time, and each goes to one of them.
        """
        size, rows = block.size, block.rows(over, block.size)
        parts = (rows.shared_parts() if _GIL else None) or iter((_Turns(rows.elements()),))
        elements: Iterator[Any] = next(parts)
        if length_hint(elements, -1) == rows.size:
            self.left = elements  # all of them
        else:
            self.left = repeat(True, rows.size)
            elements = compress(elements, self.left)
        self.size, self.parts = size, parts
        return elements

    def place(self, left: int) -> State:
        """The state of the tree, and how many elements to pass over from there, where so many are left in hand."""
        if not left and not self.over:  # the block is used up, so no part of it has to be made again
            return {"at": self.after, "skip": 0}
        return {"at": self.at, "skip": self.size - left + self.over}


class _Turns:
    """An iterator from which several threads take in turn.

    Args:
      elements: an iterator that only one thread may be in.
    """

    def __init__(self, elements: Iterator[Any]) -> None:
        self._elements, self._lock = elements, RLock()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        with self._lock:
            return next(self._elements)
