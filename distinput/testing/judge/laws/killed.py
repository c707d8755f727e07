# SPDX-License-Identifier: Apache-2.0
"""A rank is killed; a new process goes on from the last state that was saved."""

import pickle

from distinput.testing.judge.delivery import Delivery, Pass
from distinput.testing.judge.finding import Finding, broken, kept, not_judged, refused
from distinput.testing.judge.laws.same_order import first_difference
from distinput.testing.judge.mortal import Task, live
from distinput.testing.judge.states import NoState
from distinput.testing.judge.trial import Trial

__all__ = ["picklable", "rank_killed"]


def rank_killed(trial: Trial) -> Finding:
    """The last rank of the last job is killed by SIGKILL in the middle; a new process goes on with its last state.

    It gets the step that was under way again, and then all others.
    """
    job = trial.jobs[-1]
    try:
        walk = trial.walk(job)[-1]
    except NoState as error:
        return not_judged(str(error))
    except Exception as error:  # noqa: BLE001 - whatever a loader raises is what is judged
        return refused(f"{job}: {type(error).__name__}: {error}")
    if len(walk.whole.steps) < 2:
        return not_judged(f"{job}: the last rank has fewer than two steps")
    rank, after = job.ranks - 1, len(walk.whole.steps) // 2
    why = picklable(trial)
    if why:
        return not_judged(why)
    trial.at(f"rank {rank} of {job}, in a process that is killed after step {after}")
    first = live(Task(trial.make, trial.ids, job, rank, kill="rank", after=after), trial.patience, trial.beat)
    if not first.killed:
        return broken(f"{job}: a process that reads alone did not come to step {after}: {first.said or 'it ended'}")
    second = live(Task(trial.make, trial.ids, job, rank, first.state), trial.patience, trial.beat)
    where = f"{job}: killed after step {after} of rank {rank}"
    if second.hung is not None:
        return broken(f"{where}, gone on with: no step for {second.hung:g} seconds")
    if second.said:
        return (broken if second.steps else refused)(f"{where}, gone on with: {second.said}")
    found, expected = Delivery((Pass(first.steps + second.steps),)), Delivery((walk.whole,))
    wrong = first_difference(found, expected, rank)
    return broken(f"{where}, gone on with: {wrong}") if wrong else kept("a new process goes on with exactly the rest")


def picklable(trial: Trial) -> str | None:
    """Why the loader cannot be made in another process; None if it can."""
    try:
        pickle.dumps((trial.make, trial.ids))
    except Exception as error:  # noqa: BLE001 - pickle raises errors of many kinds
        return f"make_loader cannot be made in another process ({error}); make it a function of a module"
    return None
