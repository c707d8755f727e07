# SPDX-License-Identifier: Apache-2.0
"""`repeat`: the elements several times, or without end."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from distinput.columns.block import Block, gathered_rows, picked_rows
from distinput.columns.column import Ints
from distinput.columns.picked import put_in_order
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.check import integer
from distinput.plan.families import SameElements
from distinput.plan.node import INFINITE, Needs, Node, walk
from distinput.run.run import Run

__all__ = ["Repeat", "epoch_of"]


_PASS_BYTES = 1 << 16
"""Beginning a pass takes longer than copying so many bytes."""


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

    by_element: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.PART
    by_position: ClassVar[bool] = True
    view_only: ClassVar[bool] = True
    count: int | None = None
    group: int = field(default=1, kw_only=True, repr=False)
    """How many elements the consumer batches."""

    def __post_init__(self) -> None:
        if self.count is not None:
            integer("repeat", "count", self.count)

    @cached_property
    def passes(self) -> int:
        """How many passes, or `INFINITE`."""
        return INFINITE if self.count is None or self.count < 0 else int(self.count)

    @cached_property
    def picks(self) -> bool:
        """Whether the elements of many passes are picked together: all passes are alike, and each is short.

        What a pass holds in memory is handed out without a copy, so this is for passes that are quickly copied, and for those
        shorter than a batch, whose elements are copied in any case.
        """
        source = self.input
        if source.may_fail or not all(
            (step.in_memory or step.by_position) and not step.reshuffles for step in walk(source)
        ):
            return False
        n = source.cardinality
        return source.random_access and n > 0 and (n < self.group or n * source.spec.row_bytes <= _PASS_BYTES)

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
        if below is None or self.passes != INFINITE:
            return None if below is None else below.repeated(self.passes)
        return None if below.count else below

    def over_pieces(self, pieces: Node, each: int) -> Node:
        return self.with_inputs((pieces,))

    def for_groups(self, size: int) -> Node | None:
        grouped = replace(self, group=size).same_as(self) if self.group == 1 and size > 1 else None
        return grouped if grouped is not None and grouped.picks else None

    def start(self, epoch: int) -> State:
        return {"epoch": epoch, "pass": 0, "input": self.input.start(epoch_of(epoch, 0)), "any": False}

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
        if self.picks and state["input"] == self.input.start(epoch_of(state["epoch"], state["pass"])):
            ahead %= self.input.cardinality  # a block may hold several passes
        return state["input"], ahead

    def stream(self, state: State, run: Run) -> Stream:
        epoch, number, upstream, any_row = state["epoch"], state["pass"], state["input"], state["any"]
        while self.passes == INFINITE or number < self.passes:
            if self.picks and upstream == self.input.start(epoch_of(epoch, number)):
                yield from self._picked(epoch, number, run)
                return
            for block, after in self.input.open(upstream, run):
                any_row = any_row or block.size > 0
                yield block, {"epoch": epoch, "pass": number, "input": after, "any": any_row}
            if not any_row and self.passes == INFINITE:
                return
            number += 1
            any_row = False
            upstream = self.input.start(epoch_of(epoch, number))

    def _picked(self, epoch: int, number: int, run: Run) -> Stream:
        """The blocks from the beginning of a pass on, each of several passes."""
        n = self.input.cardinality
        most = (picked_rows if run.by_element else gathered_rows)(self.spec.row_bytes, self.group)
        each = max(1, most // n)
        rows = np.tile(np.arange(n), each)
        while self.passes == INFINITE or number < self.passes:
            some = each if self.passes == INFINITE else min(each, self.passes - number)
            block = self.input.fetch(rows[: some * n], epoch_of(epoch, number))
            number += some
            yield (
                block,
                {"epoch": epoch, "pass": number, "input": self.input.start(epoch_of(epoch, number)), "any": False},
            )

    @property
    def random_access(self) -> bool:
        return self.input.random_access and self.input.cardinality > 0

    def fetch(self, rows: Ints, epoch: int) -> Block:
        numbers, rests = np.divmod(rows, self.input.cardinality)
        if self.picks and len(rows):
            return self.input.fetch(rests, epoch_of(epoch, 0))
        found = np.unique(numbers)
        if len(found) == 1:
            return self.input.fetch(rests, epoch_of(epoch, int(found[0])))
        places = [np.flatnonzero(numbers == n) for n in found]
        parts = [
            self.input.fetch(rests[place], epoch_of(epoch, int(n))) for place, n in zip(places, found, strict=True)
        ]
        return put_in_order(parts, places)


def epoch_of(epoch: int, number: int) -> int:
    """The epoch of pass `number` within an outer epoch: all different; 0, 1, 2, ... within the first outer epoch."""
    return (epoch << 32) + number
