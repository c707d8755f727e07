# SPDX-License-Identifier: Apache-2.0
"""The laws of loaders: functions from a trial to a ruling."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from distinput.testing.judge.delivery import Difference, JobPasses, RankPass, compared
from distinput.testing.judge.job import Job
from distinput.testing.judge.play import Play, Walk
from distinput.testing.judge.processes import Still, unpicklable
from distinput.testing.judge.report import Ruling, broken, kept, not_judged, refused
from distinput.testing.judge.trial import Trial, of_each_job
from distinput.testing.left_behind import check_uses

# ----------------------------------------------------------------------------
# In one epoch every record is delivered to exactly one rank.
# ----------------------------------------------------------------------------


@of_each_job
def exactly_once(trial: Trial, job: Job) -> Ruling:
    """All ranks together get each record once, and come to an end."""
    delivery = trial.given(job)
    wrong = compared(delivery.ids, trial.known)
    figures = {"lost": len(wrong.lost), "again": len(wrong.again)}
    if delivery.trouble:
        return broken(f"{delivery.trouble}; {wrong}", **figures)
    return broken(str(wrong), **figures) if wrong else kept("each record once", **figures)


# ----------------------------------------------------------------------------
# All ranks have the same number of steps, or collectives in the loop would wait for one that has ended.
# ----------------------------------------------------------------------------


@of_each_job
def equal_steps(trial: Trial, job: Job) -> Ruling:
    """All ranks have the same number of steps; a rank without rows for a step has an empty batch in it."""
    if all(job.ranks == 1 for job in trial.jobs):
        return not_judged("there is one rank")
    steps = trial.given(job).steps
    if len(set(steps)) > 1:
        return broken(f"the ranks have {steps} steps", steps=steps)
    return kept("the same number on all ranks", steps=steps)


# ----------------------------------------------------------------------------
# Only the last step is partial, it has just the rows that are left, and looks like all others.
# ----------------------------------------------------------------------------


@of_each_job
def partial_batches(trial: Trial, job: Job) -> Ruling:
    """The steps of all ranks together are full but for the last, which has the rows that are left, neither fewer nor padded."""
    delivery = trial.given(job)
    rows = [[0 if step is None else len(step.ids) for step in steps] for steps in delivery.by_step()]
    wrong = _sizes(job, rows) or _looks(delivery)
    return broken(wrong, rows=rows) if wrong else kept("only the last step is partial", rows=rows)


def _sizes(job: Job, rows: list[list[int]]) -> str | None:
    full: int = job.global_batch
    last = job.records - (job.steps - 1) * full
    for number, each in enumerate(rows):
        if max(each) > job.batch:
            return f"step {number} has {each} rows on the ranks, more than {job.batch}"
        if number < job.steps - 1 and sum(each) != full:
            return f"step {number} has {each} rows on the ranks, {full} in all are due"
        if number == job.steps - 1 and sum(each) != last:
            return f"the last step, {number}, has {each} rows on the ranks, {last} in all are left for it"
        if number >= job.steps and any(each):
            return f"there are {len(rows)} steps, {job.steps} are due; step {number} has {each} rows on the ranks"
    if len(rows) < job.steps:
        left = job.records - sum([sum(each) for each in rows])
        return (
            f"there are {len(rows)} steps, {job.steps} are due; the partial one never came, and {left} rows are missing"
        )
    return None


def _looks(delivery: JobPasses) -> str | None:
    steps = [
        (rank, number, step) for rank, each in enumerate(delivery.passes) for number, step in enumerate(each.steps)
    ]
    if not steps:
        return None
    look = max(steps, key=lambda at: len(at[2].ids))[2].look
    for rank, number, step in steps:
        if step.look != look:
            return f"step {number} of rank {rank}, of {len(step.ids)} rows, is {step.look}, full ones are {look}"
    return None


# ----------------------------------------------------------------------------
# A loader that is made again in the same way gives the same steps.
# ----------------------------------------------------------------------------


@of_each_job
def same_order(trial: Trial, job: Job) -> Ruling:
    """Two loaders made alike, with the same seed and epoch, give the same steps to the same ranks."""
    first = trial.given(job)
    wrong = first_difference(trial.deliver(job, again=True), first)
    return broken(f"made again, {wrong}") if wrong else kept("made again, the same steps")


def first_difference(found: JobPasses, expected: JobPasses, first_rank: int = 0) -> str | None:
    """The first step that differs, in words; None where all are the same."""
    for rank, (one, other) in enumerate(zip(found.order, expected.order, strict=True), first_rank):
        for number in range(max(len(one), len(other))):
            a, b = (list(each[number]) if number < len(each) else None for each in (one, other))
            if a != b:
                return f"step {number} of rank {rank} is {_said(a)}, it was {_said(b)}"
    return None


def _said(ids: list[object] | None) -> str:
    return "missing" if ids is None else str(ids[:8]).replace("]", ", ...]" if len(ids) > 8 else "]")


# ----------------------------------------------------------------------------
# Another seed gives another order, on all ranks alike.
# ----------------------------------------------------------------------------


FEW = 8
"""With fewer records two orders may well be the same by chance."""


@of_each_job
def seeds(trial: Trial, job: Job) -> Ruling:
    """With another seed the records come in another order, and the same ones come."""
    if not trial.make.takes("seed"):
        return not_judged("make_loader takes no seed")
    if len(trial.known) < FEW:
        return not_judged(f"there are fewer than {FEW} records")
    first, second = trial.deliver(job), trial.deliver(replace(job, seed=job.seed + 1))
    if first.refused or second.refused:
        return refused(str(first.trouble or second.trouble))
    wrong = compared(second.ids, first.ids)
    if first.order == second.order:
        return broken("two seeds give the same order")
    if set(wrong.lost) | set(wrong.again) and not compared(first.ids, trial.known):
        return broken(f"with another seed: {wrong}", lost=len(wrong.lost), again=len(wrong.again))
    return kept("another order by another seed")


# ----------------------------------------------------------------------------
# The second epoch has each record once as well, in an order of its own where there is a seed.
# ----------------------------------------------------------------------------


@of_each_job
def epochs(trial: Trial, job: Job) -> Ruling:
    """The second epoch is whole if the first one is; with a seed, in another order.

    The second epoch is that of a loader made with `epoch=1` where the function takes an epoch. Otherwise it is the second pass
    over the same loader, after `set_epoch(1)` where the loader has it. A loader is not blamed for what it loses in the
    first one as well.
    """
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


def _two(trial: Trial, job: Job) -> tuple[JobPasses, JobPasses] | None:
    """Both epochs; None where there can be but one."""
    if trial.make.takes("epoch"):
        return trial.deliver(job), trial.deliver(replace(job, epoch=1))
    walks = trial.run(Play(job, job.all_ranks, epochs=2))
    if any(walk.one_pass for walk in walks):
        return None
    return JobPasses(tuple([walk.whole for walk in walks])), JobPasses(tuple([walk.passes[-1] for walk in walks]))


# ----------------------------------------------------------------------------
# Threads and processes of a loader change nothing.
# ----------------------------------------------------------------------------


@of_each_job
def workers(trial: Trial, job: Job) -> Ruling:
    """With any number of workers the ranks get the same steps as with none."""
    if not trial.make.takes("workers"):
        return not_judged("make_loader takes no workers")
    if not trial.workers:
        return not_judged("no numbers of workers were asked for")
    expected = trial.deliver(job)
    for number in trial.workers:
        found = trial.deliver(replace(job, workers=number))
        if expected.refused or found.refused:
            return refused(f"{number} workers: {expected.trouble or found.trouble}")
        wrong = found.trouble or first_difference(found, expected)
        if wrong:
            return broken(f"with {number} workers instead of none, {wrong}", workers=number)
    return kept("the same steps with any number of workers")


# ----------------------------------------------------------------------------
# From the state after any step exactly the rest follows.
# ----------------------------------------------------------------------------


_NO_STOP = "there is no step to stop after and to go on from"

MOST_STOPS = 128
"""A job with more steps is stopped after so many of them, spread evenly."""


@of_each_job
def restart(trial: Trial, job: Job) -> Ruling:
    """All ranks stop after a step; new loaders that get their states deliver what would have followed.

    What is compared is the pass whose states these are, so a loader is not blamed twice for what it loses anyway. After the
    last step a loader may continue with nothing or with a whole epoch: its state may be that of the next one.
    """
    walks = trial.walk(job)
    states = [state for walk in walks for state in walk.states]
    size: dict[str, Any] = {"state_bytes": max((len(state.data) for state in states), default=0)}
    size |= {"state": next((state.kind for state in states), "")}
    differences: dict[int, Difference] = {}
    other_order: dict[int, str] = {}
    no: Ruling | None = None
    steps = max(len(walk.whole.steps) for walk in walks)
    stops = trial.stops_of(steps, MOST_STOPS)
    if not stops:
        return not_judged(_NO_STOP)
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
    says = f"after each of {len(stops)} steps" if len(stops) > 1 else f"after step {stops[0]}"
    return kept(f"exactly the rest {says}; a state has {size['state_bytes']} bytes of {size['state']}", **size)


def _whole(walks: tuple[Walk, ...], stop: int, after: JobPasses) -> list[object]:
    return [each for walk in walks for step in walk.before(stop) for each in step.ids] + [*after.ids]


# ----------------------------------------------------------------------------
# From a state that was taken after a restart exactly the rest follows.
# ----------------------------------------------------------------------------


MOST_FIRST_STOPS = 6
"""A job with more steps is stopped after so many of them, spread evenly."""


@of_each_job
def restart_twice(trial: Trial, job: Job) -> Ruling:
    """All ranks stop after a step, go on from their states, stop again after each further step, and go on once more.

    A loader is not blamed twice: where its first restart is wrong already, this law does not judge it.
    """
    walks = trial.walk(job)
    tried, no = 0, None
    for stop in trial.stops_of(max(len(walk.whole.steps) for walk in walks) - 1, MOST_FIRST_STOPS):
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


# ----------------------------------------------------------------------------
# A job that was stopped goes on with other ranks.
# ----------------------------------------------------------------------------


MOST_ELASTIC_STOPS = 16


@of_each_job
def elastic_restart(trial: Trial, job: Job) -> Ruling:
    """Stopped on some ranks and gone on with on others, an epoch still has each record once.

    The rows of a step stay the same. Rank r gets the state of rank r modulo the number of ranks that saved.
    """
    targets = [on for on in map(job.on, trial.others) if on is not None and on.ranks != job.ranks]
    if not targets:
        return not_judged("there is no other number of ranks that divides the rows of a step")
    walks = trial.walk(job)
    tried = 0
    no: Ruling | None = None
    steps = max(len(walk.whole.steps) for walk in walks)
    for stop in trial.stops_of(steps, MOST_ELASTIC_STOPS):
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
    if no is not None:
        return no
    return kept(f"each record once, over {tried} changes of ranks", changes=tried) if tried else not_judged(_NO_STOP)


# ----------------------------------------------------------------------------
# A rank is killed; a new process goes on from the last state that was saved.
# ----------------------------------------------------------------------------


def rank_killed(trial: Trial) -> Ruling:
    """The last rank of the last job is killed by SIGKILL in the middle; a new process continues with its last state.

    It gets the step that was under way again, and then all others. Ranks that are played at once are all stopped, as `torchrun`
    does it, and go on with their states after the same step.
    """
    job = trial.jobs[-1]
    walks = trial.walk(job)
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


# ----------------------------------------------------------------------------
# A process of the loader is killed: that is an error, or nothing is lost; the rank neither hangs nor ends early.
# ----------------------------------------------------------------------------


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


# ----------------------------------------------------------------------------
# No thread, process, open file or shared memory is left behind.
# ----------------------------------------------------------------------------


_SECONDS = 5.0
_USES = {"the end": None, "an iterator abandoned after one step": 1}


def nothing_left(trial: Trial) -> Ruling:
    """After a pass that came to its end, and after one that was abandoned, the first job has left nothing.

    In this process, rank 0 has left no thread, process or open file. Ranks in other processes have left no process and no
    shared memory when these have ended.
    """
    job = trial.jobs[0]
    trial.given(job)
    return _here(trial, job) if trial.play == "in turn" else _away(trial, job)


def _here(trial: Trial, job: Job) -> Ruling:
    trial.at(f"rank 0 of {job}, looking for what it leaves behind")

    def use(count: int, loader: Any) -> None:
        with contextlib.suppress(Exception):  # which other laws look at
            for _ in zip(range(count), loader, strict=False):
                trial.beat()

    uses = {how: partial(use, most or job.most_steps) for how, most in _USES.items()}
    try:
        check_uses(uses, lambda: trial.make(job, 0), min(_SECONDS, trial.patience / 4))
    except AssertionError as error:
        return broken(str(error).removeprefix("nothing left behind: "))
    return kept("no thread, process or open file is left")


def _away(trial: Trial, job: Job) -> Ruling:
    for how, most in _USES.items():
        left = trial.run_away(Play(job, job.all_ranks, most=most)).left
        if left:
            return broken(f"{job}: after {how} there are still {list(left)}")
    return kept("no process or shared memory is left")


# ----------------------------------------------------------------------------
# All laws of loaders.
# ----------------------------------------------------------------------------


LAWS: Mapping[str, Callable[[Trial], Ruling]] = MappingProxyType(
    {
        "exactly once": exactly_once,
        "equal steps": equal_steps,
        "partial batches": partial_batches,
        "same order": same_order,
        "seeds": seeds,
        "epochs": epochs,
        "workers": workers,
        "restart": restart,
        "restart twice": restart_twice,
        "elastic restart": elastic_restart,
        "rank killed": rank_killed,
        "worker killed": worker_killed,
        "nothing left": nothing_left,
    }
)
"""The laws by name, in the order in which they are judged."""
