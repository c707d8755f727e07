# SPDX-License-Identifier: Apache-2.0
"""Rows that differ in their first dimension: *spans* (start and length) over a column of values, which are not moved."""

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from distinput.core.column import Column, Ints
from distinput.core.dense import Dense
from distinput.core.strings import Strings
from distinput.kernels.ragged import gather_spans

__all__ = ["Ragged"]


@final
class Ragged(Column):
    """Rows that differ in their first dimension: row i is `flat` rows starts[i] to starts[i] + sizes[i].

    Args:
      flat: the values.
      starts, sizes: [n] the spans of the rows.
      loose: True for the rows of ragged tensors: they are stacked as ragged tensors, even if they are equally long. Otherwise
        only rows of one length can be stacked.
    """

    __slots__ = ("flat", "loose", "sizes", "starts")

    def __init__(self, flat: Dense | Strings, starts: Ints, sizes: Ints, loose: bool = False) -> None:
        self.flat, self.starts, self.sizes, self.loose = flat, starts, sizes, loose

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Of the values."""
        return self.flat.dtype

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, index: int) -> Any:
        start = self.starts[index]
        return self.flat.rows(start, start + self.sizes[index]).whole()

    @property
    def atomic(self) -> bool:
        return True

    def values(self) -> Iterator[Any]:
        whole = self.flat.whole()
        return map(whole.__getitem__, map(slice, self.starts.tolist(), (self.starts + self.sizes).tolist()))

    def rows(self, start: int, stop: int, step: int = 1) -> "Ragged":
        return Ragged(self.flat, self.starts[start:stop:step], self.sizes[start:stop:step], self.loose)

    def take(self, indices: Ints) -> "Ragged":
        return Ragged(self.flat, self.starts.take(indices), self.sizes.take(indices), self.loose)

    def lengths(self) -> Ints | int | None:
        return self.sizes

    def unstack(self) -> Column:
        return self.gathered()

    def gathered(self) -> Dense | Strings:
        """The flat rows of all rows, in order; a view if they already lie so."""
        starts, sizes = self.starts, self.sizes
        if not len(starts):
            return self.flat.rows(0, 0)
        ends = starts + sizes
        if (starts[1:] == ends[:-1]).all():
            return self.flat.rows(int(starts[0]), int(ends[-1]))
        total = int(sizes.sum())
        before = np.cumsum(sizes) - sizes
        if isinstance(self.flat, Dense) and self.flat.array.flags.c_contiguous and self.flat.array.nbytes:
            source = self.flat.array
            width = source[0].nbytes
            out = np.empty((total, *source.shape[1:]), source.dtype)
            target = out.reshape(-1).view(np.uint8)
            gather_spans(source.reshape(-1).view(np.uint8), starts * width, sizes * width, target, before * width)
            return Dense(out)
        return self.flat.take(np.arange(total) + np.repeat(starts - before, sizes))

    def copied(self) -> "Ragged":
        return Ragged(self.gathered().copied(), np.cumsum(self.sizes) - self.sizes, self.sizes, self.loose)

    @property
    def nbytes(self) -> int:
        per_row = self.flat.nbytes / max(1, len(self.flat))
        return int(per_row * float(self.sizes.sum())) + 16 * len(self.sizes)
