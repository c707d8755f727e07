# SPDX-License-Identifier: Apache-2.0
"""`own_rows` and `own_pieces`: the rows that policy DATA gives to one worker, without reading the rows of others."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Ints
from distinput.core.regroup import column_of
from distinput.core.rows import RowQueue, Stream
from distinput.core.run import Run
from distinput.core.sizes import block_rows
from distinput.core.spec import Spec, TensorSpec, no_rows
from distinput.core.state import State
from distinput.ops.reader import Reader
from distinput.ops.shuffle import Shuffle
from distinput.partition.assignment import RowRanges
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.node import INFINITE, Node, walk
from distinput.plan.same_elements import SameElements

__all__ = ["OwnPieces", "OwnRows", "OwnShares", "RowReader", "ShuffledRows", "fetches"]

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
        at = self.input.start_at(self.pieces.rows_before(row), epoch)
        return None if at is None else {"input": at, "skip": 0, "piece": row}

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
                whole = int(np.searchsorted(ends, before + queue.front, "right")) - done
                whole = max(1, whole)
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


@dataclass(frozen=True, eq=False)
class ShuffledRows(Shuffle):
    """A `shuffle` over an input with random access, whose elements can be fetched without those before them."""

    @property
    def op(self) -> str:
        return "shuffle"

    @property
    def random_access(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        if not len(rows):
            return self.input.fetch(rows, epoch)
        low, high = int(rows.min()), int(rows.max()) + 1
        parts: list[Ints] = []
        have = 0
        for numbers in self.numbers({**self.start(epoch), "row": low}):
            parts.append(numbers)
            have += len(numbers)
            if have >= high - low:
                break
        return self.input.fetch(np.concatenate(parts).take(rows - low), epoch)


@dataclass(frozen=True, eq=False)
class RowReader(Reader):
    """A reader of files whose records can be counted, in a format that can fetch them by number."""

    @property
    def cardinality(self) -> int:
        assert self.counts is not None
        return int(self.counts[1][-1])

    @property
    def random_access(self) -> bool:
        return True
