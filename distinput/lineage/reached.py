# SPDX-License-Identifier: Apache-2.0
"""The elements of a tree of record numbers at any positions: computed where that is possible, else counted from the start."""

from typing import Any, Protocol

import numpy as np

from distinput.core.block import Block, concat_blocks
from distinput.core.column import Ints
from distinput.core.run import Run
from distinput.plan.node import UNKNOWN, Node
from distinput.streaming.by_position import positions_in

__all__ = ["Reached", "reached"]


class Reached(Protocol):
    """Elements by their positions."""

    @property
    def size(self) -> int:
        """How many there are, INFINITE or UNKNOWN."""
        ...

    def fetch(self, rows: Ints, epoch: int) -> Block:
        """The elements at these positions of a pass, at least one, in this order.

        Raises:
          IndexError: there is no such element.
        """
        ...


def reached(node: Node) -> Reached:
    """The elements of a tree by their positions; its random steps have their places (`plan.places`)."""
    if node.fetches and node.cardinality != UNKNOWN:
        return _Fetched(node, node.cardinality)
    try:
        found = positions_in(node)
    except TypeError:
        return _Walked(node)
    return _Fetched(found.node, found.size)


class _Fetched:
    def __init__(self, node: Node, size: int) -> None:
        self._node, self.size = node, size

    def fetch(self, rows: Ints, epoch: int) -> Block:
        if self.size >= 0 and len(rows) and not 0 <= rows.min() <= rows.max() < self.size:
            raise IndexError(f"there is no element {rows.max()} among {self.size}")
        return self._node.fetch(rows, epoch)


class _Walked:
    """The elements of a tree that can only be iterated: no record is read, but all numbers before a position are made."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.size = node.count_elements()

    def fetch(self, rows: Ints, epoch: int) -> Block:
        positions, back = np.unique(rows, return_inverse=True)
        parts: list[Block] = []
        at = done = 0
        with Run() as run:
            stream: Any = self._node.open(self._node.start(epoch), run)
            for block, _ in stream:
                end = int(np.searchsorted(positions, at + block.size))
                if end > done:
                    parts.append(block.take(positions[done:end] - at))
                at, done = at + block.size, end
                if done == len(positions):
                    break
            stream.close()
        if done < len(positions):
            raise IndexError(f"there is no element {positions[-1]} among {at}")
        return concat_blocks(parts).take(back)
