# SPDX-License-Identifier: Apache-2.0
"""`repeat`: the elements several times, or without end."""

from functools import cached_property
from typing import ClassVar

import numpy as np

from distinput.arrow.adopt import frozen
from distinput.columns.block import Block, concat_blocks
from distinput.columns.column import Ints
from distinput.columns.picked import places_of_each, put_in_order
from distinput.columns.rows import Stream, chunked
from distinput.columns.state import State
from distinput.names.lazy import dataclass
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.check import in_int64
from distinput.plan.families import InMemory, SameElements
from distinput.plan.node import INFINITE, Needs, Node
from distinput.run.run import Run

_MOST_ROWS, _MOST_BYTES, _FEW_BYTES = 512, 1 << 23, 1 << 16
"""Short passes over rows in memory are sent together, up to this many rows and bytes; few bytes are copied side by side."""


@dataclass(frozen=True, eq=False)
class Repeat(SameElements):
    """The elements `count` times; without end if `count` is None or negative, unless a pass has no element.

    Shapes and order: unchanged; a shuffle before it makes a new order for each pass. State: the pass, and the input's state.

    Args:
      count: how many times.

    >>> import distinput as di
    >>> di.data.Dataset.range(2).repeat(2).to_list()
    [0, 1, 0, 1]

    Source: `tf.data.Dataset.repeat`.
    """

    by_element = tolerant = harmless = by_position = view_only = True
    needs: ClassVar[Needs] = Needs.PART
    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            in_int64("repeat", "count", self.count)

    @cached_property
    def passes(self) -> int:
        """How many passes, or `INFINITE`."""
        return INFINITE if self.count is None or self.count < 0 else int(self.count)

    @property
    def cardinality(self) -> int:
        n = self.input.cardinality
        if self.passes == 0 or n == 0:
            return 0
        if self.passes == INFINITE:
            return INFINITE
        return n if n < 0 else n * self.passes

    def batch_sizes(self) -> BatchSizes | None:
        below = self.input.batch_sizes()
        if below is None or (self.passes == INFINITE and below.count):
            return None
        return below if self.passes == INFINITE else below.repeated(self.passes)

    def for_groups(self, size: int) -> Node | None:
        # A pass that ends within a group costs no more than one that tells nothing. States of other inputs stay as they were.
        source = self.input.for_groups(size) if self.input.fetches else None
        return None if source is None else self.with_inputs((source,)).same_as(self)

    def over_pieces(self, pieces: Node, each: int) -> Node:
        return self.with_inputs((pieces,))

    def epoch_below(self, epoch: int) -> int:
        return epoch_of(epoch, 0)

    def start(self, epoch: int) -> State:
        return {"epoch": epoch, "pass": 0, "input": self.input.start(self.epoch_below(epoch)), "any": False}

    def start_at(self, row: int, epoch: int) -> State | None:
        n = self.input.cardinality
        if n <= 0:
            return None
        number, rest = divmod(row if self.passes else 0, n)
        if 0 < self.passes <= number:
            number, rest = self.passes - 1, n
        at = self.input.start_at(rest, epoch_of(epoch, number))
        return None if at is None else {"epoch": epoch, "pass": number, "input": at, "any": rest > 0}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return state["input"], ahead

    def stream(self, state: State, run: Run) -> Stream:
        epoch, number, upstream, any_row = state["epoch"], state["pass"], state["input"], state["any"]
        short = isinstance(self.input, InMemory) and self.passes not in (0, 1)
        together: Block | None = None
        while self.passes == INFINITE or number < self.passes:
            for block, after in self.input.open(upstream, run):
                any_row = any_row or block.size > 0
                if short and not upstream["row"] and 0 < block.size == self.input.cardinality:
                    # Each pass over these is the same, and as a block of its own costs more than its rows.
                    left = _MOST_ROWS if self.passes == INFINITE else self.passes - number
                    if together is None:
                        together = _together(block, left)
                    number += min(together.size // block.size, left) - 1
                    block = together.rows(0, left * block.size)
                yield block, {"epoch": epoch, "pass": number, "input": after, "any": any_row}
            if not any_row and self.passes == INFINITE:
                return
            number += 1
            any_row = False
            upstream = self.input.start(epoch_of(epoch, number))

    @property
    def random_access(self) -> bool:
        return self.input.random_access and self.input.cardinality > 0

    def fetch(self, rows: Ints, epoch: int) -> Block:
        numbers, rests = np.divmod(rows, self.input.cardinality)
        places = places_of_each(numbers) or {0: rows}
        parts = [self.input.fetch(rests[place], epoch_of(epoch, number)) for number, place in places.items()]
        return put_in_order(parts, list(places.values()))


def _together(rows: Block, most: int) -> Block:
    """The rows again and again, as often as one block has room for, and at most so often."""
    times = min(_MOST_ROWS // rows.size, _MOST_BYTES // max(1, rows.nbytes), most)
    if times < 2:
        return rows
    if rows.nbytes * times <= _FEW_BYTES:
        return frozen(concat_blocks([rows] * times))
    return chunked([rows] * times, 0, rows.size * times) or rows


def epoch_of(epoch: int, number: int) -> int:
    """The epoch of pass `number` within an outer epoch: all different; 0, 1, 2, ... within the first outer epoch."""
    return (epoch << 32) + number
