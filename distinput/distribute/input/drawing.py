# SPDX-License-Identifier: Apache-2.0
"""Drawing elements from an input: the next elements, their rows, and the input's state after them."""

from itertools import islice
from typing import Any

from distinput.core.nest import Structure
from distinput.core.state import State

__all__ = ["END", "drawn", "place_of", "rows_in"]


class _End:
    def __repr__(self) -> str:
        return "<end>"


END = _End()
"""Marks the end: stands for a step or an element when there are no more."""


def drawn(iterator: Any, count: int) -> tuple[list[Any], State]:
    """The next elements of an input, at most `count`, and the input's state after them."""
    return list(islice(iterator, count)), place_of(iterator)


def place_of(iterator: Any) -> State:
    """The state of an input; iterators of this library seal it only when it is needed."""
    place: State = (getattr(iterator, "place", None) or iterator.state)()
    return place


def rows_in(structure: Structure, parts: list[Any]) -> int:
    """The total number of rows of elements; `END` counts as none."""
    return sum([len(structure.flatten(part)[0]) for part in parts if part is not END])
