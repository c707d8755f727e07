# SPDX-License-Identifier: Apache-2.0
"""A histogram in one pass and little memory, without knowing the range of the values beforehand."""

from dataclasses import dataclass, field
from math import frexp
from typing import Any

import numpy as np

__all__ = ["MOST_BINS", "Histogram"]

MOST_BINS = 16
"""Bins of a histogram; there are more than half as many, unless all values are close to each other or equal."""

_FINEST = -1022
_DIGITS = 30
"""The width is at least so many binary digits below the largest value: what differs in later digits alone is in one bin."""


@dataclass
class Histogram:
    """Counts of finite numbers in bins of equal width.

    The width is a power of two, and edges are multiples of it, so two bins become one bin of twice the width, exactly: when a
    value is outside, bins are joined until there is room. The result depends on the values alone, and neither on their order
    nor on the pieces in which they come.

    Attributes:
      level: the width is 2 to the power of this.
      first: the number of the first bin; its lower edge is `first` times the width.
      counts: of the values in each bin [edge, next edge).

    >>> histogram = Histogram()
    >>> histogram.add(np.array([1.0, 2.0, 2.5, 9.0]))
    >>> histogram.add(np.array([40.0]))
    >>> histogram.edges()
    [0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0, 44.0]
    >>> histogram.counts
    [3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    """

    level: int = 0
    first: int = 0
    counts: list[int] = field(default_factory=list)
    _low: float = field(default=0.0, repr=False)
    _high: float = field(default=0.0, repr=False)

    def add(self, values: Any) -> None:
        """Count an array [n] of finite numbers."""
        values = np.asarray(values, np.float64)
        if not len(values):
            return
        low, high = float(values.min()), float(values.max())
        if self.counts:
            level = max(self.level, _level(min(low, self._low), max(high, self._high)))
        else:
            self._low, self._high, level = low, high, _level(low, high)
            self.level, self.first = level, _bin(low, level)
        self._low, self._high = min(low, self._low), max(high, self._high)
        self._join(level)
        begin, stop = _bin(self._low, level), _bin(self._high, level) + 1
        counts = np.zeros(stop - begin, np.int64)
        counts[self.first - begin : self.first - begin + len(self.counts)] = self.counts
        counts += np.bincount(_bins(values, level) - begin, minlength=stop - begin)
        self.first, self.counts = begin, counts.tolist()

    def edges(self) -> list[float]:
        """The edges of the bins, one more than there are bins."""
        numbers = np.arange(len(self.counts) + 1, dtype=np.float64) + self.first
        with np.errstate(over="ignore"):  # the upper edge of the largest numbers is infinite
            edges: list[float] = np.ldexp(numbers, self.level).tolist() if self.counts else []
        return edges

    def _join(self, level: int) -> None:
        """Make bins as wide as this."""
        by, first = level - self.level, self.first >> (level - self.level)
        joined = [0] * ((self.first + len(self.counts) - 1 >> by) - first + 1 if self.counts else 0)
        for place, number in enumerate(self.counts):
            joined[(self.first + place >> by) - first] += number
        self.level, self.first, self.counts = level, first, joined


def _level(low: float, high: float) -> int:
    """The least level at which few enough bins hold these numbers; it only grows with the range."""
    reach = max(abs(low), abs(high))
    level = max(_FINEST, frexp(reach)[1] - _DIGITS) if reach else _FINEST
    while _bin(high, level) - _bin(low, level) >= MOST_BINS:
        level += 1
    return level


def _bin(value: float, level: int) -> int:
    return int(_bins(np.array([value]), level)[0])


def _bins(values: Any, level: int) -> Any:
    """The numbers of the bins of values [n]: floor(value / 2 ** level)."""
    found = np.floor(np.ldexp(values, -level)).astype(np.int64)
    found[(values < 0) & (found == 0)] = -1  # too close to zero to be scaled
    return found
