# SPDX-License-Identifier: Apache-2.0
"""Sources that give the numbers of records in place of the records, so that a pipeline tells where its rows are from."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from distinput.columns.block import Block, ColumnBlock, block_rows, concat_blocks
from distinput.columns.column import Dense, Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.ops.fragment_reader import FragmentReader
from distinput.ops.reader import Counts
from distinput.plan.node import UNKNOWN, Latest, Node
from distinput.run.run import Run
from distinput.streaming.by_position import positions_in
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

__all__ = [
    "SOURCE_BITS",
    "FragmentRecords",
    "MemoryRecords",
    "Reached",
    "ReaderRecords",
    "RecordNumbers",
    "names_in",
    "reached",
]

# ---- The elements of a tree of record numbers at any positions: computed where that is possible, else counted from the start


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
    """The elements of a tree by their positions; its random steps have their places (`placed`)."""
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
        numbers, back = np.unique(rows, return_inverse=True)
        parts: list[Block] = []
        first = done = 0
        with Run() as run:
            stream: Any = self._node.open(self._node.start(epoch), run)
            for block, _ in stream:
                end = int(np.searchsorted(numbers, first + block.size))
                if end > done:
                    parts.append(block.take(numbers[done:end] - first))
                first, done = first + block.size, end
                if done == len(numbers):
                    break
            stream.close()
        if done < len(numbers):
            raise IndexError(f"there is no element {numbers[-1]} among {first}")
        return concat_blocks(parts).take(back)


# ---- Sources that give the numbers of records in place of the records, so that a pipeline tells where its rows are from

SOURCE_BITS = 48
"""The number of a record is that of its source, shifted by so many bits, plus its place in that source."""


class _Held:
    """A node that is no input: what it gives is never read."""

    def __init__(self, node: Node) -> None:
        self.node = node


@dataclass(frozen=True, eq=False)
class RecordNumbers(Node):
    """The numbers of the records of one source, in the order of the records.

    Shapes: scalars. State: the pass and the next row.

    Args:
      held: the source.
      source: its number.
    """

    held: _Held = field(repr=False)
    source: int

    @staticmethod
    def held_by(node: Node) -> _Held:
        """A source as an argument that is no input."""
        return _Held(node)

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), np.int64)

    @property
    @abstractmethod
    def files(self) -> Sequence[str]:
        """The files of the source, each once."""

    @abstractmethod
    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Which of the files, and which record of it, for places in the source in its first pass."""

    @abstractmethod
    def numbers(self, file: int, record: int) -> list[int]:
        """The places in the source that are a record of one of its files."""

    def in_pass(self, rows: Ints, epoch: int) -> Ints:
        """The places in the first pass of the records at these places of another one, whose files may be in another order."""
        del epoch
        return rows

    def start(self, epoch: int) -> State:
        return {"epoch": epoch, "row": 0}

    def start_at(self, row: int, epoch: int) -> State:
        return {"epoch": epoch, "row": row}

    def stream(self, state: State, run: Run) -> Stream:
        row, most, n = state["row"], block_rows(8), self.cardinality
        while n < 0 or row < n:
            end = row + most if n < 0 else min(row + most, n)
            yield self.fetch(np.arange(row, end), state["epoch"]), {**state, "row": end}
            row = end

    @property
    def random_access(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        numbers = self.in_pass(rows, epoch)
        return ColumnBlock(LEAF, [Dense(numbers + (self.source << SOURCE_BITS) if self.source else numbers)], len(rows))


@dataclass(frozen=True, eq=False)
class MemoryRecords(RecordNumbers):
    """The numbers of the elements of a source that reads no files.

    Args:
      count: how many there are, or INFINITE.
    """

    count: int

    @property
    def cardinality(self) -> int:
        return self.count

    @cached_property
    def files(self) -> Sequence[str]:
        return (f"<{self.held.node.op}>",)

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        return np.zeros_like(numbers), numbers

    def numbers(self, file: int, record: int) -> list[int]:
        n = self.cardinality
        return [record] if record >= 0 and (n < 0 or record < n) else []


@dataclass(frozen=True, eq=False)
class ReaderRecords(RecordNumbers):
    """The numbers of the records of files whose records are counted.

    Args:
      names: the names of the files, which may come in another order in each pass.
      counts: the files in the order of the first pass, and the rows before each of them and in all.
    """

    names: Reached = field(repr=False)
    counts: Counts = field(repr=False)

    @property
    def cardinality(self) -> int:
        return int(self.counts[1][-1])

    @cached_property
    def files(self) -> Sequence[str]:
        return self.counts[0]

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        ends = self.counts[1]
        file = ends.searchsorted(numbers, "right") - 1
        return file, numbers - ends.take(file)

    def numbers(self, file: int, record: int) -> list[int]:
        ends, name = self.counts[1], self.files[file]
        same = [i for i, other in enumerate(self.files) if other == name]
        return [int(ends[i]) + record for i in same if 0 <= record < ends[i + 1] - ends[i]]

    def in_pass(self, rows: Ints, epoch: int) -> Ints:
        there = self._order.of(epoch, lambda: self._order_in(epoch))
        if there is None:
            return rows
        sizes = np.diff(self.counts[1]).take(there)
        ends = np.cumsum(sizes)
        file = ends.searchsorted(rows, "right")
        found: Ints = self.counts[1].take(there.take(file)) + rows - (ends - sizes).take(file)
        return found

    @cached_property
    def _order(self) -> Latest[int, Ints | None]:
        return Latest()

    def _order_in(self, epoch: int) -> Ints | None:
        """Which file of the first pass is each file of this one; None: they have the same order."""
        if epoch == 0:
            return None
        names = names_in(self.names, epoch)
        if names == self.files:
            return None
        first = {name: index for index, name in reversed(list(enumerate(self.files)))}
        return np.array([first[name] for name in names])


def names_in(names: Reached, epoch: int) -> tuple[str, ...]:
    """The names of files in one pass."""
    rows = np.arange(names.size)
    return tuple([name.decode() for name in names.fetch(rows, epoch).elements()]) if len(rows) else ()


@dataclass(frozen=True, eq=False)
class FragmentRecords(RecordNumbers):
    """The numbers of the records of parts of files, numbered through the parts as they are listed."""

    @property
    def _reader(self) -> FragmentReader:
        assert isinstance(self.held.node, FragmentReader)
        return self.held.node

    @property
    def cardinality(self) -> int:
        return self._reader.count_elements()

    @cached_property
    def _ends(self) -> Ints:
        rows = self._reader.rows
        assert rows is not None
        return np.concatenate([[0], np.cumsum(rows)])

    @cached_property
    def files(self) -> Sequence[str]:
        table = self._reader.fragments.files
        return [table.path(i) for i in range(len(table))]

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        parts = self._reader.fragments
        part = self._ends.searchsorted(numbers, "right") - 1
        return parts.file.take(part), parts.start.take(part) + numbers - self._ends.take(part)

    def numbers(self, file: int, record: int) -> list[int]:
        parts, sizes = self._reader.fragments, np.diff(self._ends)
        over = record - parts.start
        found = np.flatnonzero((parts.file == file) & (over >= 0) & (over < sizes))
        return [int(self._ends[i] + over[i]) for i in found]

    def in_pass(self, rows: Ints, epoch: int) -> Ints:
        ends, begin = self._pass.of(epoch, lambda: self._bounds_in(epoch))
        index = ends.searchsorted(rows, "right")
        found: Ints = begin.take(index) + rows
        return found

    @cached_property
    def _pass(self) -> Latest[int, tuple[Ints, Ints]]:
        return Latest()

    def _bounds_in(self, epoch: int) -> tuple[Ints, Ints]:
        """Where each part ends among the records of a pass, and how far its records are from their places in the first one."""
        ends = self._reader._ends(epoch)
        assert ends is not None
        chosen = self._reader.input.fetch(np.arange(len(ends)), epoch)
        numbers = np.fromiter(chosen.elements(), np.int64, chosen.size)
        return ends, self._ends.take(numbers) - np.concatenate([[0], ends[:-1]]) if len(ends) else ends
