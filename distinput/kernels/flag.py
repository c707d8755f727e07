# SPDX-License-Identifier: Apache-2.0
"""A flag between threads, which an interrupt cannot leave locked."""

import threading

__all__ = ["Flag"]


class Flag:
    """Set once, and seen by all threads, as a `threading.Event`.

    An event is written in Python, with a lock around it. An interrupt in the middle of it would leave the lock behind, and
    every thread that looks at the event would wait for ever. Here threads wait in C code, each for a lock of its own.

    >>> flag = Flag()
    >>> flag.is_set(), flag.wait(0), flag.set(), flag.is_set(), flag.wait()
    (False, False, None, True, True)
    """

    __slots__ = ("_set", "_waiting")

    def __init__(self) -> None:
        self._set = False
        self._waiting: list[threading.Lock] = []

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._set

    def set(self) -> None:
        """Set it; may be called again."""
        self._set = True
        for waiting in self._waiting:
            try:
                waiting.release()
            except RuntimeError:  # another thread has set it as well
                pass

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; False if it is not after so many seconds."""
        if not self._set:
            waiting = threading.Lock()
            waiting.acquire()
            self._waiting.append(waiting)  # before it is looked at again
            if not self._set:
                waiting.acquire(timeout=-1 if timeout is None else timeout)
        return self._set
