# SPDX-License-Identifier: Apache-2.0
"""`shuffle`: a random order by means of a buffer of rows.

The order is a function of (seed, epoch, position): step p sends the row in a slot that depends only on the key and p, and row
p + buffer takes its place (`kernels/shuffle.py`). So a state is a position: which rows the buffer held there is computed, and
they are read again from the input.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import (
    MOST_BYTES,
    Block,
    ColumnBlock,
    Failure,
    concat_blocks,
    gathered_rows,
    picked_rows,
    rows_within,
    sound_parts,
)
from distinput.columns.column import Array, Column, Dense, Ints, Strings
from distinput.columns.picked import WIDE_BYTES, Picked, columns_in_order, places_of_each
from distinput.columns.ragged import Ragged
from distinput.columns.regroup import concat_columns
from distinput.columns.rows import PACE_SECONDS, RowQueue, Stream
from distinput.columns.state import Mark, State, is_count, is_mark
from distinput.errors import InvalidArgumentError, StateError
from distinput.kernels.random_orders import drain_rows, drain_steps, exchange_rows, shuffle_steps, slots_at
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least, integer
from distinput.plan.families import SameElements, Seeded
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node
from distinput.run.run import Run
from distinput.values.buffers import empty
from distinput.values.leaves import STRING
from distinput.values.spec import LeafSpec, Spec, TensorSpec

# ----------------------------------------------------------------------------
# The shuffle buffer: rows in numbered slots, which a shuffle sends while others take their places.
# ----------------------------------------------------------------------------


_FIRST_BYTES = 1 << 26
"""Memory reserved at first; users may ask for buffers larger than any memory that are never filled."""

_FEWEST, _LEAST_BYTES = 4096, 1 << 24
"""Rows, and bytes, that may have come in before those that wait are brought together again."""


class ShuffleBuffer:
    """Rows by slot. First rows are added until all slots are full, then they are exchanged, and finally they are drained.

    Columns of plain numbers stay where they are, and only rows are moved: the memory is that of the rows. Others are kept as
    they came, and brought together whenever half as many rows have come in as there are slots, or as many bytes as wait.

    Args:
      spec: of the rows.
      size: the number of slots.
    """

    def __init__(self, spec: Spec, size: int) -> None:
        self.structure = spec.structure
        self.size = size
        self.count = 0
        self._columns = [_column_slots(leaf, size) for leaf in spec.leaves]

    def add(self, rows: Block) -> None:
        """Fill the next free slots."""
        for slots, column in zip(self._columns, rows.columnar().columns, strict=True):
            slots.add(self.count, column)
        self.count += rows.size

    def exchange(self, key: int, position: int, rows: Block) -> Block:
        """For each of `rows`: send the row in the slot of that step, and put this one there; see `shuffle_steps`."""
        columns = [
            slots.exchange(key, position, column)
            for slots, column in zip(self._columns, rows.columnar().columns, strict=True)
        ]
        return ColumnBlock(self.structure, columns, rows.size)

    def drain(self, key: int, position: int, count: int) -> Block:
        """Send so many of the rows left, with none to put in their places; see `drain_steps`."""
        columns = [slots.drain(key, position, self.count, count) for slots in self._columns]
        self.count -= count
        return ColumnBlock(self.structure, columns, count)


class _DenseSlots:
    """A column of plain numbers, all rows of one shape."""

    def __init__(self, leaf: TensorSpec, size: int) -> None:
        self._size = size
        first = max(1, _FIRST_BYTES // max(1, (leaf.size or 0) * leaf.dtype.itemsize))
        self._array: Array = np.empty((min(size, first), *(leaf.shape or ())), leaf.dtype)

    def add(self, count: int, column: Column) -> None:
        end = count + len(column)
        if end > len(self._array):
            size = min(self._size, max(end, 2 * len(self._array)))
            larger = np.empty((size, *self._array.shape[1:]), self._array.dtype)
            larger[:count] = self._array[:count]
            self._array = larger
        self._array[count:end] = _array_of(column)

    def exchange(self, key: int, position: int, column: Column) -> Dense:
        incoming = np.ascontiguousarray(_array_of(column))
        out = empty(incoming.shape, incoming.dtype)
        if incoming.size:
            exchange_rows(_raw(self._array), key, position, incoming.nbytes // len(incoming), _raw(incoming), _raw(out))
        return Dense(out)

    def drain(self, key: int, position: int, left: int, count: int) -> Dense:
        out = empty((count, *self._array.shape[1:]), self._array.dtype)
        if out.size:
            drain_rows(_raw(self._array), key, position, left, out.nbytes // count, _raw(out))
        return Dense(out)


class _AnySlots:
    """Any other column: `parts` as they came, and which of their rows is in which slot."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._parts: list[Column] = []
        self._ends: list[int] = [0]
        self._slots: Ints | None = None
        self._nbytes = self._kept = 0  # of the parts, and of those that were there when they were brought together

    def add(self, count: int, column: Column) -> None:
        self._append(column)

    def exchange(self, key: int, position: int, column: Column) -> Column:
        many = self._ends[-1] >= self._size + max(_FEWEST, self._size // 2)
        if self._slots is None:
            self._slots = np.arange(self._size)
            self._kept = self._nbytes
        elif many or self._nbytes >= 2 * self._kept + _LEAST_BYTES:
            self._bring_together()
        begin = self._ends[-1]
        self._append(column)
        out = np.empty(len(column), np.int64)
        shuffle_steps(self._slots, key, position, np.arange(begin, self._ends[-1]), out)
        return self._taken(out)

    def drain(self, key: int, position: int, left: int, count: int) -> Column:
        if self._slots is None:
            self._slots = np.arange(left)
        out = np.empty(count, np.int64)
        drain_steps(self._slots, key, position, left, out)
        return self._taken(out)

    def _append(self, column: Column) -> None:
        self._parts.append(column)
        self._nbytes += column.nbytes
        self._ends.append(self._ends[-1] + len(column))

    def _bring_together(self) -> None:
        assert self._slots is not None
        kept = self._taken(self._slots)
        # Strings and ragged rows refer to whole buffers, of which most rows may be gone.
        self._parts = [kept.compact() if isinstance(kept, Strings) else concat_columns([kept])]
        self._ends = [0, len(kept)]
        self._slots = np.arange(self._size)
        self._kept = self._nbytes = kept.nbytes

    def _taken(self, rows: Ints) -> Column:
        """Rows of the parts, in this order."""
        places = places_of_each(np.searchsorted(self._ends, rows, "right") - 1)
        found = [self._parts[part].take(rows[place] - self._ends[part]) for part, place in places.items()]
        return columns_in_order(found, list(places.values()), len(rows)).materialize()


def _column_slots(leaf: LeafSpec, size: int) -> _DenseSlots | _AnySlots:
    plain = isinstance(leaf, TensorSpec) and leaf.dtype != STRING and leaf.size is not None
    return _DenseSlots(leaf, size) if plain else _AnySlots(size)  # type: ignore[arg-type]


def _raw(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _array_of(column: Column) -> Array:
    column = column.materialize()
    return column.array if isinstance(column, Dense) else np.array(list(column.values()), column.dtype)


_CHUNK = 4096

_ALL = 1 << 62
"""The size of a buffer that no input fills."""

_LOOKS = 8
"""How often the oldest row is searched for while as many rows are sent as the buffer holds."""


@dataclass(frozen=True, eq=False)
class Shuffled(Seeded, SameElements):
    """A step that gives each element of its input once, in a random order."""

    delays = by_element = tolerant = harmless = same_count = by_position = shuffles = True
    group: int = field(default=1, kw_only=True, repr=False)
    """How many rows the consumer batches; blocks hold whole groups, so that these need not be copied again."""

    def for_groups(self, size: int) -> Node | None:
        return replace(self, group=size).same_as(self) if self.group == 1 and size > 1 else None

    def counted(self, blocks: Iterable[Block], state: State) -> Stream:
        """The blocks from a state on, each with the state after it."""
        row = state["row"]
        for block in blocks:
            row += block.size or 1  # a failure takes the place of one element
            yield block, {**state, "row": row}


@dataclass(frozen=True, eq=False)
class Shuffle(Shuffled):
    """Deliver a random one of `buffer_size` waiting elements, and let the next element of the input take its place.

    Shapes: unchanged. State: seed, epoch and position; for inputs without random access also where the oldest row of the
    buffer stands, but never a row. If the input has random access, only row numbers are shuffled.

    Args:
      buffer_size: how many elements wait, at least 1; 1 changes nothing. UNKNOWN_CARDINALITY: all elements.
      seed: any integer; None draws one, which the state remembers.
      reshuffle_each_iteration: False gives the same order in every pass.

    Raises:
      InvalidArgumentError: `buffer_size` is below 1, or UNKNOWN_CARDINALITY for an infinite input.

    >>> import distinput as di
    >>> sorted(di.data.Dataset.range(5).shuffle(3, seed=7).to_list())
    [0, 1, 2, 3, 4]

    Source: the meaning of `tf.data.Dataset.shuffle`; the orders are distinput's own.
    """

    needs: ClassVar[Needs] = Needs.PART
    random_access: ClassVar[bool] = False
    buffer_size: int
    seed: int | None = None
    reshuffle_each_iteration: bool | None = None

    def __post_init__(self) -> None:
        if integer("shuffle", "buffer_size", self.buffer_size) != UNKNOWN:
            at_least("shuffle", "buffer_size", self.buffer_size, 1)
        elif self.input.cardinality == INFINITE:
            raise InvalidArgumentError(
                "shuffle: buffer_size=UNKNOWN_CARDINALITY is a buffer of all elements, and the input has no end; give a number"
            )
        self.check_seed("shuffle")

    @property
    def most(self) -> int:
        """How many elements can wait."""
        return _ALL if self.buffer_size == UNKNOWN else int(self.buffer_size)

    @property
    def chooses(self) -> bool:
        return self.most > 1

    @property
    def reshuffles(self) -> bool:
        return self.chooses and self.reshuffle_each_iteration is not False

    def start(self, epoch: int) -> State:
        begin = self.seeded(epoch)
        if self.input.random_access:
            return begin
        return {**begin, "total": -1, "from": 0, "input": self.input.start(epoch), "skip": 0}

    def state_misfit(self, state: State) -> str | None:
        row: int = state["row"]
        total: Any = self.input.cardinality
        if "input" in state or "total" in state or "from" in state:
            total = state.get("total")
            held = [is_count(state.get("from")), is_mark(state), is_count(state.get("failures", 0))]
            if not is_count(total, -1) or not all(held):
                return "shuffle: 'input', 'skip', 'total', 'from' and 'failures' must be as it saved them"
        return "shuffle: 'row' is behind the last element" if 0 <= total < row else None

    def start_at(self, row: int, epoch: int) -> State | None:
        if self.input.random_access:
            return self.seeded(epoch, row)
        total = self.input.cardinality
        if total < 0:
            return None
        begin = self.seeded(epoch, row)
        slots = _slots(self.most, total)
        key = self.key_of_pass(begin)
        left = slots_at(key, row, total, slots)
        first = int(slots[:left].min()) if left else total
        at = self.input.start_at(first, epoch)
        if at is None:
            return None
        return {**begin, "total": total if row + self.most > total else -1, "from": first, "input": at, "skip": 0}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        row, total = state["row"] + ahead, max(state.get("total", -1), self.input.count_elements())
        if row < 0 or 0 <= total <= row:
            return None
        if total < 0 and ("input" not in state or self.input.place_of(*_ahead(state, row + self.most)) is None):
            return None  # rows leave the buffer in another order once the input has ended, and it is not known where
        numbers = next(self._numbers({**state, "row": row}, total, 1), None)
        if numbers is None:
            return None
        if "input" in state:
            return _ahead(state, int(numbers[0]))
        at = self.input.start_at(int(numbers[0]), state["epoch"])
        return None if at is None else (at, 0)

    def stream(self, state: State, run: Run) -> Stream:
        if self.input.random_access and "input" not in state:
            # A pass that goes on behind an error that it raised has sent rows by their numbers; one that drops them has not:
            # other elements may take the positions of those that follow, so the elements themselves must wait.
            if not (run.asked.dropping and self.input.may_fail):
                # Only positions are shuffled, and rows are fetched by them.
                return self.counted(fetched(self.input, self.numbers(state), state["epoch"], self.group, run), state)
            begin = {**state, "row": 0, "total": -1, "from": 0, "input": self.input.start(state["epoch"]), "skip": 0}
            return _behind(state["row"], self._by_slots(begin, self.key_of_pass(state), run.by_block()))
        return self._by_slots(state, self.key_of_pass(state), run.by_block())

    def numbers(self, state: State) -> Iterator[Ints]:
        """The positions of the elements from a state on in an input with random access."""
        return self._numbers(state, self.input.cardinality, picked_rows(self.spec.row_bytes, self.group))

    def _numbers(self, state: State, total: int, most: int) -> Iterator[Ints]:
        """The positions from a state on, so many at a time, in an input of `total` elements."""
        key = self.key_of_pass(state)
        row = state["row"]
        if not total:
            return
        slots = _slots(self.most, total)
        slots_at(key, row, total, slots)
        while total < 0 or row < total:
            numbers: Ints = empty((most if total < 0 else min(most, total - row),), slots.dtype)
            # Until the input has ended, each row that is sent makes room for the next one; from then on the slots run empty.
            next_row = row + len(slots)
            steps = len(numbers) if total < 0 else max(0, min(len(numbers), total - next_row))
            if steps:
                shuffle_steps(slots, key, row, np.arange(next_row, next_row + steps), numbers[:steps])
            if steps < len(numbers):
                drain_steps(slots, key, row + steps, total - row - steps, numbers[steps:])
            row += len(numbers)
            yield numbers

    def _by_slots(self, state: State, key: int, run: Run) -> Stream:
        """The blocks of any other input: rows wait in the buffer, and the state leads back to the oldest of them."""
        most = run.at_once(gathered_rows(self.spec.row_bytes, self.group))
        buffer = _Buffer(self.spec, self.most, key, state, self.input.open(state["input"], run), most)
        for block in buffer.shuffled():
            yield block, {"seed": state["seed"], "epoch": state["epoch"], **buffer.state()}

    @property
    def fails_in_place(self) -> bool:
        return self.buffer_size == 1 and self.input.fails_in_place

    @property
    def fetches(self) -> bool:
        return self.input.random_access

    def fetch(self, rows: Ints, epoch: int) -> Block:
        """The elements at these positions; the order from the first to the last of them is computed in each call."""
        numbers = np.empty(len(rows), np.int64)
        by_row = np.argsort(rows, kind="stable")
        ascending = rows[by_row]
        first, done = int(rows.min()) if len(rows) else 0, 0
        for some in self.numbers(self.seeded(epoch, first)):
            end = int(np.searchsorted(ascending, first + len(some)))
            numbers[by_row[done:end]] = some[ascending[done:end] - first]
            first, done = first + len(some), end
            if done == len(rows):
                break
        return self.input.fetch(numbers, epoch)


def _behind(rows: int, stream: Stream) -> Stream:
    """The blocks behind the first rows; a failure takes the place of one."""
    for block, state in stream:
        size = block.size or 1
        if rows < size:
            yield block.rows(rows, size) if rows else block, state
        rows = max(0, rows - size)


def _ahead(state: State, number: int) -> tuple[State, int]:
    """An element of the input by its number, from where the oldest row of the buffer stands."""
    return state["input"], state["skip"] + number - state["from"]


def _slots(size: int, total: int) -> Ints:
    """ShuffleBuffer for the numbers of waiting rows, at least one, and no more than there are elements if that is known."""
    return np.empty(size if total < 0 else max(1, min(size, total)), np.int64)


class _Buffer:
    """The waiting rows by slot, with their numbers; and where in the input each of them can be found again."""

    def __init__(self, spec: Spec, size: int, key: int, state: State, stream: Stream, most: int) -> None:
        self.size, self.key, self.most = size, key, most
        self.row: int = state["row"]
        self.total: int = state["total"]
        self.queue = RowQueue(stream, {"input": state["input"], "skip": state["skip"]})
        self.next_row: int = state["from"]
        self.failures = 0  # since the position where the stream began
        self.known: int = state.get("failures", 0)  # how many of them were passed on before the state was saved
        self.waiting: deque[Failure] = deque()  # failures that come before any more rows
        self.marks: deque[tuple[int, Mark, int]] = deque([(self.next_row, self.queue.mark(), 0)])
        self.likely = 1
        """How many rows may be moved together, judging by the last ones."""
        self.slots = ShuffleBuffer(spec, size)
        self.numbers: Ints = np.empty(0, np.int64)
        self.oldest = self.next_row
        self.looked = self.row

    def _pull(self, most: int) -> Block | None:
        """At most `most` rows that come in a short time and take little memory; None at the end, and before a failure."""
        deadline = perf_counter() + PACE_SECONDS
        parts: list[Block] = []
        have = nbytes = 0
        while have < most and (not have or (perf_counter() < deadline and nbytes < MOST_BYTES)):
            if not self.queue.fill(1):
                if self.queue.failure is None:
                    break
                failure = self.queue.passed()
                self.failures += 1
                if self.failures > self.known:
                    self.waiting.append(failure)
                    break
                continue
            if self.marks[-1][0] < self.next_row + have:
                self.marks.append((self.next_row + have, self.queue.mark(), self.failures))
            parts.append(self.queue.take(min(most - have, self.queue.front, self.likely)))
            have, nbytes = have + parts[-1].size, nbytes + parts[-1].nbytes
            self.likely = rows_within(have, nbytes)
        self.next_row += have
        return concat_blocks(parts) if parts else None

    def _failed(self) -> Iterator[Block]:
        """The failures that come next."""
        while self.waiting:
            yield self.waiting.popleft()

    def _filled(self) -> Iterator[Block]:
        """Restore the buffer as it was at `row`; yields failures that were not met before."""
        if self.row == 0:
            while self.next_row < self.size:
                more = self._pull(min(_CHUNK, self.size - self.next_row))
                if more is not None:
                    self.slots.add(more)
                elif not self.waiting:
                    break
                if self.waiting:  # whose state tells what is held
                    self.numbers = np.arange(self.slots.count)
                    yield from self._failed()
            self.numbers = np.arange(self.slots.count)
            return
        slots = _slots(self.size, self.total)
        count = slots_at(self.key, self.row, self.total, slots)
        positions = np.sort(slots[:count])
        parts: list[Block] = []
        end = self.row + self.size if self.total < 0 else self.total
        while self.next_row < end:
            first = self.next_row
            block = self._pull(min(_CHUNK, end - first))
            if block is None:
                if self.queue.ended:
                    break
                continue
            a, b = np.searchsorted(positions, [first, first + block.size])
            if b > a:
                parts.append(block.take(positions[a:b] - first))
        self.numbers = slots[:count]
        if sum(part.size for part in parts) < count:
            if not self.waiting:
                raise StateError(
                    "shuffle: the state is after the end of the data: rows that its buffer holds are not there"
                )
            # A state that was computed, as `skip` does, counts an error as a row, so there are fewer than it says.
            self.numbers = self.numbers[self.numbers < self.next_row]
            count = len(self.numbers)
        if parts:
            rows = concat_blocks(parts)
            chunk = rows_within(rows.size, rows.nbytes, _CHUNK)
            for begin in range(0, count, chunk):
                self.slots.add(rows.take(np.searchsorted(positions, self.numbers[begin : begin + chunk])))
        yield from self._failed()

    def shuffled(self) -> Iterator[Block]:
        """Blocks of rows in the new order, until the input has ended and all slots are empty."""
        yield from self._filled()
        while len(self.numbers) == self.size and self.total < 0:
            incoming = self._pull(self.most)
            if incoming is None:
                if not self.waiting:
                    break
                yield from self._failed()
                continue
            sent = np.empty(incoming.size, np.int64)
            given = np.arange(self.next_row - incoming.size, self.next_row)
            shuffle_steps(self.numbers, self.key, self.row, given, sent)
            block = self.slots.exchange(self.key, self.row, incoming)
            self.row += incoming.size
            yield block
            yield from self._failed()
        self.total = self.next_row
        while len(self.numbers):
            left = len(self.numbers)
            sent = np.empty(min(self.most, left, self.likely), np.int64)
            drain_steps(self.numbers, self.key, self.row, left, sent)
            block = self.slots.drain(self.key, self.row, len(sent))
            self.row += len(sent)
            self.numbers = self.numbers[: left - len(sent)]
            yield block

    def state(self) -> State:
        """The position, and where the oldest row in the buffer (or else the next row) stands, or a row a little before it.

        Finding it costs time in proportion to the slots, so it is done only once in so many steps; it never goes back.
        """
        held = len(self.numbers)
        if not held:
            self.oldest = self.next_row
        elif self.row - self.looked >= max(1, held // _LOOKS):
            self.oldest, self.looked = int(self.numbers.min()), self.row
        # Failures that were met, and wait, follow this position.
        passed = max(self.known, self.failures - len(self.waiting))
        while len(self.marks) > 1 and self.marks[1][0] <= self.oldest and self.marks[1][2] <= passed:
            self.marks.popleft()
        first, mark, failures = self.marks[0]
        made = {"row": self.row, "total": self.total, "from": first, **mark}
        failed = passed - failures
        return {**made, "failures": failed} if failed else made


# ----------------------------------------------------------------------------
# Fetching the elements whose positions an op has chosen, in blocks of a good size.
# ----------------------------------------------------------------------------


_GROWTH = 64
"""A block has at most so many times the rows of the one before it."""

_LATE_TIMES = 4
"""So many times the bytes of other blocks has one of rows of several lengths that are gathered when they are handed out."""


def fetched(source: Node, choices: Iterable[Ints], epoch: int, group: int, run: Run) -> Iterator[Block]:
    """The elements of `source` at these positions.

    Blocks are small, so that copied rows stay in the cache. Where rows are copied only when they are handed out, blocks grow to
    what can be fetched in a short time; where a function is called or a file read for each row, they hold no more than that.

    Args:
      source: an input with random access.
      choices: arrays of positions, in whole groups except for the last.
      epoch: of the input.
      group: how many positions must be in the same block.
      run: says whether elements are handed out one by one.
    """
    grows = run.by_element and run.run_ahead is None and group > 1
    most = run.at_once(gathered_rows(source.spec.row_bytes, group))
    all_known, slow = source.spec.is_sized, source.may_fail  # it does more than copy
    likely = group
    for numbers in choices:
        first = 0
        while first < len(numbers):
            begin = perf_counter()
            taken = most if all_known and not slow else min(most, likely)
            some = numbers[first : first + taken]
            parts = sound_parts(len(some), partial(_fetched, source, some, epoch), tolerant=run.tolerant)
            block, done = next(parts)
            first += taken
            if block.size and (slow or not all_known):
                held = block.nbytes // _LATE_TIMES if grows and _is_late(block, Ragged) else block.nbytes
                likely = most if all_known else max(group, rows_within(block.size, held) // group * group)
                likely = min(_GROWTH * taken, likely)
                if slow:
                    pace = int(taken * PACE_SECONDS / max(perf_counter() - begin, 1e-9))
                    likely = min(likely, max(group, pace // group * group))
            if done == len(some) and most < len(numbers) and grows and _is_late(block, Picked):
                spent = max(perf_counter() - begin, PACE_SECONDS / _GROWTH)
                most *= max(1, int(PACE_SECONDS / spent))  # at this pace
            yield block
            for block, _ in parts:
                yield block


def _fetched(source: Node, numbers: Ints, epoch: int, first: int, end: int) -> Block:
    return source.fetch(numbers[first:end], epoch)


def _is_late(block: Block, kind: type[Column]) -> bool:
    """Whether the elements are gathered later, as columns of this kind are, except for a few bytes."""
    columns = block.columnar().columns
    now = [column for column in columns if not isinstance(column, kind)]
    return len(now) < len(columns) and sum(column.nbytes for column in now) <= WIDE_BYTES * block.size
