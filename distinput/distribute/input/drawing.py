# SPDX-License-Identifier: Apache-2.0
"""Drawing elements from an input: the next elements, their rows, and the input's state after them."""

from itertools import islice
from typing import Any

from distinput.core.leaves import shape_of
from distinput.core.nest import Structure
from distinput.core.state import State

__all__ = ["END", "drawn", "mark_of", "place_of", "rows_in"]


class _End:
    def __repr__(self) -> str:
        return "<end>"


END = _End()
"""Marks the end: stands for a step or an element when there are no more."""


def drawn(iterator: Any, count: int) -> tuple[list[Any], State]:
    """The next elements of an input, at most `count`, and the input's state after them."""
    return list(islice(iterator, count)), place_of(iterator)


def place_of(iterator: Any, mark: Any = None) -> State:
    """The state of an input, now or at a mark; iterators of this library seal it only when it is needed."""
    place = getattr(iterator, "place", None)
    made: State = iterator.state() if place is None else place() if mark is None else place(mark)
    return made


def mark_of(iterator: Any) -> Any:
    """What `place_of` needs to tell this position later; None for iterators of other packages, which have no marks."""
    mark = getattr(iterator, "mark", None)
    return None if mark is None else mark()


def rows_in(structure: Structure, parts: list[Any]) -> int:
    """The total number of rows of elements; `END` counts as none."""
    nests = structure.folded
    return sum([shape_of(nests.flatten(part)[0])[0] for part in parts if part is not END])
