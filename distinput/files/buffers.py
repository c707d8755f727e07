# SPDX-License-Identifier: Apache-2.0
"""Memory to read into: buffers that are used again once nobody looks at them any more.

Fresh memory costs more than the copy that fills it, because every page of it must be made. A column that was cut out of
a buffer is a view of it and so keeps a reference to it; a buffer without such references can be given out again.
"""

import sys
import threading
from typing import Any

import numpy as np

__all__ = ["BUFFERS", "Buffers"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Buffers:
    """A pool of byte buffers.

    Args:
      most: how many buffers of one size are watched; what is needed beyond that is made anew each time.
      largest: buffers above this many bytes are never kept.
    """

    def __init__(self, most: int = 16, largest: int = 4 << 20) -> None:
        self._most = most
        self._largest = largest
        self._lock = threading.Lock()
        self._by_size: dict[int, list[Bytes]] = {}
        # How many references a buffer has that only the list knows differs by version, so the interpreter is asked.
        self._unused = _references([np.empty(0, np.uint8)], 0)

    def get(self, size: int) -> Bytes:
        """A buffer of at least `size` bytes with any content; nobody else sees it."""
        capacity = 1 << max(16, (size - 1).bit_length())
        if capacity > self._largest:
            return np.empty(size, np.uint8)
        with self._lock:
            known = self._by_size.setdefault(capacity, [])
            # The one given out last first: what was in it is the likeliest to be in the cache still.
            for index in reversed(range(len(known))):
                if _references(known, index) == self._unused:
                    known.append(known.pop(index))
                    return known[-1]
            made: Bytes = np.empty(capacity, np.uint8)
            if _counts_are_exact():
                if len(known) >= self._most:
                    del known[0]
                known.append(made)
            return made


def _references(buffers: list[Bytes], index: int) -> int:
    return sys.getrefcount(buffers[index])


def _counts_are_exact() -> bool:
    """False where the interpreter has no global lock (or no reference counts), so that counts may lag behind."""
    return sys.implementation.name == "cpython" and bool(getattr(sys, "_is_gil_enabled", lambda: True)())


BUFFERS = Buffers()
"""The buffers of this process."""
