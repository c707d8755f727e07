# SPDX-License-Identifier: Apache-2.0
"""A run that takes notes. Other runs do not know that there are such; so a timeline costs nothing when nobody asks for it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, ParamSpec, TypeVar

from distinput.core.pool import Pool, Task
from distinput.core.rows import Stream
from distinput.core.run import OpCounters, Run
from distinput.core.state import State
from distinput.core.trouble import Step
from distinput.data.recording.trace import Trace

__all__ = ["TracedRun"]

P = ParamSpec("P")
R = TypeVar("R")


class _TracedCounter(OpCounters):
    """A counter that also notes when its step waited, and how full its buffer was."""

    def __init__(self, trace: Trace, key: str) -> None:
        super().__init__()
        self.trace, self.key = trace, key

    def waits(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        begin = Run.clock()
        try:
            return super().waits(call, *args, **kwargs)
        finally:
            self.trace.add(self.key, "wait", begin, Run.clock())

    def holds(self, rows: int) -> None:
        self.trace.holds(self.key, rows)


class TracedRun(Run):
    """A run whose steps, waits, buffers and pools are noted.

    Args:
      trace: where.
      steps: as for `Run`.
      **given: as for `Run`.
    """

    def __init__(self, trace: Trace, steps: Iterable[Step], **given: Any) -> None:
        listed = list(steps)
        super().__init__(listed, **given)
        self.trace = trace
        self._within: dict[int, list[str]] = {}  # by thread: the steps whose streams are running, outermost first
        for number, step in enumerate(listed):
            if type(self.counters[id(step)]) is OpCounters:
                self.counters[id(step)] = _TracedCounter(trace, f"{number}:{step.op}")

    def counter(self, step: Step) -> OpCounters:
        if id(step) not in self.counters and (step.op, step.origin) not in self.counters:
            self.counters.setdefault((step.op, step.origin), _TracedCounter(self.trace, f"inner:{step.op}"))
        return super().counter(step)

    def watch(self, step: Step, stream: Stream, state: State | None = None) -> Stream:
        return super().watch(step, self._noted(self.counter(step), stream), state)

    def _noted(self, counter: OpCounters, stream: Stream) -> Stream:
        """The stream, with a span for each block."""
        key, add, clock = getattr(counter, "key", ""), self.trace.add, Run.clock
        try:
            while True:
                within = self._within.setdefault(get_ident(), [])
                within.append(key)
                begin = clock()
                rows = 0
                try:
                    item = next(stream)
                    rows = item[0].size
                    counter.nbytes += item[0].nbytes
                except StopIteration:
                    return
                finally:
                    within.pop()
                    add(key, "step", begin, clock(), rows)
                yield item
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()

    @contextmanager
    def pool(self, threads: int) -> Iterator[Any]:
        within = self._within.get(get_ident())
        with super().pool(threads) as made:
            yield _TracedPool(made, self.trace, within[-1] if within else "")


class _TracedPool:
    """A pool that notes its tasks as work of the step that asked for it."""

    def __init__(self, pool: Pool, trace: Trace, key: str) -> None:
        self._pool, self._trace, self._key = pool, trace, key

    def submit(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Task[R]:
        """As the pool's."""

        def timed() -> R:
            begin = Run.clock()
            try:
                return call(*args, **kwargs)
            finally:
                self._trace.add(self._key, "task", begin, Run.clock())

        return self._pool.submit(timed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)
