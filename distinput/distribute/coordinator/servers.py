# SPDX-License-Identifier: Apache-2.0
"""Values of variables at parameter servers: the store of a strategy, and the holder that keeps them there."""

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from distinput.distribute.seats.seats import Placed, SeatLost, Seats, emptied
from distinput.distribute.variables.store import HostStore
from distinput.distribute.variables.variable import rows_at
from distinput.errors import UnavailableError

# ---- What lives at a parameter server: the values of the variables that were created there


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


# ---- The store of a variable that is at a parameter server


def server_lost(server: str) -> UnavailableError:
    """The error for a parameter server that is gone."""
    return UnavailableError(
        f"parameter server {server} is lost, and the variables there with it; start the program again, and restore them "
        "from the last checkpoint"
    )


class ServerStore:
    """The value of one variable, which is at a parameter server: every read and every write is a call.

    It can be pickled; what is unpickled reads and writes the same value.

    Args:
      holder: the holder at the server.
      key: the number of the variable there.
      dtype: the dtype of the value.
      shape: the shape of the first value.
      device: the name of the server's device.
    """

    __slots__ = ("__weakref__", "_device", "_holder", "_key", "dtype", "shape")

    copies = 1
    """How many copies this process can reach."""

    def __init__(self, holder: Placed, key: int, dtype: np.dtype[Any], shape: tuple[int, ...], device: str) -> None:
        self._holder, self._key, self._device = holder, key, device
        self.dtype, self.shape = dtype, shape

    def read(self, copy: int) -> Any:
        """The value at the server now.

        Raises:
          UnavailableError: the server is lost.
        """
        return self._call("read")

    def read_rows(self, what: str, indices: Any) -> Any:
        """Some parts of the value at the server now; only these are sent.

        Args:
          what: the method, for messages.
          indices: their places, [..., k] for the first k axes.

        Raises:
          InvalidArgumentError: there are no such parts.
          UnavailableError: the server is lost.
        """
        return self._call("read_rows", what, indices)

    def update(self, copy: int, kind: str, *args: Any) -> Any:
        """Change the value; see `Store.update`.

        Returns:
          The new value of a scalar; None for a larger one, which stays where it is until it is read.

        Raises:
          UnavailableError: the server is lost.
        """
        return self._call("update", kind, *args)

    def device(self, copy: int) -> str:
        """The name of the server's device."""
        return self._device

    def _call(self, method: str, *args: Any) -> Any:
        try:
            return self._holder.call(method, self._key, *args)
        except SeatLost as loss:
            raise server_lost(loss.seat) from loss


class Servers:
    """The parameter servers of a strategy, on which variables are created in turn.

    Args:
      seats: the seats of the cluster.
    """

    def __init__(self, seats: Seats) -> None:
        self._seats = seats
        self._lock = threading.Lock()
        self._holders: dict[int, Placed] = {}
        self._dropped: list[deque[int]] = [deque() for _ in seats.servers]
        self._numbers, self._turns = itertools.count(), itertools.count()

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the servers' devices."""
        return tuple([f"/job:ps/replica:0/task:{index}/device:CPU:0" for index in range(len(self._seats.servers))])

    def open_store(self, value: Any, device: str | None = None) -> ServerStore:
        """Create a variable.

        Args:
          value: its first value.
          device: the device of a server; None for the next one in turn.

        Raises:
          UnavailableError: the server is lost.
        """
        key = next(self._numbers)
        if device is None:
            device = self.devices[next(self._turns) % len(self.devices)]
        index = self.devices.index(device)
        try:
            holder = self._holder(index, device)
            holder.call("make", key, value, emptied(self._dropped[index]))
        except SeatLost as loss:
            raise server_lost(loss.seat) from loss
        store = ServerStore(holder, key, value.dtype, tuple(value.shape), device)
        # A finalizer may run at any point, so it only notes the number; the server learns of it with the next variable.
        weakref.finalize(store, self._dropped[index].append, key).atexit = False
        return store

    def _holder(self, index: int, device: str) -> Placed:
        with self._lock:
            holder = self._holders.get(index)
            if holder is None:
                holder = self._holders[index] = self._seats.place(self._seats.servers[index], partial(Holder, device))
            return holder
