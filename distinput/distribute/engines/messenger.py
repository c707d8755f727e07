# SPDX-License-Identifier: Apache-2.0
"""A thread that makes calls which may never return, for one that must not wait that long."""

import queue
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Errand", "Messenger"]


class Errand:
    """One call, made by a messenger.

    Args:
      function: what to call.
      args: with what.
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
        """Whether it has returned, waiting at most this long; raises what it raised."""
        if not self._done.wait(seconds):
            return False
        if self._error is not None:
            raise self._error
        return True

    def value(self) -> Any:
        """What it returned."""
        return self._value


class Messenger:
    """Makes calls one after the other on a thread of its own, which does not hold up the end of the process.

    Args:
      name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._errands: queue.SimpleQueue[Errand | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def send(self, function: Callable[..., Any], *args: Any) -> Errand:
        """Begin a call, after those that were sent before."""
        if self._thread is None:
            self._thread = threading.Thread(target=_serve, args=(self._errands,), name=self._name, daemon=True)
            self._thread.start()
        errand = Errand(function, args)
        self._errands.put(errand)
        return errand

    def busy(self) -> bool:
        """Whether calls are waiting to be made."""
        return not self._errands.empty()

    def end(self) -> None:
        """No more calls; the thread ends when the last one returns."""
        if self._thread is not None:
            self._errands.put(None)
            self._thread.join(0.5)
            self._thread = None


def _serve(errands: "queue.SimpleQueue[Errand | None]") -> None:
    while (errand := errands.get()) is not None:
        errand.run()
        del errand  # an idle thread keeps nothing alive
