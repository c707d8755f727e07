# SPDX-License-Identifier: Apache-2.0
"""One thread that sees whether the seats are alive: at once when a process has gone, after a time when it stands still.

To each seat there is a connection on which a byte goes there and comes back from time to time. When a process is killed its
machine closes the connection, which this thread is told at once; a process that stands still, or a machine that is cut off,
just does not answer any more.
"""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Pulse"]

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
        self._thread = threading.Thread(target=self._run, name="distinput-pulse", daemon=True)
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
