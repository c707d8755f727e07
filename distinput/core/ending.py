# SPDX-License-Identifier: Apache-2.0
"""How something that runs in the background ends: when it is closed, when it is dropped, or with the program.

Python may run a finalizer on any thread, also on one that the finalizer would have to wait for. So what is dropped is told
to end, and nobody waits for it. What is still open when the program ends is ended first, while every module can be used.
"""

import os
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cache
from weakref import WeakSet

__all__ = ["Ending"]

_PATIENCE = 1.0
"""Seconds that the end of the program waits for a thread that is in the middle of a user's function."""

_open: "WeakSet[Ending]" = WeakSet()


class Ending(ABC):
    """Something to be ended once. What refers to it may be dropped; its threads may refer to it.

    Subclasses call `begun()` when there is something to end.
    """

    __slots__ = ("__weakref__", "_ended", "_process")

    def begun(self) -> None:
        """There is something to end from now on."""
        _watch()
        self._ended = False
        self._process = os.getpid()
        _open.add(self)

    def close(self, patience: float | None = None) -> None:
        """End it, and wait until its threads and processes are gone; may be called again.

        Args:
          patience: as for `end`.
        """
        self.end(patience)
        self._ended = True  # not before: what an interrupt leaves open is ended when it is dropped

    def drop(self) -> None:
        """End it without waiting; for finalizers, which may run on any thread and at any time."""
        if self._ended or self._process != os.getpid():  # a fork has the object, but not its threads
            return
        self._ended = True
        self.end(0.0)

    @abstractmethod
    def end(self, patience: float | None) -> None:
        """End it; may be called again.

        Args:
          patience: seconds to wait for threads and processes to be gone; None: as long as it takes.
        """


@cache
def _watch() -> None:
    """Have everything ended before the program takes its modules apart, and before Python waits for threads."""
    import atexit

    getattr(threading, "_register_atexit", atexit.register)(_end_all)


def _end_all() -> None:
    for each in list(_open):
        if not each._ended and each._process == os.getpid():
            each._ended = True
            with suppress(Exception):  # one that cannot be ended, as a user's function may have it, keeps no other
                each.end(_PATIENCE)
