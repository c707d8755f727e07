# SPDX-License-Identifier: Apache-2.0
"""The same pipeline over the numbers of records: where an element comes from follows from positions, and nothing is read."""

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from distinput.columns.block import Block, ColumnBlock, block_rows, numbers_of
from distinput.columns.column import Dense, Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import DistinputError, UnimplementedError
from distinput.files.paths import ask_each
from distinput.names.lazy import dataclass
from distinput.ops.balance_rows import BalanceRows
from distinput.ops.balanced_sample import BalancedSample
from distinput.ops.batch import Batch
from distinput.ops.cache import Cache
from distinput.ops.choose import Choose
from distinput.ops.concatenate import Concatenate
from distinput.ops.fragment_reader import FragmentReader
from distinput.ops.identity import AssertCardinality
from distinput.ops.map import Map, RandomKeys
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.reader import Counts, Reader
from distinput.ops.rebatch import LegacyRebatch, Rebatch, Unbatch
from distinput.ops.shard_batches import ShardBatches
from distinput.ops.slices import Slices
from distinput.ops.take import Take
from distinput.ops.zip import Zip
from distinput.plan.families import Batching, OneForOne, Transparent, placed
from distinput.plan.node import INFINITE, UNKNOWN, Held, Latest, Node, once, walk
from distinput.run.run import Run
from distinput.streaming.by_position import positions_in, streamed
from distinput.values.nest import LEAF, structure_of
from distinput.values.spec import Spec

# ----------------------------------------------------------------------------
# Sources that give the numbers of records in place of the records, so that a pipeline tells where its rows are from.
# ----------------------------------------------------------------------------


# ---- The elements of a tree of record numbers at any positions: computed where that is possible, else counted from the start


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
        with Run() as run:
            return streamed(self._node, rows, epoch, run, begins=False)


Reached: TypeAlias = _Fetched | _Walked
"""Elements by their positions: `size` says how many, INFINITE or UNKNOWN; `fetch(rows, epoch)` gives at least one, in order."""


def reached(node: Node) -> Reached:
    """The elements of a tree by their positions; its random steps have their places (`placed`)."""
    if node.fetches and node.cardinality != UNKNOWN:
        return _Fetched(node, node.cardinality)
    try:
        found = positions_in(node)
    except TypeError:
        return _Walked(node)
    return _Fetched(found.node, found.size)


# ---- The sources of numbers

SOURCE_BITS = 48
"""The number of a record is that of its source, shifted by so many bits, plus its place in that source."""


@dataclass(frozen=True, eq=False)
class RecordNumbers(Node):
    """The numbers of the records of one source, in the order of the records.

    Shapes: scalars. State: the pass and the next row.

    Args:
      held: the source.
      source: its number.
    """

    held: Held = field(repr=False)
    source: int

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

    @abstractmethod
    def records_of(self, file: int) -> int:
        """How many records one of its files has; INFINITE if there is no end."""

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

    def records_of(self, file: int) -> int:
        return self.cardinality


class NamedRecords(MemoryRecords):
    """The numbers of elements each of which names a file, as images in folders do: it is record 0 of that file."""

    @cached_property
    def files(self) -> Sequence[str]:
        names: tuple[str, ...] = self.held.node.file_of_each
        return names

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        return numbers, np.zeros_like(numbers)

    def numbers(self, file: int, record: int) -> list[int]:
        name = self.files[file]
        return [] if record else [number for number, other in enumerate(self.files) if other == name]

    def records_of(self, file: int) -> int:
        return 1


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

    def records_of(self, file: int) -> int:
        return int(self.counts[1][file + 1] - self.counts[1][file])

    def in_pass(self, rows: Ints, epoch: int) -> Ints:
        there = self._order.of(epoch, lambda: self._order_in(epoch))
        if there is None:
            return rows
        sizes = np.diff(self.counts[1]).take(there)
        ends = np.cumsum(sizes)
        file = ends.searchsorted(rows, "right")
        found: Ints = self.counts[1].take(there.take(file)) + rows - (ends - sizes).take(file)
        return found

    _order = once(Latest[int, Ints | None])

    def _order_in(self, epoch: int) -> Ints | None:
        """Which file of the first pass is each file of this one; None: they have the same order."""
        if epoch == 0:
            return None
        names = names_in(self.names, epoch)
        if names == self.files:
            return None
        if sorted(names) != sorted(self.files):
            raise _refused(self.held.node, f"its files in pass {epoch} are not those of the first one")
        first = {name: index for index, name in reversed(list(enumerate(self.files)))}
        return np.array([first[name] for name in names])


def names_in(names: Reached, epoch: int) -> tuple[str, ...]:
    """The names of files in one pass."""
    rows = np.arange(names.size)
    return tuple([os.fsdecode(name) for name in names.fetch(rows, epoch).elements()]) if len(rows) else ()


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
        return self._reader.fragments.files.paths()

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        parts = self._reader.fragments
        part = self._ends.searchsorted(numbers, "right") - 1
        return parts.file.take(part), parts.start.take(part) + numbers - self._ends.take(part)

    def numbers(self, file: int, record: int) -> list[int]:
        parts, sizes = self._reader.fragments, np.diff(self._ends)
        over = record - parts.start
        found = np.flatnonzero((parts.file == file) & (over >= 0) & (over < sizes))
        return [int(self._ends[i] + over[i]) for i in found]

    def records_of(self, file: int) -> int:
        parts, format = self._reader.fragments, self._reader.format
        whole = format.rows(self.files[file]) if format.counts_rows else None
        ends = (parts.start + np.diff(self._ends))[parts.file == file]
        return int(ends.max(initial=0)) if whole is None else whole

    def in_pass(self, rows: Ints, epoch: int) -> Ints:
        ends, begin = self._pass.of(epoch, lambda: self._bounds_in(epoch))
        index = ends.searchsorted(rows, "right")
        found: Ints = begin.take(index) + rows
        return found

    _pass = once(Latest[int, tuple[Ints, Ints]])

    def _bounds_in(self, epoch: int) -> tuple[Ints, Ints]:
        """Where each part ends among the records of a pass, and how far its records are from their places in the first one."""
        ends = self._reader._ends(epoch)
        assert ends is not None
        chosen = self._reader.input.fetch(np.arange(len(ends)), epoch)
        numbers = np.fromiter(chosen.elements(), np.int64, chosen.size)
        return ends, self._ends.take(numbers) - np.concatenate([[0], ends[:-1]]) if len(ends) else ends


_LEDGER = "keep a Ledger while the job runs, which can give any step again"
_REGROUPED = (Concatenate, LegacyRebatch, Rebatch, ShardBatches, Unbatch)
PADDING = -1
"""In the place of a record that is not there."""

_TOGETHER = 1 << 16
"""Records that are looked at together."""


@dataclass(frozen=True, eq=False)
class Numbered:
    """A pipeline over the numbers of the records of its sources.

    Args:
      node: its elements are nests of record numbers where those of the pipeline are made of these records.
      sources: the sources.
      assumes: what is taken for granted about functions of the user, in words.
      fills: whether some numbers are -1, which stands for no record.
      single: whether each element is one number.
      stacked: the elements, where each is a batch of single records that can be reached by their positions.
    """

    node: Reached
    sources: Sequence[RecordNumbers]
    assumes: tuple[str, ...]
    fills: bool = False
    single: bool = False
    stacked: Batch | None = None

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The files of all sources, one source after the other."""
        return tuple([name for source in self.sources for name in source.files])

    @cached_property
    def _first_file(self) -> list[int]:
        return np.cumsum([0, *[len(source.files) for source in self.sources]]).tolist()  # type: ignore[no-any-return]

    def elements(self, steps: Ints, epoch: int) -> list[Ints]:
        """The numbers of the records of elements, each an array [rows, records of a row], or [records] for a single one.

        Raises:
          IndexError: there is no such element.
        """
        return [flat_numbers(element) for element in self.node.fetch(steps, epoch).elements()] if len(steps) else []

    def single_numbers(self, rows: Ints, epoch: int) -> Ints:
        """The numbers [n] of elements that are `single`."""
        return numbers_of(self.node.fetch(rows, epoch)) if len(rows) else rows

    def element(self, step: int, epoch: int) -> tuple[int, Callable[[Ints], Ints]]:
        """How many rows an element has, and what gives the numbers of the records of some of them: [n] -> [n, of a row].

        Raises:
          IndexError: there is no such element.
        """
        if self.stacked is None:
            (numbers,) = self.elements(np.array([step]), epoch)
            return len(numbers), lambda rows: numbers[rows]
        if 0 <= self.node.size <= step:
            raise IndexError(f"there is no element {step} among {self.node.size}")
        size, source = int(self.stacked.batch_size), self.stacked.input
        begin, n = step * size, source.cardinality

        def numbers_at(rows: Ints) -> Ints:
            # Some steps cannot fetch nothing.
            return numbers_of(source.fetch(rows + begin, epoch)) if len(rows) else rows

        return size if n < 0 else min(size, n - begin), numbers_at

    def elements_with(self, elements: Ints, numbers: Ints, epoch: int) -> list[int]:
        """Which of these elements, in ascending order, hold one of these records; those behind the end hold none."""
        if self.node.size >= 0:
            elements = elements[elements < self.node.size]
        positions: list[int] = []
        try:
            each = max(1, _TOGETHER // max(1, self.element(0, epoch)[0]))
        except IndexError:
            return positions
        for first in range(0, len(elements), each):
            chunk = elements[first : first + each]
            if self.stacked is not None:
                positions += self._batches_with(self.stacked, chunk, numbers, epoch)
                continue
            try:
                positions += self._with(chunk, numbers, epoch)
            except IndexError:  # it ends somewhere in between
                for one in chunk[:, None]:
                    try:
                        positions += self._with(one, numbers, epoch)
                    except IndexError:
                        return positions
        return positions

    def _with(self, elements: Ints, numbers: Ints, epoch: int) -> list[int]:
        arrays = self.elements(elements, epoch)
        return [int(at) for at, array in zip(elements, arrays, strict=True) if np.isin(array, numbers).any()]

    def _batches_with(self, node: Batch, batches: Ints, numbers: Ints, epoch: int) -> list[int]:
        size, n = int(node.batch_size), node.input.cardinality
        rows = node.elements_of(batches)
        rows = rows if n < 0 else rows[rows < n]
        if not len(rows):
            return []
        hit = np.isin(numbers_of(node.input.fetch(rows, epoch)), numbers)
        return np.unique(rows[hit] // size).tolist()  # type: ignore[no-any-return]

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        """The file, among `files`, and the record in it of record numbers [n]."""
        if len(self.sources) == 1:
            return self.sources[0].places(numbers)
        which = numbers >> SOURCE_BITS
        file, record = np.empty_like(numbers), np.empty_like(numbers)
        for index in np.unique(which).tolist():
            mine = np.flatnonzero(which == index)
            found, record[mine] = self.sources[index].places(numbers[mine] - (index << SOURCE_BITS))
            file[mine] = found + self._first_file[index]
        return file, record

    def numbers(self, file: str, record: int) -> list[int]:
        """The numbers of a record.

        Raises:
          KeyError: the pipeline does not read that file.
        """
        made = [
            number + (index << SOURCE_BITS)
            for index, place in self._with_file(file)
            for number in self.sources[index].numbers(place, record)
        ]
        return sorted(set(made))

    def records_of(self, file: str) -> int:
        """How many records a file has; INFINITE if there is no end.

        Raises:
          KeyError: the pipeline does not read that file.
        """
        counts = [self.sources[index].records_of(place) for index, place in self._with_file(file)]
        return INFINITE if INFINITE in counts else max(counts)

    def _with_file(self, file: str) -> list[tuple[int, int]]:
        """The numbers of the sources that read a file, and its place among the files of each."""
        found = [
            (index, place)
            for index, source in enumerate(self.sources)
            for place, name in enumerate(source.files)
            if name == file
        ]
        if not found:
            raise KeyError(file)
        return found


def _single(node: Node) -> bool:
    """Whether each of its elements is one number."""
    return node.spec.structure.is_leaf and node.spec.leaves[0].shape == ()


def flat_numbers(element: Any) -> Ints:
    """The numbers in an element, [rows, records of a row], or [records] for a single one."""
    leaves = structure_of(element).flatten(element)
    arrays = [np.asarray(leaf) for leaf in leaves]
    if arrays[0].ndim == 0:
        return np.array(arrays)
    if len(arrays) == 1 and arrays[0].ndim == 1:
        return arrays[0][:, None]
    rows = min(len(array) for array in arrays)
    return np.concatenate([array[:rows].reshape(rows, math.prod(array.shape[1:])) for array in arrays], axis=1)


def numbered(node: Node, *, read: bool = False, ordered: bool = True) -> Numbered:
    """A pipeline over the numbers of its records.

    Args:
      node: the pipeline.
      read: count the records of files that tell no number by reading them once.
      ordered: false if the order of the rows of a batch does not matter, so that none is read for `balance_replicas`.

    Raises:
      UnimplementedError: where an element comes from does not follow from positions; the message names the step and why.
    """
    made = _Numbering(read, ordered)
    tree = made.of(placed(node))  # before steps are left out, so that the others stand where they run
    found = reached(tree)
    at_once = isinstance(tree, Batch) and _single(tree.input) and tree.input.random_access
    stacked = tree if isinstance(tree, Batch) and at_once and found.size != UNKNOWN else None
    fills = any(isinstance(step, PaddedBatch) for step in walk(tree))
    return Numbered(found, made.sources, tuple(made.assumes), fills, _single(tree), stacked)


def batched(node: Batching, below: Node) -> Node:
    """Batches of numbers as a step makes them of elements; those of batches are filled up, which may have several lengths."""
    if all(leaf.shape == () for leaf in below.spec.leaves):
        return Batch(below, node.batch_size, node.drop_remainder, origin=node.origin)
    fills = below.spec.structure.build([PADDING] * len(below.spec.leaves))
    return PaddedBatch(below, node.batch_size, None, fills, node.drop_remainder, origin=node.origin)


class _Numbering:
    def __init__(self, read: bool, ordered: bool) -> None:
        self._read, self._ordered = read, ordered
        self.sources: list[RecordNumbers] = []
        self.assumes: list[str] = []
        self._made: dict[int, Node] = {}

    def of(self, node: Node, count: int | None = None) -> Node:
        """The tree over numbers.

        Args:
          node: the tree.
          count: how many elements it has, where a step above states it.
        """
        if id(node) not in self._made:  # a dataset that is used twice has the same records in both places
            try:
                self._made[id(node)] = self._of(node, count)
            except UnimplementedError:
                raise
            except (DistinputError, TypeError) as error:
                raise _refused(node, f"it cannot run over the numbers of records: {error}") from error
        return self._made[id(node)]

    def _of(self, node: Node, count: int | None) -> Node:
        match node:
            case Reader():
                names = reached(node.input)
                counts = self._counts(node, names, count)
                return self._source(lambda held, k: ReaderRecords(held, k, names, counts), node)
            case FragmentReader():
                rows = node.rows
                if rows is None or "row" not in node.fragments.fragment(0, node.format).start:
                    raise _refused(node, "the records before a part of a file are not counted")
                return self._source(FragmentRecords, node)
            case AssertCardinality():
                return self.of(node.inputs[0], node.count_elements())
            case Cache():
                return self._kept(node)
            case BalanceRows():
                below = self.of(node.input, count)
                if not self._ordered:
                    return below
                both = Zip(structure_of((0, 1)), (below, node.input), origin=node.origin)  # what a batch holds decides
                return Map(both, partial(_in_order, node), output_signature=below.spec.nest, origin=node.origin)
            case Batching():
                return batched(node, self.of(node.input))
            case Zip():
                return self._zip(node)
            case Choose():
                sources = tuple([self.of(source) for source in node.sources])
                return node.with_inputs((*sources, *node.inputs[len(sources) :]))
            case _ if isinstance(node, OneForOne | RandomKeys) or node.transparent:
                return self._one_for_one(node, count)
            case _ if not node.inputs:
                known = node.count_elements()
                known = count if known == UNKNOWN and count is not None else known
                if known == UNKNOWN:
                    raise _refused(node, "its elements cannot be counted; state their number with assert_cardinality")
                kind = NamedRecords if isinstance(node, Slices) and node.file_of_each else MemoryRecords
                return self._source(lambda held, k: kind(held, k, known), node)
            case _ if node.by_position or (isinstance(node, (BalancedSample, *_REGROUPED)) and not node.decides):
                return node.with_inputs(tuple([self.of(source) for source in node.inputs]))
        raise _refused(node, "which records its elements come from depends on what they hold, or on a function")

    def _one_for_one(self, node: Node, count: int | None) -> Node:
        below = self.of(node.inputs[0], count)
        batches = any(leaf.shape != () for leaf in below.spec.leaves)
        if batches and not node.keeps_batches and not node.transparent and not isinstance(node, RandomKeys):
            self.assumes.append(f"{node.where()}, leaves each row of a batch where it is")
        return below

    def _zip(self, node: Zip) -> Node:
        """Records beside each other; those of a `range` that only counts the others are left out."""
        told = [source for source in node.sources if not only_counts(source)]
        kept = told or list(node.sources)
        n = [source.count_elements() for source in node.sources if source not in kept]
        if UNKNOWN in n:
            raise _refused(node, "nobody knows where the numbers beside the records end")
        parts = tuple([self.of(source) for source in kept])
        made = parts[0] if len(parts) == 1 else Zip(structure_of(tuple(range(len(parts)))), parts, origin=node.origin)
        ends = [size for size in n if size >= 0]
        return Take(made, min(ends), origin=node.origin) if ends else made

    def _kept(self, node: Cache) -> Node:
        below = self.of(node.inputs[0])
        if any(step.reshuffles for step in walk(node.inputs[0])):
            kept = node.store.epoch
            return _OnePass(below, 0 if kept is None else kept, origin=node.origin)
        return below

    def _source(self, make: Callable[[Any, int], RecordNumbers], node: Node) -> RecordNumbers:
        made = make(Held(node), len(self.sources))
        self.sources.append(made)
        return made

    def _counts(self, node: Reader, names: Reached, count: int | None) -> Counts:
        if node.counts is not None:
            return node.counts
        if names.size < 0:
            raise _refused(node, "the number of its files is known only at the end")
        files = names_in(names, 0)
        return files, np.cumsum([0, *self._rows(node, files, count)], dtype=np.int64)

    def _rows(self, node: Reader, names: Sequence[str], count: int | None) -> list[int]:
        if node.format.counts_rows:
            told = ask_each(node.format.rows, list(dict.fromkeys(names)))
            known = dict(zip(dict.fromkeys(names), told, strict=True))
            if None not in known.values():
                return [known[name] or 0 for name in names]
        table = node.table
        if table is not None and table.rows is not None:
            found = [int(table.rows[i]) if (i := table.index(name)) >= 0 else -1 for name in names]
            if min(found, default=0) >= 0:
                return found
        if len(names) == 1 and count is not None and count >= 0:
            return [count]
        if not self._read:
            raise _refused(
                node, "its files do not tell how many records they hold; read them with index=True or with a manifest, or pass "
                "read=True (--read in the command line), which counts the records by reading all files once",
            )  # fmt: skip
        return [sum(block.size for block, _ in node.format.read(name)) for name in names]


def _in_order(node: BalanceRows, *elements: Any) -> Any:
    numbers, batch = [Block.of_elements(structure_of(each), [each]) for each in elements]
    return node.ordered(numbers, batch).row(0)


def only_counts(node: Node) -> bool:
    """Whether all its sources only count, as that of `enumerate`."""
    return all(leaf.op in ("range", "counter") for leaf in walk(node) if not leaf.inputs)


@dataclass(frozen=True, eq=False)
class _OnePass(Transparent):
    """The elements of one pass in every pass: what a cache keeps."""

    epoch: int

    def start(self, epoch: int) -> State:
        return self.input.start(self.epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, self.epoch)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows, self.epoch)


def _refused(node: Node, why: str) -> UnimplementedError:
    return UnimplementedError(f"locate: {node.where()}: {why}; {_LEDGER}")
