# SPDX-License-Identifier: Apache-2.0
"""Byte strings: *spans* (start and length) over a buffer of bytes, so slicing, striding and gathering move spans, not data."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, final

import numpy as np

from distinput.columns.column import Column
from distinput.kernels.ragged import gather_spans
from distinput.values.leaves import STRING

__all__ = ["Strings", "bytes_objects", "objects_between"]


# ----------------------------------------------------------------------------
# Python's bytes objects from a buffer, made by Arrow, which is four times as quick as slicing them out one by one.
# ----------------------------------------------------------------------------


_MOST_BETWEEN = 2
"""Bytes between two strings (the end of a line) that may become an object too, which is then passed over."""

_FEW = 64
"""So many places are sliced one by one: Arrow's way begins with the import of pandas, where that is installed."""

Array = np.ndarray[Any, np.dtype[Any]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


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


def objects_between(data: Array, ends: Ints) -> Array:
    """[n + 1] places -> an object array [n] of the bytes between each and the next, all within the data."""
    if len(ends) <= _FEW:
        made: Array = np.empty(max(0, len(ends) - 1), object)
        whole = data.data
        made[:] = [bytes(whole[start:stop]) for start, stop in pairwise(ends.tolist())]
        return made
    import pyarrow as pa

    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers)
    return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


_MANY = 512
"""From this many strings on, Arrow makes the bytes objects of Python; importing it does not pay for fewer."""


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
                data, offsets = self.side_by_side()
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

    def lengths(self) -> int | None:
        return self.starts.shape[1] if self.starts.ndim > 1 else None

    def unstack(self) -> "Strings":
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

    def side_by_side(self) -> tuple[Array, Ints]:
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
