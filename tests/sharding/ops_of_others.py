# SPDX-License-Identifier: Apache-2.0
"""Ops, a source, a policy and a rule as a package of somebody else would write them: one for each kind of op."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.extend import (
    UNKNOWN,
    Batching,
    Block,
    Needs,
    Node,
    OneForOne,
    Policy,
    RowQueue,
    Run,
    SameElements,
    Share,
    Spec,
    State,
    Stream,
    block_of,
    passing_over,
)

__all__ = ["STRETCHES", "Backwards", "Halves", "Packed", "Squares", "Stepped", "Sums", "Tripled"]


def numbers(block: Block) -> Any:
    """The numbers of a block of scalars."""
    return np.fromiter(block.elements(), np.int64, block.size)


@dataclass(frozen=True, eq=False)
class Squares(Node):
    """A source: the squares of the numbers below `count`. State: the next row."""

    length: int
    is_counted: bool = True

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), np.int64)

    @property
    def cardinality(self) -> int:
        return self.length if self.is_counted else UNKNOWN

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        return {"row": row} if self.is_counted else None

    def stream(self, state: State, run: Run) -> Stream:
        for row in range(state["row"], self.length, 4):
            end = min(row + 4, self.length)
            yield block_of(np.arange(row, end) ** 2), {"row": end}


@dataclass(frozen=True, eq=False)
class Tripled(OneForOne):
    """One element for each: three times the number."""

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    def stream(self, state: State, run: Run) -> Stream:
        for block, at in passing_over(self.input.open(state["input"], run), state):
            yield block_of(3 * numbers(block)), at(block.size)

    def fetch(self, rows: Any, epoch: int) -> Block:
        return block_of(3 * numbers(self.input.fetch(rows, epoch)))


@dataclass(frozen=True, eq=False)
class Halves(Node):
    """Each element gives two: half of it, rounded down, and the rest. State: that of the input, and whether one was sent."""

    needs: ClassVar[Needs] = Needs.EACH
    input: Node

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        n = self.input.cardinality
        return n if n < 0 else 2 * n

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def stream(self, state: State, run: Run) -> Stream:
        before, over = state["input"], state["skip"]
        for block, after in self.input.open(state["input"], run):
            found = numbers(block)
            both = np.stack([found // 2, found - found // 2], axis=1).reshape(-1)[over:]
            for place in range(len(both)):
                done = over + place + 1
                last = done == 2 * block.size
                yield (
                    block_of(both[place : place + 1]),
                    {"input": after if last else before, "skip": 0 if last else done},
                )
            before, over = after, max(0, over - 2 * block.size)


@dataclass(frozen=True, eq=False)
class Backwards(SameElements):
    """The same elements, the last one first, where they can be reached by position. State: the next row."""

    needs: ClassVar[Needs] = Needs.PART
    by_position: ClassVar[bool] = True

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return {"row": 0, "epoch": epoch}

    def start_at(self, row: int, epoch: int) -> State:
        return {"row": row, "epoch": epoch}

    def stream(self, state: State, run: Run) -> Stream:
        for row in range(state["row"], self.cardinality, 4):
            end = min(row + 4, self.cardinality)
            yield self.fetch(np.arange(row, end), state["epoch"]), {"row": end, "epoch": state["epoch"]}

    @property
    def random_access(self) -> bool:
        return self.input.random_access and self.input.cardinality >= 0

    def fetch(self, rows: Any, epoch: int) -> Block:
        return self.input.fetch(self.cardinality - 1 - rows, epoch)


@dataclass(frozen=True, eq=False)
class Packed(Batching):
    """Batches, made by nothing but what is public. State: where the first element of the next batch stands in the input."""

    batch_size: int
    drop_remainder: bool = False

    @cached_property
    def spec(self) -> Spec:
        first = self.batch_size if self.drop_remainder else None
        return self.input.spec.map(lambda leaf: leaf.with_shape((first, *(leaf.shape or ()))))

    def stream(self, state: State, run: Run) -> Stream:
        queue = RowQueue(self.input.open(state["input"], run.tolerating(False)), state)
        while queue.fill(self.batch_size) or (queue.size and not self.drop_remainder):
            size = min(queue.size, self.batch_size)
            yield queue.take(size).stack(size), queue.mark()


@dataclass(frozen=True, eq=False)
class Sums(Node):
    """An op that says nothing of itself: the sum of all elements so far. State: that of the input, and the sum."""

    input: Node

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "carry": 0}

    def stream(self, state: State, run: Run) -> Stream:
        total = state["carry"]
        for block, after in self.input.open(state["input"], run):
            sums = total + np.cumsum(numbers(block))
            total = int(sums[-1])
            yield block_of(sums), {"input": after, "carry": total}


def stepped(node: Node, share: Share) -> Node:
    """Worker w gets a stretch of its own: rows w * n / W to (w + 1) * n / W of what can be counted."""
    n = node.count_elements()
    low, high = (n * w // share.num_workers for w in (share.index, share.index + 1))
    return Stepped(node, low, high)


@dataclass(frozen=True, eq=False)
class Stepped(SameElements):
    """The elements from `low` to before `high`."""

    low: int
    high: int

    @property
    def cardinality(self) -> int:
        return self.high - self.low

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "row": 0}

    def stream(self, state: State, run: Run) -> Stream:
        row = state["row"]
        for block, after in self.input.open(state["input"], run):
            first, end = max(0, self.low - row), max(0, self.high - row)
            row += block.size
            kept = block.rows(first, end)
            if kept.size:
                yield kept, {"input": after, "row": row}
            if row >= self.high:
                return


STRETCHES = Policy("STRETCHES", "a stretch of consecutive elements for each worker", stepped)
