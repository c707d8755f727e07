# SPDX-License-Identifier: Apache-2.0
"""Seats in this process: the reference engine, whose results all others must equal. Nothing needs to be installed.

An object placed at a seat is an ordinary object, and a call is an ordinary call on the thread of the caller. So closures run
on the coordinator's own threads, one for each worker.
"""

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from distinput.cluster.resolver import ClusterResolver
from distinput.distribute.seats.packing import AsIs
from distinput.distribute.seats.seats import Packing, SeatLost


def open_seats(
    resolver: ClusterResolver,
    *,
    worker_timeout_seconds: float,  # noqa: ARG001 - a thread of this process cannot stand still on its own
) -> "ThreadSeats":
    """A seat in this process for each worker and parameter server of the cluster; see `distinput.distribute.seats`."""
    spec = resolver.cluster_spec()
    return ThreadSeats(*(spec.num_tasks(job) if job in spec.jobs else 0 for job in ("worker", "ps")))


class ThreadSeats:
    """Workers and parameter servers as objects of this process.

    Args:
      workers: how many workers.
      servers: how many parameter servers.
      packing: how values travel. `Pickled` shows whether functions and variables can be sent to other processes.

    >>> seats = ThreadSeats(1, 1)
    >>> placed = seats.place("worker-0", list)
    >>> seats.lose("worker-0")
    >>> placed.call("__len__")
    Traceback (most recent call last):
    distinput.distribute.seats.seats.SeatLost: worker-0 is lost: it was taken away
    """

    def __init__(self, workers: int, servers: int, *, packing: Packing | None = None) -> None:
        self.packing: Packing = packing or AsIs()
        self._workers = tuple(f"worker-{index}" for index in range(workers))
        self._servers = tuple(f"ps-{index}" for index in range(servers))
        self._changed = threading.Condition()
        self._lives = {name: _Life(name) for name in (*self._workers, *self._servers)}
        self._away: set[str] = set()
        self._watchers: list[Callable[[str], None]] = []
        self._closed = False

    @property  # which a class of your own may say in another way
    def workers(self) -> tuple[str, ...]:
        """The names of the workers."""
        return self._workers

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the parameter servers."""
        return self._servers

    def place(self, seat: str, make: Callable[[], Any]) -> "PlacedHere":
        """Make an object at a seat; see `Seats.place`."""
        with self._changed:
            life = self._lives[seat]
            if self._closed or seat in self._away:
                raise SeatLost(seat, "it has not come back", started=False)
        made = self.packing.unpack(self.packing.pack(make))()
        if life.lost:
            raise SeatLost(seat, life.lost)
        return PlacedHere(life, made)

    def watch(self, lost: Callable[[str], None]) -> None:
        """Register a function that is told of lost seats; see `Seats.watch`."""
        with self._changed:
            self._watchers.append(lost)
            already = sorted(self._away)
        for seat in already:
            lost(seat)

    def wait_back(self, seat: str, timeout: float) -> None:
        """Wait until a seat is back; see `Seats.wait_back`."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._closed or seat not in self._away, timeout):
                raise TimeoutError(f"{seat} did not come back within {timeout} seconds")
            if self._closed:
                raise SeatLost(seat, "the cluster was closed", started=False)

    def close(self) -> None:
        """Release the seats; see `Seats.close`."""
        with self._changed:
            self._closed = True
            for life in self._lives.values():
                life.lost = life.lost or "the cluster was closed"
            self._watchers.clear()
            self._changed.notify_all()

    # ---- losses, for tests

    def lose(self, seat: str, *, back: bool = True) -> None:
        """Take a seat away, as if its process had been killed. A call in progress goes on, but its result is lost.

        Args:
          seat: its name.
          back: True if an empty seat takes its place at once; False if it comes back by `come_back`.
        """
        with self._changed:
            self._lives[seat].lost = "it was taken away"
            self._lives[seat] = _Life(seat)
            if not back:
                self._away.add(seat)
            watchers = tuple(self._watchers)
        for lost in watchers:
            lost(seat)

    def come_back(self, seat: str) -> None:
        """Give back a seat that was taken away."""
        with self._changed:
            self._away.discard(seat)
            self._changed.notify_all()


class _Life:
    """One life of a seat: from when it came until it is lost."""

    __slots__ = ("lost", "seat")

    def __init__(self, seat: str) -> None:
        self.seat = seat
        self.lost = ""


class PlacedHere:
    """An object of this process at a seat; see `Placed`."""

    __slots__ = ("__weakref__", "_life", "_number", "_object")

    def __init__(self, life: _Life, made: Any) -> None:
        self._life, self._object = life, made
        self._number = 0

    @property
    def seat(self) -> str:
        """The name of the seat."""
        return self._life.seat

    def call(self, method: str, *args: Any, timeout: float | None = None) -> Any:
        """Call a method of the object on this thread; see `Placed.call`."""
        life = self._life
        if life.lost:
            raise SeatLost(life.seat, life.lost, started=False)
        try:
            result = getattr(self._object, method)(*args)
        except Exception:
            if life.lost:
                raise SeatLost(life.seat, life.lost) from None
            raise
        if life.lost:
            raise SeatLost(life.seat, life.lost)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._number:
            self._number = next(_numbers)
            _sent[self._number] = self
        return _found, (self._number,)


_numbers = itertools.count(1)
_sent: "weakref.WeakValueDictionary[int, PlacedHere]" = weakref.WeakValueDictionary()
"""The objects that were pickled: unpickling one in this process gives the same `PlacedHere` again."""


def _found(number: int) -> PlacedHere:
    placed = _sent.get(number)
    if placed is None:
        raise SeatLost("a worker of the threads engine", "it is in another process, or nothing refers to it any more")
    return placed
