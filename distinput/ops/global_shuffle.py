# SPDX-License-Identifier: Apache-2.0
"""`global_shuffle`: a random order of all elements, without a buffer."""

from collections.abc import Iterator

import numpy as np

from distinput.columns.block import MOST_BYTES, Block, picked_rows, rows_within, sound_parts
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.kernels.random_orders import permute
from distinput.names.lazy import dataclass
from distinput.ops.shuffle import Shuffled, fetched
from distinput.plan.node import Latest, once, walk
from distinput.run.run import Run
from distinput.run.threads import free_memory
from distinput.streaming.by_position import streamed
from distinput.values.buffers import empty

_CHUNK, _TIMES = 4096, 4
"""Rows that can only be reached through their neighbours are fetched many at a time, but no more than so many blocks hold."""

_CHOSEN_ROWS = 1 << 16
"""Of wide rows that are gathered when they are handed out, so many are chosen at once, in the place of those of a block: their
numbers are small, and each block costs a third of a millisecond in a cold cache."""

_AHEAD_BYTES, _MOST_AHEAD, _AHEAD_PART, _AHEAD_ROWS = 128 << 20, 512 << 20, 32, 1 << 20
"""As many are read together where nothing but reading is done for them: the more, the more of them share a page. So many bytes
in any case, and more where they are no more than this part of the free memory."""

_PAGE_BYTES = 1 << 16
"""Rows of more bytes share a page with few others or none: little is gained by reading many of them together."""

_GROWTH = 16
"""By which factor the number of rows fetched at a time may grow, once their size is known."""

_READ_GROWTH = 64
"""That growth where rows are only read: each time may decode everything, however few are wanted."""


@dataclass(frozen=True, eq=False)
class GlobalShuffle(Shuffled):
    """All elements in a random order, each order as likely as any other, in constant memory.

    Shapes: unchanged. State: seed, epoch and position. The elements are read by position: directly if the input has random
    access (arrays, ranges, local Arrow and npy files, and what is derived from them), otherwise from the nearest position that
    can be reached (Parquet pages; fixed-length records, whose number `assert_cardinality` must state), up to 128 MB at a time,
    or a thirty-second of the free memory up to 512 MB; while they are put in order, three times as much.

    Args:
      seed: any integer; None draws one, which the state remembers.
      reshuffle_each_iteration: False gives the same order in every pass.

    Raises:
      InvalidArgumentError: the input's elements cannot be counted or reached by position.

    >>> import distinput as di
    >>> sorted(di.data.Dataset.range(5).global_shuffle(seed=7).to_list())
    [0, 1, 2, 3, 4]

    Source: a Feistel network over the positions with cycle walking (Black and Rogaway, Ciphers with arbitrary finite
    domains, CT-RSA 2002).
    """

    same_access = True
    seed: int | None = None
    reshuffle_each_iteration: bool | None = None

    def __post_init__(self) -> None:
        self.check_seed("global_shuffle")
        n = self.input.cardinality
        if n < 0 or (n and not self.input.random_access and self.input.start_at(0, 0) is None):
            below = (getattr(step, "uncounted", None) for step in walk(self.input))
            why = next((f": the records of {path} cannot be counted" for path in below if path is not None), "")
            raise InvalidArgumentError(
                "global_shuffle: the input's elements must be countable and reachable by position (arrays, ranges, Parquet, "
                "Arrow, npy, fixed-length records after assert_cardinality, and what keeps their positions), got "
                f"{self.input.op}{why}; use shuffle(buffer_size), or index=True for text, TFRecord, CSV, JSON Lines and tar"
            )
        if n > 1 << 62:
            raise InvalidArgumentError(
                f"global_shuffle: there must be at most 2**62 elements, got {n:,}; repeat behind it"
            )

    @property
    def reshuffles(self) -> bool:
        return self.reshuffle_each_iteration is not False

    def start(self, epoch: int) -> State:
        return self.start_at(0, epoch)

    def start_at(self, row: int, epoch: int) -> State:
        return self.seeded(epoch, row)

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        row = state["row"] + ahead
        if not 0 <= row < self.input.cardinality:
            return None
        at = self.input.start_at(int(self._numbers(state, row, 1)[0]), state["epoch"])
        return None if at is None else (at, 0)

    def stream(self, state: State, run: Run) -> Stream:
        if self.input.random_access:
            size = picked_rows(self.spec.row_bytes, self.group)
            choices = self._choices(state, size * min(_TIMES, max(1, _CHOSEN_ROWS // size)))
            blocks = fetched(self.input, choices, state["epoch"], self.group, run)
        else:
            # A row can only be reached through its neighbours: many at once find more of them together.
            blocks = self._reached(state, run)
        yield from self.counted(blocks, state)

    def _choices(self, state: State, size: int) -> Iterator[Ints]:
        """The positions in the input of the elements from a state on, so many at a time."""
        for begin in range(state["row"], self.input.cardinality, size):
            yield self._numbers(state, begin, size)

    def _reached(self, state: State, run: Run) -> Iterator[Block]:
        """Elements that can only be reached through their neighbours, with a failure in the place of each that fails."""
        strict, epoch = run.tolerating(False), state["epoch"]
        reads = self.input.fetches and all(step.harmless or step.reads_files for step in walk(self.input))
        most_ahead = _most_ahead(run)
        row, left = state["row"], self.input.cardinality - state["row"]
        size = left if reads and self._decodes_all(left, most_ahead) else 1
        while row < self.input.cardinality:
            numbers = self._numbers(state, row, size)

            def make(first: int, end: int, numbers: Ints = numbers) -> Block:
                if reads:
                    return self.input.fetch(np.sort(numbers[first:end]), epoch)
                if self.input.fetches:
                    return self.input.fetch(numbers[first:end], epoch)
                return streamed(self.input, numbers[first:end], epoch, strict)

            most, done = 1, 0
            for block, end in sound_parts(len(numbers), make, tolerant=run.tolerant):
                within = rows_within(block.size, block.nbytes) if block.size else 1
                if reads:
                    yield from _in_order(block, numbers[done:end], within)
                    ahead = most_ahead if block.nbytes < _PAGE_BYTES * block.size else _TIMES * MOST_BYTES
                    many = rows_within(block.size, block.nbytes * MOST_BYTES // ahead, _AHEAD_ROWS)
                    most = max(most, many if block.size else 1)
                else:
                    yield block
                    most = max(most, min(_TIMES * within, _CHUNK))
                done = end
            del block  # while the next ones are read
            row += len(numbers)
            # Each time may decode everything. A few rows do not tell how long others are.
            all_fit = reads and size > 1 and self.spec.is_sized and most >= self.input.cardinality - row
            size = most if all_fit else min((_READ_GROWTH if reads else _GROWTH) * size, most)

    def _decodes_all(self, rows: int, most: int) -> bool:
        """Whether so many rows take no more than `most` bytes, and the first of them no less work than all of them."""
        return (
            rows <= _AHEAD_ROWS
            and not all(getattr(step, "fetches_few", True) for step in walk(self.input))
            and self.spec.is_sized
            and rows * self.spec.row_bytes <= most
        )

    def _numbers(self, state: State, begin: int, size: int) -> Ints:
        """The positions in the input of elements `begin` to `begin + size` of the order."""
        total = self.input.cardinality
        return _permuted(np.arange(begin, min(begin + size, total)), self.key_of_pass(state), total)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        key = self._key_kept.of(epoch, lambda: self.key_of_pass(self.start(epoch)))
        return self.input.fetch(_permuted(rows, key, self.input.cardinality), epoch)

    _key_kept = once(Latest[int, int])


def _most_ahead(run: Run) -> int:
    """The bytes of rows that a pass may read together."""
    if run.asked.room is not None:
        return _AHEAD_BYTES
    return max(_AHEAD_BYTES, min(_MOST_AHEAD, (free_memory() or 0) // _AHEAD_PART))


def _permuted(rows: Ints, key: int, total: int) -> Ints:
    """The positions in the input of the elements at these positions of a random order."""
    numbers: Ints = empty(rows.shape, rows.dtype)
    permute(rows, key, total, numbers)
    return numbers


def _in_order(ascending: Block, numbers: Ints, within: int) -> Iterator[Block]:
    """The elements with these numbers, out of a block that has them in ascending order, so many at a time."""
    if ascending.size < 2:
        yield ascending
        return
    places = np.empty(len(numbers), np.int64)
    places[np.argsort(numbers, kind="stable")] = np.arange(len(numbers))
    for first in range(0, len(numbers), within):
        yield ascending.take(places[first : first + within])
