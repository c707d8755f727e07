# SPDX-License-Identifier: Apache-2.0
"""The door of a process: a listening socket, and those who come to it, until they have proved that they belong here.

Whoever reaches a port can open connections to it and say nothing. So strangers are few, and each has little time: where there
are too many, or this process has no file descriptor left, the one that has waited longest is sent away. Members are as many as
there are.
"""

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from distinput.kernels.kernel import HelperThread

GREETING_SECONDS = 10.0
"""How long a stranger may take to greet."""
MOST_STRANGERS = 64
_SOON = 0.02
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Visitor:
    """Who has come.

    Attributes:
      connection: the socket; or what was made of it, which has the same descriptor and closes it.
    """

    def __init__(self, door: "Door", connection: socket.socket) -> None:
        self.connection: Any = connection
        self.came = time.monotonic()
        self._door, self._descriptor = door, connection.fileno()

    def welcome(self) -> None:
        """It has proved that it belongs here, and may stay.

        Raises:
          ConnectionError: that took too long, or the door was closed.
        """
        self._door._welcome(self)

    def hang_up(self) -> None:
        """End the connection, on which another thread may be waiting; that thread closes it."""
        # Not through `connection`: a socket that was encrypted is detached from its descriptor.
        end = socket.socket(fileno=self._descriptor)
        try:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        finally:
            end.detach()


class Door:
    """Accepts connections, each on a thread of its own.

    Args:
      server: a listening socket, which is closed here.
      serve: called with each visitor, on the thread of its connection; it calls `welcome` once it has greeted.
      name: of the threads.
      seconds: how long a stranger may take.
      most: how many strangers there may be.
    """

    def __init__(
        self,
        server: socket.socket,
        serve: Callable[[Visitor], None],
        name: str,
        *,
        seconds: float = GREETING_SECONDS,
        most: int = MOST_STRANGERS,
    ) -> None:
        self._server, self._serve, self._name = server, serve, name
        self._seconds, self._most = seconds, most
        self._lock = threading.Lock()
        self._strangers: dict[Visitor, None] = {}  # those who came first are first
        self._members: set[Visitor] = set()  # and those who were sent away, until their threads have ended
        self._closed = False
        self._listening = HelperThread(target=self._run, name=name)
        try:
            self._listening.start()
        except RuntimeError:  # there are as many threads as there may be
            server.close()
            raise

    def close(self) -> None:
        """Let nobody in any more, and end all connections; may be called again."""
        with self._lock:
            closed, self._closed = self._closed, True
            for visitor in [*self._strangers, *self._members]:
                visitor.hang_up()
        if closed:
            return
        # Both, since closing alone does not wake a thread that waits for a connection; one that is about to wait must not find
        # the descriptor gone, which it would wait for until the time of the first stranger is over.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._listening.join(_SOON * 10)
        self._server.close()

    def _run(self) -> None:
        while not self._closed:
            try:
                self._server.settimeout(self._patience())
                connection, _ = self._server.accept()
            except TimeoutError:
                self._send_away()
            except OSError as error:
                if self._closed:
                    return
                # The visitor has gone again, or there is no descriptor for it yet.
                self._send_away(1 if error.errno in _FULL else 0)
                time.sleep(_SOON)
            else:
                self._admit(connection)

    def _patience(self) -> float | None:
        """Seconds until the time of the first stranger is over."""
        with self._lock:
            first = next(iter(self._strangers), None)
        return None if first is None else max(_SOON, first.came + self._seconds - time.monotonic())

    def _send_away(self, least: int = 0) -> None:
        """End the connections of strangers whose time is over, and of so many at least."""
        late = time.monotonic() - self._seconds
        with self._lock:
            for number, visitor in enumerate(list(self._strangers)):
                if number < least or visitor.came <= late:
                    del self._strangers[visitor]
                    self._members.add(visitor)
                    visitor.hang_up()

    def _admit(self, connection: socket.socket) -> None:
        visitor = Visitor(self, connection)
        self._send_away(len(self._strangers) + 1 - self._most)
        with self._lock:
            if self._closed:
                connection.close()
                return
            self._strangers[visitor] = None
        try:
            HelperThread(target=self._attend, args=(visitor,), name=self._name).start()
        except RuntimeError:  # no thread can be started any more
            self._leave(visitor)
            self._send_away(1)

    def _welcome(self, visitor: Visitor) -> None:
        with self._lock:
            if self._closed or visitor not in self._strangers:
                raise ConnectionAbortedError("greeted too late")
            del self._strangers[visitor]
            self._members.add(visitor)

    def _attend(self, visitor: Visitor) -> None:
        try:
            self._serve(visitor)
        finally:
            self._leave(visitor)

    def _leave(self, visitor: Visitor) -> None:
        with self._lock:  # nobody hangs up a descriptor that is another file by then
            self._strangers.pop(visitor, None)
            self._members.discard(visitor)
        with contextlib.suppress(OSError):
            visitor.connection.close()
