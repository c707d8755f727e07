# SPDX-License-Identifier: Apache-2.0
"""A rank is killed; a new process goes on from the last state that was saved."""

from distinput.testing.judge.delivery import JobPasses, RankPass
from distinput.testing.judge.finding import Ruling, broken, kept, not_judged, refused
from distinput.testing.judge.laws.same_order import first_difference
from distinput.testing.judge.play import Play
from distinput.testing.judge.processes import unpicklable
from distinput.testing.judge.trial import Trial
from distinput.testing.judge.watch import Still

__all__ = ["rank_killed"]


def rank_killed(trial: Trial) -> Ruling:
    """The last rank of the last job is killed by SIGKILL in the middle; a new process goes on with its last state.

    It gets the step that was under way again, and then all others. Ranks that are played at once are all stopped, as `torchrun`
    does it, and go on with their states after the same step.
    """
    job = trial.jobs[-1]
    walks = trial.walk(job)
    if isinstance(walks, Ruling):
        return walks
    rank, whole = job.ranks - 1, walks[-1].whole
    if len(whole.steps) < 2:
        return not_judged(f"{job}: the last rank has fewer than two steps")
    why = unpicklable(trial.make, trial.ids)
    if why:
        return not_judged(why)
    after, ranks = len(whole.steps) // 2, trial.company(job, rank)
    where = f"{job}: killed after step {after} of rank {rank}"
    try:
        first = trial.run_away(Play(job, ranks, save=True, kill="rank", victim=rank, after=after)).walks[-1]
        if not first.killed:
            return broken(f"{job}: a new run did not come to step {after}: {first.whole.error or 'it ended'}")
        states = [walk.state(after) for walk in walks[:-1]] + [first.state(after)]
        rests = [walk.whole for walk in trial.run_away(Play(job, ranks, tuple(states))).walks]
    except Still as error:
        return broken(f"{where}, gone on with: {error}")
    found = JobPasses((*rests[:-1], RankPass(first.whole.steps + rests[-1].steps)))
    wrong = next((each.error for each in rests if each.error is not None), None)
    if wrong is not None:
        return (refused if JobPasses(tuple(rests)).refused else broken)(f"{where}, gone on with: {wrong}")
    expected = JobPasses((*[RankPass(walks[each].after(after)) for each in ranks[:-1]], whole))
    wrong = first_difference(found, expected, ranks[0])
    return broken(f"{where}, gone on with: {wrong}") if wrong else kept("a new process goes on with exactly the rest")
