# SPDX-License-Identifier: Apache-2.0
"""Which rows of the data belong to one worker when global batches are cut into pieces."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from distinput.columns.column import Ints

__all__ = ["Assignment", "RowRanges"]


@dataclass(frozen=True)
class Assignment:
    """How each global batch is cut into N pieces, and which pieces are one worker's, numbered through all batches.

    A worker has `own` consecutive pieces from number `first` on, then again `period` pieces later, and so on.

    Args:
      pieces: N.
      first: the number of this worker's first piece.
      period: the number of pieces after which it is this worker's turn again.
      own: its pieces in one turn.
      balanced: sizes differ by at most one; otherwise they are ceil(n / N), of which later ones may be short or empty.
      fixed: n is the batch size also for a batch that has fewer rows, so a row's place in its batch alone says to which
        piece it belongs.

    Source: the unbalanced cut is `RewriteRebatchV2ToV1` of tensorflow/core/grappler/optimizers/data/auto_shard.cc.
    """

    pieces: int
    first: int
    period: int
    own: int = 1
    balanced: bool = False
    fixed: bool = False

    @property
    def each(self) -> int | None:
        """Own pieces of every batch; None where workers get whole batches, or unequal numbers of pieces."""
        return None if self.pieces % self.period else self.pieces // self.period * self.own

    def count(self, batches: int) -> int:
        """This worker's pieces of so many batches."""
        turns, rest = divmod(batches * self.pieces, self.period)
        return turns * self.own + min(max(rest - self.first, 0), self.own)

    def numbers(self, first: int, stop: int) -> Ints:
        """The numbers, among all pieces, of the worker's pieces `first` to `stop`."""
        turn, place = np.divmod(np.arange(first, stop), self.own)
        return self.first + turn * self.period + place


@dataclass(frozen=True)
class RowRanges:
    """The pieces of one worker, as ranges of rows of the whole data.

    Args:
      rows: of the whole data; None: without end.
      batch_size: rows of a global batch.
      drop_remainder: leave out a last batch that is not full.
      assignment: which pieces.
    """

    rows: int | None
    batch_size: int
    drop_remainder: bool
    assignment: Assignment

    def __str__(self) -> str:
        """In the words that states of version 2 hold a hash of."""
        a = self.assignment
        turn = f"pieces={a.pieces}, first={a.first}, period={a.period}, own={a.own}, balanced={a.balanced}"
        turn += ", fixed=True" if a.fixed else ""
        batches = f"rows={self.rows}, batch_size={self.batch_size}, drop_remainder={self.drop_remainder}"
        return f"Pieces({batches}, deal=Deal({turn}))"

    @property
    def count(self) -> int | None:
        """How many pieces this worker has; None if there is no end.

        >>> RowRanges(10, 4, False, Assignment(4, first=1, period=2)).count
        6
        """
        if self.rows is None:
            return None
        batches = self.rows // self.batch_size if self.drop_remainder else -(-self.rows // self.batch_size)
        return self.assignment.count(batches)

    def bounds(self, first: int, stop: int) -> tuple[Ints, Ints]:
        """Where the worker's pieces `first` to `stop` begin and end among the rows.

        >>> RowRanges(10, 4, False, Assignment(4, first=1, period=2)).bounds(0, 6)
        (array([ 1,  3,  5,  7,  9, 10]), array([ 2,  4,  6,  8, 10, 10]))
        >>> RowRanges(10, 4, False, Assignment(3, first=1, period=3, own=2, balanced=True)).bounds(0, 6)
        (array([ 2,  3,  6,  7,  9, 10]), array([ 3,  4,  7,  8, 10, 10]))
        >>> RowRanges(10, 4, False, Assignment(2, first=1, period=2, fixed=True)).bounds(0, 3)
        (array([ 2,  6, 10]), array([ 4,  8, 10]))
        """
        pieces = self.assignment.pieces
        batch, piece = np.divmod(self.assignment.numbers(first, stop), pieces)
        begin = batch * self.batch_size
        size = self.batch_size if self.rows is None else np.minimum(self.batch_size, self.rows - begin)
        if self.assignment.balanced:
            low, more = np.divmod(size, pieces)
            return begin + piece * low + np.minimum(piece, more), begin + (piece + 1) * low + np.minimum(
                piece + 1, more
            )
        each = -(-(self.batch_size if self.assignment.fixed else size) // pieces)
        return begin + np.minimum(piece * each, size), begin + np.minimum((piece + 1) * each, size)

    def rows_before(self, piece: int) -> int:
        """How many of the worker's rows come before its piece number `piece`.

        >>> RowRanges(10, 4, False, Assignment(4, first=1, period=2)).rows_before(4)
        4
        """
        own, rows = self._cycle
        cycles = max(0, piece - 1) // own  # all of full batches: only the last batch may be short
        starts, stops = self.bounds(cycles * own, piece)
        return cycles * rows + int((stops - starts).sum())

    def place(self, row: int) -> tuple[int, int]:
        """The piece that holds the worker's own row number `row`, and the row's place in it.

        The row past the end is in the piece past the end.

        >>> RowRanges(10, 4, False, Assignment(4, first=1, period=2)).place(3)
        (3, 0)
        """
        own, rows = self._cycle
        cycles, rest = divmod(row, rows) if rows else (0, row)
        first, count = cycles * own, self.count
        starts, stops = self.bounds(first, first + own if count is None else max(first, min(count, first + own)))
        ends = np.cumsum(stops - starts)
        at = int(np.searchsorted(ends, rest, "right"))
        return first + at, rest - (int(ends[at - 1]) if at else 0)

    @cached_property
    def _cycle(self) -> tuple[int, int]:
        """This worker's pieces, and their rows, until a full batch and a turn begin together again."""
        own = math.lcm(self.assignment.pieces, self.assignment.period) // self.assignment.period * self.assignment.own
        starts, stops = replace(self, rows=None).bounds(0, own)
        return own, int((stops - starts).sum())
