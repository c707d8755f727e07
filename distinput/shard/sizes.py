# SPDX-License-Identifier: Apache-2.0
"""Rows of each element of a data set of batches, as patterns that repeat: billions of batches are a few numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from distinput.core.column import Ints

__all__ = ["Sizes"]

_LONGEST = 1 << 20  # elements of a pattern


@dataclass(frozen=True)
class Sizes:
    """Rows of consecutive elements.

    Args:
      runs: patterns, and how often each is repeated before the next begins.
    """

    runs: tuple[tuple[tuple[int, ...], int], ...] = ()

    @staticmethod
    def of(runs: Iterable[tuple[Sequence[int], int]]) -> "Sizes":
        """From patterns, those left out that are empty or never come."""
        return Sizes(tuple([(tuple(pattern), times) for pattern, times in runs if pattern and times > 0]))

    @property
    def count(self) -> int:
        """How many elements."""
        return sum(len(pattern) * times for pattern, times in self.runs)

    @property
    def rows(self) -> int:
        """Rows of all elements.

        >>> Sizes.of([([4], 2), ([3], 1)]).rows
        11
        """
        return sum(sum(pattern) * times for pattern, times in self.runs)

    @property
    def uniform(self) -> bool:
        """True when all elements have as many rows."""
        return len({size for pattern, _ in self.runs for size in pattern}) <= 1

    def batched(self, size: int, *, drop_remainder: bool) -> "Sizes":
        """The same number of elements, one row each, in batches."""
        whole, rest = divmod(self.count, size)
        return Sizes.of([([size], whole), ([rest], int(rest > 0 and not drop_remainder))])

    def rebatched(self, sizes: Sequence[int], *, drop_remainder: bool, ends_with_input: bool) -> "Sizes":
        """The rows in batches of these sizes, again and again; see `Rebatch`.

        >>> Sizes.of([([5], 2)]).rebatched([2, 1], drop_remainder=False, ends_with_input=True).runs
        (((2, 1), 3), ((1,), 1))
        """
        whole, rest = divmod(self.rows, sum(sizes))
        tail: list[int] = []
        for place, size in enumerate(sizes):
            if rest < size or (not size and not place and ends_with_input and not rest):
                break
            tail.append(size)
            rest -= size
        if rest and not drop_remainder:
            tail.append(rest)
        return Sizes.of([(sizes, whole), (tail, 1)])

    def cut(self, pieces: int) -> "Sizes":
        """Each batch on its own in so many pieces; see `LegacyRebatch`.

        >>> Sizes.of([([6], 2)]).cut(4).runs
        (((2, 2, 2, 0), 2),)
        """
        return Sizes.of([([piece for size in pattern for piece in _cut(size, pieces)], n) for pattern, n in self.runs])

    def repeated(self, times: int) -> "Sizes | None":
        """All of it so often; None when that is too long to tell."""
        if len(self.runs) == 1:
            ((pattern, n),) = self.runs
            return Sizes.of([(pattern, n * times)])
        whole = self._flat()
        return None if whole is None else Sizes.of([(whole.tolist(), times)])

    def part(self, start: int, stop: int | None = None) -> "Sizes":
        """The elements from `start` to before `stop`."""
        stop = self.count if stop is None else stop
        found: list[tuple[Sequence[int], int]] = []
        for pattern, times in self.runs:
            length = len(pattern)
            a, b = min(max(start, 0), length * times), min(max(stop, 0), length * times)
            if b > a:
                first, over = divmod(a, length)
                last, rest = divmod(b, length)
                if first == last:
                    found.append((pattern[over:rest], 1))
                else:
                    found += [(pattern[over:], 1), (pattern, last - first - 1), (pattern[:rest], 1)]
            start, stop = start - length * times, stop - length * times
        return Sizes.of(found)

    def every(self, step: int, index: int) -> "Sizes":
        """Elements index, index + step, ...

        >>> Sizes.of([([2, 1, 0], 2)]).every(2, 1).runs
        (((1, 2, 0), 1),)
        """
        found: list[tuple[Sequence[int], int]] = []
        for pattern, times in self.runs:
            # So many patterns together begin at the same place among the steps.
            turns = step // int(np.gcd(step, len(pattern)))
            whole, rest = divmod(times, turns)
            found += [((pattern * turns)[index::step], whole), ((pattern * rest)[index::step], 1)]
            index = (index - len(pattern) * times) % step
        return Sizes.of(found)

    def then(self, other: "Sizes") -> "Sizes":
        """These elements and then those."""
        return Sizes(self.runs + other.runs)

    def _flat(self) -> Ints | None:
        if self.count > _LONGEST:
            return None
        return np.concatenate(
            [np.empty(0, np.int64), *[np.tile(pattern, times) for pattern, times in self.runs]]
        ).astype(np.int64)


def _cut(size: int, pieces: int) -> list[int]:
    each = -(-size // pieces)
    return [min(max(size - each * piece, 0), each) for piece in range(pieces)]
