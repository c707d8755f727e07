# SPDX-License-Identifier: Apache-2.0
"""No thread, process, open file or shared memory is left behind."""

import contextlib
from functools import partial
from typing import Any

from distinput.testing.judge.finding import Ruling, broken, kept, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.play import Play
from distinput.testing.judge.trial import Trial
from distinput.testing.left_behind import check_uses

__all__ = ["nothing_left"]

_SECONDS = 5.0
_USES = {"the end": None, "an iterator abandoned after one step": 1}


def nothing_left(trial: Trial) -> Ruling:
    """After a pass that came to its end, and after one that was abandoned, the first job has left nothing.

    In this process, rank 0 has left no thread, process or open file. Ranks in other processes have left no process and no
    shared memory when these have ended.
    """
    job = trial.jobs[0]
    delivery = trial.deliver(job)
    if delivery.refused:
        return refused(str(delivery.trouble))
    return _here(trial, job) if trial.play == "in turn" else _away(trial, job)


def _here(trial: Trial, job: Job) -> Ruling:
    trial.at(f"rank 0 of {job}, looking for what it leaves behind")

    def use(count: int, loader: Any) -> None:
        with contextlib.suppress(Exception):  # which other laws look at
            for _ in zip(range(count), loader, strict=False):
                trial.beat()

    uses = {how: partial(use, most or job.most_steps) for how, most in _USES.items()}
    try:
        check_uses(uses, lambda: trial.make(job, 0), min(_SECONDS, trial.patience / 4))
    except AssertionError as error:
        return broken(str(error).removeprefix("nothing left behind: "))
    return kept("no thread, process or open file is left")


def _away(trial: Trial, job: Job) -> Ruling:
    for how, most in _USES.items():
        left = trial.run_away(Play(job, job.all_ranks, most=most)).left
        if left:
            return broken(f"{job}: after {how} there are still {list(left)}")
    return kept("no process or shared memory is left")
