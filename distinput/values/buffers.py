# SPDX-License-Identifier: Apache-2.0
"""Pools of memory: for the arrays that are handed to users, and for what is read from files.

Fresh memory is expensive: the kernel clears every page when it is first touched, which takes longer than copying a batch. So
`Buffers.empty` gives out views of buffers that it remembers, and gives a buffer out again when its reference count shows that
neither it nor a view of it is alive. Whatever looks at an array (a slice, a `memoryview`, a DLPack capsule, a tensor of
PyTorch or JAX over the same memory) refers to it, and a view refers to the buffer. So a batch that anybody keeps is never
overwritten; a new buffer is made instead.

Large arrays have a pool of their own, so that they do not evict the others. Whenever an iteration ends, it keeps no more than
the other one may: enough for the first batches of the next pass, whose pages need not be cleared again.

Where reference counts are not exact (free-threaded builds; see `references`) nothing is recycled: every array is fresh.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod
from sys import getrefcount
from typing import Any, Protocol

import numpy as np

from distinput.errors import ResourceExhaustedError

# ----------------------------------------------------------------------------
# Reference counts as evidence that nobody else holds an object, which is what decides whether memory is used again.
#
# On CPython with its global lock the count is exact, and an object that only one place refers to can only be reached
# through that place. Free-threaded builds (PEP 703) share counts between threads and settle them later, and other
# interpreters keep none: there nothing is ever taken for unheld, so buffers are not recycled, and what users may still
# change is copied.
# ----------------------------------------------------------------------------


def counts_are_exact() -> bool:
    """Whether reference counts can be relied on: on CPython while its global lock is enabled."""
    return sys.implementation.name == "cpython" and bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def alone(held: list[Any]) -> bool:
    """Whether nothing but this list refers to its only item; always False where counts are not exact."""
    return getrefcount(held[0]) == _ALONE


def calibrated(count: Callable[[Any], int], make: Callable[[int], Any]) -> int:
    """What `count` says of an object of `make` that nobody else holds, both called by `map`; -1 where counts are not exact.

    How many references an interpreter itself keeps during a call differs by version, so it is asked.
    """
    return list(map(count, map(make, [0])))[0] if counts_are_exact() else -1  # noqa: RUF015 - as `owned` is called


_ALONE = calibrated(lambda held: getrefcount(held[0]), lambda _: [np.empty(1)])


Array = np.ndarray[Any, np.dtype[Any]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

FEWEST_BYTES = 1 << 16
"""Arrays smaller than this are neither pooled nor aligned: the allocator keeps their memory by itself."""

MOST_BYTES = 1 << 26
"""The most memory that a pool remembers, all of which may wait for a next batch that never comes."""

LARGE_MOST_BYTES = 1 << 28
"""The same for the pool of arrays of which that one remembers no four: arrays of up to 64 MiB, of which a loop holds one while
the next one is filled, and a prefetch two more."""

ALIGNMENT = 64
"""Buffers begin at a multiple of so many bytes: JAX uses such memory without a copy, and a cache line belongs to one array."""

_PROBES, _PROBE_BYTES = 4, 1 << 18
"""Buffers looked at before a new one is made, and one more for every so many bytes of it: a consumer that keeps what it gets
must not make every batch more expensive, but touching that much fresh memory takes longer than many looks."""

np.empty(1 << 24, np.uint8)
# Freed at once, which tells the allocator of glibc that memory of this size comes and goes (`mallopt`, M_MMAP_THRESHOLD): from
# now on it keeps what small objects leave at the end of its memory, up to twice as much. It gave it back to the system whenever
# a batch of strings was dropped, which then cleared each page again for the next batch, in more time than filling it takes.

_MOST_SHAPES = 1 << 10
"""Shapes and dtypes of arrays whose capacity is known: more are not used again."""

_STEP_BITS = 3
"""Between a power of two and the next there are 2**3 sizes, so a buffer is at most an eighth larger than asked for."""


@contextmanager
def told_by(who: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Iterator[None]:
    """Raise a `ResourceExhaustedError` where NumPy has no memory for an array that is made inside; `who` makes it."""
    try:
        yield
    except (MemoryError, OverflowError, ValueError):  # the others are of sizes that no machine can count
        raise ResourceExhaustedError(
            f"{who and who + ': '}there is no memory for an array of the shape {list(shape)} and the dtype {dtype}, "
            f"{prod(shape) * dtype.itemsize:,} bytes; state a smaller shape, or make smaller batches"
        ) from None


@cache
def most_in_caches(size: str = "/sys/devices/system/cpu/cpu0/cache/index3/size") -> int:
    """The most bytes of a batch that stay in the caches until it is used: half of the last one, as the next one needs as much.

    `size` is where Linux has it, as "16384K". Without it all batches count as small.
    """
    try:
        with open(size, encoding="ascii") as file:
            return int(file.read().strip().removesuffix("K")) << 9
    except (OSError, ValueError):
        return sys.maxsize


class Buffers:
    """Buffers of many sizes, each in use by somebody or waiting.

    Args:
      most_bytes: the most memory that is remembered; beyond that everything is forgotten, which frees what nobody holds.
      step_bits: between a power of two and the next there are 2**step_bits sizes of buffers.
      larger: the pool for arrays of more than a quarter of `most_bytes`; None: their memory is always fresh.
    """

    def __init__(
        self, most_bytes: int = MOST_BYTES, step_bits: int = _STEP_BITS, larger: "Buffers | None" = None
    ) -> None:
        self._step_bits, self._larger = step_bits, larger
        self.most_bytes = most_bytes if counts_are_exact() else 0
        self._capacities: dict[tuple[tuple[int, ...], np.dtype[Any]], int] = {}
        self._shelves: dict[int, deque[list[Bytes]]] = {}  # each buffer in a list of its own, so that `alone` can tell
        self._bytes = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A C-contiguous array whose values are undefined, as `numpy.empty` gives it.

        Args:
          shape: its dimensions.
          dtype: of plain numbers; arrays of objects come from NumPy.

        Returns:
          An array that begins at a multiple of `ALIGNMENT`, if it has at least `FEWEST_BYTES`.

        Raises:
          ResourceExhaustedError: there is no memory for it.
        """
        capacity = self._capacities.get((shape, dtype))
        if capacity is None:
            capacity = self._capacity(shape, dtype)
        if not capacity:
            return np.empty(shape, dtype)
        shelf = self._shelves.get(capacity)
        if shelf:
            for _ in range(min(_PROBES + capacity // _PROBE_BYTES, len(shelf))):
                try:
                    held = shelf.popleft()
                except IndexError:  # another thread was quicker
                    break
                # Nobody else can reach a buffer that is not on its shelf and has no view, so what the count says stays true.
                if getrefcount(held[0]) == _ALONE:
                    (buffer,) = held  # held by this name before another thread can find it on the shelf
                    shelf.appendleft(held)  # in front, so that the same few stay in the cache
                    return np.ndarray(shape, dtype, buffer)  # its base is the buffer
                shelf.append(held)  # in use: those go to the end
        if capacity < 0:
            return self._beyond(shape, dtype)
        return np.ndarray(shape, dtype, self._new(capacity))

    def _capacity(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
        """The size of the buffers for such arrays, which is looked up the next time; 0: NumPy makes them, -1: see `_beyond`."""
        size = prod(shape) * dtype.itemsize
        if size < FEWEST_BYTES or dtype.hasobject:
            capacity = 0
        elif size > self.most_bytes // 4:
            capacity = -1
        else:
            grain = 1 << max(0, size.bit_length() - 1 - self._step_bits)
            capacity = -(-size // grain) * grain
        if len(self._capacities) >= _MOST_SHAPES:
            self._capacities.clear()
        self._capacities[shape, dtype] = capacity
        return capacity

    def _beyond(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array that is so large that the pool remembers none."""
        if self._larger is not None:
            return self._larger.empty(shape, dtype)
        with told_by("", shape, dtype):
            return np.ndarray(shape, dtype, _fresh(prod(shape) * dtype.itemsize))

    def _new(self, capacity: int) -> Bytes:
        buffer = _fresh(capacity)
        # Without a lock, which a fork could leave closed: where two threads meet here, a buffer may be forgotten too early or
        # its bytes not be counted, until everything is forgotten the next time.
        if self._bytes + capacity > self.most_bytes:
            self.forget()
        self._bytes += capacity
        self._shelves.setdefault(capacity, deque()).appendleft([buffer])
        return buffer

    def remembers(self, buffer: Any) -> bool:
        """Whether this is the buffer of a view that was given out, and waits to be given out again.

        False for a moment while another thread looks whether it is free.
        """
        shelf = self._shelves.get(buffer.nbytes)
        here = shelf is not None and any(held[0] is buffer for held in list(shelf))
        return here or (self._larger is not None and self._larger.remembers(buffer))

    def forget(self) -> None:
        """Remember nothing: what nobody holds is freed, and the rest once nobody holds it."""
        self._shelves, self._bytes = {}, 0

    def keep(self, most: int) -> None:
        """Remember so many bytes at most: of each size those given out last, and of the sizes those that came last."""
        shelves, left = {}, most
        for capacity, shelf in reversed(list(self._shelves.items())):
            kept = list(shelf)[: left // capacity]
            if kept:
                shelves[capacity] = deque(kept)
                left -= capacity * len(kept)
        self._shelves, self._bytes = dict(reversed(shelves.items())), most - left

    @property
    def nbytes(self) -> int:
        """The memory remembered, in use or waiting."""
        return self._bytes


def _fresh(size: int) -> Bytes:
    """New memory that begins at a multiple of `ALIGNMENT`."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    # Through a memoryview: the base of a view of a view is the array that owns the memory, and the count would not be seen.
    return np.frombuffer(memory.data[start : start + size], np.uint8)


_LARGE = Buffers(LARGE_MOST_BYTES)
_BUFFERS = Buffers(larger=_LARGE)


class Elsewhere(Protocol):
    """Memory for arrays that is not of a pool."""

    def empty(self, nbytes: int) -> Bytes | None:
        """So many bytes, which nobody has; None: they come from the pool."""

    def remembers(self, buffer: Any) -> bool:
        """Whether it has given these."""


class _Place(threading.local):
    elsewhere: Elsewhere | None = None


_PLACE = _Place()


@contextmanager
def made_in(elsewhere: Elsewhere) -> Iterator[None]:
    """Have the arrays that this thread makes inside lie there, of which the pool would remember the memory."""
    before, _PLACE.elsewhere = _PLACE.elsewhere, elsewhere
    try:
        yield
    finally:
        _PLACE.elsewhere = before


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array as `Buffers.empty` gives it, in the memory that `made_in` names."""
    elsewhere = _PLACE.elsewhere
    if elsewhere is not None and not dtype.hasobject and (size := prod(shape) * dtype.itemsize) >= FEWEST_BYTES:
        buffer = elsewhere.empty(size)
        if buffer is not None:
            return np.ndarray(shape, dtype, buffer)
    return _BUFFERS.empty(shape, dtype)


def is_pooled(buffer: Any) -> bool:
    """Whether this is memory that `empty` has given out, and gives out again."""
    elsewhere = _PLACE.elsewhere
    return _BUFFERS.remembers(buffer) or (elsewhere is not None and elsewhere.remembers(buffer))


def end_iteration() -> None:
    """Give back most of the memory of large arrays, which may have no next batch."""
    _LARGE.keep(MOST_BYTES)


def copy_of(value: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """An array's copy that nobody else refers to; what cannot be changed is itself.

    Args:
      value: an array, or a value that cannot be changed.
      dtype: of the copy, converted as `astype` does; None for the array's own.
    """
    if not isinstance(value, np.ndarray):
        return value.copy() if getattr(value, "is_ragged", False) is True else value
    out = empty(value.shape, value.dtype if dtype is None else dtype)
    out[...] = value
    return out


def aligned(array: Array) -> Array:
    """The array itself if it is C-contiguous and begins at a multiple of `ALIGNMENT`, else a copy that does.

    Arrays that are not pooled are themselves: where small ones begin is not worth a copy, and into fresh memory whoever needs
    large ones elsewhere copies them as quickly.

    >>> rows = np.zeros((100, 1001))[1:]
    >>> aligned(rows).ctypes.data % ALIGNMENT
    0
    """
    if not FEWEST_BYTES <= array.nbytes <= _BUFFERS.most_bytes // 4:
        return array
    if array.__array_interface__["data"][0] % ALIGNMENT or not array.flags.c_contiguous:
        return np.asarray(copy_of(array))
    return array
