# SPDX-License-Identifier: Apache-2.0
"""From a state that was taken after a restart exactly the rest follows."""

from distinput.testing.judge.delivery import JobPasses, RankPass, compared
from distinput.testing.judge.finding import Ruling, broken, kept, not_judged, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.laws.same_order import first_difference
from distinput.testing.judge.play import Play, Walk
from distinput.testing.judge.trial import Trial

__all__ = ["MOST_STOPS", "restart_twice"]

MOST_STOPS = 6
"""A job with more steps is stopped after so many of them, spread evenly."""


def restart_twice(trial: Trial) -> Ruling:
    """All ranks stop after a step, go on from their states, stop again after each further step, and go on once more.

    A loader is not blamed twice: where its first restart is wrong already, this law does not judge it.
    """
    return trial.over_jobs(lambda job: _restarts(trial, job))


def _restarts(trial: Trial, job: Job) -> Ruling:
    walks = trial.walk(job)
    if isinstance(walks, Ruling):
        return walks
    tried, no = 0, None
    for stop in trial.stops_of(max(len(walk.whole.steps) for walk in walks) - 1, MOST_STOPS):
        seconds = trial.run(Play(job, job.all_ranks, tuple([walk.state(stop) for walk in walks]), save=True))
        second = JobPasses(tuple([walk.whole for walk in seconds]))
        if second.trouble or any(walk.stateless for walk in seconds):
            no = no or refused(f"stopped after step {stop}: {second.trouble or 'there is no state after a restart'}")
            continue
        if second.order != JobPasses(tuple([RankPass(walk.after(stop)) for walk in walks])).order:
            return not_judged(f"stopped after step {stop}, the first restart is wrong already")
        for again in _between(max(len(walk.whole.steps) for walk in seconds)):
            tried += 1
            wrong = _wrong(trial, job, seconds, again)
            if wrong:
                return broken(
                    f"stopped after step {stop}, and {again} steps later once more: {wrong}", stops=[stop, again]
                )
    if no is not None:
        return no
    return kept(f"exactly the rest after {tried} second stops") if tried else not_judged("too few steps to stop twice")


def _between(steps: int) -> list[int]:
    """Where a second life is stopped: after its first step, and in its middle."""
    return sorted({1, steps // 2} & set(range(1, steps)))


def _wrong(trial: Trial, job: Job, seconds: tuple[Walk, ...], stop: int) -> str | None:
    """What is wrong with a third life, in words."""
    found = trial.rest(job, [walk.state(stop) for walk in seconds])
    expected = JobPasses(tuple([RankPass(walk.after(stop)) for walk in seconds]))
    difference = compared(found.ids, expected.ids)
    return str(difference) if difference else found.trouble or first_difference(found, expected)
