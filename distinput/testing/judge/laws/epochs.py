# SPDX-License-Identifier: Apache-2.0
"""The second epoch has each record once as well, in an order of its own where there is a seed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from distinput.testing.judge.delivery import Delivery, compared
from distinput.testing.judge.finding import Finding, broken, kept, not_judged, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.laws.seeds import FEW
from distinput.testing.judge.trial import Trial

__all__ = ["epochs"]


class _OnePass(Exception):
    """The loader is its own iterator, which has one pass."""


def epochs(trial: Trial) -> Finding:
    """The second epoch is whole if the first one is; with a seed, in another order.

    The second epoch is that of a loader made with `epoch=1` where the function takes an epoch. Otherwise it is the second pass
    over the same loader, after `set_epoch(1)` where the loader has it. A loader is not blamed for what it loses in the
    first one as well.
    """

    def check(job: Job) -> Finding:
        first, second = _two(trial, job)
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

    try:
        return trial.over_jobs(check)
    except _OnePass:
        return not_judged("the loader is an iterator, of one pass, and make_loader takes no epoch")


def _two(trial: Trial, job: Job) -> tuple[Delivery, Delivery]:
    if trial.make.takes("epoch"):
        return trial.deliver(job), trial.deliver(replace(job, epoch=1))
    passes = [_passes(trial, job, rank) for rank in range(job.ranks)]
    return Delivery(tuple([one for one, _ in passes])), Delivery(tuple([other for _, other in passes]))


def _passes(trial: Trial, job: Job, rank: int) -> tuple[Any, Any]:
    made: list[Any] = []

    def loader(epoch: int) -> Callable[[], Any]:
        def make() -> Any:
            if not made:
                made.append(trial.make(job, rank))
            if callable(getattr(made[0], "set_epoch", None)):
                made[0].set_epoch(epoch)
            if epoch and callable(getattr(made[0], "__next__", None)):
                raise _OnePass
            return made[0]

        return make

    first = trial.read(job, rank, loader(0))
    second = trial.read(job, rank, loader(1)) if made else first
    if isinstance(second.error, _OnePass):
        raise second.error
    return first, second
