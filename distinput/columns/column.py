# SPDX-License-Identifier: Apache-2.0
"""Columns: one leaf of many consecutive elements; rows of one shape in one array, and byte strings in one buffer."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import active_count
from typing import TYPE_CHECKING, Any, final

import numpy as np

from distinput.names.lazy import later
from distinput.values.buffers import empty
from distinput.values.leaves import STRING
from distinput.values.leaves import Array as Array
from distinput.values.leaves import Ints as Ints

if TYPE_CHECKING:
    from distinput.kernels import spans as span_kernels
else:
    span_kernels = later("distinput.kernels.spans")  # for texts that are moved

# ----------------------------------------------------------------------------
# Columns: one leaf of many consecutive elements.
#
# `Column` is abstract, and every class that can be instantiated is final, so `isinstance` says exactly what a column is:
#
# * `Dense` rows have one shape and lie in one array; `Strings` are byte strings; `Ragged` rows differ in their first
#   dimension; `Arrays` are ragged rows too, large ones that a function returned and nobody has copied into one buffer yet;
#   `RaggedBatches` are ragged tensors, `Datasets` datasets; `Objects` hold whatever fits none of these (rows that differ in
#   several dimensions).
# * What makes columns of another kind of these stands above them: `regroup`.
# * A `LazyColumn` (`Picked`, `Padded`, `Views`) makes its rows when they are asked for. Code that needs them in memory says
#   so with `materialize()`; no attribute does it by the way.
#
# Shapes below: n rows, b rows of a batch.
# ----------------------------------------------------------------------------


class StackError(Exception):
    """Rows that were to be stacked differ in shape.

    Attributes:
      group: the first group of rows that cannot be stacked.
      first: the shape of its first row.
      other: the shape of the first row in it with another one.
      row: the place of that row in the group; None: not known.
      where: the component, for messages; empty if it is the whole element.
    """

    group: int = 0
    first: tuple[int, ...] = ()
    other: tuple[int, ...] = ()
    row: int | None = None
    where: str = ""

    @staticmethod
    def of(group: int, first: tuple[int, ...], other: tuple[int, ...], row: int | None = None) -> "StackError":
        """The error about a group of rows."""
        error = StackError(f"first element had shape {list(first)}, another one has {list(other)}")
        error.group, error.first, error.other, error.row = group, first, other, row
        return error


class Column(ABC):
    """One leaf for n rows."""

    __slots__ = ()
    dtype: np.dtype[Any]

    @property
    def ragged_rank(self) -> int | None:
        """How many dimensions of a row differ in length, where rows are ragged tensors; None where they are not."""
        return None

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

    def beside(self) -> Iterator[Any]:
        """All rows, of which each is taken together with those of other columns; see `atomic`."""
        return self.values()

    @property
    def atomic(self) -> bool:
        """True if `beside()` yields its next item, and `values()` chooses it, without Python code on the way or a free GIL."""
        return False

    @abstractmethod
    def rows(self, start: int, stop: int, step: int = 1) -> "Column":
        """Rows start, start + step, ... before stop; a view."""

    @abstractmethod
    def take(self, indices: Ints) -> "Column":
        """The rows at `indices`, in that order."""

    @abstractmethod
    def lengths(self) -> Ints | int | None:
        """First dimension of each row: one number when all agree, None when a row is a scalar."""

    @abstractmethod
    def unstack(self) -> "Column":
        """[n, b, ...] -> [n * b, ...]; the rows of all rows, one after the other."""

    @abstractmethod
    def copied(self) -> "Column":
        """The same rows in memory that nobody else refers to."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory that the rows' values need."""


class SelfGrouped(Column):
    """Rows that need more than one array each, and put themselves into groups."""

    __slots__ = ()

    @abstractmethod
    def grouped_by(self, counts: Ints) -> Column:
        """[n, ...] -> [len(counts), (counts), ...]; consecutive rows, grouped by these counts, which sum to n.

        Raises:
          StackError: rows of one group differ.
        """


class LazyColumn(Column):
    """Rows that are made when they are asked for: by `row` and `values` a few at a time, by `materialize` all at once.

    Rows, groups and orders of them (`rows`, `take`, `grouped`) are lazy again where that is possible. The array that
    `materialize` makes has no other owner, so it costs memory for all rows; call it where all of them are looked at.
    """

    __slots__ = ()

    @abstractmethod
    def materialize(self) -> Column: ...

    def grouped(self, size: int) -> "LazyColumn | None":
        """[n, ...] -> [n / size, size, ...], not made yet; None where the rows must be made first."""
        return None

    def followed_by(self, others: Sequence[Column]) -> "LazyColumn | None":
        """These rows and then those of the others, not made yet; None where each must be made first."""
        return None


# ----------------------------------------------------------------------------
# Rows of one shape, in one array.
# ----------------------------------------------------------------------------


_LARGE_BYTES = 1 << 20
"""From this many bytes on, rows are gathered into pooled memory."""


@final
class Dense(Column):
    """Rows of one shape: `array` [n, ...]."""

    __slots__ = ("array",)
    atomic = True

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

    def reshape(self, shape: tuple[int, ...]) -> "Dense":
        """The same values laid out in another shape."""
        return Dense(self.array.reshape(shape))

    def lengths(self) -> int | None:
        return self.array.shape[1] if self.array.ndim > 1 else None

    def unstack(self) -> "Dense":
        if len(self.array) == 1:
            return Dense(self.array[0])
        n, b, *rest = self.array.shape
        return Dense(self.array.reshape(n * b, *rest))

    def copied(self) -> "Dense":
        out = empty(self.array.shape, self.array.dtype)
        np.copyto(out, self.array)
        return Dense(out)

    @property
    def nbytes(self) -> int:
        return self.array.nbytes


# ----------------------------------------------------------------------------
# Python's bytes objects from a buffer, made by Arrow, which is four times as quick as slicing them out one by one.
# ----------------------------------------------------------------------------


_MOST_BETWEEN = 2
"""Bytes between two strings (the end of a line) that may become an object too, which is then passed over."""

_FEW = 64
"""So many places are sliced one by one: Arrow's way begins with the import of pandas, where that is installed."""


def bytes_objects(data: Array, starts: Ints, sizes: Ints) -> Array | None:
    """An object array of bytes: string i is data[starts[i]:starts[i] + sizes[i]].

    Args:
      data: bytes.
      starts: [n].
      sizes: [n].

    Returns:
      [n]; None unless each string begins where the one before it ends, or just behind that, all within the data.

    >>> import numpy as np
    >>> bytes_objects(np.frombuffer(b"ab,,c", np.uint8), np.array([0, 3, 4]), np.array([2, 0, 1]))
    array([b'ab', b'', b'c'], dtype=object)
    """
    count = len(starts)
    if not count:
        return np.empty(0, object)
    side_by_side = np.empty(count + 1, np.int64)
    side_by_side[0] = starts[0]
    ends = np.add(starts, sizes, out=side_by_side[1:])
    if starts[0] < 0 or ends[-1] > len(data) or (sizes < 0).any():
        return None
    if np.array_equal(starts[1:], ends[:-1]):
        return objects_between(data, side_by_side)
    between = starts[1:] - ends[:-1]
    if int(between.max()) > _MOST_BETWEEN or int(between.min()) < 0:
        return None
    # String, what is between, string, ...: Arrow makes objects of pieces that lie side by side. What is between lines is
    # nothing or one letter, and Python has one object for each of these.
    pieces = np.empty((count, 2), np.int64)
    pieces[:, 0], pieces[:, 1] = starts, ends
    return objects_between(data, pieces.reshape(-1))[::2]


def objects_between(data: Array, ends: Ints, *, text: bool = False) -> Array:
    """[n + 1] places -> an object array [n] of the bytes between each and the next, all within the data; or of `str`."""
    if len(ends) <= _FEW and not text:
        made: Array = np.empty(max(0, len(ends) - 1), object)
        whole = data.data
        made[:] = [bytes(whole[start:stop]) for start, stop in pairwise(ends.tolist())]
        return made
    import pyarrow as pa

    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.large_string() if text else pa.large_binary(), len(ends) - 1, buffers)
    return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------
# Byte strings: *spans* (start and length) over a buffer of bytes, so slicing, striding and gathering move spans, not data.
# ----------------------------------------------------------------------------


_MANY = 512
"""From this many strings on, Arrow makes the bytes objects of Python; importing it does not pay for fewer."""

_LONG = 32 << 10
"""From this many bytes on, on average, strings are copied one by one, while other threads run."""


def _copies(data: Array, starts: list[int], sizes: list[int]) -> list[bytes]:
    """The bytes of each of a few strings.

    Python copies bytes under its lock, and a thread that reads files meanwhile waits for it as often as it has read one. Arrow
    gives way, for 0.3 us a string.
    """
    if sum(sizes) >= _LONG * max(1, len(sizes)) and active_count() > 1:
        import pyarrow as pa

        read = pa.BufferReader(data).read_at
        return [read(size, start) for start, size in zip(starts, sizes, strict=True)]
    whole = memoryview(data)  # type: ignore[arg-type]
    return [whole[a : a + n].tobytes() for a, n in zip(starts, sizes, strict=True)]


@final
class Strings(Column):
    """Byte strings: `starts` and `sizes` [n, ...] into the byte buffer `data` [m], and Python objects if they came as such."""

    __slots__ = ("data", "made", "sizes", "starts")
    dtype, atomic = STRING, True

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
            return self._of_row(index).objects()
        start = self.starts[index]
        return self.data[start : start + self.sizes[index]].tobytes()

    def _of_row(self, index: int) -> "Strings":
        made = None if self.made is None else self.made[index]
        return Strings(self.data, self.starts[index], self.sizes[index], made)

    def values(self) -> Iterator[Any]:
        return iter(self.objects() if self.starts.ndim > 1 else self.objects().tolist())

    def objects(self) -> Array:
        """An object array of bytes with the shape of `starts`."""
        if self.made is not None:
            return self.made
        starts, sizes = self.starts.reshape(-1), self.sizes.reshape(-1)
        if self.starts.size >= _MANY and int(sizes.sum()) < _LONG * self.starts.size:
            made = bytes_objects(self.data, starts, sizes)
            if made is None:
                data, offsets = self.side_by_side()
                made = objects_between(data, offsets)
            return made.reshape(self.starts.shape)
        out = np.empty(self.starts.size, dtype=object)
        out[:] = _copies(self.data, starts.tolist(), sizes.tolist())
        return out.reshape(self.starts.shape)

    def views(self) -> list[memoryview]:
        """A view of each, in row order."""
        whole = memoryview(self.data)  # type: ignore[arg-type]
        spans = zip(self.starts.reshape(-1).tolist(), self.sizes.reshape(-1).tolist(), strict=True)
        return [whole[a : a + n] for a, n in spans]

    whole = objects

    def rows(self, start: int, stop: int, step: int = 1) -> "Strings":
        made = None if self.made is None else self.made[start:stop:step]
        return Strings(self.data, self.starts[start:stop:step], self.sizes[start:stop:step], made)

    def take(self, indices: Ints) -> "Strings":
        made = None if self.made is None else self.made.take(indices, 0)
        return Strings(self.data, self.starts.take(indices, 0), self.sizes.take(indices, 0), made)

    def lengths(self) -> int | None:
        return self.starts.shape[1] if self.starts.ndim > 1 else None

    def unstack(self) -> "Strings":
        if len(self.starts) == 1:
            return self._of_row(0)
        n, b, *rest = self.starts.shape
        return self.reshape((n * b, *rest))

    def reshape(self, shape: tuple[int, ...]) -> "Strings":
        """The same strings laid out in another shape."""
        made = None if self.made is None else self.made.reshape(shape)
        return Strings(self.data, self.starts.reshape(shape), self.sizes.reshape(shape), made)

    def copied(self) -> "Strings":
        return self.compact()

    @property
    def nbytes(self) -> int:
        return int(self.sizes.sum()) + self.starts.nbytes + self.sizes.nbytes

    def compact(self) -> "Strings":
        """The same strings over a buffer that holds nothing else, in row order."""
        data, offsets = self.side_by_side()
        return Strings(data, offsets[:-1].reshape(self.starts.shape), self.sizes)

    def side_by_side(self, *, view: bool = False) -> tuple[Array, Ints]:
        """The bytes of all strings in row order, and where each begins and the last one ends, [n + 1].

        Args:
          view: whether they may be a part of the buffer, all of which then stays in memory, if they lie so there.
        """
        starts, sizes = np.ascontiguousarray(self.starts.reshape(-1)), np.ascontiguousarray(self.sizes.reshape(-1))
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        if view and len(starts) and np.array_equal(starts - starts[0], offsets[:-1]):
            return self.data[starts[0] : starts[0] + offsets[-1]], offsets
        out = np.empty(int(offsets[-1]), np.uint8)
        span_kernels.gather_spans(self.data, starts, sizes, out, offsets)
        return out, offsets

    def used(self) -> "Strings":
        """The same strings over the part of the buffer they span, or over a copy if most of that part is not theirs."""
        if not self.starts.size:
            return Strings(self.data[:0], self.starts, self.sizes)
        first, last = int(self.starts.min()), int((self.starts + self.sizes).max())
        if last - first > 2 * int(self.sizes.sum()) + 1024:
            return self.compact()
        return Strings(self.data[first:last], self.starts - first, self.sizes)


def array_column(array: Array) -> Dense | Strings:
    """The rows of an array [n, ...], of which views are handed out."""
    return Strings.of_array(array) if array.dtype == STRING else Dense(array)
