# SPDX-License-Identifier: Apache-2.0
"""`ShardPlan`: which worker will read what, and why, known before anything is read, and in a few numbers."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, field, replace
from functools import cache, cached_property
from typing import Any, overload

from distinput.names.lazy import dataclass
from distinput.names.words import html
from distinput.url_secrets import without_secrets

# ----------------------------------------------------------------------------
# `ShardPlan`: which worker will read what, and why, known before anything is read.
# ----------------------------------------------------------------------------


_SHOWN = 16  # workers in a printed plan
_COUNTED = 256  # workers whose steps are all counted for a printed plan
_PARTS = 3  # parts of files of one worker in a printed plan


@dataclass(frozen=True)
class FileRange:
    """A file, or a part of one.

    Args:
      file: the path, without the secrets of a URL; "" for rows that are in memory.
      start: where the part begins, in records or in bytes of text; None: at the beginning.
      stop: before which it ends; None: at the end.
      rows: its records; None if they cannot be counted without reading them.
      nbytes: bytes of the file that are read; None if unknown.
    """

    file: str
    start: int | None = None
    stop: int | None = None
    rows: int | None = None
    nbytes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", without_secrets(self.file))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without those that are not set."""
        found = {"file": self.file, "start": self.start, "stop": self.stop}
        return {**{k: v for k, v in found.items() if v is not None}, "rows": self.rows, "bytes": self.nbytes}

    def __str__(self) -> str:
        if self.start is None and self.stop is None:
            return self.file
        return f"{self.file}[{self.start or 0}:{'' if self.stop is None else self.stop}]"


@dataclass(frozen=True)
class WorkerPlan:
    """What one worker does.

    Args:
      worker: which one, from 0.
      parts: of files that it reads, in order; empty for data in memory.
      rows: the rows that it delivers; None if unknown, -1 if there is no end.
      nbytes: the bytes that it takes to read each part once (`repeat` may read more, `take` less); None if unknown. They
        include what a format stores beside the records, such as the footer of Parquet.
      steps: the steps in which one of its replicas has an element; None if unknown, as where workers leave out steps without
        rows together; -1 if there is no end.
    """

    worker: int
    parts: tuple[FileRange, ...]
    rows: int | None
    nbytes: int | None
    steps: int | None

    @property
    def files(self) -> tuple[str, ...]:
        """The files, each one once."""
        return tuple(dict.fromkeys(part.file for part in self.parts))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "worker": self.worker,
            "files": list(self.files),
            "parts": [part.to_dict() for part in self.parts],
            "rows": self.rows,
            "bytes": self.nbytes,
            "steps": self.steps,
        }


class Workers(Sequence[WorkerPlan]):
    """The plan of each worker, made on first access: of thousands of workers, only those looked at cost time.

    Args:
      make: worker -> its plan.
      count: W.
    """

    def __init__(self, make: Callable[[int], WorkerPlan], count: int) -> None:
        self._made, self._count = cache(make), count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> WorkerPlan: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[WorkerPlan]: ...
    def __getitem__(self, index: int | slice) -> WorkerPlan | Sequence[WorkerPlan]:
        if isinstance(index, slice):
            return [self[i] for i in range(self._count)[index]]
        return self._made(range(self._count)[index])


@dataclass(frozen=True)
class ShardPlan:
    """Who reads what; `Dataset.explain(num_workers=...)` prints it.

    Args:
      policy: the policy that is applied.
      asked: the policy in the options, or the one that was asked about.
      reason: a code: why this policy is applied.
      sentence: the same in words, with advice where something could be better.
      num_workers: W.
      replicas_per_worker: R.
      tail: what happens if the last batches are not full.
      reads: "own" if workers read only what they deliver, "whole files" if they read what others read too, or "memory".
      workers: the plan of each.
    """

    policy: str
    asked: str
    reason: str
    sentence: str
    num_workers: int
    replicas_per_worker: int
    tail: str
    reads: str
    workers: Sequence[WorkerPlan] = field(repr=False)

    @cached_property
    def steps(self) -> int | None:
        """The number of steps, the same for every worker; None if unknown, -1 if there is no end."""
        most = 0
        for worker in self.workers:
            if worker.steps is None or worker.steps < 0:
                return worker.steps
            most = max(most, worker.steps)
        return most

    @property
    def end(self) -> str:
        """How workers know when the data ends: "beforehand", "agreed" at run time, or "endless"."""
        return "agreed" if self.steps is None else "endless" if self.steps < 0 else "beforehand"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, all workers included."""
        names = (
            "policy", "asked", "reason", "sentence", "num_workers", "replicas_per_worker", "steps", "end", "tail", "reads",
        )  # fmt: skip
        return {**{name: getattr(self, name) for name in names}, "workers": [w.to_dict() for w in self.workers]}

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=indent)

    def _repr_html_(self) -> str:
        """What notebooks show: what each worker reads, as bars."""
        return html("plan", self)

    def __str__(self) -> str:
        # Of very many workers only those shown are planned: planning all of them would take too long for a print.
        looked = self if len(self.workers) <= _COUNTED else replace(self, workers=self.workers[:_SHOWN])
        where = "on every worker" if looked is self else f"on the first {_SHOWN} workers"
        steps = {"beforehand": f"{looked.steps} {where}, known beforehand", "endless": "without end"}
        how = steps.get(looked.end, "not known beforehand: workers agree on the end of data at run time")
        lines = [
            f"shards: {workers_of(self.num_workers, self.replicas_per_worker)}, policy {self.policy}",
            f"  why:   {self.sentence}",
            f"  steps: {how}",
            f"  tail:  {self.tail}",
        ]
        workers = self.workers[:_SHOWN]
        rows = [("worker", "files", "rows", "bytes", "steps", "reads")]
        rows += [
            (
                str(w.worker),
                str(len(w.files)),
                _number(w.rows),
                _number(w.nbytes),
                _number(w.steps),
                ", ".join(map(str, w.parts[:_PARTS]))
                + (f" and {len(w.parts) - _PARTS} more" if len(w.parts) > _PARTS else ""),
            )
            for w in workers
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        for *cells, reads in rows:
            line = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
            lines.append(f"  {line}  {reads}".rstrip())
        if len(self.workers) > _SHOWN:
            lines.append(f"  ... and {len(self.workers) - _SHOWN} workers more")
        return "\n".join(lines)


def workers_of(workers: int, replicas: int) -> str:
    """How many there are, in words.

    >>> workers_of(2, 1), workers_of(1, 3)
    ('2 workers with 1 replica each', '1 worker with 3 replicas')
    """
    several = workers != 1
    return f"{workers} worker{'s' * several} with {replicas} replica{'s' * (replicas != 1)}{' each' * several}"


def _number(value: int | None) -> str:
    return "?" if value is None else "endless" if value < 0 else f"{value:,}"


# ----------------------------------------------------------------------------
# A plan in a few numbers, so that plans for several numbers of workers can stand side by side.
# ----------------------------------------------------------------------------


LeastAndMost = tuple[int, int] | None
"""The least and the most that a worker has; None if that is not known, or if there is no end."""


@dataclass(frozen=True)
class PlanSummary:
    """What W workers do, in a few numbers.

    Args:
      num_workers: W.
      policy: the policy that is applied.
      reads: "own", "whole files" or "memory", as in `ShardPlan`.
      steps: of every worker; None if they are agreed on at run time, -1 if there is no end.
      files: of a worker, the fewest and the most.
      rows: that a worker delivers.
      bytes: that a worker reads.
      total_bytes: that all workers read together.
      total_rows: that all workers deliver together.
      idle: workers that deliver no row; None if rows are not counted.
    """

    num_workers: int
    policy: str
    reads: str
    steps: int | None
    files: LeastAndMost
    rows: LeastAndMost
    bytes: LeastAndMost
    total_bytes: int | None
    total_rows: int | None
    idle: int | None

    @property
    def balance(self) -> float | None:
        """The mean bytes of a worker as a part of the most that one reads, or else of rows: 1 is even; None if not known."""
        for span, total in ((self.bytes, self.total_bytes), (self.rows, self.total_rows)):
            if span is not None and total:
                return total / self.num_workers / span[1]
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "balance": self.balance}


def summary_of(plan: ShardPlan) -> PlanSummary:
    """The summary of a plan; all of its workers are planned for it.

    >>> import distinput as di
    >>> from distinput.data.experimental import shard_plan
    >>> told = summary_of(shard_plan(di.data.Dataset.range(10).batch(4), num_workers=4))
    >>> told.rows, told.steps, told.idle
    ((2, 3), 3, 0)
    """
    workers = list(plan.workers)
    rows = _known([worker.rows for worker in workers])
    nbytes = _known([worker.nbytes for worker in workers])
    return PlanSummary(
        plan.num_workers,
        plan.policy,
        plan.reads,
        plan.steps,
        _span([len(worker.files) for worker in workers]),
        _span(rows),
        _span(nbytes),
        None if nbytes is None else sum(nbytes),
        None if rows is None else sum(rows),
        None if rows is None else rows.count(0),
    )


def _known(values: Sequence[int | None]) -> list[int] | None:
    found = [value for value in values if value is not None and value >= 0]
    return found if len(found) == len(values) else None


def _span(values: Sequence[int] | None) -> LeastAndMost:
    return None if not values else (min(values), max(values))
