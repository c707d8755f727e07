# SPDX-License-Identifier: Apache-2.0
"""A job that was stopped goes on with other ranks."""

from distinput.testing.judge.delivery import compared
from distinput.testing.judge.finding import Ruling, broken, kept, not_judged, refused
from distinput.testing.judge.job import Job
from distinput.testing.judge.trial import Trial

__all__ = ["MOST_STOPS", "elastic_restart"]

MOST_STOPS = 16


def elastic_restart(trial: Trial) -> Ruling:
    """Stopped on some ranks and gone on with on others, an epoch still has each record once.

    The rows of a step stay the same. Rank r gets the state of rank r modulo the number of ranks that saved.
    """

    def check(job: Job) -> Ruling:
        targets = [on for on in map(job.on, trial.others) if on is not None and on.ranks != job.ranks]
        if not targets:
            return not_judged("there is no other number of ranks that divides the rows of a step")
        walks = trial.walk(job)
        if isinstance(walks, Ruling):
            return walks
        tried = 0
        no: Ruling | None = None
        steps = max(len(walk.whole.steps) for walk in walks)
        for stop in trial.stops_of(steps, MOST_STOPS):
            before = [each for walk in walks for step in walk.before(stop) for each in step.ids]
            for other in targets:
                found = trial.rest(other, [walks[rank % job.ranks].state(stop) for rank in other.all_ranks])
                where = f"stopped after step {stop}, gone on with on {other.ranks}"
                if found.refused:
                    no = no or refused(f"{where}: {found.trouble}")
                    continue
                wrong = compared(before + found.ids, trial.known)
                if stop == steps and found.ids and not compared(found.ids, trial.known):
                    continue  # the state after the last step is that of the next epoch
                if wrong or found.trouble:
                    counts = {"lost": len(wrong.lost), "again": len(wrong.again)}
                    return broken(f"{where}: {found.trouble or wrong}", stop=stop, to=other.ranks, **counts)
                tried += 1
        return no or kept(f"each record once, over {tried} changes of ranks", changes=tried)

    return trial.over_jobs(check)
