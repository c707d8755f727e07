# SPDX-License-Identifier: Apache-2.0
"""A process of the loader is killed: that is an error, or nothing is lost; the rank neither hangs nor ends early."""

from dataclasses import replace

from distinput.testing.judge.delivery import compared
from distinput.testing.judge.finding import Ruling, broken, kept, not_judged, refused
from distinput.testing.judge.play import Play
from distinput.testing.judge.processes import unpicklable
from distinput.testing.judge.trial import Trial
from distinput.testing.judge.watch import Still

__all__ = ["worker_killed"]


def worker_killed(trial: Trial) -> Ruling:
    """A worker process of rank 0 is killed by SIGKILL after its first step, in the first job."""
    numbers = [number for number in trial.workers if number]
    if not trial.make.takes("workers") or not numbers:
        return not_judged("make_loader takes no workers, or none were asked for")
    why = unpicklable(trial.make, trial.ids)
    if why:
        return not_judged(why)
    plain = trial.jobs[0]
    job = replace(plain, workers=numbers[-1])
    try:
        walk = trial.run_away(Play(job, trial.company(job, 0), kill="worker", after=1)).walks[0]
    except Still as error:
        return broken(f"after a worker was killed: {error}", hung=trial.patience)
    said = walk.whole.error
    if not walk.killed:
        return refused(f"{job}: {said}") if said else not_judged("its workers are no processes of their own")
    if said:
        return kept(f"an error says so: {said}")
    wrong = compared(walk.whole.ids, trial.deliver(plain).passes[0].ids)
    if wrong:
        return broken(f"{job}: after a worker was killed, and without an error: {wrong}", lost=len(wrong.lost))
    return kept("the rank got all of its records")
