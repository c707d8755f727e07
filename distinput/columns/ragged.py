# SPDX-License-Identifier: Apache-2.0
"""Rows that differ in their first dimension, as spans over another column, and rows that are Python objects."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from math import prod
from operator import getitem
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from distinput.columns.column import Column, Dense, Ints, LazyColumn, Strings, array_column
from distinput.names.lazy import later
from distinput.values.buffers import empty
from distinput.values.leaves import STRING, dtype_name, dtype_of, is_ragged, shape_of
from distinput.values.spec import RaggedTensorSpec

if TYPE_CHECKING:
    from distinput.kernels import spans as span_kernels
    from distinput.values import ragged_rows
    from distinput.values import ragged_tensor as ragged_tensors
    from distinput.values.ragged_tensor import RaggedTensor
else:
    span_kernels = later("distinput.kernels.spans")  # for rows of different lengths that are moved
    # Few elements are ragged.
    ragged_rows, ragged_tensors = later("distinput.values.ragged_rows"), later("distinput.values.ragged_tensor")

# ----------------------------------------------------------------------------
# Rows that differ in their first dimension: *spans* (start and length) over a column of values, which are not moved.
# ----------------------------------------------------------------------------


class Spans(Column):
    """Rows that are spans (start and length) over the column `flat`."""

    __slots__ = ("flat", "sizes", "starts")
    flat: Any
    starts: Ints
    sizes: Ints

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Of the values."""
        return self.flat.dtype  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self.starts)

    def lengths(self) -> Ints:
        return self.sizes

    @property
    def nbytes(self) -> int:
        per_row = self.flat.nbytes / max(1, len(self.flat))
        return int(per_row * float(self.sizes.sum())) + 16 * len(self.sizes)


@final
class Ragged(Spans):
    """Rows that differ in their first dimension: row i is `flat` rows starts[i] to starts[i] + sizes[i].

    Args:
      flat: the values.
      starts, sizes: [n] the spans of the rows.
      loose: True for the rows of ragged tensors: they are stacked as ragged tensors, even if they are equally long. Otherwise
        only rows of one length can be stacked.
    """

    __slots__ = ("loose",)
    flat: Dense | Strings
    atomic = True

    def __init__(self, flat: Dense | Strings, starts: Ints, sizes: Ints, loose: bool = False) -> None:
        self.flat, self.starts, self.sizes, self.loose = flat, starts, sizes, loose

    def row(self, index: int) -> Any:
        start = self.starts[index]
        return self.flat.rows(start, start + self.sizes[index]).whole()

    def values(self) -> Iterator[Any]:
        return self._cut()

    def beside(self) -> Iterator[Any]:
        return self._cut(list)  # all slices first, since the collector may call a function when one is made

    def _cut(self, held: Callable[[Iterator[slice]], Iterable[slice]] = iter) -> Iterator[Any]:
        if not len(self.starts):
            return iter(())
        ends = self.starts + self.sizes
        first = int(self.starts.min())
        if isinstance(self.flat, Strings) and self.flat.made is None and ends.max() - first > 2 * self.sizes.sum():
            rows = Ragged(self.gathered(), np.cumsum(self.sizes) - self.sizes, self.sizes)
            return rows._cut(held)  # objects are made of its own values alone
        # A part of the values, where these are a part of the rows.
        whole = self.flat.rows(first, int(ends.max())).whole()
        slices = map(slice, (self.starts - first).tolist(), (ends - first).tolist())
        return map(getitem, repeat(whole), held(slices))

    def rows(self, start: int, stop: int, step: int = 1) -> "Ragged":
        return Ragged(self.flat, self.starts[start:stop:step], self.sizes[start:stop:step], self.loose)

    def take(self, indices: Ints) -> "Ragged":
        return Ragged(self.flat, self.starts.take(indices), self.sizes.take(indices), self.loose)

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
        data = _bytes_of(self)
        if data is not None:
            source = self.flat.array  # type: ignore[union-attr]
            width = source[0].nbytes
            out = np.empty((total, *source.shape[1:]), source.dtype)
            target = out.reshape(-1).view(np.uint8)
            span_kernels.gather_spans(data, starts * width, sizes * width, target, before * width)
            return Dense(out)
        return self.flat.take(np.arange(total) + np.repeat(starts - before, sizes))

    def copied(self) -> "Ragged":
        return Ragged(self.gathered().copied(), np.cumsum(self.sizes) - self.sizes, self.sizes, self.loose)


def _bytes_of(rows: Spans) -> Any:
    """The bytes of the values, if they are an array in which they lie one after the other, and there are some."""
    flat = rows.flat
    whole = isinstance(flat, Dense) and flat.array.nbytes and flat.array.flags.c_contiguous
    return flat.array.reshape(-1).view(np.uint8) if whole else None


# ----------------------------------------------------------------------------
# Rows that are ragged tensors: *spans* (start and length) over a column of their rows, which are not moved.
# ----------------------------------------------------------------------------


@final
class RaggedBatches(Spans):
    """Rows that are ragged tensors: row i is the ragged tensor of `flat` rows starts[i] to starts[i] + sizes[i]."""

    __slots__ = ()
    flat: "Ragged | RaggedBatches"

    def __init__(self, flat: "Ragged | RaggedBatches", starts: Ints, sizes: Ints) -> None:
        self.flat, self.starts, self.sizes = flat, starts, sizes

    @property
    def ragged_rank(self) -> int:
        """How many dimensions of a row differ in length."""
        return 1 + (self.flat.ragged_rank if isinstance(self.flat, RaggedBatches) else 0)

    @property
    def item_shape(self) -> tuple[int, ...]:
        """The shape of a value under all ragged dimensions."""
        return self.flat.item_shape if isinstance(self.flat, RaggedBatches) else self.flat.flat.inner

    def row(self, index: int) -> "RaggedTensor":
        start = int(self.starts[index])
        return ragged_tensor(self.flat.rows(start, start + int(self.sizes[index])))

    def values(self) -> "Iterator[RaggedTensor]":
        if not len(self.starts):
            return
        ends = self.starts + self.sizes
        first = int(self.starts.min())
        flat: Any = self.flat.rows(first, int(ends.max()))
        starts, stops = self.starts - first, ends - first
        apart = len(flat) and not _side_by_side(flat)
        data = _bytes_of(flat) if apart else None
        if apart and data is None:
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                yield ragged_tensor(flat.rows(start, stop))  # copied when it is reached, so that it is in the cache
            return
        splits, counts = ragged_rows.splits_of(flat.sizes), self.sizes + 1
        begins, after = splits[starts], np.cumsum(counts)
        # The row splits of all elements at once: NumPy takes longer to begin with one element than to go through its rows.
        own = splits[ragged_rows.row_numbers(starts, counts)] - np.repeat(begins, counts)
        if data is None:
            whole: Any = ragged_tensor(flat).values
            spans = zip(begins.tolist(), splits[stops].tolist(), strict=True)
            each: Iterator[Any] = (whole[begin:end] for begin, end in spans)
        else:
            each = _gathered_each(flat, data, starts, stops, own)
        kind = ragged_tensors.RaggedTensor
        for values, start, stop in zip(each, (after - counts).tolist(), after.tolist(), strict=True):
            # Nobody who keeps one batch keeps what others of its block have.
            yield kind(values, own[start:stop] if data is None else own[start:stop].copy())

    def rows(self, start: int, stop: int, step: int = 1) -> "RaggedBatches":
        return RaggedBatches(self.flat, self.starts[start:stop:step], self.sizes[start:stop:step])

    def take(self, indices: Ints) -> "RaggedBatches":
        return RaggedBatches(self.flat, self.starts.take(indices), self.sizes.take(indices))

    def unstack(self) -> "Ragged | RaggedBatches":
        starts, sizes, flat = self.starts, self.sizes, self.flat
        if isinstance(flat, Ragged) and not flat.loose:
            flat = Ragged(flat.flat, flat.starts, flat.sizes, loose=True)  # batches of these rows are ragged again
        if not len(starts):
            return flat.rows(0, 0)
        ends = starts + sizes
        if (starts[1:] == ends[:-1]).all():
            return flat.rows(int(starts[0]), int(ends[-1]))
        return flat.take(ragged_rows.row_numbers(starts, sizes))

    def copied(self) -> "RaggedBatches":
        return RaggedBatches(self.unstack().copied(), np.cumsum(self.sizes) - self.sizes, self.sizes)


def batches_of(rows: "Ragged | RaggedBatches", counts: Ints) -> RaggedBatches:
    """Consecutive rows as ragged tensors of so many rows each."""
    return RaggedBatches(rows, np.cumsum(counts) - counts, counts)


def _side_by_side(rows: "Ragged | RaggedBatches") -> bool:
    """Whether all values lie one after the other, on every level."""
    flat: Any = rows
    while isinstance(flat, Ragged | RaggedBatches):
        starts, sizes = flat.starts, flat.sizes
        if len(starts) and not (starts[1:] == starts[:-1] + sizes[:-1]).all():
            return False
        flat = flat.flat
    return True


def _gathered_each(rows: Ragged, data: Any, starts: Ints, stops: Ints, own: Ints) -> Iterator[Any]:
    """For each i the values of the rows starts[i] to stops[i], which are copied when they are reached if they lie apart.

    Args:
      rows: over an array.
      data: the bytes of that array.
      starts: [k] the first row of each.
      stops: [k] the row after its last one.
      own: the row splits of each of them, one after the other.
    """
    source = rows.flat.whole()
    width, inner = source[0].nbytes, source.shape[1:]
    begins, sizes, places = rows.starts * width, rows.sizes * width, own * width
    breaks = ragged_rows.splits_of(rows.starts[1:] != rows.starts[:-1] + rows.sizes[:-1])
    in_order = (stops > starts) & (breaks[stops - 1] == breaks[np.minimum(starts, len(rows) - 1)])
    after = np.cumsum(stops - starts + 1)
    spans = starts, stops, after - 1, own[after - 1], in_order
    gather = span_kernels.gather_spans.function
    for start, stop, last, total, is_view in zip(*[each.tolist() for each in spans], strict=True):
        if is_view:
            first = rows.starts[start]
            yield source[first : first + total]
            continue
        out = np.empty((total * width,), np.uint8)
        gather(data, begins[start:stop], sizes[start:stop], out, places[last - (stop - start) : last])
        yield np.ndarray((total, *inner), source.dtype, out)


def ragged_tensor(rows: "Ragged | RaggedBatches") -> "RaggedTensor":
    """All rows of a column as one ragged tensor; a view if the values lie one after the other."""
    values = rows.unstack()
    made = ragged_tensor(values) if isinstance(values, Ragged | RaggedBatches) else values.whole()  # type: ignore[attr-defined]
    return ragged_tensors.RaggedTensor(made, ragged_rows.splits_of(rows.sizes))


def rows_column(ragged: "RaggedTensor") -> "Ragged | RaggedBatches":
    """The rows of a ragged tensor as a column."""
    splits, values = ragged.row_splits, ragged.values
    starts, sizes = splits[:-1], splits[1:] - splits[:-1]
    if is_ragged(values):
        return RaggedBatches(rows_column(values), starts, sizes)
    return Ragged(array_column(values), starts, sizes, loose=True)


def column_of_ragged(items: "Sequence[RaggedTensor]") -> RaggedBatches:
    """Ragged tensors, at least one, as a column.

    Raises:
      TypeError: some differ in dtype, in what is ragged, or in the shape of a value.
    """
    first = items[0]
    for item in items:
        if not is_ragged(item):
            raise TypeError(f"the elements differ: some are ragged tensors, some are not, as {item!r}")
        if (item.dtype, item.ragged_rank, item.flat_values.shape[1:]) != (
            first.dtype,
            first.ragged_rank,
            first.flat_values.shape[1:],
        ):
            raise TypeError(f"the elements differ in kind: {_kind(first)} and {_kind(item)}")
    flat = rows_column(first if len(items) == 1 else _joined(items))
    return batches_of(flat, np.fromiter(map(len, items), np.int64, len(items)))


def _joined(items: Sequence[Any]) -> "RaggedTensor":
    lengths = np.concatenate([item.row_lengths() for item in items])
    parts = [item.values for item in items]
    values = _joined(parts) if is_ragged(parts[0]) else np.concatenate(parts, dtype=parts[0].dtype)
    return ragged_tensors.RaggedTensor(values, ragged_rows.splits_of(lengths))


def _kind(item: "RaggedTensor") -> str:
    return f"shape {item.shape} with ragged_rank {item.ragged_rank} and dtype {dtype_name(item.dtype)}"


def frozen_rows(column: Column, frozen: Callable[[Column], Column]) -> RaggedBatches:
    """The same ragged tensors over rows that `frozen` gives."""
    assert isinstance(column, RaggedBatches)
    return RaggedBatches(frozen(column.flat), column.starts, column.sizes)  # type: ignore[arg-type]  # of the same kind


def ragged_spec(column: Column) -> RaggedTensorSpec:
    """The spec that all rows of a column of ragged tensors fit; only the number of rows may be known."""
    assert isinstance(column, RaggedBatches)
    sizes = set(column.sizes.tolist())
    rows = sizes.pop() if len(sizes) == 1 else None
    rank = column.ragged_rank
    return RaggedTensorSpec((rows, *[None] * rank, *column.item_shape), column.dtype, rank)


# ----------------------------------------------------------------------------
# Rows that are Python objects, and the best column for values as Python has them.
# ----------------------------------------------------------------------------


_LARGE_ROW = 512
"""From this average size of a row on, copying it costs more than a Python object does."""


class _Items(Column):
    """Rows that are one Python object each."""

    __slots__ = ("dtype", "items")
    atomic = True

    def __init__(self, items: list[Any], dtype: np.dtype[Any]) -> None:
        self.items = items
        self.dtype = dtype

    def __len__(self) -> int:
        return len(self.items)

    def row(self, index: int) -> Any:
        return self.items[index]

    def rows(self, start: int, stop: int, step: int = 1) -> Self:
        return type(self)(self.items[start:stop:step], self.dtype)

    def take(self, indices: Ints) -> Self:
        items = self.items
        return type(self)([items[i] for i in indices.tolist()], self.dtype)

    def values(self) -> Iterator[Any]:
        return iter(self.items)

    @property
    def nbytes(self) -> int:
        return sum(getattr(item, "nbytes", 0) or (len(item) if isinstance(item, bytes) else 64) for item in self.items)


@final
class Objects(_Items):
    """Rows of any kind, one Python object each."""

    __slots__ = ()

    def lengths(self) -> Ints | int | None:
        if any(not shape_of(item) for item in self.items):
            return None
        return np.fromiter((shape_of(item)[0] for item in self.items), np.int64, len(self.items))

    def unstack(self) -> Column:
        return column_of_arrays([row for item in self.items for row in item], self.dtype)

    def copied(self) -> Column:
        return Objects([item.copy() if isinstance(item, np.ndarray) else item for item in self.items], self.dtype)


@final
class Views(_Items, LazyColumn):
    """Byte strings where they are: a view of each, of which bytes are made when they are handed out."""

    __slots__ = ()

    def materialize(self) -> Objects:
        return Objects(list(self.values()), self.dtype)

    def row(self, index: int) -> bytes:
        return bytes(self.items[index])

    def values(self) -> Iterator[bytes]:
        return map(memoryview.tobytes, self.items)

    def lengths(self) -> None:
        return None

    def unstack(self) -> Column:
        return self.materialize().unstack()

    copied = materialize

    def __reduce__(self) -> tuple[type[Objects], tuple[list[bytes], np.dtype[Any]]]:
        return Objects, (list(self.values()), self.dtype)


@final
class Arrays(_Items):
    """Rows that differ in their first dimension, each an array of its own; they are copied once, to their final place."""

    __slots__ = ()

    def lengths(self) -> Ints:
        return np.fromiter(map(len, self.items), np.int64, len(self.items))

    def unstack(self) -> Column:
        return self.joined().unstack()

    def copied(self) -> Ragged:
        return self.joined()

    def joined(self) -> Ragged:
        """The same rows side by side."""
        sizes = self.lengths()
        if not self.items:
            return Ragged(Dense(np.empty(0, self.dtype)), sizes, sizes)
        flat = empty((int(sizes.sum()), *self.items[0].shape[1:]), self.dtype)
        np.concatenate(self.items, out=flat)
        return Ragged(Dense(flat), np.cumsum(sizes) - sizes, sizes)


@final
class Datasets(_Items):
    """Rows that hold elements: datasets and lists of them, as nodes and tuples of nodes, shown as handles; or Optionals."""

    __slots__ = ()
    atomic = False

    @property
    def optional(self) -> bool:
        """Whether the rows are Optionals."""
        return bool(self.items) and getattr(self.items[0], "is_optional", False)

    def row(self, index: int) -> Any:
        return _shown(self.items[index])

    def values(self) -> Iterator[Any]:
        return map(_shown, self.items)

    def copied(self) -> "Datasets":
        return self

    def lengths(self) -> Ints | int | None:
        if any(not isinstance(item, tuple) for item in self.items):
            return None
        return np.fromiter(map(len, self.items), np.int64, len(self.items))

    def unstack(self) -> "Datasets":
        return Datasets([node for item in self.items for node in item], self.dtype)


NO_ROWS = {
    False: "a component that is a dataset cannot be batched; flat_map or zip it first",
    True: "a component that is an Optional cannot be batched; map it to its value, get_value(), first",
}


def _shown(item: Any) -> Any:
    """A dataset as its handle; a list of them as an array [n] of handles."""
    if not isinstance(item, tuple):
        return item.to_user()
    handles = np.empty(len(item), object)
    handles[:] = [node.to_user() for node in item]
    return handles


def column_of_arrays(items: list[Any], dtype: np.dtype[Any] | None = None) -> Column:
    """The best column for leaf values of one dtype that are no ragged tensors. A single array is not copied.

    Raises:
      TypeError: the values differ in dtype.
    """
    if not items:
        return Dense(np.empty(0, dtype)) if dtype is not None and dtype != STRING else Strings.of([])
    first = items[0]
    alike = len(set(map(type, items))) == 1
    if alike and isinstance(first, bytes):
        return Strings.of(items)
    if getattr(first, "nest_leaf", False):
        return Datasets(items, STRING)
    dtype = dtype_of(first)
    for other in {item.dtype for item in items} if alike else set(map(dtype_of, items)):
        if other != dtype:
            raise TypeError(f"the elements differ in dtype: {dtype} and {other}")
    if not alike and not all(isinstance(item, np.ndarray) for item in items):
        if any(map(is_ragged, items)):
            raise TypeError("the elements differ: some are ragged tensors, some are not")
        return Objects(items, dtype)  # scalars beside arrays
    if isinstance(first, np.generic):
        return Dense(np.array(items, dtype))
    shapes = {item.shape for item in items}
    if len(shapes) == 1:
        if dtype == STRING:
            return Strings.of_array(first[None] if len(items) == 1 else np.stack(items))
        if len(items) == 1 and type(first) is np.ndarray and first.flags.c_contiguous:
            return Dense(first[None])
        return Dense(np.array(items, dtype))
    if len({shape[1:] for shape in shapes}) == 1 and all(shapes):
        rows = Arrays(items, dtype)
        if dtype != STRING:
            each = prod(first.shape[1:]) * dtype.itemsize
            return rows if sum(map(len, items)) * each >= _LARGE_ROW * len(items) else rows.joined()
        sizes = rows.lengths()
        return Ragged(Strings.of_array(np.concatenate(items)), np.cumsum(sizes) - sizes, sizes)
    return Objects(items, dtype)
