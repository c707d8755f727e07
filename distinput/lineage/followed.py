# SPDX-License-Identifier: Apache-2.0
"""The numbers of records from a state of a pipeline on: steps that look at elements do so once more."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Dense, Ints
from distinput.columns.rows import RowQueue, Stream
from distinput.columns.state import State
from distinput.errors import DistinputError, UnimplementedError
from distinput.lineage.numbered import PADDING, Numbered, batched, flat_numbers, numbered, only_counts
from distinput.names.lazy import dataclass
from distinput.ops.balance_rows import BalanceRows
from distinput.ops.filter import Filter, TakeWhile, Where
from distinput.ops.fragment_reader import FragmentReader
from distinput.ops.identity import AssertCardinality
from distinput.ops.reader import Reader
from distinput.ops.rebatch import LegacyRebatch, Rebatch, Unbatch
from distinput.ops.shard_batches import ShardBatches
from distinput.ops.slices import Slices
from distinput.ops.zip import Zip
from distinput.plan.families import Batching, OneForOne, SameElements
from distinput.plan.fingerprint import misfit
from distinput.plan.node import Held, Node
from distinput.run.run import Run
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

_REPLAY = "Ledger.replay gives the step itself"
_MARK = {"input", "skip"}
_REGROUPED = (LegacyRebatch, Rebatch, ShardBatches, Unbatch)
_FILE_BITS = 40
"""The number of a record is that of its file, shifted by so many bits, plus its place in it: millions of files may be met."""

_MASK = (1 << _FILE_BITS) - 1


class _Files:
    """Numbers for records: that of the file, in the order in which files are met, and the place in it."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    def number(self, file: str) -> int:
        """That of record 0 of a file."""
        return self.names.setdefault(file, len(self.names)) << _FILE_BITS


@dataclass(frozen=True, eq=False)
class Followed:
    """A pipeline whose records are numbered from one of its states on, by reading what steps need that look at elements.

    Args:
      node: gives nests of record numbers, and takes the states of the pipeline.
      assumes: what is taken for granted about functions of the user, in words.
    """

    node: Node
    assumes: tuple[str, ...]
    _files: _Files

    fills = True

    @property
    def files(self) -> tuple[str, ...]:
        """The files met so far."""
        return tuple(self._files.names)

    def elements(self, state: State, skip: int, count: int) -> list[Ints]:
        """The numbers of the records of so many elements, or of as many as there are, as `Numbered.elements` gives them.

        Args:
          state: of the pipeline.
          skip: how many elements to pass over from there.
          count: how many are wanted.

        Raises:
          UnimplementedError: the record of an element is not known.
        """
        said = misfit(self.node, state)
        if said is not None:
            raise _refused(self.node, f"its states are not those of its records ({said})")
        with Run() as run:
            stream: Any = self.node.open(state, run)
            try:
                return [flat_numbers(element) for element in islice(_elements(stream), skip, skip + count)]
            finally:
                stream.close()

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        """The file, among `files`, and the record in it of record numbers [n]."""
        record: Ints = numbers & _MASK
        return numbers >> _FILE_BITS, record


def _elements(stream: Stream) -> Iterator[Any]:
    for block, _ in stream:
        yield from block.elements()


def followed(node: Node, epoch: int) -> Followed:
    """A pipeline that numbers its records from any of its states on.

    Args:
      node: the tree that runs.
      epoch: the pass that the states are of.

    Raises:
      UnimplementedError: the records of a step cannot be followed; the message names it.
    """
    made = _Following(epoch)
    return Followed(made.of(node), tuple(made.assumes), made.files)


class _Following:
    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self.files = _Files()
        self.assumes: list[str] = []

    def of(self, node: Node) -> Node:
        """The tree over numbers, which takes the states of the other."""
        try:
            return self._of(node)
        except UnimplementedError:
            raise
        except (DistinputError, TypeError) as error:
            raise _refused(node, f"it cannot run over the numbers of records: {error}") from error

    def _of(self, node: Node) -> Node:
        match node:
            case Reader() | FragmentReader():
                if getattr(node.format, "term", None) is not None:
                    raise _refused(node, "parts of its files that a condition rules out are passed over uncounted")
                return _Placed(Held(node), self.files, origin=node.origin)
            case _ if node.keeps:
                raise _refused(node, "what it keeps does not tell where it came from")
            case AssertCardinality():
                return node.with_inputs((self.of(node.inputs[0]),))
            case Batching() if set(node.start(0)) == _MARK:
                return batched(node, self.of(node.input))
            case Filter() | TakeWhile() | Where():
                return _Kept(self.of(node.input), Held(node), origin=node.origin)
            case BalanceRows():
                return _Ordered(self.of(node.input), Held(node), origin=node.origin)
            case Zip():
                return self._zip(node)
            case _ if node.transparent or (node.passes_states and isinstance(node, OneForOne)):
                return self.of(node.inputs[0])
            case OneForOne() if set(node.start(0)) == _MARK and len(node.inputs) == 1:
                return self._one_for_one(node)
            case _ if not node.inputs and set(node.start(0)) <= {"row", "epoch"}:
                return _Counted(Held(node), self.files, self._epoch, origin=node.origin)
            case _ if node.by_position and "input" not in node.start(0):  # any element can be reached
                return node.with_inputs(tuple([self._known(source) for source in node.inputs]))
            case _ if node.by_position or isinstance(node, _REGROUPED):
                return node.with_inputs(tuple([self.of(source) for source in node.inputs]))
        raise _refused(node, "which records its elements come from depends on what they hold, or on a function")

    def _one_for_one(self, node: OneForOne) -> Node:
        below = self.of(node.input)
        if any(leaf.shape != () for leaf in below.spec.leaves) and not node.keeps_batches:
            self.assumes.append(f"{node.where()}, leaves each row of a batch where it is")
        return _Passed(below, origin=node.origin)

    def _zip(self, node: Zip) -> Node:
        parts = [self.of(source) for source in node.sources]
        counting = [only_counts(source) for source in node.sources]
        if not all(counting):  # a `range` that counts the others holds no records
            parts = [_Nowhere(part) if counts else part for part, counts in zip(parts, counting, strict=True)]
        return node.with_inputs(tuple(parts))

    def _known(self, node: Node) -> Node:
        found = numbered(node)
        self.assumes.extend(found.assumes)
        if found.fills or not found.single:
            raise _refused(node, "its elements are batches, which are reached by their positions")
        return _Known(Held(found), self.files, origin=node.origin)


def _refused(node: Node, why: str) -> UnimplementedError:
    return UnimplementedError(f"locate: {node.where()}: {why}; {_REPLAY}")


def _block(numbers: Ints) -> Block:
    return ColumnBlock(LEAF, [Dense(numbers)], len(numbers))


@dataclass(frozen=True, eq=False)
class _Source(Node):
    """The numbers of records in the place of those of a source; its states are taken, and none are given."""

    held: Held
    files: _Files

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), np.int64)

    @property
    def cardinality(self) -> int:
        return int(self.held.node.cardinality)

    def start(self, epoch: int) -> State:
        found: State = self.held.node.start(epoch)
        return found

    @abstractmethod
    def stream(self, state: State, run: Run) -> Stream: ...


class _Placed(_Source):
    """The records of files, which are read to know how many there are in each."""

    def stream(self, state: State, run: Run) -> Stream:
        node: Node = self.held.node
        for block, after in node.open(state, run):
            if block.size:
                yield _block(self._numbers(node, state, block.size, after)), after
            state = after

    def _numbers(self, node: Node, before: State, size: int, after: State) -> Ints:
        first, last = node.place_of(before, 0), node.place_of(before, size - 1)
        known = [place["row"] for place in (first, last) if place is not None and place["row"] is not None]
        if len(known) < 2 or first is None or last is None:
            raise _refused(node, "the place of its records is not known")
        if first["file"] == last["file"] and last["row"] - first["row"] == size - 1:
            there = after["position"]
            if there is None or there["row"] == last["row"] + 1:
                begin: int = self.files.number(first["file"]) + first["row"]
                return np.arange(begin, begin + size)
        raise _refused(node, "its records do not stand one behind the other")


@dataclass(frozen=True, eq=False)
class _Counted(_Source):
    """The elements of a source in memory, whose states count them."""

    epoch: int

    def stream(self, state: State, run: Run) -> Stream:
        node: Node = self.held.node
        row = state.get("row", -1)
        if row < 0 or node.start_at(row, state.get("epoch", self.epoch)) != state:
            raise _refused(node, "its states do not count its elements")
        names = node.file_of_each if isinstance(node, Slices) else ()
        begin = 0 if names else self.files.number(f"<{node.op}>")
        for block, after in node.open(state, run):
            end = row + block.size
            named = [self.files.number(name) for name in names[row:end]]
            yield _block(np.array(named, np.int64) if names else np.arange(row, end) + begin), after
            row = end


class _Known(_Source):
    """The numbers of records that follow from positions."""

    @property
    def cardinality(self) -> int:
        return int(self._numbered.node.size)

    @property
    def _numbered(self) -> Numbered:
        found: Numbered = self.held.node
        return found

    def start(self, epoch: int) -> State:
        return {}

    def stream(self, state: State, run: Run) -> Stream:
        raise NotImplementedError("its elements are reached by their positions")

    @property
    def random_access(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        file, record = self._numbered.places(self._numbered.single_numbers(rows, epoch))
        begin = np.array([self.files.number(name) for name in self._numbered.files], np.int64)
        return _block(begin.take(file) + record)


class _Passed(SameElements):
    """The elements from a mark on, in the place of a step that gives one element for one."""

    same_count: ClassVar[bool] = True

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def stream(self, state: State, run: Run) -> Stream:
        queue = RowQueue(self.input.open(state["input"], run), state)
        while queue.fill(1):
            yield queue.take(queue.front), queue.mark()


@dataclass(frozen=True, eq=False)
class _Ordered(_Passed):
    """Batches of numbers in the order in which `balance_replicas` puts the rows of the batches, by what they hold."""

    held: Held

    def stream(self, state: State, run: Run) -> Stream:
        node: BalanceRows = self.held.node
        batches = RowQueue(node.input.open(state["input"], run), state)
        numbers = RowQueue(self.input.open(state["input"], run), state)
        while batches.fill(1) and numbers.fill(1):
            yield node.ordered(numbers.take(1).materialize(), batches.take(1).materialize()), numbers.mark()


class _Nowhere(SameElements):
    """No record for each number of the input, whose states it takes."""

    same_count: ClassVar[bool] = True

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state, run):
            yield _block(np.full(block.size, PADDING)), after


@dataclass(frozen=True, eq=False)
class _Kept(SameElements):
    """The numbers of the elements that a step keeps, which looks at the elements themselves."""

    held: Held

    def start(self, epoch: int) -> State:
        found: State = self.held.node.start(epoch)
        return found

    def stream(self, state: State, run: Run) -> Stream:
        node: Filter | TakeWhile | Where = self.held.node
        if state.get("ended", False):
            return
        elements = RowQueue(node.input.open(state["input"], run), state)
        numbers = RowQueue(self.input.open(state["input"], run), state)
        while elements.fill(1):
            # A function sees no element that the step had no need of, which may be one that it fails on.
            size = elements.front if isinstance(node, Where) else 1
            rows = elements.take(size)
            if not numbers.fill(size):
                raise _refused(node, "its elements do not come one by one from records")
            kept = node.kept(rows)
            found = numbers.take(size)
            if len(kept):
                yield found.take(kept), {"input": {}, "skip": 0}
            if isinstance(node, TakeWhile) and not len(kept):
                return
