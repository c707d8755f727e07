# SPDX-License-Identifier: Apache-2.0
"""What is drawn from an input for a step: elements, how many rows they have, and where the input stands after them."""

from itertools import islice
from typing import Any

from distinput.core.nest import Structure
from distinput.core.state import State

__all__ = ["END", "drawn", "place_of", "rows_in"]


class _End:
    def __repr__(self) -> str:
        return "<end>"


END = _End()
"""What stands for a step or an element when there are no more."""


def drawn(iterator: Any, count: int) -> tuple[list[Any], State]:
    """The next elements of an input, at most `count`, and the input's state after them."""
    return list(islice(iterator, count)), place_of(iterator)


def place_of(iterator: Any) -> State:
    """Where an input stands. Iterators of this library seal it only when it is asked for."""
    place: State = (getattr(iterator, "place", None) or iterator.state)()
    return place


def rows_in(structure: Structure, parts: list[Any]) -> int:
    """How many rows elements have together; `END` among them has none."""
    return sum([len(structure.flatten(part)[0]) for part in parts if part is not END])
