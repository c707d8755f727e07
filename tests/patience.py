# SPDX-License-Identifier: Apache-2.0
"""How long tests wait for what is sure to come, on a machine as slow and as busy as it may be."""

import threading
import time
from collections.abc import Callable, Collection

PATIENCE = 60.0
"""Seconds, so long that only what hangs takes them."""


def wait_until(condition: Callable[[], object]) -> None:
    """Return once the condition is true."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it does not come true"
        time.sleep(0.005)


def threads_since(before: Collection[threading.Thread], name: str = "") -> list[threading.Thread]:
    """The threads that began since, and run, of names that begin so; not the one that compiles kernels, for all.

    Threads that earlier tests left to end may end at any moment, so their number says nothing.
    """
    begun = set(threading.enumerate()) - set(before)
    return [each for each in begun if each.name.startswith(name) and each.name != "distinput-kernels"]


class Beside:
    """What a call does that is to run beside others: it waits for the next one, but not for long, since it may be the last.

    So calls of two threads take turns: each begins, and then the other's ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = threading.Event()

    def wait(self) -> None:
        with self._lock:
            other, mine = self._last, threading.Event()
            self._last = mine
        other.set()
        mine.wait(0.2)


class Clock:
    """A clock in the place of the module `time`, which goes on when it is told to."""

    now, sleep = 0.0, staticmethod(time.sleep)

    def monotonic(self) -> float:
        return self.now
