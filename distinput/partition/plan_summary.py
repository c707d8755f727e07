# SPDX-License-Identifier: Apache-2.0
"""A plan in a few numbers, so that plans for several numbers of workers can stand side by side."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from distinput.partition.shard_plan import ShardPlan

__all__ = ["PlanSummary", "summary_of"]

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
