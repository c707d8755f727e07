# SPDX-License-Identifier: Apache-2.0
"""`Recording`: one pass over a dataset, with notes of what happened when."""

import os
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from distinput.core.html import html
from distinput.core.run import Run
from distinput.data.handle import DatasetHandle
from distinput.data.recording.chrome_trace import chrome_trace
from distinput.data.recording.trace import Trace
from distinput.data.recording.traced_run import TracedRun
from distinput.data.stats import Stats
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.files.sink import Sink
from distinput.plan.node import INFINITE

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["Recording", "recorded"]


class Watchable(Protocol):
    """A distributed dataset."""

    def _watched(self, make_run: Callable[..., Run]) -> tuple[DatasetHandle[Any], Any, int]: ...

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

    def __init__(self, dataset: "DatasetHandle[Any] | Watchable") -> None:
        self.given, self.trace, self.delivered, self.epoch = dataset, Trace(), 0, 0
        self.rows: list[int] = []
        self._begin: float | None = None
        self._end: float | None = None
        make_run = partial(TracedRun, self.trace)
        self._iterated: Any
        self.dataset, self._iterated, replicas = dataset._watched(make_run)
        self._passes = self.dataset._passes
        self.rows = [0] * replicas

    def __iter__(self) -> Generator[Any, None, None]:
        if self._begin is not None:
            raise FailedPreconditionError(
                "Recording: it records one pass, and that has begun; make another Recording for the next pass"
            )
        self._begin = Run.clock()
        self.trace.look(self._begin)
        elements = iter(self._iterated)
        self.epoch = self._passes.begun - 1
        if isinstance(self.given, DatasetHandle):
            self.given._counted = self.dataset._counted  # so that its `stats` are of the latest pass
        return self._delivered(elements)

    def _delivered(self, elements: Any) -> Generator[Any, None, None]:
        try:
            with elements:
                for element in elements:
                    self.delivered += 1
                    if self.rows and not isinstance(self.given, DatasetHandle):
                        self._count(self.given, element)
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
        """Whether what is delivered are the steps of a distributed dataset."""
        return not isinstance(self.given, DatasetHandle)

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


def recorded(dataset: DatasetHandle[Any], seconds: float | None = None, elements: int | None = None) -> Recording:
    """A recording of a pass that nothing is done with.

    Args:
      dataset: what is iterated.
      seconds: when the pass is broken off; None: at the end.
      elements: after how many elements; None: after the last one.

    Raises:
      InvalidArgumentError: nothing would end it.
    """
    if seconds is None and elements is None and dataset.cardinality() == INFINITE:
        raise InvalidArgumentError(
            "report: the dataset has no end; say after how many seconds= or elements= to break off"
        )
    recording = Recording(dataset)
    until = None if seconds is None else Run.clock() + seconds
    if elements is not None and elements <= 0:
        return recording
    with closing(recording.__iter__()) as taken:  # which ends the pass when it is broken off
        for _ in taken:
            if recording.delivered == elements or (until is not None and Run.clock() >= until):
                break
    return recording
