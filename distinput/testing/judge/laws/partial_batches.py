# SPDX-License-Identifier: Apache-2.0
"""Only the last step is partial, it has just the rows that are left, and looks like all others."""

from distinput.testing.judge.delivery import JobPasses
from distinput.testing.judge.finding import Ruling, broken, kept, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.trial import Trial

__all__ = ["partial_batches"]


def partial_batches(trial: Trial) -> Ruling:
    """The steps of all ranks together are full but for the last, which has the rows that are left, neither fewer nor padded."""

    def check(job: Job) -> Ruling:
        delivery = trial.deliver(job)
        if delivery.refused:
            return refused(str(delivery.trouble))
        rows = [[0 if step is None else len(step.ids) for step in steps] for steps in delivery.by_step()]
        wrong = _sizes(job, rows) or _looks(delivery)
        return broken(wrong, rows=rows) if wrong else kept("only the last step is partial", rows=rows)

    return trial.over_jobs(check)


def _sizes(job: Job, rows: list[list[int]]) -> str | None:
    full: int = job.global_batch
    last = job.records - (job.steps - 1) * full
    for number, each in enumerate(rows):
        if max(each) > job.batch:
            return f"step {number} has {each} rows on the ranks, more than {job.batch}"
        if number < job.steps - 1 and sum(each) != full:
            return f"step {number} has {each} rows on the ranks, {full} in all are due"
        if number == job.steps - 1 and sum(each) != last:
            return f"the last step, {number}, has {each} rows on the ranks, {last} in all are left for it"
        if number >= job.steps and any(each):
            return f"there are {len(rows)} steps, {job.steps} are due; step {number} has {each} rows on the ranks"
    if len(rows) < job.steps:
        left = job.records - sum([sum(each) for each in rows])
        return (
            f"there are {len(rows)} steps, {job.steps} are due; the partial one never came, and {left} rows are missing"
        )
    return None


def _looks(delivery: JobPasses) -> str | None:
    steps = [
        (rank, number, step) for rank, each in enumerate(delivery.passes) for number, step in enumerate(each.steps)
    ]
    if not steps:
        return None
    look = max(steps, key=lambda at: len(at[2].ids))[2].look
    for rank, number, step in steps:
        if step.look != look:
            return f"step {number} of rank {rank}, of {len(step.ids)} rows, is {step.look}, full ones are {look}"
    return None
