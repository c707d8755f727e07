# SPDX-License-Identifier: Apache-2.0
"""The per-worker values of a coordinator: how each is made, and the position of each worker's iterator."""

import itertools
import threading
from collections.abc import Mapping
from typing import Any

from distinput.core.state import State

__all__ = ["Resource", "Resources"]


class Resource:
    """How a per-worker value is made at a worker, and made again when the worker comes back.

    Args:
      name: the name of the function that makes it, for messages.
      packed: the packed `Call` that makes it.
      exact: True for an iterator that continues where it was when its worker was lost.
    """

    __slots__ = ("exact", "name", "packed", "states")

    def __init__(self, name: str, packed: Any, exact: bool = False) -> None:
        self.name, self.packed, self.exact = name, packed, exact
        self.states: dict[int, State] = {}
        """The position of each worker's iterator after the last closure that finished there."""


class Resources:
    """All per-worker values that something refers to, by number."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # `drop` may be called by a garbage collection inside of `add`
        self._numbers = itertools.count()
        self._all: dict[int, Resource] = {}
        self.version = 0
        """Changes whenever a value is added or dropped."""

    def add(self, resource: Resource) -> int:
        """Add a value; its number."""
        with self._lock:
            key = next(self._numbers)
            self._all[key] = resource
            self.version += 1
            return key

    def drop(self, key: int) -> None:
        """Drop a value that nothing refers to any more; workers drop it before their next closure."""
        with self._lock:
            self._all.pop(key, None)
            self.version += 1

    def all(self) -> Mapping[int, Resource]:
        """The values there are now."""
        with self._lock:
            return dict(self._all)
