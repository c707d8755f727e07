# SPDX-License-Identifier: Apache-2.0
"""A job that is stopped several times, and continues with other ranks each time."""

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Any

from distinput.testing.judge.delivery import Ids, compared, ids_of
from distinput.testing.judge.job import Job, Maker
from distinput.testing.judge.play import restored, saved


def check_interrupted(
    make_loader: Callable[..., Any], job: Job, stops: Sequence[tuple[int, int]], *, ids: Ids = ids_of
) -> None:
    """Every record comes once, however often a job is stopped and with whatever ranks it goes on.

    `distinput.testing.strategies` draws jobs, and the stops of one.

    Args:
      make_loader: makes the loader of a rank, as `judge` takes it.
      job: the job.
      stops: (steps, ranks): after so many steps, go on with so many ranks, which must divide the rows of a step. Rank r gets
        the state of rank r modulo the number of ranks that saved.
      ids: the records of a batch.

    Raises:
      AssertionError: a record is lost or comes again.
      ValueError: ranks that do not divide the rows of a step.

    >>> import distinput as di
    >>> def mine(records, rank, ranks, global_batch):
    ...     return di.data.Dataset.range(records).batch(global_batch).shard_batches(ranks, rank)
    >>> check_interrupted(mine, Job(records=23, ranks=2, batch=3), [(1, 3), (1, 1), (0, 2)])
    """
    make = Maker(make_loader, job.records)
    loaders = [make(job, rank) for rank in range(job.ranks)]
    passes = [iter(loader) for loader in loaders]
    found: list[Hashable] = []
    for steps, ranks in stops:
        found += _taken(passes, steps, ids)
        states = [saved(loader, batches) for loader, batches in zip(loaders, passes, strict=True)]
        other = job.on(ranks)
        if other is None:
            raise ValueError(f"check_interrupted: {ranks} ranks must divide the {job.global_batch} rows of a step")
        loaders = [make(other, rank) for rank in range(ranks)]
        passes = [restored(loader, states[rank % len(states)]) for rank, loader in enumerate(loaders)]
        job = other
    found += _taken(passes, job.most_steps, ids)
    wrong = compared(found, range(job.records))
    if wrong:
        raise AssertionError(f"{job}, interrupted by {list(stops)}: {wrong}")


def _taken(passes: Sequence[Any], steps: int, ids: Ids) -> list[Hashable]:
    return [each for batches in passes for batch in islice(batches, steps) for each in ids(batch)]
