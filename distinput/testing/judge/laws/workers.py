# SPDX-License-Identifier: Apache-2.0
"""Threads and processes of a loader change nothing."""

from dataclasses import replace

from distinput.testing.judge.finding import Ruling, broken, kept, not_judged, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.laws.same_order import first_difference
from distinput.testing.judge.trial import Trial

__all__ = ["workers"]


def workers(trial: Trial) -> Ruling:
    """With any number of workers the ranks get the same steps as with none."""
    if not trial.make.takes("workers"):
        return not_judged("make_loader takes no workers")
    if not trial.workers:
        return not_judged("no numbers of workers were asked for")

    def check(job: Job) -> Ruling:
        expected = trial.deliver(job)
        for number in trial.workers:
            found = trial.deliver(replace(job, workers=number))
            if expected.refused or found.refused:
                return refused(f"{number} workers: {expected.trouble or found.trouble}")
            wrong = found.trouble or first_difference(found, expected)
            if wrong:
                return broken(f"with {number} workers instead of none, {wrong}", workers=number)
        return kept("the same steps with any number of workers")

    return trial.over_jobs(check)
