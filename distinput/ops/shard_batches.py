# SPDX-License-Identifier: Apache-2.0
"""`shard_batches`, and policy DATA: the rows of every global batch that one worker reads."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from distinput.columns.block import Block, ColumnBlock, Failure, balanced_slice, block_rows, sound_parts
from distinput.columns.column import Column, Dense, Ints
from distinput.columns.regroup import column_of
from distinput.columns.rows import RowQueue, Stream, passing_over
from distinput.columns.sparse_rows import SparseRows, unfolded
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.ops.reader import Reader
from distinput.ops.rebatch import first_dimension, row_counts
from distinput.ops.shuffle import Shuffle
from distinput.plan.batch_sizes import BatchSizes, RowRanges
from distinput.plan.check import at_least, integer
from distinput.plan.families import SameElements, own_draw
from distinput.plan.node import INFINITE, Node, above, walk
from distinput.run.run import Run
from distinput.values.sparse_tensor import sparse_rows
from distinput.values.spec import LeafSpec, Spec, TensorSpec, no_rows

# ----------------------------------------------------------------------------
# `own_rows` and `own_pieces`: the rows that policy DATA gives to one worker, without reading the rows of others.
# ----------------------------------------------------------------------------


_FIRST_ROWS = 256
_MOST_PIECES = 4096
_MOST_BYTES = 64 << 20
"""Bytes of the rows of one fetch. A fetch reads every row group that contains one of its rows, so it takes more bytes than is
usual; smaller fetches would read the same row groups again and again."""


@dataclass(frozen=True, eq=False)
class OwnRows(SameElements):
    """The rows of one worker's pieces, fetched by position.

    Shapes: unchanged. Order: that of the pieces. State: the next piece, and how many of its rows to skip.

    Args:
      pieces: which rows.
    """

    keeps_batches: ClassVar[bool] = False
    pieces: RowRanges

    @property
    def cardinality(self) -> int:
        count = self.pieces.count
        return INFINITE if count is None else self.pieces.rows_before(count)

    def count_elements(self) -> int:
        return self.cardinality

    @cached_property
    def row_bytes(self) -> int:
        """About how many bytes a row has: as the spec says, or for texts and lists as rows take in the first file."""
        reader = next((step for step in walk(self.input) if isinstance(step, RowReader)), None)
        stored = 0
        if reader is not None and reader.counts and len(reader.counts[0]) and not reader.gathers:
            parts = reader.format.fragments(reader.counts[0][0])
            rows = sum(part.rows or 0 for part in parts)
            stored = sum(part.nbytes for part in parts) // rows if rows else 0
        return max(self.spec.row_bytes, stored)

    def start(self, epoch: int) -> State:
        return {"epoch": epoch, "piece": 0, "skip": 0}

    def start_at(self, row: int, epoch: int) -> State:
        piece, over = self.pieces.place(row)
        return {"epoch": epoch, "piece": piece, "skip": over}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        own = self.pieces.rows_before(state["piece"]) + state["skip"] + ahead
        if own < 0 or 0 <= self.cardinality <= own:
            return None
        piece, over = self.pieces.place(own)
        starts, _ = self.pieces.bounds(piece, piece + 1)
        at = self.input.start_at(int(starts[0]) + over, state["epoch"])
        return None if at is None else (at, 0)

    def stream(self, state: State, run: Run) -> Stream:
        epoch, over = state["epoch"], state["skip"]
        for starts, stops, piece in fetches(self.pieces, state["piece"], self.row_bytes):
            sizes = stops - starts
            before = np.cumsum(sizes) - sizes
            rows = (np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes))[over:]
            over = 0  # fewer rows than the first piece has
            if len(rows):
                yield self.input.fetch(rows, epoch), {"epoch": epoch, "piece": piece, "skip": 0}


def fetches(pieces: RowRanges, piece: int, row_bytes: int) -> Iterator[tuple[Ints, Ints, int]]:
    """Pieces from number `piece` on, several in each fetch, few at first: where they begin and end, and the next piece."""
    limit = max(1, min(block_rows(8), _MOST_BYTES // max(1, row_bytes)))
    count, most = pieces.count, min(_FIRST_ROWS, limit)
    largest = max(1, -(-pieces.batch_size // pieces.assignment.pieces))
    while count is None or piece < count:
        size = min(max(1, most // largest), _MOST_PIECES)
        stop = piece + size if count is None else min(count, piece + size)
        yield *pieces.bounds(piece, stop), stop
        piece, most = stop, min(2 * most, limit)


@dataclass(frozen=True, eq=False)
class OwnPieces(Node):
    """The rows of one worker, batched into its pieces.

    Shapes: [...] becomes [rows of the piece, ...]. State: where the next row stands in the input, and the next piece.

    Args:
      pieces: how many rows each has.
      leaves: the specs of a piece, as cutting the global batches would make them.
    """

    input: Node
    pieces: RowRanges
    leaves: tuple[TensorSpec, ...]

    def arguments(self) -> dict[str, object]:
        return {"pieces": self.pieces}

    @cached_property
    def spec(self) -> Spec:
        return Spec(self.input.spec.structure, self.leaves)

    @property
    def cardinality(self) -> int:
        count = self.pieces.count
        return INFINITE if count is None else count

    def count_elements(self) -> int:
        return self.cardinality

    def batch_sizes(self) -> BatchSizes | None:
        pieces, assignment = self.pieces, self.pieces.assignment
        if pieces.rows is None or assignment.balanced or assignment.fixed:
            return None
        batches = BatchSizes.of([([1], pieces.rows)]).batched(pieces.batch_size, drop_remainder=pieces.drop_remainder)
        return batches.cut(assignment.pieces).every(assignment.period, assignment.first)

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0, "piece": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        return above(self.input.start_at(self.pieces.rows_before(row), epoch), skip=0, piece=row)

    def stream(self, state: State, run: Run) -> Stream:
        queue = RowQueue(self.input.open(state["input"], run), state)
        piece, count = state["piece"], self.pieces.count
        while count is None or piece < count:
            starts, stops = self.pieces.bounds(
                piece, piece + _MOST_PIECES if count is None else min(count, piece + _MOST_PIECES)
            )
            sizes = stops - starts
            ends = np.cumsum(sizes)
            done = 0
            while done < len(sizes):
                before = int(ends[done - 1]) if done else 0
                queue.fill(int(sizes[done]))
                whole = max(1, int(np.searchsorted(ends, before + queue.front, "right")) - done)
                rows = int(ends[done + whole - 1]) - before
                if rows > queue.size:  # the input ended early: it has fewer rows than were counted
                    return
                made = queue.take(rows).split(sizes[done : done + whole]) if rows else self._empty(whole)
                done += whole
                yield made, {**queue.mark(), "piece": piece + done}
            piece += len(sizes)

    def _empty(self, count: int) -> Block:
        """Pieces without rows."""
        spec = self.input.spec
        columns = [
            column_of([no_rows(leaf, tuple([size or 0 for size in leaf.shape or ()]))] * count)
            for leaf in spec.tensors("own_pieces")
        ]
        return ColumnBlock(spec.structure, columns, count)


@dataclass(frozen=True, eq=False)
class OwnShares(Node):
    """`shard_batches` that reads only its own rows; elements and states are those of the op.

    Args:
      whole: the op, over all batches.
      own: gives one piece of each batch, the same as `whole`.
    """

    whole: Node
    own: Node

    @cached_property
    def spec(self) -> Spec:
        return self.whole.spec

    @property
    def state_of(self) -> Node:
        return self.whole.state_of

    @property
    def cardinality(self) -> int:
        return self.whole.cardinality

    @property
    def random_access(self) -> bool:
        return self.whole.random_access

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.whole.fetch(rows, epoch)

    def start(self, epoch: int) -> State:
        return self.whole.start(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.whole.start_at(row, epoch)

    def stream(self, state: State, run: Run) -> Stream:
        batch, epoch = state["batch"], state["epoch"]
        if batch < 0:  # the state is of a process that did not count them
            yield from self.whole.open(state, run)
            return
        at = self.own.start_at(batch, epoch)
        assert at is not None, "the rewrite asked before"
        for block, _ in self.own.open(at, run):
            batch += block.size
            after = self.whole.start_at(batch, epoch)
            assert after is not None, "the rewrite asked before"
            yield block, after


class ShuffledRows(Shuffle):
    """A `shuffle` over an input with random access, whose elements can be fetched without those before them."""

    op: ClassVar[str] = "shuffle"
    random_access: ClassVar[bool] = True


class RowReader(Reader):
    """A reader of files whose records can be counted, in a format that can fetch them by number."""

    random_access: ClassVar[bool] = True

    @property
    def cardinality(self) -> int:
        assert self.counts is not None
        return int(self.counts[1][-1])

    @property
    def reads_fragments(self) -> bool:
        """Whether a row costs the whole fragment that it is in."""
        return self.format.lists_fragments and not self.gathers


# ----------------------------------------------------------------------------
# `shard_batches`: one worker's rows of every global batch.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ShardBatches(Node):
    """The rows of worker `index` in each batch: consecutive rows, whose number differs by at most one between workers.

    For training loops without a strategy: every worker has the same number of steps, the rows of all workers together are the
    batch, and a worker may get no row of a short batch. Shapes: [b, ...] becomes [b / num_shards rounded up or down, ...], as
    views. State: where the input stands, and after how many batches, -1 if that is not known; it resumes on any number of
    workers, and so does that of a process that iterated the batches without this step.

    Args:
      num_shards: how many workers share each batch, at least 1.
      index: which of them this worker is, from 0.

    Raises:
      InvalidArgumentError: `index` is not one of the shards, elements have no batch axis, or their order is random and was
        given no seed, so that each process would cut other batches.

    >>> import distinput as di
    >>> di.data.Dataset.range(7).batch(5).shard_batches(num_shards=2, index=1).to_list()
    [[3, 4], [6]]

    Source: distinput's own; the balanced cut of `InputOptions(balanced_split=True)`.
    """

    tolerant = same_count = same_access = True
    # A state is a position in the global batches.
    indifferent: ClassVar[frozenset[str]] = frozenset({"num_shards", "index"})
    input: Node
    num_shards: int
    index: int

    def __post_init__(self) -> None:
        at_least("shard_batches", "num_shards", self.num_shards, 1)
        if not 0 <= integer("shard_batches", "index", self.index) < self.num_shards:
            raise InvalidArgumentError(
                f"shard_batches: index must be from 0 to {self.num_shards - 1}, got {self.index}"
            )
        first_dimension("shard_batches", self.input.spec)

    def added(self) -> Self:
        if self.num_shards > 1 and (step := own_draw(self.input, self.num_shards)) is not None:
            raise InvalidArgumentError(
                f"shard_batches: all workers must have the same batches in the same order, but {step}, made at {step.origin}, "
                "was given no seed, so each process draws its own: records would be lost and others delivered twice; give it "
                "a seed, the same on all workers (seed=1)"
            )
        return self

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec.map(self._share)

    def _share(self, leaf: LeafSpec) -> LeafSpec:
        assert isinstance(leaf, TensorSpec)
        if not leaf.shape:
            return leaf
        rows = leaf.shape[0]
        size = None if rows is None else len(range(rows)[balanced_slice(rows, self.num_shards, self.index)])
        return leaf.with_shape((size, *leaf.shape[1:]))

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "batch": 0, "epoch": epoch}

    def start_at(self, row: int, epoch: int) -> State | None:
        return above(self.input.start_at(row, epoch), batch=row, epoch=epoch)

    def stream(self, state: State, run: Run) -> Stream:
        begin = state["batch"]

        def here(done: int, mark: State) -> State:
            made = {"input": mark["input"], "batch": -1 if begin < 0 else begin + done, "epoch": state["epoch"]}
            return {**made, "skip": mark["skip"]} if mark["skip"] else made

        upstream = self.input.open(state["input"], run)
        for block, at in passing_over(upstream, {"input": state["input"], "skip": state.get("skip", 0)}):
            if type(block) is Failure:
                yield block, here(1, at(0))
                begin += begin >= 0
                continue
            for part, done in self._parts(block, run):
                yield part, here(done, at(done))
            begin += block.size if begin >= 0 else 0

    def _parts(self, block: Block, run: Run) -> Iterator[tuple[Block, int]]:
        """The worker's rows of all batches, in parts, each with the batch after it."""
        return sound_parts(block.size, lambda first, end: self._shares(block.rows(first, end)), tolerant=run.tolerant)

    def _shares(self, block: Block) -> Block:
        if self.num_shards == 1:
            return block
        counts = row_counts("shard_batches", block)
        columns = [self._rows(column, counts) for column in block.materialize().folded().columns]
        return ColumnBlock(block.structure, unfolded(columns), block.size)

    def _rows(self, column: Column, counts: Any) -> Column:
        if isinstance(column, Dense):
            return Dense(column.array[:, balanced_slice(int(counts[0]), self.num_shards, self.index)])
        shares = [balanced_slice(n, self.num_shards, self.index) for n in counts.tolist()]
        if isinstance(column, SparseRows):
            parts = [sparse_rows(value, share) for value, share in zip(column.values(), shares, strict=True)]
            return SparseRows(*[column_of(list(each)) for each in zip(*parts, strict=True)])
        return column_of([value[share] for value, share in zip(column.values(), shares, strict=True)], column.dtype)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._shares(self.input.fetch(rows, epoch))
