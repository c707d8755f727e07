# SPDX-License-Identifier: Apache-2.0
"""`take` and `skip`: the first elements, and all but the first."""

from dataclasses import replace
from typing import ClassVar, Self

from distinput.columns.block import Block, Failure
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.names.lazy import dataclass
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.check import in_int64, integer
from distinput.plan.families import SameElements
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node, above, walk
from distinput.run.run import Run


@dataclass(frozen=True, eq=False)
class _ByCount(SameElements):
    by_element = tolerant = harmless = by_position = view_only = True
    needs: ClassVar[Needs] = Needs.PLACES
    count: int

    def __post_init__(self) -> None:
        integer(self.op, "count", self.count)

    def added(self) -> Self:
        """Warn where `take(n)` and `skip(n)` are to be the parts of a dataset that each pass has in another order."""
        last = vars(self.input).setdefault("_parted", {})  # of a step, not of a copy that is sent or rewritten
        last[self.op] = int(self.count)
        if self.count > 0 and last.get("take") == last.get("skip"):
            made = walk(self.input, lambda step: step.keeps)  # a cache keeps the order of one pass
            step = next((each for each in made if each.chooses and each.reshuffles), None)
            if step is not None:
                text = (
                    f"{self.op}: take({self.count}) and skip({self.count}) are no parts of {step}, made at {step.origin}: each "
                    "pass has another order, so a record may be in both; use split(0.8, seed=1) before the shuffle, or give it "
                    "a seed and reshuffle_each_iteration=False (list_files: shuffle=False)"
                )
                self.origin.warn(text)
        return self

    def over_pieces(self, pieces: Node, each: int) -> Node:
        return replace(self, input=pieces, count=self.count * each if self.count > 0 else self.count)


class Take(_ByCount):
    """The first `count` elements, or all if `count` is negative.

    Shapes and order: unchanged. State: how many are left.

    Args:
      count: how many elements.

    >>> import distinput as di
    >>> di.data.Dataset.range(10).take(3).to_list()
    [0, 1, 2]

    Source: `tf.data.Dataset.take`.
    """

    same_access: ClassVar[bool] = True

    @property
    def cardinality(self) -> int:
        n = self.input.cardinality
        if self.count < 0 or n == UNKNOWN:
            return n
        return self.count if n == INFINITE else min(n, int(self.count))

    def batch_sizes(self) -> BatchSizes | None:
        below = self.input.batch_sizes()
        return below if below is None or self.count < 0 else below.part(0, int(self.count))

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "left": int(self.count)}

    def start_at(self, row: int, epoch: int) -> State | None:
        return above(self.input.start_at(row, epoch), left=self.count if self.count < 0 else self.count - row)

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return (state["input"], ahead) if state["left"] < 0 or ahead < state["left"] else None

    @property
    def fails_in_place(self) -> bool:
        return self.count < 0 and self.input.fails_in_place

    def stream(self, state: State, run: Run) -> Stream:
        remaining = state["left"]
        if remaining < 0:
            for block, after in self.input.open(state["input"], run):
                yield block, {"input": after, "left": -1}
            return
        if not remaining:
            return
        for block, after in self.input.open(state["input"], run):
            kept = block.rows(0, remaining)
            remaining -= kept.size
            # The input's state after a cut block is never used, since nothing is left to take from there.
            yield kept, {"input": after, "left": remaining}
            if not remaining:
                return

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows, epoch)


class Skip(_ByCount):
    """All but the first `count` elements; none if `count` is negative.

    Shapes and order: unchanged. State: that of the input, and how many elements are still to be skipped. If the rows of the
    input can be counted, skipped rows are not read.

    Args:
      count: how many elements to skip.

    >>> import distinput as di
    >>> di.data.Dataset.range(5).skip(3).to_list()
    [3, 4]

    Source: `tf.data.Dataset.skip`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        # Behind int64 there are no positions. Of other counts nothing is asked: files would be opened for it.
        if self.count >= 1 << 63 and self.input.cardinality == INFINITE:
            in_int64(self.op, "count", self.count)

    @property
    def cardinality(self) -> int:
        n = self.input.cardinality
        if self.count < 0:
            return n if n == UNKNOWN else 0
        return n if n < 0 else max(0, n - int(self.count))

    def batch_sizes(self) -> BatchSizes | None:
        below = self.input.batch_sizes()
        return None if below is None else BatchSizes() if self.count < 0 else below.part(int(self.count))

    def start(self, epoch: int) -> State:
        n = self.input.cardinality
        if self.count > 0 and n != UNKNOWN:
            at = self.input.start_at(int(self.count) if n == INFINITE else min(n, int(self.count)), epoch)
            if at is not None:
                return {"input": at, "left": 0}
        return {"input": self.input.start(epoch), "left": int(self.count)}

    def start_at(self, row: int, epoch: int) -> State | None:
        if self.count < 0:
            return {"input": self.input.start(epoch), "left": -1}
        n = self.input.cardinality
        if n == UNKNOWN:
            return None
        first = row + self.count
        return above(self.input.start_at(first if n == INFINITE else min(n, first), epoch), left=0)

    def stream(self, state: State, run: Run) -> Stream:
        left = state["left"]
        if left < 0:
            return
        for block, after in self.input.open(state["input"], run):
            if type(block) is Failure:  # it counts as one element
                left = max(0, left - 1)
                yield block, {"input": after, "left": left}
            elif left >= block.size:
                left -= block.size
            else:
                kept, left = block.rows(left, block.size), 0
                yield kept, {"input": after, "left": 0}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return state["input"], ahead + state["left"]

    @property
    def random_access(self) -> bool:
        return self.input.random_access and self.count >= 0

    @property
    def fails_in_place(self) -> bool:
        return self.count == 0 and self.input.fails_in_place

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows + self.count, epoch)
