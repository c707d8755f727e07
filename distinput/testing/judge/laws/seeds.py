# SPDX-License-Identifier: Apache-2.0
"""Another seed gives another order, on all ranks alike."""

from dataclasses import replace

from distinput.testing.judge.delivery import compared
from distinput.testing.judge.finding import Ruling, broken, kept, not_judged, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.trial import Trial

__all__ = ["FEW", "seeds"]

FEW = 8
"""With fewer records two orders may well be the same by chance."""


def seeds(trial: Trial) -> Ruling:
    """With another seed the records come in another order, and the same ones come."""
    if not trial.make.takes("seed"):
        return not_judged("make_loader takes no seed")
    if len(trial.known) < FEW:
        return not_judged(f"there are fewer than {FEW} records")

    def check(job: Job) -> Ruling:
        first, second = trial.deliver(job), trial.deliver(replace(job, seed=job.seed + 1))
        if first.refused or second.refused:
            return refused(str(first.trouble or second.trouble))
        wrong = compared(second.ids, first.ids)
        if first.order == second.order:
            return broken("two seeds give the same order")
        if set(wrong.lost) | set(wrong.again) and not compared(first.ids, trial.known):
            return broken(f"with another seed: {wrong}", lost=len(wrong.lost), again=len(wrong.again))
        return kept("another order by another seed")

    return trial.over_jobs(check)
