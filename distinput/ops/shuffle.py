# SPDX-License-Identifier: Apache-2.0
"""`shuffle`: a random order by a buffer of rows.

The order is a function of (seed, epoch, position): step p sends the row in a slot that only the key and p decide, and row
p + buffer takes its place (`kernels/shuffle.py`). So a state is a position: what the buffer held there is computed, and read
again from the input.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from distinput.core.block import Block, concat_blocks
from distinput.core.column import Ints
from distinput.core.random import fresh_seed, key_of
from distinput.core.rows import PACE_SECONDS, RowQueue, Stream
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.core.state import Mark, State
from distinput.kernels.shuffle import drain_steps, shuffle_steps, slots_at
from distinput.plan.check import at_least, integer
from distinput.plan.node import Node

__all__ = ["Shuffle", "order_key"]

_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Shuffle(Node):
    """Send a random one of the `buffer_size` elements waiting, and let the next element of the input take its place.

    Shapes: unchanged. State: seed, epoch and position; for inputs without random access also where the oldest row of the
    buffer stands, never a row. Where the input has random access only row numbers are shuffled.

    Args:
      buffer_size: elements waiting, at least 1; 1 changes nothing.
      seed: any whole number; None draws one, which the state remembers.
      reshuffle_each_iteration: False gives the same order in every pass.

    >>> import distinput as di
    >>> sorted(di.data.Dataset.range(5).shuffle(3, seed=7).to_list())
    [0, 1, 2, 3, 4]

    Source: the meaning of `tf.data.Dataset.shuffle`; the orders are distinput's own.
    """

    input: Node
    buffer_size: int
    seed: int | None = None
    reshuffle_each_iteration: bool | None = None
    drawn_seed: int = field(default_factory=fresh_seed, repr=False)

    def __post_init__(self) -> None:
        at_least("shuffle", "buffer_size", self.buffer_size, 1)
        if self.seed is not None:
            integer("shuffle", "seed", self.seed)

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        seed = self.drawn_seed if self.seed is None else int(self.seed)
        begin = {"seed": seed, "epoch": epoch, "row": 0}
        if self.input.random_access:
            return begin
        return {**begin, "total": -1, "from": 0, "input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        if self.input.random_access:
            return {**self.start(epoch), "row": row}
        total = self.input.cardinality
        if total < 0:
            return None
        begin = self.start(epoch)
        slots = np.empty(int(self.buffer_size), np.int64)
        key = order_key(begin, reshuffle=self.reshuffle_each_iteration is not False)
        left = slots_at(key, row, total, slots)
        first = int(slots[:left].min()) if left else total
        at = self.input.start_at(first, epoch)
        ended = row + len(slots) > total
        return (
            None if at is None else {**begin, "row": row, "total": total if ended else -1, "from": first, "input": at}
        )

    def stream(self, state: State, run: Run) -> Stream:
        if self.input.random_access:
            return self._by_number(state)
        key = order_key(state, reshuffle=self.reshuffle_each_iteration is not False)
        return self._by_slots(state, key, run)

    def _by_number(self, state: State) -> Stream:
        """Rows are fetched by their shuffled numbers."""
        row = state["row"]
        for numbers in self.numbers(state):
            row += len(numbers)
            yield self.input.fetch(numbers, state["epoch"]), {**state, "row": row}

    def numbers(self, state: State) -> Iterator[Ints]:
        """Where the elements from a state on stand in the input, for one that has random access."""
        key = order_key(state, reshuffle=self.reshuffle_each_iteration is not False)
        total = self.input.cardinality
        slots = np.empty(min(int(self.buffer_size), total) if total >= 0 else int(self.buffer_size), np.int64)
        row = state["row"]
        if not len(slots):
            return
        slots_at(key, row, total, slots)
        while total < 0 or row < total:
            if total < 0 or row + len(slots) < total:
                size = _CHUNK if total < 0 else min(_CHUNK, total - len(slots) - row)
                numbers = np.empty(size, np.int64)
                shuffle_steps(slots, key, row, np.arange(row + len(slots), row + len(slots) + size), numbers)
            else:
                numbers = np.empty(min(_CHUNK, total - row), np.int64)
                drain_steps(slots, key, row, total - row, numbers)
            row += len(numbers)
            yield numbers

    def _by_slots(self, state: State, key: int, run: Run) -> Stream:
        """Rows wait in the buffer itself; the state leads back to the oldest of them."""
        buffer = _Slots(int(self.buffer_size), key, state, self.input.open(state["input"], run))
        for block in buffer.shuffled():
            yield block, {"seed": state["seed"], "epoch": state["epoch"], **buffer.state()}

    @property
    def random_access(self) -> bool:
        return False


def order_key(state: State, *, reshuffle: bool) -> int:
    """The key of the order in this pass."""
    return key_of(state["seed"], state["epoch"] if reshuffle else 0)


class _Slots:
    """The rows that wait, by slot, with their numbers; and where in the input each held row can be found again."""

    def __init__(self, size: int, key: int, state: State, stream: Stream) -> None:
        self.size, self.key = size, key
        self.row: int = state["row"]
        self.total: int = state["total"]
        self.queue = RowQueue(stream, {"input": state["input"], "skip": state["skip"]})
        self.next_row: int = state["from"]
        self.marks: deque[tuple[int, Mark]] = deque([(self.next_row, self.queue.mark())])
        self.rows: Block | None = None
        self.numbers: Ints = np.empty(0, np.int64)
        self._fill()

    def _pull(self, most: int) -> Block | None:
        """Up to `most` rows of the input, as many as come in a short time; None at its end."""
        deadline = perf_counter() + PACE_SECONDS
        parts: list[Block] = []
        have = 0
        while have < most and (not have or perf_counter() < deadline):
            if not self.queue.fill(1):
                break
            if self.marks[-1][0] < self.next_row + have:
                self.marks.append((self.next_row + have, self.queue.mark()))
            parts.append(self.queue.take(min(most - have, self.queue.front)))
            have += parts[-1].size
        self.next_row += have
        return concat_blocks(parts) if parts else None

    def _fill(self) -> None:
        """Bring the buffer to what it held at `row`."""
        if self.row == 0:
            while self.next_row < self.size and (more := self._pull(self.size - self.next_row)) is not None:
                self.rows = more if self.rows is None else concat_blocks([self.rows, more])
            self.numbers = np.arange(0 if self.rows is None else self.rows.size)
            return
        slots = np.empty(self.size, np.int64)
        left = slots_at(self.key, self.row, self.total, slots)
        wanted = np.sort(slots[:left])
        parts: list[Block] = []
        end = self.row + self.size if self.total < 0 else self.total
        while self.next_row < end:
            first = self.next_row
            block = self._pull(end - first)
            if block is None:
                break
            a, b = np.searchsorted(wanted, [first, first + block.size])
            if b > a:
                parts.append(block.take(wanted[a:b] - first))
        self.numbers = slots[:left]
        if parts:
            self.rows = concat_blocks(parts).take(np.searchsorted(wanted, self.numbers))

    def shuffled(self) -> Any:
        """Blocks of rows in the new order, until the input has ended and all slots are empty."""
        while self.rows is not None and len(self.numbers) == self.size and self.total < 0:
            incoming = self._pull(max(64, min(_CHUNK, self.size)))
            if incoming is None:
                self.total = self.next_row
                break
            store = concat_blocks([self.rows, incoming])
            store_numbers = np.concatenate([self.numbers, np.arange(self.next_row - incoming.size, self.next_row)])
            slots = np.arange(self.size)
            out = np.empty(incoming.size, np.int64)
            shuffle_steps(slots, self.key, self.row, np.arange(self.size, self.size + incoming.size), out)
            self.row += incoming.size
            self.rows, self.numbers = store.take(slots), store_numbers[slots]
            yield store.take(out)
        if self.rows is None:
            return
        self.total = self.next_row
        slots = np.arange(len(self.numbers))
        store, numbers = self.rows, self.numbers
        while len(self.numbers):
            left = len(self.numbers)
            out = np.empty(min(_CHUNK, left), np.int64)
            drain_steps(slots, self.key, self.row, left, out)
            self.row += len(out)
            self.numbers = numbers[slots[: left - len(out)]]
            yield store.take(out)

    def state(self) -> State:
        """Position, and where the oldest row that is held, or else the next one, stands."""
        oldest = int(self.numbers.min()) if len(self.numbers) else self.next_row
        while len(self.marks) > 1 and self.marks[1][0] <= oldest:
            self.marks.popleft()
        first, mark = self.marks[0]
        return {"row": self.row, "total": self.total, "from": first, **mark}
