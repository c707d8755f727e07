# SPDX-License-Identifier: Apache-2.0
"""Lists that take turns, as `interleave` and several reads at a time do."""

from typing import Any

__all__ = ["interleaved"]


def interleaved(lists: list[list[Any]], cycle: int, block: int) -> list[Any]:
    """Elements of several lists, `cycle` of which are open and take turns of `block` elements."""
    waiting = iter(lists)
    slots: list[list[Any] | None] = [None] * cycle
    elements: list[Any] = []
    more, turn = True, 0
    while more or any(slot is not None for slot in slots):
        if slots[turn] is None and more:
            following = next(waiting, None)
            more = following is not None
            slots[turn] = None if following is None else list(following)
        slot = slots[turn]
        if slot is not None:
            for _ in range(block):
                if not slot:
                    slots[turn] = None
                    break
                elements.append(slot.pop(0))
        turn = (turn + 1) % cycle
    return elements
