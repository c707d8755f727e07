# SPDX-License-Identifier: Apache-2.0
"""Seats in other processes, for any engine that can start a `Host` in a named process and tell that the process has gone.

The engine knows which process has which name. Calls do not go through it: each host listens for the coordinator and for the
other seats, so that a call costs what it costs to write to a socket and to wait for the answer.
"""

import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from distinput.core.pool import mapped
from distinput.distribute.seats.links import (
    PULSE,
    Address,
    Links,
    PlacedThere,
    connect,
    join_cluster,
    leave_cluster,
    links_to,
)
from distinput.distribute.seats.packing import Pickled
from distinput.distribute.seats.pulse import Pulse
from distinput.distribute.seats.seats import Packing, SeatLost
from distinput.errors import UnavailableError

__all__ = ["RemoteSeats", "SeatDirectory"]


class SeatDirectory(Protocol):
    """Which process is at which seat, as an engine knows it."""

    workers: tuple[str, ...]
    servers: tuple[str, ...]

    def open_host(self, seat: str, cluster: str, secret: bytes, until: float) -> Address:
        """Start a `Host` in the process that is at a seat now, or comes to it.

        Args:
          seat: its name.
          cluster: the number of the cluster.
          secret: what opens connections within it.
          until: when to give up, on the clock `time.monotonic`.

        Returns:
          Where it listens.

        Raises:
          TimeoutError: no process came to the seat.
          ConnectionError: it went meanwhile; another one may come.
          SeatLost: the membership was closed.
        """
        ...

    def watch(self, gone: Callable[[str], None]) -> None:
        """Have a function told the name of a seat whose process the engine no longer counts among the living."""
        ...

    def encryption(self) -> Callable[[socket.socket, str], socket.socket] | None:
        """What encrypts a connection to a host; None where the engine does not encrypt its own."""
        ...

    def close(self) -> None:
        """End what was started, wake up who waits in `open_host`."""
        ...


class RemoteSeats:
    """The seats of one cluster of processes.

    Args:
      membership: the engine.
      worker_timeout_seconds: how long a seat may stand still.
      start_seconds: how long to wait for all seats at first.

    Raises:
      UnavailableError: not all of them came.
    """

    def __init__(self, membership: SeatDirectory, worker_timeout_seconds: float, start_seconds: float) -> None:
        self._membership = membership
        self._cluster, self._secret = secrets.token_hex(8), secrets.token_bytes(32)
        join_cluster(self._cluster, self._secret, membership.encryption())
        self._lock = threading.Lock()
        self._watchers: list[Callable[[str], None]] = []
        self._lives: dict[str, _Life] = {}
        self._opening = {seat: threading.Lock() for seat in (*membership.workers, *membership.servers)}
        self._closed = False
        self._pulse = Pulse(worker_timeout_seconds)
        self._packing = Pickled(self._same_modules)
        try:
            self._open_all(start_seconds)
        except BaseException:
            self.close()
            raise
        membership.watch(lambda seat: self._lose(seat, None, "it left the cluster"))

    @property
    def workers(self) -> tuple[str, ...]:
        """The names of the workers."""
        return self._membership.workers

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the parameter servers."""
        return self._membership.servers

    @property
    def packing(self) -> Packing:
        """How values travel: pickled, with all that the seats cannot import."""
        return self._packing

    def place(self, seat: str, make: Callable[[], Any]) -> PlacedThere:
        """Make an object at a seat; see `Seats.place`."""
        life = self._lives[seat]
        number = life.links.call(0, "place", (self._packing.pack(make),))
        return PlacedThere(self._cluster, life.links, life.address, number, owner=True)

    def watch(self, lost: Callable[[str], None]) -> None:
        """Have a function told of lost seats; see `Seats.watch`."""
        with self._lock:
            self._watchers.append(lost)

    def wait_back(self, seat: str, timeout: float) -> None:
        """Wait until a seat is back; see `Seats.wait_back`."""
        until = time.monotonic() + timeout
        with self._opening[seat]:
            if self._lives[seat].links.lost:
                self._open(seat, until)

    def close(self) -> None:
        """Give the seats up; see `Seats.close`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._watchers.clear()
            lives = list(self._lives.values())
        for life in lives:
            life.links.close("the seats were closed")
        self._pulse.close()
        self._membership.close()
        leave_cluster(self._cluster)

    # ---- lives

    def _open_all(self, seconds: float) -> None:
        seats = (*self.workers, *self.servers)
        until = time.monotonic() + seconds

        def failure(seat: str) -> Exception | None:
            try:
                self._open(seat, until)
            except Exception as error:  # noqa: BLE001 - raised below
                return error
            return None

        failures = mapped(failure, seats, len(seats), "distinput-seats")
        missing = [seat for seat, error in zip(seats, failures, strict=True) if isinstance(error, TimeoutError)]
        if missing:
            raise UnavailableError(
                f"the cluster: {', '.join(missing)} did not come within {seconds:g} seconds; start a process for each of them, "
                "under its name"
            )
        for error in failures:
            if error is not None:
                raise error

    def _open(self, seat: str, until: float) -> None:
        """Begin a new life of a seat."""
        while True:
            if self._closed:
                raise SeatLost(seat, "the seats were closed", started=False)
            try:
                address = self._membership.open_host(seat, self._cluster, self._secret, until)
                beat = connect(self._cluster, address, PULSE)
                break
            except TimeoutError:
                raise TimeoutError(f"{seat} did not come back in time") from None
            except OSError:
                # The process went while it was spoken to. Another one may come, but that takes a while.
                time.sleep(0.02)
        life = _Life(address)
        life.links = links_to(self._cluster, seat, address, lambda reason: self._lose(seat, life, reason))
        with self._lock:
            closed = self._closed
            self._lives[seat] = life
        if closed:
            beat.close()
            life.links.close("the seats were closed")
            raise SeatLost(seat, "the seats were closed", started=False)
        self._pulse.add(beat, lambda reason: self._lose(seat, life, reason))

    def _lose(self, seat: str, life: "_Life | None", reason: str) -> None:
        """End a life of a seat, the present one if none is given, and tell those who watch."""
        with self._lock:
            now = self._lives.get(seat)
            if now is None or (life is not None and life is not now) or now.links.lost:
                return
            now.links.lost = reason
            watchers = tuple(self._watchers)
        now.links.close(reason)
        for lost in watchers:
            lost(seat)

    def _same_modules(self, sources: dict[str, str]) -> list[str] | None:
        """Those modules that the first worker that answers can import; None if none answers."""
        for seat in self.workers:
            life = self._lives.get(seat)
            if life is None or life.links.lost:
                continue
            try:
                found: list[str] = life.links.call(0, "same_modules", (sources,), 30.0)
                return found
            except (SeatLost, TimeoutError):
                continue
        return None


class _Life:
    """One life of a seat: from when its host was opened until it is lost."""

    links: Links

    def __init__(self, address: Address) -> None:
        self.address = address
