# SPDX-License-Identifier: Apache-2.0
"""All ranks have the same number of steps, or collectives in the loop would wait for one that has ended."""

from distinput.testing.judge.finding import Ruling, broken, kept, not_judged, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.trial import Trial

__all__ = ["equal_steps"]


def equal_steps(trial: Trial) -> Ruling:
    """All ranks have the same number of steps; a rank without rows for a step has an empty batch in it."""

    def check(job: Job) -> Ruling:
        delivery = trial.deliver(job)
        if delivery.refused:
            return refused(str(delivery.trouble))
        steps = delivery.steps
        if len(set(steps)) > 1:
            return broken(f"the ranks have {steps} steps", steps=steps)
        return kept("the same number on all ranks", steps=steps)

    if all(job.ranks == 1 for job in trial.jobs):
        return not_judged("there is one rank")
    return trial.over_jobs(check)
