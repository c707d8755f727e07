# SPDX-License-Identifier: Apache-2.0
"""A run: what all streams of one iteration share, and the one place where they are measured and their errors annotated."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Self

from distinput.core.rows import Stream

__all__ = ["Counter", "Run"]


@dataclass
class Counter:
    """What one op did in a run.

    Args:
      blocks: blocks sent.
      rows: elements sent.
      seconds: time in this op and the ops above it in the stream.
    """

    blocks: int = 0
    rows: int = 0
    seconds: float = 0.0


class Run:
    """One iteration: its thread pools, its cancellation and its counters. Closing it leaves nothing behind."""

    def __init__(self) -> None:
        self.counters: dict[int, Counter] = {}
        self.cancelled = threading.Event()
        self.reading: Callable[[], str] | None = None
        self._closers: list[Callable[[], None]] = []
        self._pools: list[ThreadPoolExecutor] = []
        self._lock = threading.Lock()

    def watch(self, where: Callable[[], str], key: int, stream: Stream) -> Stream:
        """`stream`, counted, and with a note on its errors that says which op raised them and where it was made."""
        counter = self.counters.get(key)
        if counter is None:
            counter = self.counters[key] = Counter()
        return self._watched(where, counter, stream)

    def _watched(self, where: Callable[[], str], counter: Counter, stream: Stream) -> Stream:
        clock = perf_counter
        try:
            while True:
                begin = clock()
                try:
                    item = next(stream)
                except StopIteration:
                    return
                finally:
                    counter.seconds += clock() - begin
                counter.blocks += 1
                counter.rows += item[0].size
                yield item
        except Exception as error:
            if not getattr(error, "_distinput_noted", False):
                error._distinput_noted = True  # type: ignore[attr-defined]  # the innermost op is the one at fault
                error.add_note(f"in {where()}")
                if self.reading is not None:
                    error.add_note(f"last read: {self.reading()}")
            raise
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()

    @contextmanager
    def pool(self, threads: int) -> Iterator[ThreadPoolExecutor]:
        """A thread pool for one stream: it ends with that stream, or with the run if the run ends first."""
        made = ThreadPoolExecutor(threads, thread_name_prefix="distinput")
        with self._lock:
            self._pools.append(made)
        try:
            yield made
        finally:
            made.shutdown(wait=True, cancel_futures=True)
            with self._lock:
                if made in self._pools:
                    self._pools.remove(made)

    @contextmanager
    def closing(self, close: Callable[[], None]) -> Iterator[None]:
        """Call `close` when the run ends, unless the stream that asked for it has ended before."""
        with self._lock:
            self._closers.append(close)
        try:
            yield
        finally:
            with self._lock:
                if close in self._closers:
                    self._closers.remove(close)

    def close(self) -> None:
        """Cancel what is under way and wait until it is gone; may be called again."""
        self.cancelled.set()
        with self._lock:
            closers, self._closers = self._closers, []
            pools, self._pools = self._pools, []
        for close in reversed(closers):
            close()
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
