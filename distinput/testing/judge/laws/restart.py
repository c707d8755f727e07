# SPDX-License-Identifier: Apache-2.0
"""From the state after any step exactly the rest follows."""

from typing import Any

from distinput.testing.judge.delivery import Difference, JobPasses, RankPass, compared
from distinput.testing.judge.finding import Ruling, broken, kept, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.laws.same_order import first_difference
from distinput.testing.judge.play import Walk
from distinput.testing.judge.trial import Trial

__all__ = ["MOST_STOPS", "restart"]

MOST_STOPS = 128
"""A job with more steps is stopped after so many of them, spread evenly."""


def restart(trial: Trial) -> Ruling:
    """All ranks stop after a step; new loaders that get their states deliver what would have followed.

    What is compared is the pass whose states these are, so a loader is not blamed twice for what it loses anyway. After the
    last step a loader may go on with nothing or with a whole epoch: its state may be that of the next one.
    """
    return trial.over_jobs(lambda job: _restarts(trial, job))


def _restarts(trial: Trial, job: Job) -> Ruling:
    walks = trial.walk(job)
    if isinstance(walks, Ruling):
        return walks
    states = [state for walk in walks for state in walk.states]
    size: dict[str, Any] = {"state_bytes": max((len(state.data) for state in states), default=0)}
    size |= {"state": next((state.kind for state in states), "")}
    differences: dict[int, Difference] = {}
    other_order: dict[int, str] = {}
    no: Ruling | None = None
    steps = max(len(walk.whole.steps) for walk in walks)
    stops = trial.stops_of(steps, MOST_STOPS)
    for stop in stops:
        found = trial.rest(job, [walk.state(stop) for walk in walks])
        if found.refused:
            no = no or refused(f"stopped after step {stop}: {found.trouble}", **size)
            continue
        if stop == steps and found.ids and not compared(found.ids, _whole(walks, stop, JobPasses(()))):
            continue  # the state after the last step is that of the next epoch
        expected = JobPasses(tuple([RankPass(walk.after(stop)) for walk in walks]))
        wrong = compared(_whole(walks, stop, found), _whole(walks, stop, expected))
        order = found.trouble or first_difference(found, expected)
        if wrong:
            differences[stop] = wrong
        elif order:
            other_order[stop] = order
    counts = {str(stop): [len(each.lost), len(each.again)] for stop, each in differences.items()}
    if differences:
        stop, wrong = max(differences.items(), key=lambda item: len(item[1].lost) + len(item[1].again))
        where = f"stopped after step {stop} ({len(differences)} of {len(stops)} stops are wrong): {wrong}"
        return broken(where, stops=counts, lost=len(wrong.lost), again=len(wrong.again), **size)
    if other_order:
        stop, order = next(iter(other_order.items()))
        return broken(f"stopped after step {stop}, the rest comes in another order: {order}", stops=counts, **size)
    if no is not None:
        return no
    says = f"after each of {len(stops)} steps" if len(stops) > 1 else f"after step {stops[0] if stops else 0}"
    return kept(f"exactly the rest {says}; a state has {size['state_bytes']} bytes of {size['state']}", **size)


def _whole(walks: tuple[Walk, ...], stop: int, after: JobPasses) -> list[object]:
    return [each for walk in walks for step in walk.before(stop) for each in step.ids] + [*after.ids]
