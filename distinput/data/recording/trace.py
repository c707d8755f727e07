# SPDX-License-Identifier: Apache-2.0
"""What was noted of a pass: which step ran when on which thread, what it waited for, how full its buffers were."""

import os
import sys
import threading
from typing import NamedTuple

from distinput.core.run import Run

__all__ = ["Sample", "Span", "Trace", "resident_bytes"]

_MOST_SPANS = 200_000
"""Spans of longer passes are counted, and not kept."""

_EVERY = 0.02
"""Seconds between two looks at the memory of the process."""


class Span(NamedTuple):
    """A stretch of time on one thread.

    Attributes:
      step: the key of the step, as in `Dataset.stats`.
      kind: "step" for the making of a block, including what the step reads from on the same thread; "wait" for waiting for
        another thread or process; "task" for work given to a pool of threads.
      thread: the identity of the thread.
      begin: in seconds, of the clock of all runs.
      end: in the same seconds.
      rows: elements of the block that was made.
    """

    step: str
    kind: str
    thread: int
    begin: float
    end: float
    rows: int = 0


class Sample(NamedTuple):
    """A number at a time.

    Attributes:
      what: "memory", or the key of a step with a buffer.
      time: in seconds, of the clock of all runs.
      value: bytes of memory, or elements in the buffer.
    """

    what: str
    time: float
    value: int


class Trace:
    """Spans and samples of one pass; several threads may add to it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.samples: list[Sample] = []
        self.threads: dict[int, str] = {}
        """Names of threads, in the order in which they came."""
        self.dropped = 0
        """Spans that were not kept, since there were too many."""
        self._looked = float("-inf")

    def add(self, step: str, kind: str, begin: float, end: float, rows: int = 0) -> None:
        """Note a stretch of time that ends now, on this thread."""
        thread = threading.get_ident()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        if len(self.spans) >= _MOST_SPANS:
            self.dropped += 1
            return
        self.spans.append(Span(step, kind, thread, begin, end, rows))
        if end - self._looked > _EVERY:
            self.look(end)

    def look(self, now: float | None = None) -> None:
        """Note the memory of the process."""
        self._looked = Run.clock() if now is None else now
        self.samples.append(Sample("memory", self._looked, resident_bytes()))

    def holds(self, step: str, rows: int) -> None:
        """Note that so many elements wait in the buffer of a step."""
        if len(self.samples) < _MOST_SPANS:
            self.samples.append(Sample(step, Run.clock(), rows))


def resident_bytes() -> int:
    """Memory of the process; where the system tells only the most that it ever was, that; 0 where it tells nothing.

    Source: proc(5), statm; getrusage(2), whose unit is KiB on Linux and bytes on macOS.
    """
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        pass
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
