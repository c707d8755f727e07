# SPDX-License-Identifier: Apache-2.0
"""A thread that makes calls that may never return, for callers that must not block."""

import queue
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["BackgroundCall", "BackgroundThread"]


class BackgroundCall:
    """One call that a background thread makes.

    Args:
      function: what to call.
      args: its arguments.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._function, self._args = function, args
        self._done = threading.Event()
        self._value: Any = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Make the call; never raises."""
        try:
            self._value = self._function(*self._args)
        except Exception as error:  # noqa: BLE001 - raised again by `wait`
            self._error = error
        finally:
            self._done.set()

    def wait(self, seconds: float) -> bool:
        """Whether the call has returned, after waiting at most this long; raises what the call raised."""
        if not self._done.wait(seconds):
            return False
        if self._error is not None:
            raise self._error
        return True

    def value(self) -> Any:
        """What the call returned."""
        return self._value


class BackgroundThread:
    """Makes calls one after the other on a daemon thread, which is started with the first one.

    Args:
      name: the name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[BackgroundCall | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[..., Any], *args: Any) -> BackgroundCall:
        """Queue a call, to be made after those submitted before."""
        if self._thread is None:
            self._thread = threading.Thread(target=_serve, args=(self._calls,), name=self._name, daemon=True)
            self._thread.start()
        call = BackgroundCall(function, args)
        self._calls.put(call)
        return call

    def has_queued(self) -> bool:
        """Whether there are calls that have not been begun."""
        return not self._calls.empty()

    def close(self) -> None:
        """Let the thread end after the last call, and wait for that a short time."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join(0.5)
            self._thread = None


def _serve(calls: "queue.SimpleQueue[BackgroundCall | None]") -> None:
    while (call := calls.get()) is not None:
        call.run()
        del call  # an idle thread keeps nothing alive
