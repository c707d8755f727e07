# SPDX-License-Identifier: Apache-2.0
"""The rows of each element of a dataset of batches, as repeated patterns, and which of them belong to one worker."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from distinput.columns.column import Ints
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# Rows of each element of a dataset of batches, as repeated patterns: a few numbers stand for billions of batches.
# ----------------------------------------------------------------------------


_LONGEST = 1 << 20  # elements of a pattern


@dataclass(frozen=True, eq=False)
class BatchSizes:
    """Rows of consecutive elements.

    Args:
      runs: patterns, and how often each is repeated before the next begins.
    """

    runs: tuple[tuple[Ints, int], ...] = ()

    @staticmethod
    def of(runs: Iterable[tuple[Sequence[int] | Ints, int]]) -> "BatchSizes":
        """From patterns, without those that are empty or repeated 0 times."""
        return BatchSizes(
            tuple([(np.asarray(pattern, np.int64), times) for pattern, times in runs if len(pattern) and times > 0])
        )

    @cached_property
    def count(self) -> int:
        """How many elements."""
        return sum(len(pattern) * times for pattern, times in self.runs)

    @cached_property
    def rows(self) -> int:
        """Rows of all elements.

        >>> BatchSizes.of([([4], 2), ([3], 1)]).rows
        11
        """
        return sum(int(pattern.sum()) * times for pattern, times in self.runs)

    @property
    def uniform(self) -> bool:
        """True if all elements have the same number of rows."""
        return len({int(size) for pattern, _ in self.runs for size in (pattern.min(), pattern.max())}) <= 1

    def flat(self) -> Ints:
        """[count] the rows of each element.

        >>> BatchSizes.of([([2, 1], 2), ([3], 1)]).flat()
        array([2, 1, 2, 1, 3])
        """
        return np.concatenate([np.empty(0, np.int64), *[np.tile(pattern, times) for pattern, times in self.runs]])

    def places(self, rows: Ints) -> tuple[Ints, Ints]:
        """For each row of all elements, the element that it is in, and its number there.

        >>> BatchSizes.of([([2, 1], 2), ([3], 1)]).places(np.array([0, 1, 2, 5, 8]))
        (array([0, 0, 1, 3, 4]), array([0, 1, 0, 0, 2]))
        """
        elements, over = np.empty_like(rows), np.empty_like(rows)
        first_element = first_row = 0
        for pattern, times in self.runs:
            ends = np.cumsum(pattern)
            count, total = len(pattern) * times, int(ends[-1]) * times
            here = (rows >= first_row) & (rows < first_row + total)
            if here.any():
                turns, rest = np.divmod(rows[here] - first_row, ends[-1])
                within = np.searchsorted(ends, rest, "right")
                elements[here] = first_element + turns * len(pattern) + within
                over[here] = rest - (ends - pattern)[within]
            first_element, first_row = first_element + count, first_row + total
        return elements, over

    def spans(self, elements: Ints) -> tuple[Ints, Ints]:
        """For each of these elements, the number of its first row among all rows, and how many it has.

        >>> BatchSizes.of([([2, 1], 2), ([3], 1)]).spans(np.array([1, 2, 4]))
        (array([2, 3, 6]), array([1, 2, 3]))
        """
        starts, sizes = np.empty_like(elements), np.empty_like(elements)
        first_element = first_row = 0
        for pattern, times in self.runs:
            ends = np.cumsum(pattern)
            count = len(pattern) * times
            here = (elements >= first_element) & (elements < first_element + count)
            if here.any():
                turns, within = np.divmod(elements[here] - first_element, len(pattern))
                starts[here] = first_row + turns * ends[-1] + (ends - pattern)[within]
                sizes[here] = pattern[within]
            first_element, first_row = first_element + count, first_row + int(ends[-1]) * times
        return starts, sizes

    def batched(self, size: int, *, drop_remainder: bool) -> "BatchSizes":
        """The same number of elements, one row each, in batches."""
        whole, rest = divmod(self.count, size)
        return BatchSizes.of([([size], whole), ([rest], int(rest > 0 and not drop_remainder))])

    def rebatched(self, sizes: Sequence[int], *, drop_remainder: bool) -> "BatchSizes":
        """The rows in batches of these sizes, again and again; see `Rebatch`.

        >>> BatchSizes.of([([5], 2)]).rebatched([2, 1], drop_remainder=False).flat()
        array([2, 1, 2, 1, 2, 1, 1])
        """
        cycle = np.asarray(sizes, np.int64)
        ends = np.cumsum(cycle)
        whole, rest = divmod(self.rows, int(ends[-1]))
        full = int(np.searchsorted(ends, rest, "right"))
        over = rest - (int(ends[full - 1]) if full else 0)
        return BatchSizes.of([(cycle, whole), (cycle[:full], 1), ([over], int(over > 0 and not drop_remainder))])

    def cut(self, pieces: int) -> "BatchSizes":
        """Each batch on its own in so many pieces; see `LegacyRebatch`.

        >>> BatchSizes.of([([6], 2)]).cut(4).flat()
        array([2, 2, 2, 0, 2, 2, 2, 0])
        """
        return BatchSizes.of([(_cut(pattern, pieces), times) for pattern, times in self.runs])

    def repeated(self, times: int) -> "BatchSizes | None":
        """All of it, so many times over; None if that takes too many numbers."""
        if len(self.runs) == 1:
            ((pattern, n),) = self.runs
            return BatchSizes.of([(pattern, n * times)])
        return None if self.count > _LONGEST else BatchSizes.of([(self.flat(), times)])

    def part(self, start: int, stop: int | None = None) -> "BatchSizes":
        """The elements from `start` to before `stop`."""
        stop = self.count if stop is None else stop
        runs: list[tuple[Ints, int]] = []
        for pattern, times in self.runs:
            length = len(pattern)
            a, b = min(max(start, 0), length * times), min(max(stop, 0), length * times)
            if b > a:
                first, over = divmod(a, length)
                last, rest = divmod(b, length)
                if first == last:
                    runs.append((pattern[over:rest], 1))
                else:
                    runs += [(pattern[over:], 1), (pattern, last - first - 1), (pattern[:rest], 1)]
            start, stop = start - length * times, stop - length * times
        return BatchSizes.of(runs)

    def every(self, step: int, index: int) -> "BatchSizes":
        """Elements index, index + step, ...

        >>> BatchSizes.of([([2, 1, 0], 2)]).every(2, 1).flat()
        array([1, 2, 0])
        """
        found: list[tuple[Ints, int]] = []
        for pattern, times in self.runs:
            length = len(pattern)
            # So many patterns together begin at the same place among the steps.
            turns = step // int(np.gcd(step, length))
            whole, rest = divmod(times, turns)
            for patterns, again in ((turns, whole), (rest, 1)):
                found.append((pattern[np.arange(index, length * patterns, step) % length], again))
            index = (index - length * times) % step
        return BatchSizes.of(found)

    def then(self, other: "BatchSizes") -> "BatchSizes":
        """These elements and then those."""
        return BatchSizes(self.runs + other.runs)


def _cut(sizes: Ints, pieces: int) -> Ints:
    each = -(-sizes // pieces)[:, None]  # [n, 1]
    return np.clip(sizes[:, None] - each * np.arange(pieces), 0, each).ravel()


# ----------------------------------------------------------------------------
# Which rows of the data belong to one worker when global batches are cut into pieces.
# ----------------------------------------------------------------------------


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
        cycles, count = row // rows if rows else 0, self.count
        if self.rows is not None:  # a last batch that is not full may have more rows for this worker than a full one
            full = self.assignment.count(self.rows // self.batch_size) // own
            cycles = min(cycles, full) if rows else full
        rest, first = row - cycles * rows, cycles * own
        starts, stops = self.bounds(first, first + own if count is None else min(count, first + 2 * own))
        ends = np.cumsum(stops - starts)
        at = int(np.searchsorted(ends, rest, "right"))
        return first + at, rest - (int(ends[at - 1]) if at else 0)

    @cached_property
    def _cycle(self) -> tuple[int, int]:
        """This worker's pieces, and their rows, until a full batch and a turn begin together again."""
        own = math.lcm(self.assignment.pieces, self.assignment.period) // self.assignment.period * self.assignment.own
        starts, stops = replace(self, rows=None).bounds(0, own)
        return own, int((stops - starts).sum())
