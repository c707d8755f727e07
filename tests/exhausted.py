# SPDX-License-Identifier: Apache-2.0
"""Threads that cannot be started, as in a process that has as many as it may."""

import threading

import pytest


class ThreadStarts:
    """Counts the threads that are started, and lets some of them fail; never that of the kernels, which serves all tests.

    Args:
      patch: undoes it.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._failing: range = range(0)
        real = threading.Thread.start

        def start(thread: threading.Thread) -> None:
            if thread.name != "distinput-kernels":
                self.count += 1
                if self.count in self._failing:
                    raise RuntimeError("can't start new thread")
            real(thread)

        patch.setattr(threading.Thread, "start", start)

    def fail(self, first: int, number: int = 1) -> None:
        """Let so many fail of those that come, from this one on; the next one is 1."""
        self.count, self._failing = 0, range(first, first + number)
