# SPDX-License-Identifier: Apache-2.0
"""Memory for the arrays that are handed to users, used again as soon as nobody holds them.

Fresh memory is dear: the kernel clears every page when it is first touched, which takes longer than copying a batch. So
`empty` gives out views of buffers that it remembers, and gives a buffer out again when its reference count shows that
neither it nor a view of it is alive. Whatever looks at an array (a slice, a `memoryview`, a DLPack capsule, a tensor of
PyTorch or JAX over the same memory) refers to it, and a view refers to the buffer, so a batch that anybody keeps is never
overwritten; then a new buffer is made, as without all this.
"""

import sys
from collections import deque
from math import prod
from typing import Any

import numpy as np

__all__ = ["FEWEST_BYTES", "MOST_BYTES", "Buffers", "copy_of", "empty"]

Array = np.ndarray[Any, np.dtype[Any]]

FEWEST_BYTES = 1 << 16
"""Smaller arrays are cheap anywhere: the allocator keeps their memory."""

MOST_BYTES = 1 << 26
"""Buffers remembered, in all. So much memory, at most, waits for a next batch that may never come."""

_PROBES, _PROBE_BYTES = 4, 1 << 18
"""Buffers looked at before a new one is made, and one more for each so many bytes: a consumer that keeps what it gets must not
make every batch dearer, but to touch that much fresh memory takes longer than many looks."""

_STEP_BITS = 3
"""Between a power of two and the next there are 2**3 sizes, so that a buffer is at most an eighth larger than asked for."""


class Buffers:
    """Buffers of many sizes, each in use by somebody or waiting.

    Args:
      most_bytes: how much memory is remembered; when it would be more, all is forgotten, which frees what nobody holds.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes if _recycles() else 0
        self._shelves: dict[int, deque[Array]] = {}
        self._bytes = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A C-contiguous array whose values are undefined, as `numpy.empty` gives it.

        Args:
          shape: its dimensions.
          dtype: of plain numbers; arrays of objects come from NumPy.
        """
        size = prod(shape) * dtype.itemsize
        if not FEWEST_BYTES <= size <= self.most_bytes // 4 or dtype.hasobject:
            return np.empty(shape, dtype)
        grain = 1 << max(0, size.bit_length() - 1 - _STEP_BITS)
        capacity = -(-size // grain) * grain
        shelf = self._shelves.get(capacity)
        buffer = self._waiting(shelf, capacity) if shelf else None
        if buffer is None:
            buffer = self._new(capacity)
        return np.ndarray(shape, dtype, buffer)  # its base is the buffer

    def _waiting(self, shelf: deque[Array], capacity: int) -> Array | None:
        """A buffer that nobody holds, among the first few; those in use go to the end."""
        for _ in range(min(_PROBES + capacity // _PROBE_BYTES, len(shelf))):
            buffer, references = _popped(shelf)
            if buffer is None:
                return None
            if references == _ALONE:
                shelf.appendleft(buffer)  # so that the same few stay in the cache
                return buffer
            shelf.append(buffer)
            buffer = None
        return None

    def _new(self, capacity: int) -> Array:
        buffer = np.empty(capacity, np.uint8)
        # Without a lock, which a fork could leave closed: where two threads meet here, a buffer may be forgotten too early or
        # its bytes not be counted, until all is forgotten the next time.
        if self._bytes + capacity > self.most_bytes:
            self._shelves, self._bytes = {}, 0
        self._bytes += capacity
        self._shelves.setdefault(capacity, deque()).appendleft(buffer)
        return buffer

    @property
    def nbytes(self) -> int:
        """The memory remembered, in use or waiting."""
        return self._bytes


def _popped(shelf: deque[Array]) -> tuple[Array | None, int]:
    """The first buffer of a shelf, and the references there are to it while this function looks.

    Nobody else can come by a buffer that is not on its shelf and has no view, so what the count says stays true.
    """
    try:
        buffer = shelf.popleft()
    except IndexError:  # another thread was quicker
        return None, 0
    return buffer, sys.getrefcount(buffer)


def _recycles() -> bool:
    """Whether reference counts can be relied on: CPython with its lock."""
    gil = getattr(sys, "_is_gil_enabled", None)
    return sys.implementation.name == "cpython" and (gil is None or gil())


_ALONE = _popped(deque([np.empty(1, np.uint8)]))[1]
"""What `_popped` counts for a buffer without views, whatever references this Python keeps for a call."""

_BUFFERS = Buffers()

empty = _BUFFERS.empty


def copy_of(value: Any) -> Any:
    """An array's copy that nobody else refers to; what cannot be changed is itself."""
    if not isinstance(value, np.ndarray):
        return value
    out = empty(value.shape, value.dtype)
    np.copyto(out, value)
    return out
