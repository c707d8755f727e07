# SPDX-License-Identifier: Apache-2.0
"""In one epoch every record is delivered to exactly one rank."""

from distinput.testing.judge.delivery import compared
from distinput.testing.judge.finding import Ruling, broken, kept, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.trial import Trial

__all__ = ["exactly_once"]


def exactly_once(trial: Trial) -> Ruling:
    """All ranks together get each record once, and come to an end."""

    def check(job: Job) -> Ruling:
        delivery = trial.deliver(job)
        if delivery.refused:
            return refused(str(delivery.trouble))
        wrong = compared(delivery.ids, trial.known)
        figures = {"lost": len(wrong.lost), "again": len(wrong.again)}
        if delivery.trouble:
            return broken(f"{delivery.trouble}; {wrong}", **figures)
        return broken(str(wrong), **figures) if wrong else kept("each record once", **figures)

    return trial.over_jobs(check)
