# SPDX-License-Identifier: Apache-2.0
"""Seats in other processes, for any engine that can start a `Host` there, which holds what is placed at a seat."""

import contextlib
import contextvars
import itertools
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from distinput.columns.block import trace_text
from distinput.distribute.door import Door, Visitor
from distinput.distribute.engines.background import is_loopback, listening
from distinput.distribute.seats.links import (
    PULSE,
    Address,
    Links,
    PlacedThere,
    answer_greeting,
    connect,
    join_cluster,
    leave_cluster,
    links_to,
    receive,
    send,
)
from distinput.distribute.seats.packing import Pickled, same_modules
from distinput.distribute.seats.seats import SeatLost
from distinput.errors import UnavailableError, UnknownError
from distinput.kernels.kernel import HelperThread
from distinput.names.lazy import dataclass
from distinput.run.segments import dumps
from distinput.run.threads import mapped

# ----------------------------------------------------------------------------
# Seats in other processes, for any engine that can start a `Host` in a named process and tell that the process has gone.
#
# The engine knows which process has which name. Calls do not go through it: each host listens for the coordinator and for
# the other seats, so that a call costs what it costs to write to a socket and to wait for the answer.
# ----------------------------------------------------------------------------


# ---- One thread that sees whether the seats are alive: at once when a process has gone, after a time when it stands still
#
# To each seat there is a connection on which a byte goes there and comes back from time to time. When a process is killed its
# machine closes the connection, which this thread is told at once; a process that stands still, or a machine that is cut off,
# just does not answer any more.

_MISSED = 4
"""Beats without an answer after which a seat stands still. They are counted, not timed, so that a pause of this process itself
is not taken for one of the seats."""


@dataclass
class _Line:
    """The connection to one seat.

    Args:
      lost: told why, once.
      unanswered: beats since the last answer.
    """

    lost: Callable[[str], None]
    unanswered: int = 0


class Pulse:
    """Watches connections.

    Args:
      seconds: how long a seat may stand still.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._lines: dict[socket.socket, _Line] = {}
        self._new: list[tuple[socket.socket, _Line]] = []
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._ending = False
        self._thread = HelperThread(target=self._run, name="distinput-pulse")
        self._thread.start()

    def add(self, connection: socket.socket, lost: Callable[[str], None]) -> None:
        """Watch a connection, which is closed here when it is lost.

        Args:
          connection: to a host, for its pulse.
          lost: told why, once, on the thread of the pulse.
        """
        with self._lock:
            if not self._ending:
                self._new.append((connection, _Line(lost)))
                self._wake.send(b".")
                return
        connection.close()

    def close(self) -> None:
        """Stop watching, and close all connections."""
        with self._lock:
            if self._ending:
                return
            self._ending = True
            self._wake.send(b".")
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        beat = min(1.0, self._seconds / _MISSED)
        most = max(_MISSED, round(self._seconds / beat))
        next_beat = time.monotonic() + beat
        while not self._ending:
            for key, _ in self._selector.select(max(0.0, next_beat - time.monotonic())):
                if key.fileobj is self._woken:
                    self._take_new()
                else:
                    self._hear(key.fileobj)  # type: ignore[arg-type]
            if time.monotonic() >= next_beat:
                for connection in list(self._lines):
                    self._send(connection, most)
                next_beat = time.monotonic() + beat
        with self._lock:  # whoever ends this wakes it up first
            for connection in [*self._lines, *(connection for connection, _ in self._new), self._wake, self._woken]:
                connection.close()
        self._selector.close()

    def _take_new(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        with self._lock:
            new, self._new = self._new, []
        for connection, line in new:
            connection.setblocking(False)
            self._lines[connection] = line
            self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, connection: socket.socket) -> None:
        try:
            if connection.recv(4096):
                self._lines[connection].unanswered = 0
                return
            reason = "its process has ended"
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            reason = f"its process has ended, or cannot be reached: {error}"
        self._drop(connection, reason)

    def _send(self, connection: socket.socket, most: int) -> None:
        line = self._lines[connection]
        if line.unanswered >= most:
            self._drop(connection, f"it has stood still for {self._seconds:g} seconds")
            return
        line.unanswered += 1
        try:
            connection.send(b".")
        except (BlockingIOError, InterruptedError):
            pass  # nobody reads there; the count tells
        except OSError as error:
            self._drop(connection, f"its process has ended, or cannot be reached: {error}")

    def _drop(self, connection: socket.socket, reason: str) -> None:
        line = self._lines.pop(connection)
        self._selector.unregister(connection)
        connection.close()
        line.lost(reason)


# ---- The seats, as the coordinator reaches them


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
          SeatLost: the directory was closed.
        """

    def watch(self, gone: Callable[[str], None]) -> None:
        """Have a function told the name of a seat whose process the engine no longer counts among the living."""

    def encryption(self) -> Callable[[socket.socket, str], socket.socket] | None:
        """What encrypts a connection to a host; None where the engine does not encrypt its own."""

    def close(self) -> None:
        """End what was started, wake up who waits in `open_host`."""


class RemoteSeats:
    """The seats of one cluster of processes.

    Args:
      directory: that of the engine.
      worker_timeout_seconds: how long a seat may stand still.
      start_seconds: how long to wait for all seats at first.

    Raises:
      UnavailableError: not all of them came.
    """

    def __init__(self, directory: SeatDirectory, worker_timeout_seconds: float, start_seconds: float) -> None:
        self._directory = directory
        self._cluster, self._secret = secrets.token_hex(8), secrets.token_bytes(32)
        join_cluster(self._cluster, self._secret, directory.encryption())
        self._lock = threading.Lock()
        self._watchers: list[Callable[[str], None]] = []
        self._lives: dict[str, Links] = {}
        """The connections to each seat since its host was opened, until it is lost."""
        self._opening = {seat: threading.Lock() for seat in (*directory.workers, *directory.servers)}
        self._closed = False
        self._pulse = Pulse(worker_timeout_seconds)
        self.workers, self.servers = directory.workers, directory.servers
        self.packing = Pickled(self._same_modules)
        # First: it tells of later ones alone.
        directory.watch(lambda seat: self._lose(seat, None, "it left the cluster"))
        try:
            self._open_all(start_seconds)
        except BaseException:
            self.close()
            raise

    def place(self, seat: str, make: Callable[[], Any]) -> PlacedThere:
        """Make an object at a seat; see `Seats.place`."""
        life = self._lives[seat]
        return PlacedThere(life, life.call(0, "place", (self.packing.pack(make),)), owner=True)

    def watch(self, lost: Callable[[str], None]) -> None:
        """Have a function told of lost seats; see `Seats.watch`."""
        with self._lock:
            self._watchers.append(lost)
            already = [seat for seat, life in self._lives.items() if life.lost]
        for seat in already:
            lost(seat)

    def wait_back(self, seat: str, timeout: float) -> None:
        """Wait until a seat is back; see `Seats.wait_back`."""
        until = time.monotonic() + timeout
        with self._opening[seat]:
            if self._lives[seat].lost:
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
            life.close("the cluster was closed")
        self._pulse.close()
        self._directory.close()
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
                raise SeatLost(seat, "the cluster was closed", started=False)
            try:
                address = self._directory.open_host(seat, self._cluster, self._secret, until)
                beat = connect(self._cluster, address, PULSE)
                break
            except TimeoutError:
                raise TimeoutError(f"{seat} did not come back in time") from None
            except OSError:
                # The process went while it was spoken to. Another one may come, but that takes a while.
                time.sleep(0.02)
        life = links_to(self._cluster, seat, address, lambda reason: self._lose(seat, life, reason))
        with self._lock:
            closed = self._closed
            self._lives[seat] = life
        if closed:
            beat.close()
            life.close("the cluster was closed")
            raise SeatLost(seat, "the cluster was closed", started=False)
        self._pulse.add(beat, lambda reason: self._lose(seat, life, reason))

    def _lose(self, seat: str, life: Links | None, reason: str) -> None:
        """End a life of a seat, the present one if none is given, and tell those who watch."""
        with self._lock:
            now = self._lives.get(seat)
            if now is None or (life is not None and life is not now) or now.lost:
                return
            now.lost = reason
            watchers = tuple(self._watchers)
        now.close(reason)
        for lost in watchers:
            lost(seat)

    def _same_modules(self, sources: dict[str, str]) -> list[str] | None:
        """Those modules that the first worker that answers can import; None if none answers."""
        for seat in self.workers:
            life = self._lives.get(seat)
            if life is None or life.lost:
                continue
            try:
                found: list[str] = life.call(0, "same_modules", (sources,), 30.0)
                return found
            except (SeatLost, TimeoutError):
                continue
        return None


# ----------------------------------------------------------------------------
# The host of a seat: holds the objects that are placed there, and answers calls of them from other processes.
#
# One host is one life of a seat. It ends when its coordinator does, or gives it up: the two hold a connection on which
# nothing is said but that both are there.
# ----------------------------------------------------------------------------


_FIRST_SECONDS = 60.0
"""How long a host waits for its coordinator to connect."""


class Host:
    """Objects of this process, callable from others.

    Args:
      seat: the name of the seat.
      cluster: the number of the cluster.
      secret: what opens connections within the cluster.
      interface: the name or address of this machine by which the others reach it.
      wrap: encrypts connections from this process; `listen` those to it. None where the cluster does not encrypt.
      listen: see `wrap`.
    """

    def __init__(
        self,
        seat: str,
        cluster: str,
        secret: bytes,
        interface: str,
        *,
        wrap: Callable[[socket.socket, str], socket.socket] | None = None,
        listen: Callable[[socket.socket], socket.socket] | None = None,
    ) -> None:
        self.seat = seat
        self._secret, self._listen = secret, listen
        self._objects: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._over = False
        self._connected = threading.Event()
        # What the engine knows of this thread, its own functions find on the threads of calls as well.
        self._context = contextvars.copy_context()
        join_cluster(cluster, secret, wrap)
        server = _reachable(interface)
        self.address: Address = (interface, int(server.getsockname()[1]))
        self._door = Door(server, self._serve, f"distinput-{seat}")
        try:
            HelperThread(target=self._await_coordinator, name=f"distinput-{seat}").start()
        except RuntimeError:  # there are as many threads as there may be
            self.end()
            raise

    def end(self) -> None:
        """Drop all objects and connections."""
        with self._lock:
            over, self._over = self._over, True
        if over:
            return
        self._door.close()
        self._objects.clear()

    # ---- what the coordinator calls, as the object with number 0

    def place(self, make: Any) -> int:
        """Make an object.

        Args:
          make: a function without arguments, packed.

        Returns:
          Its number.
        """
        made = make.unpacked()()
        number = next(self._numbers)
        self._objects[number] = made
        return number

    def same_modules(self, known: dict[str, str]) -> list[str]:
        """Those modules that can be imported here, with the same source."""
        return same_modules(known)

    # ---- connections

    def _await_coordinator(self) -> None:
        if not self._connected.wait(_FIRST_SECONDS):
            self.end()

    def _serve(self, visitor: Visitor) -> None:
        self._context.copy().run(self._talk, visitor)

    def _talk(self, visitor: Visitor) -> None:
        with contextlib.suppress(OSError):  # the caller is gone
            visitor.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._listen is not None:
                visitor.connection = self._listen(visitor.connection)
            kind = answer_greeting(visitor.connection, self._secret)
            visitor.welcome()
            if kind == PULSE:
                self._connected.set()
                self._beat(visitor.connection)
            else:
                while True:
                    self._answer(visitor.connection, receive(visitor.connection))

    def _beat(self, connection: socket.socket) -> None:
        try:
            while beat := connection.recv(64):
                connection.sendall(beat)
        except OSError:
            pass
        finally:
            self.end()

    def _answer(self, connection: socket.socket, request: tuple[int, str, tuple[Any, ...], tuple[int, ...]]) -> None:
        number, method, args, dropped = request
        for gone in dropped:
            self._objects.pop(gone, None)
        try:
            called = self if number == 0 else self._objects.get(number)
            if called is None:
                raise SeatLost(self.seat, "the object is no longer there", started=False)
            answer = (True, getattr(called, method)(*args))
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            answer = (False, _with_traceback(error, self.seat))
        try:
            send(connection, answer)
        except OSError:
            raise
        except Exception:  # noqa: BLE001 - plain pickle knows only what has a name
            try:
                send(connection, answer, dumps)
            except OSError:
                raise
            except Exception as error:  # noqa: BLE001 - the caller is told instead
                send(connection, (False, _unsendable(method, answer, error)))


def _with_traceback(error: BaseException, seat: str) -> Exception:
    if not isinstance(error, Exception):  # it was to end the thread or the program there, and must not end the caller's
        return UnknownError(f"{seat}: the function raised {type(error).__name__}: {error}")
    if not isinstance(error, SeatLost):
        error.add_note(f"raised at {seat}:\n{trace_text(error)}")
    return error


def _unsendable(method: str, answer: tuple[bool, Any], error: Exception) -> Exception:
    succeeded, value = answer
    what = f"the result, a {type(value).__name__}," if succeeded else f"the error {value!r}"
    return TypeError(f"{method}: {what} cannot be sent to the caller: {type(error).__name__}: {error}")


def _reachable(interface: str) -> socket.socket:
    """A socket that others can connect to, at any free port."""
    try:
        return listening(interface, 0, 64)
    except OSError:
        if is_loopback(interface):
            raise
        # The others know this machine by an address that it does not know itself, as behind the service of a Kubernetes pod.
        return listening("", 0, 64)
