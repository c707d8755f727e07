# SPDX-License-Identifier: Apache-2.0
"""A cache that drops what was used longest ago."""

import threading
from collections import OrderedDict
from typing import Any, Generic, TypeVar

__all__ = ["LruCache"]

T = TypeVar("T")


class LruCache(Generic[T]):
    """Values by key; beyond a limit of memory, those used longest ago are dropped first.

    Args:
      most_bytes: of all of them together; a single one may take more.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: OrderedDict[Any, tuple[T, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Any) -> T | None:
        """The thing, if it is still there."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Any, thing: T, nbytes: int) -> None:
        """Keep a thing that takes so much memory."""
        with self._lock:
            self._bytes += nbytes - self._kept.pop(key, (thing, 0))[1]
            self._kept[key] = thing, nbytes
            while self._bytes > self.most_bytes and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1][1]
