# SPDX-License-Identifier: Apache-2.0
"""Batches that are padded when they are handed out.

Padding a batch writes all of it. So batches travel as the rows they consist of, and each is padded when it is asked for, into
memory that is still in the cache when the consumer looks at it; small batches are padded several at a time.
"""

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, final

import numpy as np

from distinput.columns.column import Array, Column, Ints, LazyColumn
from distinput.columns.dense import Dense
from distinput.columns.objects import Objects
from distinput.columns.ragged import Ragged
from distinput.kernels.ragged import pad_spans
from distinput.values.buffers import empty

__all__ = ["GROUP_BYTES", "Late", "Padded", "as_bytes", "groups", "room"]

GROUP_BYTES = 1 << 18
"""Smaller batches are padded together up to this many bytes, which fit into a core's cache beside the batches in use."""

Late = Callable[[float], None]

_BYTE = np.dtype(np.uint8)


@final
class Padded(LazyColumn):
    """Batches of consecutive rows that differ in their first dimension alone, each row padded to the width of its batch.

    Args:
      flat: [m, ...] of numbers, C-contiguous.
      starts: [n], where in `flat` each row begins; C-contiguous.
      lengths: [n], of each row; C-contiguous.
      counts: [k], rows of each batch, n in all.
      widths: [k], at least the lengths of the rows of each batch.
      fill: [...], one item, which fills each row up to its width.
      late: called with the seconds that padding takes when batches are handed out (`Run.late`).
    """

    __slots__ = ("_counts", "_fill", "_flat", "_late", "_lengths", "_starts", "_widths")

    def __init__(
        self,
        flat: Array,
        starts: Ints,
        lengths: Ints,
        counts: Ints,
        widths: Ints,
        fill: Array,
        late: Late | None = None,
    ) -> None:
        self._flat, self._starts, self._lengths = flat, starts, lengths
        self._counts, self._widths, self._fill, self._late = counts, widths, fill, late

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]  # that of an item
        return self._fill.dtype

    def __len__(self) -> int:
        return len(self._counts)

    def row(self, index: int) -> Any:
        return next(self.rows(index, index + 1).values())

    def values(self) -> Iterator[Any]:
        source, fill = as_bytes(self._flat), as_bytes(self._fill)
        counts, widths, sizes = self._counts.tolist(), self._widths.tolist(), self.sizes.tolist()
        first = 0
        for begin, end in groups(sizes, GROUP_BYTES):
            clock = perf_counter()
            last = first + sum(counts[begin:end])
            out = room(sum(sizes[begin:end]))
            rows = self._starts[first:last], self._lengths[first:last]
            pad_spans(source, *rows, self._counts[begin:end], self._widths[begin:end], out, fill)
            batches = iter(self._cut(out, counts[begin:end], widths[begin:end]))
            if self._late is not None:
                self._late(perf_counter() - clock)
            del out  # only the batches refer to their memory, so it can be used again once they are dropped
            yield from batches
            first = last

    def rows(self, start: int, stop: int, step: int = 1) -> "Padded":
        if step != 1:
            return self.take(np.arange(len(self))[start:stop:step])
        first, counts = int(self._counts[:start].sum()), self._counts[start:stop]
        last = first + int(counts.sum())
        rows = self._starts[first:last], self._lengths[first:last]
        return Padded(self._flat, *rows, counts, self._widths[start:stop], self._fill, self._late)

    def take(self, indices: Ints) -> "Padded":
        counts = self._counts.take(indices)
        shift = (self._counts.cumsum() - self._counts).take(indices) - (counts.cumsum() - counts)
        numbers = np.arange(counts.sum()) + np.repeat(shift, counts)
        rows = self._starts.take(numbers), self._lengths.take(numbers)
        return Padded(self._flat, *rows, counts, self._widths.take(indices), self._fill, self._late)

    def lengths(self) -> Ints:
        return self._counts

    def unstack(self) -> Column:
        flat, widths = self._items(self._padded()), np.repeat(self._widths, self._counts)
        if len(widths) and (widths == widths[0]).all():
            return Dense(flat.reshape(len(widths), int(widths[0]), *flat.shape[1:]))
        return Ragged(Dense(flat), widths.cumsum() - widths, widths)

    def copied(self) -> Column:
        return self.materialize()

    def materialize(self) -> Dense | Objects:
        """The same batches, padded now."""
        batches = self._cut(self._padded(), self._counts.tolist(), self._widths.tolist())
        return Objects(batches, self.dtype) if isinstance(batches, list) else Dense(batches)

    @property
    def sizes(self) -> Ints:
        """[k], the bytes of each batch."""
        return self._counts * self._widths * self._fill.nbytes

    @property
    def nbytes(self) -> int:
        return int(self.sizes.sum())

    def _padded(self) -> Array:
        """All batches as bytes, one after the other."""
        out = room(self.nbytes)
        rows = self._starts, self._lengths
        pad_spans(as_bytes(self._flat), *rows, self._counts, self._widths, out, as_bytes(self._fill))
        return out

    def _items(self, made: Array) -> Array:
        """Bytes as items [n, ...]."""
        items = made.view(self.dtype)
        return items.reshape(-1, *self._fill.shape) if self._fill.ndim else items

    def _cut(self, made: Array, counts: list[int], widths: list[int]) -> Array | list[Array]:
        """Batches, given as bytes, one after the other: an array of them if they are all of one shape."""
        items, inner = made.view(self.dtype), self._fill.shape
        if len(counts) == 1 or (counts and len(set(counts)) == len(set(widths)) == 1):
            return items.reshape(len(counts), counts[0], widths[0], *inner)
        flat, batches, at = self._items(made), [], 0
        for count, width in zip(counts, widths, strict=True):
            batches.append(flat[at : at + count * width].reshape(count, width, *inner))
            at += count * width
        return batches

    def __reduce__(self) -> tuple[Any, ...]:
        made = self.materialize()
        return (Dense, (made.array,)) if isinstance(made, Dense) else (Objects, (made.items, made.dtype))


def room(nbytes: int) -> Array:
    """Memory for batches: from buffers of few sizes, since batches of many widths follow each other."""
    return empty((1 << max(0, nbytes - 1).bit_length(),), _BYTE)[:nbytes]


def groups(sizes: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Neighbours to be made together, from one to before another, so that the sum of their sizes is at most `most`.

    >>> list(groups([3, 3, 3, 9, 1], most=6))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    begin = total = 0
    for end, size in enumerate(sizes):
        total += size
        if total > most and begin < end:
            yield begin, end
            begin, total = end, size
    if sizes:
        yield begin, len(sizes)


def as_bytes(array: Array) -> Array:
    """A C-contiguous array as its bytes [n]."""
    return array.reshape(-1).view(_BYTE)
