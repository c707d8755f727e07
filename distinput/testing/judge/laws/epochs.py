# SPDX-License-Identifier: Apache-2.0
"""The second epoch has each record once as well, in an order of its own where there is a seed."""

from dataclasses import replace

from distinput.testing.judge.delivery import JobPasses, compared
from distinput.testing.judge.finding import Ruling, broken, kept, not_judged, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.laws.seeds import FEW
from distinput.testing.judge.play import Play
from distinput.testing.judge.trial import Trial

__all__ = ["epochs"]


def epochs(trial: Trial) -> Ruling:
    """The second epoch is whole if the first one is; with a seed, in another order.

    The second epoch is that of a loader made with `epoch=1` where the function takes an epoch. Otherwise it is the second pass
    over the same loader, after `set_epoch(1)` where the loader has it. A loader is not blamed for what it loses in the
    first one as well.
    """

    def check(job: Job) -> Ruling:
        two = _two(trial, job)
        if two is None:
            return not_judged("the loader is an iterator, of one pass, and make_loader takes no epoch")
        first, second = two
        if first.refused:
            return refused(str(first.trouble))
        if second.trouble and not first.trouble:
            return broken(f"in the second epoch {second.trouble}")
        wrong = compared(second.ids, trial.known)
        if wrong and not compared(first.ids, trial.known):
            return broken(f"in the second epoch: {wrong}", lost=len(wrong.lost), again=len(wrong.again))
        shuffled = trial.make.takes("seed") and len(trial.known) >= FEW
        if shuffled and first.order == second.order:
            return broken("both epochs have the same order")
        return kept("another order in each epoch" if shuffled else "the second epoch is as whole as the first")

    return trial.over_jobs(check)


def _two(trial: Trial, job: Job) -> tuple[JobPasses, JobPasses] | None:
    """Both epochs; None where there can be but one."""
    if trial.make.takes("epoch"):
        return trial.deliver(job), trial.deliver(replace(job, epoch=1))
    walks = trial.run(Play(job, job.all_ranks, epochs=2))
    if any(walk.one_pass for walk in walks):
        return None
    return JobPasses(tuple([walk.whole for walk in walks])), JobPasses(tuple([walk.passes[-1] for walk in walks]))
