# SPDX-License-Identifier: Apache-2.0
"""A loader that is made again in the same way gives the same steps."""

from distinput.testing.judge.delivery import JobPasses
from distinput.testing.judge.finding import Ruling, broken, kept, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.trial import Trial

__all__ = ["first_difference", "same_order"]


def same_order(trial: Trial) -> Ruling:
    """Two loaders made alike, with the same seed and epoch, give the same steps to the same ranks."""

    def check(job: Job) -> Ruling:
        first = trial.deliver(job)
        if first.refused:
            return refused(str(first.trouble))
        wrong = first_difference(trial.deliver(job, again=True), first)
        return broken(f"made again, {wrong}") if wrong else kept("made again, the same steps")

    return trial.over_jobs(check)


def first_difference(found: JobPasses, expected: JobPasses, first_rank: int = 0) -> str | None:
    """The first step that differs, in words; None where all are the same."""
    for rank, (one, other) in enumerate(zip(found.order, expected.order, strict=True), first_rank):
        for number in range(max(len(one), len(other))):
            a, b = (list(each[number]) if number < len(each) else None for each in (one, other))
            if a != b:
                return f"step {number} of rank {rank} is {_said(a)}, it was {_said(b)}"
    return None


def _said(ids: list[object] | None) -> str:
    return "missing" if ids is None else str(ids[:8]).replace("]", ", ...]" if len(ids) > 8 else "]")
