# SPDX-License-Identifier: Apache-2.0
"""Work that must not hang: it runs in a thread, and whoever waits for it gives up when it stands still."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Still", "watched"]

T = TypeVar("T")


class Still(TimeoutError):
    """There was no sign of life for too long."""


class _Work(threading.Thread, Generic[T]):
    """A thread that keeps what its function returns or raises; a daemon, since one that hangs is left behind."""

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(name="distinput-judge", daemon=True)
        self._work = work
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Call the function."""
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            self.error = error


def watched(work: Callable[[], T], patience: float, last: Callable[[], float]) -> T:
    """What the work returns or raises, unless it stands still.

    Args:
      work: called in a thread of its own.
      patience: seconds without a sign of life.
      last: the time of the last one, by `time.monotonic`.

    Raises:
      Still: the work stood still; its thread is left behind.

    >>> watched(lambda: 7, patience=5.0, last=lambda: 1e9)
    7
    """
    thread = _Work(work)
    thread.start()
    while thread.is_alive():
        thread.join(min(0.2, patience / 4))
        if thread.is_alive() and time.monotonic() - last() > patience:
            raise Still
    if thread.error is not None:
        raise thread.error
    return thread.result  # type: ignore[return-value]
