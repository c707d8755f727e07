# SPDX-License-Identifier: Apache-2.0
"""A cache with a memory limit and least-recently-used eviction."""

import threading
from collections import OrderedDict
from typing import Any, Generic, TypeVar

__all__ = ["LruCache"]

T = TypeVar("T")


class LruCache(Generic[T]):
    """Values by key; above a memory limit, the least recently used are evicted first.

    Args:
      most_bytes: limit for all values together; a single value may exceed it.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: OrderedDict[Any, tuple[T, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Any) -> T | None:
        """The value of this key; None if it is not cached."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Any, thing: T, nbytes: int) -> None:
        """Cache a value that takes `nbytes` of memory."""
        with self._lock:
            self._bytes += nbytes - self._kept.pop(key, (thing, 0))[1]
            self._kept[key] = thing, nbytes
            while self._bytes > self.most_bytes and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1][1]
