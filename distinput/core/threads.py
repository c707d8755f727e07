# SPDX-License-Identifier: Apache-2.0
"""The threads of one run. A stream tells its threads to end and does not wait for them; closing the run waits for all.

A stream that nobody refers to any more is closed by Python's garbage collector, on any thread, also on one of the stream's
own. So nothing here waits but `join`, which is called by whoever closes an iteration, and never by a finalizer.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from distinput.core.pool import Pool

__all__ = ["Threads"]


class Threads:
    """Thread pools, and single threads, each with a function that tells it to end."""

    def __init__(self) -> None:
        self._pools: list[Pool] = []
        self._single: list[tuple[threading.Thread, Callable[[], None]]] = []
        # The garbage collector may end a stream while its own thread is in here.
        self._lock = threading.RLock()

    @contextmanager
    def pool(self, threads: int) -> Iterator[Pool]:
        """A thread pool for one stream. When the stream ends, it takes no more tasks, and drops those not begun."""
        made = Pool(threads)
        with self._lock:
            self._pools = [pool for pool in self._pools if _alive(pool)]
            self._pools.append(made)
        try:
            yield made
        finally:
            made.shutdown()

    @contextmanager
    def beside(self, thread: threading.Thread, end: Callable[[], None]) -> Iterator[None]:
        """A thread for one stream, started here; `end` tells it to end when the stream does."""
        try:
            with self._lock:
                self._single = [each for each in self._single if each[0].is_alive()]
                self._single.append((thread, end))
                thread.start()
            yield
        finally:
            end()

    def end(self) -> None:
        """Tell all threads to end."""
        with self._lock:
            pools, single = list(self._pools), list(self._single)
        for _, end in reversed(single):
            end()
        for pool in pools:
            pool.shutdown()

    def join(self, patience: float | None) -> None:
        """Wait until all threads have ended, except the one that calls this.

        Args:
          patience: the most seconds for all together; None: as long as it takes.
        """
        with self._lock:
            pools, self._pools = self._pools, []
            single, self._single = self._single, []
        if patience == 0:
            return
        until = None if patience is None else monotonic() + patience
        for thread in [*[thread for thread, _ in single], *[thread for pool in pools for thread in pool.threads]]:
            # One is not alive if an interrupt came while it was started.
            if thread.is_alive() and thread.ident != threading.get_ident():
                thread.join(None if until is None else max(0.0, until - monotonic()))


def _alive(pool: Pool) -> bool:
    return any(thread.is_alive() for thread in pool.threads)
