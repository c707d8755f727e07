# SPDX-License-Identifier: Apache-2.0
"""The interface of an engine for a coordinator: seats that hold objects, get lost, and come back.

A seat is one task of the cluster, such as "worker-0" or "ps-1": a process, or in the threads engine a mere name. An object
placed at a seat is called from the coordinator, and from other seats to which it was sent. A seat that is lost has lost its
objects. When a new process has its name, the seat is back, empty.

An engine knows nothing of closures and variables: what is placed at a worker is a `WorkerSeat`, at a server a `Holder`.
`distinput.distribute.seats.threads` is the shortest implementation to read, and `distinput.testing.check_seats` tests a new
one.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol


class SeatLost(Exception):
    """A worker or a parameter server is gone, and the objects placed there with it.

    Users never see it: the coordinator runs the closure elsewhere, or raises `UnavailableError` for a server.

    Args:
      seat: the name of the seat.
      reason: what the engine knows of it.
      started: False if the call certainly did not begin at the seat.
    """

    def __init__(self, seat: str = "", reason: str = "", *, started: bool = True) -> None:
        super().__init__(seat, reason)
        self.seat, self.reason, self.started = seat, reason, started

    def __str__(self) -> str:
        return f"{self.seat} is lost: {self.reason}" if self.reason else f"{self.seat} is lost"


class Placed(Protocol):
    """An object at a seat. It can be pickled; what is unpickled at another seat reaches the same object."""

    @property
    def seat(self) -> str:
        """The name of the seat."""

    def call(self, method: str, *args: Any, timeout: float | None = None) -> Any:
        """Call a method of the object and wait for its result. May be called from several threads at once.

        Arguments and results are sent as they are, so they are values that the engine can send: plain values, arrays, and
        what `Packing.pack` returned. An engine may make the calls of one object one after the other, or several at once:
        objects lock what they share.

        Args:
          method: the name of the method.
          args: its arguments.
          timeout: the longest time to wait, in seconds; None for no limit.

        Raises:
          SeatLost: the seat was lost before the call or meanwhile, even if another process has the name by now.
          TimeoutError: no result in time; the call may still go on.
          Exception: what the method raised.
        """


class Packing(Protocol):
    """How functions, arguments and results travel. It can be pickled, since both ends use it.

    A value is packed once, when it is scheduled, and may be unpacked several times, each time into an object of its own
    unless the engine has one process.
    """

    def pack(self, value: Any) -> Any:
        """The value in the form in which `Placed.call` sends it.

        Raises:
          Exception: the value cannot be sent, as a file or a lock cannot.
        """

    def unpack(self, packed: Any) -> Any:
        """The value, or an equal one."""


class Seats(Protocol):
    """The seats of one cluster, as its coordinator uses them. All methods may be called from any thread."""

    @property
    def workers(self) -> tuple[str, ...]:
        """The names of the workers' seats, "worker-0" and so on, in order."""

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the parameter servers' seats, "ps-0" and so on, in order."""

    @property
    def packing(self) -> Packing:
        """How functions and their arguments travel to the seats."""

    def place(self, seat: str, make: Callable[[], Any]) -> Placed:
        """Make an object at a seat.

        Args:
          seat: one of `workers` and `servers`.
          make: called at the seat; it can be sent there. The object lives as long as the `Placed` or the seat.

        Raises:
          SeatLost: the seat is lost, or was lost meanwhile.
          Exception: what `make` raised.
        """

    def watch(self, lost: Callable[[str], None]) -> None:
        """Register a function that is told the name of each seat that is lost, as soon as the engine knows.

        It is told at once of those that are lost already, and have not come back.

        Args:
          lost: called on any thread, once for each loss. It returns at once and does not raise.
        """

    def wait_back(self, seat: str, timeout: float) -> None:
        """Return when objects can be placed at a seat (again).

        Raises:
          TimeoutError: the seat did not come back in time.
          SeatLost: it never will, since the cluster was closed.
        """

    def close(self) -> None:
        """Release the seats: all waiting calls raise `SeatLost`. Closing again does nothing.

        What the engine started, such as processes, ends; what it was given, such as a client, stays open.
        """


def emptied(numbers: "deque[int]") -> tuple[int, ...]:
    """The numbers of what is dropped at a seat; others may add to them meanwhile, and are not waited for."""
    taken = []
    while numbers:
        taken.append(numbers.popleft())
    return tuple(taken)
