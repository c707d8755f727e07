# SPDX-License-Identifier: Apache-2.0
"""Columns: one leaf of many consecutive elements.

`Column` is abstract, and every class that can be instantiated is final, so `isinstance` says exactly what a column is:

* `Dense` rows have one shape and lie in one array; `Strings` are byte strings; `Ragged` rows differ in their first dimension;
  `Arrays` are ragged rows too, large ones that a function returned and nobody has copied into one buffer yet; `Datasets` are
  datasets; `Objects` hold whatever fits none of these (rows that differ in several dimensions).
* A `LazyColumn` (`Picked`, `Padded`) makes its rows when they are asked for. Code that needs them in memory says so with
  `materialize()`; no attribute does it by the way.

Strings and ragged rows are *spans* (start and length) over a flat buffer, so slicing, striding and gathering move spans and
never data.

Shapes below: n rows, b rows of a batch.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any, final

import numpy as np

from distinput.core.buffers import empty
from distinput.core.bytes_objects import bytes_objects, objects_between
from distinput.core.leaves import STRING, as_leaf, dtype_of, shape_of
from distinput.kernels.ragged import gather_spans

__all__ = [
    "Array",
    "Arrays",
    "Column",
    "Datasets",
    "Dense",
    "Ints",
    "LazyColumn",
    "Objects",
    "Ragged",
    "StackError",
    "Strings",
    "column_of",
    "column_of_values",
]

_MANY = 512
"""From this many strings on, Arrow makes the bytes objects of Python; importing it does not pay for fewer."""

_LARGE_BYTES = 1 << 20
"""From this many bytes on, rows are gathered into pooled memory."""

_LARGE_ROW = 512
"""From this average size of a row on, copying it costs more than a Python object does."""

Ints = np.ndarray[Any, np.dtype[np.int64]]
Array = np.ndarray[Any, np.dtype[Any]]


class StackError(Exception):
    """Rows that were to be stacked differ in shape; `group` is the first group of rows that cannot be stacked."""

    def __init__(self, group: int, first: tuple[int, ...], other: tuple[int, ...]) -> None:
        super().__init__(f"first element had shape {list(first)}, another one has {list(other)}")
        self.group, self.first, self.other = group, first, other


class Column(ABC):
    """One leaf for n rows."""

    __slots__ = ()
    dtype: np.dtype[Any]

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def inner(self) -> tuple[int, ...] | None:
        """The shape of a row; None where rows may differ in shape."""
        return None

    def materialize(self) -> "Column":
        """The same rows, all of them in memory: the column itself, unless it is a `LazyColumn`."""
        return self

    @abstractmethod
    def row(self, index: int) -> Any:
        """Row `index` as users see it."""

    @abstractmethod
    def values(self) -> Iterator[Any]:
        """All rows as users see them."""

    @property
    def atomic(self) -> bool:
        """True if `values()` yields its next item without running Python code or releasing the GIL on the way."""
        return False

    @abstractmethod
    def rows(self, start: int, stop: int, step: int = 1) -> "Column":
        """Rows start, start + step, ... before stop; a view."""

    @abstractmethod
    def take(self, indices: Ints) -> "Column":
        """The rows at `indices`, in that order."""

    @abstractmethod
    def stack(self, size: int) -> "Column":
        """[n, ...] -> [n / size, size, ...]; n must be a multiple of size.

        Raises:
          StackError: rows of one group differ in shape.
        """

    @abstractmethod
    def lengths(self) -> Ints | int | None:
        """First dimension of each row: one number when all agree, None when a row is a scalar."""

    @abstractmethod
    def unstack(self) -> "Column":
        """[n, b, ...] -> [n * b, ...]; the rows of all rows, one after the other."""

    @abstractmethod
    def split(self, counts: Ints) -> "Column":
        """[n, ...] -> [len(counts), (counts), ...]; consecutive rows grouped by these counts, which sum to n."""

    @abstractmethod
    def copied(self) -> "Column":
        """The same rows in memory that nobody else refers to."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory that the rows' values need."""


class LazyColumn(Column):
    """Rows that are made when they are asked for: by `row` and `values` a few at a time, by `materialize` all at once.

    Rows, groups and orders of them (`rows`, `take`, `stack`) are lazy again where that is possible. The array that
    `materialize` makes has no other owner, so it costs memory for all rows; call it where all of them are looked at.
    """

    __slots__ = ()

    @abstractmethod
    def materialize(self) -> Column: ...


@final
class Dense(Column):
    """Rows of one shape: `array` [n, ...]."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Of the values."""
        return self.array.dtype

    @property
    def inner(self) -> tuple[int, ...]:
        """The shape of a row."""
        shape: tuple[int, ...] = self.array.shape
        return shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def row(self, index: int) -> Any:
        return self.array[index]

    @property
    def atomic(self) -> bool:
        return True

    def values(self) -> Iterator[Any]:
        return iter(self.array)

    def rows(self, start: int, stop: int, step: int = 1) -> "Dense":
        return Dense(self.array[start:stop:step])

    def take(self, indices: Ints) -> "Dense":
        array = self.array
        count = len(indices)
        # Negative indices are huge ones without their sign.
        if count * array.strides[0] < _LARGE_BYTES or int(indices.view(np.uint64).max()) >= len(array):
            return Dense(array.take(indices, 0))  # which raises an error where an index is too large
        # With the bounds known, "clip" lets NumPy write to `out` at once; the default would fill a buffer first.
        return Dense(array.take(indices, 0, out=empty((count, *array.shape[1:]), array.dtype), mode="clip"))

    def whole(self) -> Array:
        """All rows as one array."""
        return self.array

    def stack(self, size: int) -> "Dense":
        array = self.array
        return Dense(array.reshape(len(array) // size, size, *array.shape[1:]))

    def lengths(self) -> int | None:
        return self.array.shape[1] if self.array.ndim > 1 else None

    def unstack(self) -> "Dense":
        if len(self.array) == 1:
            return Dense(self.array[0])
        n, b, *rest = self.array.shape
        return Dense(self.array.reshape(n * b, *rest))

    def split(self, counts: Ints) -> Column:
        if len(counts) and (counts == counts[0]).all():
            size = int(counts[0])
            return Dense(self.array.reshape(len(counts), size, *self.array.shape[1:]))
        return Ragged(self, np.cumsum(counts) - counts, counts)

    def copied(self) -> "Dense":
        out = empty(self.array.shape, self.array.dtype)
        np.copyto(out, self.array)
        return Dense(out)

    @property
    def nbytes(self) -> int:
        return self.array.nbytes


@final
class Strings(Column):
    """Byte strings: `starts` and `sizes` [n, ...] into the byte buffer `data` [m], and Python objects if they came as such."""

    __slots__ = ("data", "made", "sizes", "starts")
    dtype = STRING

    def __init__(self, data: Array, starts: Ints, sizes: Ints, made: Array | None = None) -> None:
        self.data, self.starts, self.sizes, self.made = data, starts, sizes, made

    @staticmethod
    def of(items: Sequence[bytes]) -> "Strings":
        """From Python bytes."""
        sizes = np.fromiter(map(len, items), np.int64, len(items))
        return Strings(np.frombuffer(b"".join(items), np.uint8), np.cumsum(sizes) - sizes, sizes)

    @staticmethod
    def of_array(array: Array) -> "Strings":
        """From an array of Python bytes, of which views are handed out."""
        flat = Strings.of(array.reshape(-1).tolist())
        return Strings(flat.data, flat.starts.reshape(array.shape), flat.sizes.reshape(array.shape), array)

    @property
    def inner(self) -> tuple[int, ...]:
        """The shape of a row."""
        shape: tuple[int, ...] = self.starts.shape
        return shape[1:]

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, index: int) -> Any:
        if self.starts.ndim > 1:
            made = None if self.made is None else self.made[index]
            return Strings(self.data, self.starts[index], self.sizes[index], made).objects()
        start = self.starts[index]
        return self.data[start : start + self.sizes[index]].tobytes()

    @property
    def atomic(self) -> bool:
        return True

    def values(self) -> Iterator[Any]:
        return iter(self.objects() if self.starts.ndim > 1 else self.objects().tolist())

    def objects(self) -> Array:
        """An object array of bytes with the shape of `starts`."""
        if self.made is not None:
            return self.made
        if self.starts.size >= _MANY:
            made = bytes_objects(self.data, self.starts.reshape(-1), self.sizes.reshape(-1))
            if made is None:
                data, offsets = self._side_by_side()
                made = objects_between(data, offsets)
            return made.reshape(self.starts.shape)
        out = np.empty(self.starts.size, dtype=object)
        view = memoryview(self.data)  # type: ignore[arg-type]
        spans = zip(self.starts.reshape(-1).tolist(), self.sizes.reshape(-1).tolist(), strict=True)
        out[:] = [bytes(view[a : a + n]) for a, n in spans]
        return out.reshape(self.starts.shape)

    whole = objects

    def rows(self, start: int, stop: int, step: int = 1) -> "Strings":
        made = None if self.made is None else self.made[start:stop:step]
        return Strings(self.data, self.starts[start:stop:step], self.sizes[start:stop:step], made)

    def take(self, indices: Ints) -> "Strings":
        made = None if self.made is None else self.made.take(indices, 0)
        return Strings(self.data, self.starts.take(indices, 0), self.sizes.take(indices, 0), made)

    def stack(self, size: int) -> "Strings":
        return self.reshape((len(self.starts) // size, size, *self.inner))

    def lengths(self) -> int | None:
        return self.starts.shape[1] if self.starts.ndim > 1 else None

    def unstack(self) -> "Strings":
        n, b, *rest = self.starts.shape
        return self.reshape((n * b, *rest))

    def reshape(self, shape: tuple[int, ...]) -> "Strings":
        """The same strings laid out in another shape."""
        made = None if self.made is None else self.made.reshape(shape)
        return Strings(self.data, self.starts.reshape(shape), self.sizes.reshape(shape), made)

    def split(self, counts: Ints) -> Column:
        if len(counts) and (counts == counts[0]).all():
            return self.reshape((len(counts), int(counts[0]), *self.inner))
        return Ragged(self, np.cumsum(counts) - counts, counts)

    def copied(self) -> "Strings":
        return self.compact()

    @property
    def nbytes(self) -> int:
        return int(self.sizes.sum()) + self.starts.nbytes + self.sizes.nbytes

    def compact(self) -> "Strings":
        """The same strings over a buffer that holds nothing else, in row order."""
        data, offsets = self._side_by_side()
        return Strings(data, offsets[:-1].reshape(self.starts.shape), self.sizes)

    def _side_by_side(self) -> tuple[Array, Ints]:
        """The bytes of all strings in row order, and where each begins and the last one ends, [n + 1]."""
        starts, sizes = np.ascontiguousarray(self.starts.reshape(-1)), np.ascontiguousarray(self.sizes.reshape(-1))
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        out = np.empty(int(offsets[-1]), np.uint8)
        gather_spans(self.data, starts, sizes, out, offsets)
        return out, offsets

    def used(self) -> "Strings":
        """The same strings over the part of the buffer they span, or over a copy if most of that part is not theirs."""
        if not self.starts.size:
            return Strings(self.data[:0], self.starts, self.sizes)
        first, last = int(self.starts.min()), int((self.starts + self.sizes).max())
        if last - first > 2 * int(self.sizes.sum()) + 1024:
            return self.compact()
        return Strings(self.data[first:last], self.starts - first, self.sizes)


@final
class Ragged(Column):
    """Rows that differ in their first dimension: row i is `flat` rows starts[i] to starts[i] + sizes[i]."""

    __slots__ = ("flat", "sizes", "starts")

    def __init__(self, flat: "Dense | Strings", starts: Ints, sizes: Ints) -> None:
        self.flat, self.starts, self.sizes = flat, starts, sizes

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
        return Ragged(self.flat, self.starts[start:stop:step], self.sizes[start:stop:step])

    def take(self, indices: Ints) -> "Ragged":
        return Ragged(self.flat, self.starts.take(indices), self.sizes.take(indices))

    def stack(self, size: int) -> Column:
        groups = self.sizes.reshape(-1, size)
        bad = np.flatnonzero((groups != groups[:, :1]).any(axis=1))
        if len(bad):
            group = groups[bad[0]]
            other = group[np.flatnonzero(group != group[0])[0]]
            inner = self.flat.inner
            raise StackError(int(bad[0]), (int(group[0]), *inner), (int(other), *inner))
        flat = self.gathered()
        widths = groups[:, 0]
        if len(widths) and (widths == widths[0]).all():
            return _reshape(flat, (len(groups), size, int(widths[0])))
        ends = np.cumsum(widths * size)
        parts = [
            _reshape(flat.rows(int(end - w * size), int(end)), (size, int(w))).whole()
            for end, w in zip(ends, widths, strict=True)
        ]
        return Objects(parts, self.dtype)

    def lengths(self) -> Ints | int | None:
        return self.sizes

    def unstack(self) -> Column:
        return self.gathered()

    def gathered(self) -> "Dense | Strings":
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

    def split(self, counts: Ints) -> Column:
        return Objects(list(self.values()), self.dtype).split(counts)

    def copied(self) -> "Ragged":
        return Ragged(self.gathered().copied(), np.cumsum(self.sizes) - self.sizes, self.sizes)

    @property
    def nbytes(self) -> int:
        per_row = self.flat.nbytes / max(1, len(self.flat))
        return int(per_row * float(self.sizes.sum())) + 16 * len(self.sizes)


class _Items(Column):
    """Rows that are one Python object each."""

    __slots__ = ("dtype", "items")

    def __init__(self, items: list[Any], dtype: np.dtype[Any]) -> None:
        self.items = items
        self.dtype = dtype

    def __len__(self) -> int:
        return len(self.items)

    def row(self, index: int) -> Any:
        return self.items[index]

    @property
    def atomic(self) -> bool:
        return True

    def values(self) -> Iterator[Any]:
        return iter(self.items)

    @property
    def nbytes(self) -> int:
        return sum(getattr(item, "nbytes", 0) or (len(item) if isinstance(item, bytes) else 64) for item in self.items)


@final
class Objects(_Items):
    """Rows of any kind, one Python object each."""

    __slots__ = ()

    def rows(self, start: int, stop: int, step: int = 1) -> "Objects":
        return Objects(self.items[start:stop:step], self.dtype)

    def take(self, indices: Ints) -> "Objects":
        items = self.items
        return Objects([items[i] for i in indices.tolist()], self.dtype)

    def stack(self, size: int) -> Column:
        parts = []
        for group in range(len(self.items) // size):
            members = self.items[group * size : (group + 1) * size]
            first = shape_of(members[0])
            for member in members:
                if shape_of(member) != first:
                    raise StackError(group, first, shape_of(member))
            parts.append(np.array(members, self.dtype) if self.dtype != STRING else _stack_objects(members))
        return column_of(parts) if parts else Objects([], self.dtype)

    def lengths(self) -> Ints | int | None:
        if any(not shape_of(item) for item in self.items):
            return None
        return np.fromiter((shape_of(item)[0] for item in self.items), np.int64, len(self.items))

    def unstack(self) -> Column:
        return column_of([row for item in self.items for row in item], self.dtype)

    def split(self, counts: Ints) -> Column:
        ends = np.cumsum(counts).tolist()
        parts: list[Any] = []
        for a, b in pairwise([0, *ends]):
            members = self.items[a:b]
            for member in members:
                if shape_of(member) != shape_of(members[0]):
                    raise StackError(len(parts), shape_of(members[0]), shape_of(member))
            if not members:
                parts.append(np.empty((0,), self.dtype))
            else:
                parts.append(np.array(members, self.dtype) if self.dtype != STRING else _stack_objects(members))
        return column_of(parts, self.dtype)

    def copied(self) -> Column:
        return Objects([item.copy() if isinstance(item, np.ndarray) else item for item in self.items], self.dtype)


@final
class Arrays(_Items):
    """Rows that differ in their first dimension, each an array of its own; they are copied once, to their final place."""

    __slots__ = ()

    def rows(self, start: int, stop: int, step: int = 1) -> "Arrays":
        return Arrays(self.items[start:stop:step], self.dtype)

    def take(self, indices: Ints) -> "Arrays":
        items = self.items
        return Arrays([items[i] for i in indices.tolist()], self.dtype)

    def lengths(self) -> Ints:
        return np.fromiter(map(len, self.items), np.int64, len(self.items))

    def stack(self, size: int) -> Column:
        return Objects(self.items, self.dtype).stack(size)

    def unstack(self) -> Column:
        return self.joined().unstack()

    def split(self, counts: Ints) -> Column:
        return Objects(self.items, self.dtype).split(counts)

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
    """Rows that are datasets themselves, or lists of them: nodes, or tuples of nodes, shown to users as their handles."""

    __slots__ = ()

    def row(self, index: int) -> Any:
        return _shown(self.items[index])

    @property
    def atomic(self) -> bool:
        return False

    def values(self) -> Iterator[Any]:
        return map(_shown, self.items)

    def rows(self, start: int, stop: int, step: int = 1) -> "Datasets":
        return Datasets(self.items[start:stop:step], self.dtype)

    def take(self, indices: Ints) -> "Datasets":
        return Datasets([self.items[i] for i in indices.tolist()], self.dtype)

    def stack(self, size: int) -> Column:
        raise TypeError("a component that is a dataset cannot be batched; flat_map or zip it first")

    def split(self, counts: Ints) -> Column:
        raise TypeError("a component that is a dataset cannot be batched; flat_map or zip it first")

    def copied(self) -> "Datasets":
        return self

    def lengths(self) -> Ints | int | None:
        if any(not isinstance(item, tuple) for item in self.items):
            return None
        return np.fromiter(map(len, self.items), np.int64, len(self.items))

    def unstack(self) -> "Datasets":
        return Datasets([node for item in self.items for node in item], self.dtype)


def _shown(item: Any) -> Any:
    """A dataset as its handle; a list of them as an array [n] of handles."""
    if not isinstance(item, tuple):
        return item.to_user()
    handles = np.empty(len(item), object)
    handles[:] = [node.to_user() for node in item]
    return handles


def column_of_values(values: Sequence[Any]) -> Column:
    """The best column for values as users write them, which must be of one dtype.

    Raises:
      TypeError: a value cannot be an array, or dtypes differ.
    """
    kinds = set(map(type, values))
    if len(kinds) == 1:  # nearly always; then the values need not be looked at one by one
        (kind,) = kinds
        if issubclass(kind, np.number | np.bool_):
            return Dense(np.array(values, kind))
        if kind is np.ndarray:
            first = values[0]
            if first.dtype.kind not in "SUO" and first.ndim:
                return column_of(list(values))
        elif kind is bytes:
            return Strings.of(values)
    return column_of([as_leaf(value) for value in values])


def column_of(items: list[Any], dtype: np.dtype[Any] | None = None) -> Column:
    """The best column for leaf values (see `values.as_leaf`) of one dtype.

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
        return Objects(items, dtype)  # scalars beside arrays
    if isinstance(first, np.generic):
        return Dense(np.array(items, dtype))
    shapes = {item.shape for item in items}
    if len(shapes) == 1:
        if dtype == STRING:
            return Strings.of_array(first[None] if len(items) == 1 else np.stack(items))
        return Dense(np.array(items, dtype))
    if len({shape[1:] for shape in shapes}) == 1 and all(shapes):
        rows = Arrays(items, dtype)
        if dtype != STRING:
            each = prod(first.shape[1:]) * dtype.itemsize
            return rows if sum(map(len, items)) * each >= _LARGE_ROW * len(items) else rows.joined()
        sizes = rows.lengths()
        return Ragged(Strings.of_array(np.concatenate(items)), np.cumsum(sizes) - sizes, sizes)
    return Objects(items, dtype)


def _reshape(column: "Dense | Strings", shape: tuple[int, ...]) -> "Dense | Strings":
    """The rows laid out as `shape`, each with its own dimensions."""
    full = (*shape, *column.inner)
    return Dense(column.array.reshape(full)) if isinstance(column, Dense) else column.reshape(full)


def _stack_objects(members: list[Any]) -> Array:
    """Equal-shaped object values -> one object array [len, ...]."""
    out = np.empty((len(members), *shape_of(members[0])), dtype=object)
    for i, member in enumerate(members):
        out[i] = member
    return out
