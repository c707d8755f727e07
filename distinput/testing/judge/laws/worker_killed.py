# SPDX-License-Identifier: Apache-2.0
"""A process of the loader is killed: that is an error, or nothing is lost; the rank neither hangs nor ends early."""

from dataclasses import replace

from distinput.testing.judge.delivery import compared
from distinput.testing.judge.finding import Finding, broken, kept, not_judged, refused
from distinput.testing.judge.laws.killed import picklable
from distinput.testing.judge.mortal import Task, live
from distinput.testing.judge.trial import Trial

__all__ = ["worker_killed"]


def worker_killed(trial: Trial) -> Finding:
    """A worker process of rank 0 is killed by SIGKILL after its first step, in the first job."""
    numbers = [number for number in trial.workers if number]
    if not trial.make.takes("workers") or not numbers:
        return not_judged("make_loader takes no workers, or none were asked for")
    why = picklable(trial)
    if why:
        return not_judged(why)
    plain = trial.jobs[0]
    job = replace(plain, workers=numbers[-1])
    trial.at(f"rank 0 of {job}, a worker of which is killed")
    life = live(Task(trial.make, trial.ids, job, 0, kill="worker", after=1), trial.patience, trial.beat)
    if not life.killed and life.said:
        return refused(f"{job}: {life.said}")
    if not life.killed:
        return not_judged("its workers are no processes of their own")
    if life.hung is not None:
        return broken(f"{job}: after a worker was killed there was no step for {life.hung:g} seconds", hung=life.hung)
    if life.said:
        return kept(f"an error says so: {life.said}")
    wrong = compared([each for step in life.steps for each in step.ids], trial.deliver(plain).passes[0].ids)
    if wrong:
        return broken(f"{job}: after a worker was killed, and without an error: {wrong}", lost=len(wrong.lost))
    return kept("the rank got all of its records")
