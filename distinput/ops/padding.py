# SPDX-License-Identifier: Apache-2.0
"""Padding: how elements of several lengths become the rows of a batch.

Rows that differ in their first dimension alone, spans of one array or arrays of their own, are copied once, by compiled
code, from where they are to where they are wanted; small batches are made several at a time. All others are padded one by one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.buffers import empty
from distinput.core.column import (
    Array,
    Arrays,
    Column,
    Dense,
    Ints,
    Objects,
    Ragged,
    Strings,
    column_of,
    concat_columns,
)
from distinput.core.picked import Picked
from distinput.core.values import STRING, shape_of
from distinput.errors import DataLossError
from distinput.kernels.ragged import pad_spans

__all__ = ["Padding"]

Dims = tuple[int | None, ...]

_LARGE_BYTES = 1 << 18
"""Smaller batches are made together, up to so many bytes: what a core's cache holds beside the batches in use."""


@dataclass(frozen=True)
class Padding:
    """What to pad the leaves of elements to.

    Args:
      shapes: the padded shape of each leaf; None: as long as the longest of the batch.
      fills: the padding value of each leaf.
    """

    shapes: tuple[Dims, ...]
    fills: tuple[Any, ...]

    def batch(self, parts: Sequence[Block]) -> Block:
        """All rows of some blocks as one batch.

        Raises:
          DataLossError: a row is longer than its shape.
        """
        parts = [part for part in parts if part.size] or parts[:1]
        leaves = zip(zip(*[part.columns for part in parts], strict=True), self.shapes, self.fills, strict=True)
        return Block(parts[0].structure, [_padded(columns, shape, fill) for columns, shape, fill in leaves], 1)

    def batches(self, rows: Block, counts: Ints) -> Iterator[tuple[Block, int]]:
        """Batches of consecutive rows, `counts` of them, each at least 1: blocks of batches, and the rows in each block.

        Raises:
          DataLossError: a row is longer than its shape; what comes before it is sent.
        """
        if not len(counts):
            return
        ends = counts.cumsum()
        leaves = []
        for column, shape, fill in zip(rows.columns, self.shapes, self.fills, strict=True):
            leaf = _together(column, shape, fill, counts, ends)
            if leaf is None:
                yield from self._one_by_one(rows, counts)
                return
            leaves.append(leaf)
        sizes: Ints = sum([leaf.sizes for leaf in leaves], np.zeros(len(counts), np.int64))
        whole = min([leaf.whole for leaf in leaves], default=len(counts))  # before one that is an error
        for begin, end in _groups(sizes[:whole]):
            first, last = int(ends[begin] - counts[begin]), int(ends[end - 1])
            yield (
                Block(rows.structure, [leaf.made(begin, end, first, last) for leaf in leaves], end - begin),
                last - first,
            )
        if whole < len(counts):
            self.batch([rows.rows(int(ends[whole] - counts[whole]), int(ends[whole]))])

    def _one_by_one(self, rows: Block, counts: Ints) -> Iterator[tuple[Block, int]]:
        first = 0
        for count in counts.tolist():
            yield self.batch([rows.rows(first, first + count)]), count
            first += count


def _groups(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Neighbours to be made together, from one to before another, by their bytes."""
    totals = sizes.cumsum()
    begin, before = 0, 0
    while begin < len(sizes):
        end = max(begin + 1, int(totals.searchsorted(before + _LARGE_BYTES, "right")))
        yield begin, end
        begin, before = end, int(totals[end - 1])


class _Rows:
    """A leaf that needs no padding: its batches are views.

    Args:
      column: of rows of one shape.
      counts: [k], rows of each batch.
    """

    def __init__(self, column: Dense | Strings, counts: Ints) -> None:
        self._column, self._counts = column, counts
        self.whole = len(counts)
        self.sizes = np.zeros(len(counts), np.int64)

    def made(self, begin: int, end: int, first: int, last: int) -> Column:
        """Batches `begin` to before `end`, which are rows `first` to before `last`."""
        rows = self._column.rows(first, last)
        return rows.split(self._counts[begin:end]) if end - begin > 1 else rows.stack(last - first)


class _Spans:
    """A leaf whose rows are spans of an array: they differ in their first dimension alone.

    Args:
      values: [m, ...].
      starts: [n], where each row begins.
      lengths: [n].
      counts: [k], rows of each batch.
      ends: [k], where each batch ends.
      width: what rows are padded to; None: as long as the longest of the batch.
      fill: one item.
    """

    def __init__(
        self, values: Array, starts: Ints, lengths: Ints, counts: Ints, ends: Ints, width: int | None, fill: Any
    ) -> None:
        self._starts, self._lengths, self._counts = starts, lengths, counts
        self._inner, self._dtype = values.shape[1:], values.dtype
        self._values = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._fill = _item(fill, values)
        longest = np.maximum.reduceat(lengths, ends - counts)
        self._widths = longest if width is None else np.full(len(counts), width, np.int64)
        too_long = np.flatnonzero(longest > self._widths)
        self.whole = int(too_long[0]) if len(too_long) else len(counts)
        """Batches before the first one with a row that is too long."""
        items = counts * self._widths
        self.sizes = items * self._fill.size
        self._items: list[int] = items.tolist()
        self._most = max(self._items)

    def made(self, begin: int, end: int, first: int, last: int) -> Column:
        """Batches `begin` to before `end`, which are rows `first` to before `last`."""
        counts, widths = self._counts[begin:end], self._widths[begin:end]
        starts, lengths = self._starts[first:last], self._lengths[first:last]
        items = sum(self._items[begin:end])
        out = empty((self._room(items), *self._inner), self._dtype)[:items]
        if out.size:
            pad_spans(self._values, starts, lengths, counts, widths, out.reshape(-1).view(np.uint8), self._fill)
        if end - begin == 1 or ((widths == widths[0]).all() and (counts == counts[0]).all()):
            return Dense(out.reshape(end - begin, int(counts[0]), int(widths[0]), *self._inner))
        batches, at = [], 0
        for count, width in zip(counts.tolist(), widths.tolist(), strict=True):
            batches.append(out[at : at + count * width].reshape(count, width, *self._inner))
            at += count * width
        return Objects(batches, self._dtype)

    def _room(self, items: int) -> int:
        """Items to ask memory for: equally many for batches of nearly one size, so that the same few buffers serve all."""
        return self._most if items <= self._most < items * 5 // 4 else items


def _together(column: Column, shape: Dims, fill: Any, counts: Ints, ends: Ints) -> _Rows | _Spans | None:
    """A leaf of many batches, if its batches can be made without looking at single rows."""
    if isinstance(column, Dense | Strings):
        own = _inner_shape(column)
        if own is not None and _fits(shape, own):
            return _Rows(column, counts)
    if isinstance(column, Picked):  # a batch at a time, as it wants to be gathered
        return None
    spans = _spans(column)
    if spans is None or not _fits(shape[1:], spans[0].shape[1:]):
        return None
    return _Spans(*spans, counts, ends, shape[0], fill)


def _fits(shape: Dims, own: tuple[int, ...]) -> bool:
    """Whether rows of this shape have nothing added or taken away."""
    return all(wanted in (None, size) for wanted, size in zip(shape, own, strict=True))


def _padded(columns: Sequence[Column], shape: Dims, fill: Any) -> Column:
    """All rows of a leaf as one batch."""
    if isinstance(columns[0], Dense | Strings):
        shapes = {_inner_shape(column) for column in columns}
        if len(shapes) == 1 and _whole_shape(shape, shapes) in shapes:
            whole = concat_columns(columns)
            return whole.stack(len(whole))
    if all(isinstance(column, Arrays) for column in columns):
        return _padded_arrays([item for column in columns for item in column.values()], shape, fill)
    spans = [each for each in map(_spans, columns) if each is not None]
    if len(spans) == len(columns) and all(each[0].shape[1:] == spans[0][0].shape[1:] for each in spans):
        return _padded_spans(spans, shape, fill)
    items = [item for column in columns for item in column.values()]
    longest = _whole_shape(shape, {shape_of(item) for item in items})
    out = empty((1, len(items), *longest), columns[0].dtype)
    out[...] = fill
    batch = out[0]
    for row, item in enumerate(items):
        batch[(row, *map(slice, shape_of(item)))] = item
    return column_of([batch]) if batch.dtype == STRING else Dense(out)


_Span = tuple[Array, Ints, Ints]


def _inner_shape(column: Column) -> tuple[int, ...] | None:
    """The shape that all rows have, None where they differ in their first dimension or more."""
    if isinstance(column, Picked):  # to look at its array would gather it
        return (*column.numbers.shape[1:], *column.source.shape[1:])
    whole = column.array if isinstance(column, Dense) else column.starts if isinstance(column, Strings) else None
    shape: tuple[int, ...] | None = None if whole is None else whole.shape[1:]
    return shape


def _spans(column: Column) -> _Span | None:
    """Rows of one or more dimensions as an array, and where each row of the column begins in it and how long it is."""
    if isinstance(column, Ragged) and isinstance(column.flat, Dense):
        return column.flat.array, column.starts, column.sizes
    if isinstance(column, Dense) and column.array.ndim > 1:
        rows, length, *inner = column.array.shape
        starts = np.arange(rows, dtype=np.int64) * length
        return column.array.reshape(rows * length, *inner), starts, np.full(rows, length, np.int64)
    return None


def _padded_arrays(items: Sequence[Array], shape: Dims, fill: Any) -> Column:
    """Rows that are arrays of their own: large ones, which are not worth bringing together for a call of a kernel."""
    inner = items[0].shape[1:]
    whole = _whole_shape(shape, [(max(map(len, items)), *inner)])
    out = empty((1, len(items), *whole), items[0].dtype)
    out[...] = fill
    if whole[1:] == inner:
        for row, item in zip(out[0], items, strict=True):
            row[: len(item)] = item
    else:
        within = tuple(map(slice, inner))
        for row, item in zip(out[0], items, strict=True):
            row[(slice(len(item)), *within)] = item
    return Dense(out)


def _padded_spans(spans: Sequence[_Span], shape: Dims, fill: Any) -> Column:
    """Rows that differ in their first dimension alone, by one call of a kernel for each block they come from."""
    flat, inner = spans[0][0], spans[0][0].shape[1:]
    count, longest = 0, 0
    for _, _, sizes in spans:
        count += len(sizes)
        longest = max(longest, int(sizes.max()))
    whole = _whole_shape(shape, [(longest, *inner)])
    out = empty((1, count, *whole), flat.dtype)
    if not out.size:
        return Dense(out)
    if whole[1:] == inner:
        target, first = out.reshape(-1).view(np.uint8), 0
        item = _item(fill, flat)
        widths = np.asarray([whole[0]], np.int64)
        for values, starts, sizes in spans:
            end = first + len(sizes) * whole[0] * item.size
            source = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
            pad_spans(source, starts, sizes, np.asarray([len(sizes)], np.int64), widths, target[first:end], item)
            first = end
        return Dense(out)
    out[...] = fill
    rows = iter(out[0])
    for values, starts, sizes in spans:
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            next(rows)[(slice(size), *map(slice, inner))] = values[start : start + size]
    return Dense(out)


def _item(fill: Any, values: Array) -> Array:
    """The padding of one item of `values`, as bytes."""
    return np.frombuffer(np.asarray(fill, values.dtype).tobytes() * prod(values.shape[1:]), np.uint8)


def _whole_shape(shape: Dims, own: Any) -> tuple[int, ...]:
    """The shape that all rows are padded to: as given, or that of the longest."""
    longest = [max(dims) for dims in zip(*own, strict=True)]
    for given, needed in zip(shape, longest, strict=True):
        if given is not None and needed > given:
            raise DataLossError(
                f"Attempted to pad to a smaller size than the input element: padded_shapes allows {list(shape)}, an element "
                f"needs {longest}; give a larger shape, or None for the longest of each batch"
            )
    return tuple([n if g is None else g for g, n in zip(shape, longest, strict=True)])
