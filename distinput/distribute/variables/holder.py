# SPDX-License-Identifier: Apache-2.0
"""What lives at a parameter server: the values of the variables that were created there."""

from collections.abc import Sequence
from typing import Any

from distinput.distribute.variables.row_methods import rows_at
from distinput.distribute.variables.store import HostStore

__all__ = ["Holder"]


class Holder:
    """The values of the variables at one parameter server, by number. Called from the coordinator and from workers.

    Args:
      device: the name of the server's device.

    >>> import numpy as np
    >>> holder = Holder("/job:ps/replica:0/task:0/device:CPU:0")
    >>> holder.make(0, np.zeros(2))
    >>> holder.update(0, "assign_add", np.ones(2))
    >>> holder.read(0)
    array([1., 1.])
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._stores: dict[int, HostStore] = {}

    def make(self, key: int, value: Any, dropped: Sequence[int] = ()) -> None:
        """Keep a variable.

        Args:
          key: its number, a new one.
          value: its first value.
          dropped: the numbers of variables that nothing refers to any more.
        """
        for gone in dropped:
            self._stores.pop(gone, None)
        self._stores[key] = HostStore(value, [self._device])

    def read(self, key: int) -> Any:
        """The value of a variable, which the caller must not modify."""
        return self._store(key).read(0)

    def read_all(self, keys: Sequence[int]) -> list[Any]:
        """The values of several variables, in order."""
        return [self._store(key).read(0) for key in keys]

    def read_rows(self, key: int, what: str, indices: Any) -> Any:
        """Some parts of a variable; see `ServerStore.read_rows`."""
        return rows_at(what, self._store(key).read(0), indices)

    def update(self, key: int, kind: str, *args: Any) -> Any:
        """Change a variable as `UPDATES[kind]` says, while no other update of it runs.

        Returns:
          The new value of a scalar, for counters; None for larger ones, which the caller reads if it needs them.
        """
        made = self._store(key).update(0, kind, *args)
        return None if made.ndim else made

    def _store(self, key: int) -> HostStore:
        store = self._stores.get(key)
        if store is None:
            raise KeyError(f"this variable is no longer at {self._device}: the coordinator has dropped it")
        return store
