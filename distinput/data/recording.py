# SPDX-License-Identifier: Apache-2.0
"""`Recording`: one pass over a dataset, with notes of what happened when."""

import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from threading import current_thread, get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar, runtime_checkable

from distinput.columns.block import Step
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.data.iterator import DatasetLike
from distinput.data.stats import Stats
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.files.sink import Sink
from distinput.names.words import count_of, html, seconds_text
from distinput.plan.node import INFINITE
from distinput.run.run import OpCounters, Run
from distinput.run.threads import Pool, Task

if TYPE_CHECKING:
    from os import PathLike


# ----------------------------------------------------------------------------
# What was noted of a pass: which step ran when on which thread, what it waited for, how full its buffers were.
# ----------------------------------------------------------------------------


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
        thread = get_ident()
        if thread not in self.threads:
            self.threads[thread] = current_thread().name
        if len(self.spans) >= _MOST_SPANS:
            self.dropped += 1
            return
        self.spans.append(Span(step, kind, thread, begin, end, rows))
        if end - self._looked > _EVERY:
            self.look(end)

    def look(self, now: float) -> None:
        """Note the memory of the process."""
        self._looked = now
        self.samples.append(Sample("memory", now, resident_bytes()))

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


# ----------------------------------------------------------------------------
# A run that takes notes. Other runs do not know that there are such; so a timeline costs nothing when nobody asks for it.
# ----------------------------------------------------------------------------


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


# ----------------------------------------------------------------------------
# The timeline of a pass as trace events, which Perfetto and chrome://tracing open.
# ----------------------------------------------------------------------------


def chrome_trace(trace: Trace, begin: float = 0.0) -> str:
    """A JSON object of trace events.

    Each thread is a row; a block that a step makes is an event within that of the step that asked for it, and waiting is one
    within that of the step that waits. Elements in buffers and the memory of the process are counters.

    Args:
      trace: what was noted.
      begin: the time that is shown as 0.

    Source: "Trace Event Format" of the Chromium project: complete events (`X`), counters (`C`) and metadata (`M`); times are
    microseconds.
    """
    rows = {thread: index for index, thread in enumerate(trace.threads, start=1)}
    events = [_named("process_name", 0, {"name": "distinput"})]
    for thread, row in rows.items():
        events.append(_named("thread_name", row, {"name": trace.threads[thread]}))
        events.append(_named("thread_sort_index", row, {"sort_index": row}))
    for span in sorted(trace.spans, key=lambda each: (each.begin, -each.end)):
        first, last = _nanoseconds(span.begin - begin), _nanoseconds(span.end - begin)
        event = {
            "ph": "X",
            "name": f"{span.step} waits" if span.kind == "wait" else span.step,
            "cat": span.kind,
            "ts": first / 1000,
            "dur": (last - first) / 1000,
            "pid": 1,
            "tid": rows[span.thread],
        }
        if span.kind == "step":
            event["args"] = {"rows": span.rows}
        events.append(event)
    for sample in trace.samples:
        name, unit = ("memory", "bytes") if sample.what == "memory" else (f"{sample.what} buffer", "elements")
        at = _nanoseconds(sample.time - begin) / 1000
        events.append({"ph": "C", "name": name, "ts": at, "pid": 1, "tid": 0, "args": {unit: sample.value}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"dropped": trace.dropped}})


def _named(what: str, row: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 1, "tid": row, "args": arguments}


def _nanoseconds(seconds: float) -> int:
    """Rounded; what lies within another stretch of time still does, since rounding keeps the order."""
    return round(seconds * 1e9)


# ----------------------------------------------------------------------------
# `Recording`: one pass over a dataset, with notes of what happened when.
# ----------------------------------------------------------------------------


@runtime_checkable
class Watchable(Protocol):
    """A distributed dataset."""

    def _watched(self, make_run: Callable[..., Run]) -> tuple[DatasetLike, Any, int]: ...

    def _row_counts(self, step: Any) -> tuple[int, ...]: ...


class Recording:
    """One pass over a dataset that is recorded: iterate it in the place of the dataset, in a training loop or alone.

    The elements are those of the dataset's next pass. Other passes are not slowed down; this one is, by about ten
    microseconds for each block of each step.

    Args:
      dataset: what is iterated: a dataset, or a distributed one, of which the input pipeline of this worker is recorded (where
        each replica has one of its own, the first one's statistics are shown).

    Raises:
      InvalidArgumentError: the input of a distributed dataset is not one of distinput's.

    Attributes:
      given: what was passed.
      dataset: the dataset whose steps are recorded.
      delivered: elements, or steps of a distributed dataset, that were delivered so far.
      rows: of each replica of this worker so far; empty if the dataset is not distributed, or rows cannot be counted.
      trace: what was noted.

    >>> import distinput as di
    >>> recording = di.reports.Recording(di.data.Dataset.range(1000).map(lambda x: x + 1).batch(32))
    >>> sum(len(batch) for batch in recording), recording.delivered
    (1000, 32)
    >>> recording.stats()["2:batch"]["rows"]
    32
    >>> recording.write_report("report.html")
    """

    def __init__(self, dataset: DatasetLike | Watchable) -> None:
        self.given, self.trace, self.delivered, self.epoch = dataset, Trace(), 0, 0
        self._distributed = dataset if isinstance(dataset, Watchable) else None
        self._begin: float | None = None
        self._end: float | None = None
        make_run = partial(TracedRun, self.trace)
        self._iterated: Any
        self.dataset, self._iterated, replicas = dataset._watched(make_run)
        self._passes = self.dataset._passes
        self.rows = [0] * replicas

    def __repr__(self) -> str:
        if self._begin is None:
            return f"<Recording of {self.given!r}, which has not begun>"
        what = "step" if self.distributed else "element"
        said = f"{count_of(self.delivered, what)} in {seconds_text(self.seconds)}"
        return f"<Recording {said}, slowest: {self.stats().slowest or 'not known'}>"

    def _repr_html_(self) -> str:
        """What notebooks show: the statistics of the pass."""
        return self.stats()._repr_html_()

    def __iter__(self) -> Generator[Any, None, None]:
        if self._begin is not None:
            raise FailedPreconditionError(
                "Recording: a Recording is for one pass, and this one has begun; make another Recording for the next pass"
            )
        self._begin = Run.clock()
        self.trace.look(self._begin)
        elements = iter(self._iterated)
        self.epoch = self._passes.begun - 1
        if not isinstance(self.given, Watchable):
            self.given._counted = self.dataset._counted  # so that its `stats` are of the latest pass
        return self._delivered(elements)

    def _delivered(self, elements: Any) -> Generator[Any, None, None]:
        try:
            with elements:
                for element in elements:
                    self.delivered += 1
                    if self.rows and self._distributed is not None:
                        self._count(self._distributed, element)
                    yield element
        finally:
            self._end = Run.clock()
            self.trace.look(self._end)

    def _count(self, given: Watchable, step: Any) -> None:
        try:
            counts = given._row_counts(step)
        except (InvalidArgumentError, TypeError):  # leaves of several lengths
            self.rows = []
        else:
            self.rows = [before + more for before, more in zip(self.rows, counts, strict=True)]

    @property
    def distributed(self) -> bool:
        """Whether the pass delivers the steps of a distributed dataset."""
        return self._distributed is not None

    @property
    def begin(self) -> float:
        """When the pass began, in seconds of the clock of the trace."""
        return 0.0 if self._begin is None else self._begin

    @property
    def seconds(self) -> float:
        """How long the pass took, or has taken so far."""
        return (Run.clock() if self._end is None else self._end) - self._begin if self._begin is not None else 0.0

    def stats(self) -> Stats:
        """Statistics of the steps that ran, with the bytes that each of them sent."""
        return self.dataset.stats()

    def write_report(self, path: "str | PathLike[str]", num_workers: int = 4) -> None:
        """Write a page of HTML about the pass; see `Dataset.report`.

        Args:
          path: of the file.
          num_workers: show how the data would be divided among so many workers; 1 leaves that out.
        """
        text = html("recording", self, num_workers)
        with Sink(os.fspath(path)) as sink:  # an older page stays until this one is complete
            sink.write(text.encode())

    def write_chrome_trace(self, path: "str | PathLike[str]") -> None:
        """Write the timeline for Perfetto (https://ui.perfetto.dev) or chrome://tracing.

        Args:
          path: of the file.
        """
        text = chrome_trace(self.trace, self.begin)
        with Sink(os.fspath(path)) as sink:
            sink.write(text.encode())


def recorded(dataset: DatasetLike, seconds: float | None = None, elements: int | None = None) -> Recording:
    """A recording of a pass that delivers its elements to nobody.

    Args:
      dataset: what is iterated.
      seconds: when the pass is broken off; None: at the end.
      elements: after how many elements; None: after the last one.

    Raises:
      InvalidArgumentError: nothing would end it.
    """
    if seconds is None and elements is None and dataset.cardinality() == INFINITE:
        raise InvalidArgumentError("report: the dataset has no end; give seconds= or elements=, after which it stops")
    recording = Recording(dataset)
    until = None if seconds is None else Run.clock() + seconds
    if elements is not None and elements <= 0:
        return recording
    with closing(recording.__iter__()) as taken:  # which ends the pass when it is broken off
        for _ in taken:
            if recording.delivered == elements or (until is not None and Run.clock() >= until):
                break
    return recording
