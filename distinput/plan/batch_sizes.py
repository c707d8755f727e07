# SPDX-License-Identifier: Apache-2.0
"""Rows of each element of a dataset of batches, as repeated patterns: a few numbers stand for billions of batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distinput.columns.column import Ints

__all__ = ["BatchSizes"]

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
