# SPDX-License-Identifier: Apache-2.0
"""Objects that every replica of a run asks for and replica 0 makes, such as variables created inside of `run`.

Replicas do not meet for it: `if self.v is None: self.v = Variable(...)` works although replicas run at the same time, and
one of them may find the attribute set already and skip the creation.
"""

from collections.abc import Callable, Sequence
from threading import Condition
from typing import Any

__all__ = ["Creations"]


class Creations:
    """What replica 0 has made so far, under keys from the most to the least precise.

    A replica gets what replica 0 made under the most precise of its keys; the n-th time it asks, the n-th object.

    Args:
      stopped: true while replica 0 makes nothing more: it has ended, or waits for the others.
    """

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._changed = Condition()
        self._made: dict[Any, list[Any]] = {}
        self._asked: dict[tuple[int, Any], int] = {}

    def add(self, keys: Sequence[Any], made: Any) -> None:
        """Note what replica 0 has made."""
        with self._changed:
            for key in keys:
                self._made.setdefault(key, []).append(made)
            self._changed.notify_all()

    def wake(self) -> None:
        """Let those that wait look again whether replica 0 has stopped."""
        with self._changed:
            self._changed.notify_all()

    def find(self, replica: int, keys: Sequence[Any]) -> Any:
        """What replica 0 made, or makes yet, under one of these keys; None if it stopped without."""
        turns = [self._asked.get((replica, key), 0) for key in keys]
        for key, turn in zip(keys, turns, strict=True):
            self._asked[replica, key] = turn + 1
        with self._changed:
            while not self._has(keys[0], turns[0]) and not self._stopped():
                self._changed.wait()
            for key, turn in zip(keys, turns, strict=True):
                if self._has(key, turn):
                    return self._made[key][turn]
        return None

    def _has(self, key: Any, turn: int) -> bool:
        return len(self._made.get(key, ())) > turn
