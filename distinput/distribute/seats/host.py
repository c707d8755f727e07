# SPDX-License-Identifier: Apache-2.0
"""The host of a seat: holds the objects that are placed there, and answers calls of them from other processes.

One host is one life of a seat. It ends when its coordinator does, or gives it up: the two hold a connection on which nothing
is said but that both are there.
"""

import contextlib
import contextvars
import itertools
import socket
import threading
import traceback
from collections.abc import Callable
from typing import Any

from distinput.distribute.door import Door, Visitor
from distinput.distribute.engines.address import is_loopback
from distinput.distribute.seats.links import PULSE, Address, answer_greeting, join_cluster, receive, send
from distinput.distribute.seats.packing import same_modules
from distinput.distribute.seats.seats import SeatLost
from distinput.errors import UnknownError
from distinput.run.pickled_code import dumps

__all__ = ["Host"]

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
      ended: called when the coordinator is gone.
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
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self.seat = seat
        self._secret, self._listen, self._ended = secret, listen, ended
        self._objects: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._over = False
        self._connected = threading.Event()
        # What the engine knows of this thread, its own functions find on the threads of calls as well.
        self._context = contextvars.copy_context()
        join_cluster(cluster, secret, wrap)
        server = _listening(interface)
        self.address: Address = (interface, int(server.getsockname()[1]))
        self._door = Door(server, self._serve, f"distinput-{seat}")
        threading.Thread(target=self._await_coordinator, name=f"distinput-{seat}", daemon=True).start()

    def end(self) -> None:
        """Drop all objects and connections."""
        with self._lock:
            over, self._over = self._over, True
        if over:
            return
        self._door.close()
        self._objects.clear()
        self._ended()

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
        text = "".join(traceback.format_exception(error)).rstrip()
        error.add_note(f"raised at {seat}:\n{text}")
    return error


def _unsendable(method: str, answer: tuple[bool, Any], error: Exception) -> Exception:
    succeeded, value = answer
    what = f"the result, a {type(value).__name__}," if succeeded else f"the error {value!r}"
    return TypeError(f"{method}: {what} cannot be sent to the caller: {type(error).__name__}: {error}")


def _listening(interface: str) -> socket.socket:
    """A socket that others can connect to, at any free port."""
    family = socket.AF_INET6 if ":" in interface else socket.AF_INET
    try:
        return socket.create_server((interface, 0), family=family, backlog=64)
    except OSError:
        if is_loopback(interface):
            raise
        # The others know this machine by an address that it does not know itself, as behind the service of a Kubernetes pod.
        return socket.create_server(("", 0), backlog=64)
