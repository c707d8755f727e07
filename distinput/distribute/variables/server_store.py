# SPDX-License-Identifier: Apache-2.0
"""The store of a variable that is at a parameter server."""

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from distinput.distribute.seats.seats import Placed, SeatLost, Seats
from distinput.distribute.variables.holder import Holder
from distinput.errors import UnavailableError

__all__ = ["ServerStore", "Servers", "server_lost"]


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
            holder.call("make", key, value, _taken(self._dropped[index]))
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


def _taken(keys: "deque[int]") -> Sequence[int]:
    taken = []
    while keys:
        taken.append(keys.popleft())
    return taken
