# SPDX-License-Identifier: Apache-2.0
"""A trial: the loader that is judged, the jobs it is tried in, and what it has delivered so far."""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from functools import wraps

from distinput.names.lazy import dataclass
from distinput.testing.judge.delivery import Ids, JobPasses
from distinput.testing.judge.job import Job, Maker
from distinput.testing.judge.play import Play, PlayTask, Saved, Walk, events, folded
from distinput.testing.judge.processes import Played, play_away
from distinput.testing.judge.report import Ruling, Verdict, broken, kept, not_judged, refused


@dataclass
class Trial:
    """What laws look at.

    Args:
      make: makes loaders.
      known: the names of all records.
      jobs: what the loader is tried in.
      ids: the records of a batch.
      stops: after which steps it is stopped; every one where None.
      others: numbers of ranks to continue with.
      workers: numbers of workers of each rank to try.
      patience: seconds that a step may take.
      play: how the ranks of a job are played, one of `HOWS`.
    """

    make: Maker
    known: Sequence[Hashable]
    jobs: Sequence[Job]
    ids: Ids
    stops: Sequence[int] | None
    others: Sequence[int]
    workers: Sequence[int]
    patience: float
    play: str = "in turn"
    place: str = ""
    hung: str = ""
    last: float = field(default_factory=time.monotonic)
    _delivered: dict[Job, JobPasses] = field(default_factory=dict)
    _walked: dict[Job, tuple[Walk, ...]] = field(default_factory=dict)

    def beat(self) -> None:
        """A step was made: the loader does not hang."""
        self.last = time.monotonic()

    def at(self, place: str) -> None:
        """What is done next, in the words of a message."""
        self.place = place
        self.beat()

    def run(self, play: Play) -> tuple[Walk, ...]:
        """What becomes of each rank in a run of a job."""
        if self.play != "in turn":
            return self.run_away(play).walks
        return tuple([self._run_here(PlayTask(self.make, self.ids, play), rank) for rank in play.ranks])

    def _run_here(self, task: PlayTask, rank: int) -> Walk:
        self.at(f"rank {rank} of {task.play.job}{task.play.about}")
        return folded(events(task, rank), self.beat)

    def run_away(self, play: Play) -> Played:
        """The same in new processes, whatever the others are played in."""
        self.at(f"{play.job}{play.about}, in new processes")
        return play_away(PlayTask(self.make, self.ids, play), self.play, self.patience, self.beat)

    def company(self, job: Job, rank: int) -> tuple[int, ...]:
        """The ranks that must be there where one is to be killed."""
        return (rank,) if self.play == "in turn" else job.all_ranks

    def deliver(self, job: Job, *, again: bool = False) -> JobPasses:
        """What all ranks of a job get, each from a loader of its own.

        Args:
          job: the job.
          again: make new loaders also where the job was delivered before.
        """
        if job in self._delivered and not again:
            return self._delivered[job]
        made = JobPasses(tuple([walk.whole for walk in self.run(Play(job, job.all_ranks))]))
        return made if again else self._delivered.setdefault(job, made)

    def given(self, job: Job) -> JobPasses:
        """What all ranks of a job get.

        Raises:
          Settled: the loader refuses the job.
        """
        delivery = self.deliver(job)
        if delivery.refused:
            raise Settled.by(refused(str(delivery.trouble)))
        return delivery

    def walk(self, job: Job) -> tuple[Walk, ...]:
        """The passes of all ranks with the state after each step.

        Raises:
          Settled: the loader has no state, or raises an error.
        """
        if job not in self._walked:
            self._walked[job] = self.run(Play(job, job.all_ranks, save=True))
        walks = self._walked[job]
        for walk in walks:
            if walk.stateless is not None:
                raise Settled.by(not_judged(walk.stateless))
            if walk.whole.error is not None:
                raise Settled.by((broken if walk.whole.died else refused)(walk.whole.error))
        return walks

    def rest(self, job: Job, states: Sequence[Saved | None]) -> JobPasses:
        """What new loaders deliver from the states of their ranks on."""
        return JobPasses(tuple([walk.whole for walk in self.run(Play(job, job.all_ranks, tuple(states)))]))

    def stops_of(self, steps: int, most: int) -> list[int]:
        """After which steps a job is stopped: those asked for, or up to `most`, the first and the last among them."""
        if self.stops is not None:
            return [stop for stop in self.stops if stop <= steps]
        if steps <= most:
            return list(range(1, steps + 1))
        return sorted({1 + round(index * (steps - 1) / (most - 1)) for index in range(most)})


class Settled(Exception):
    """A ruling that needs no further look."""

    ruling: Ruling

    @classmethod
    def by(cls, ruling: Ruling) -> "Settled":
        """The error for a ruling."""
        error = cls(ruling.says)
        error.ruling = ruling
        return error


def of_each_job(check: Callable[[Trial, Job], Ruling]) -> Callable[[Trial], Ruling]:
    """The law that looks at each job: the worst of what is found in all of them, with the job that it was found in."""

    def found(trial: Trial, job: Job) -> Ruling:
        try:
            return check(trial, job)
        except Settled as settled:
            return settled.ruling

    @wraps(check)
    def law(trial: Trial) -> Ruling:
        return worst([(job, found(trial, job)) for job in trial.jobs])

    return law


_ORDER = (Verdict.BROKEN, Verdict.REFUSED, Verdict.KEPT, Verdict.NOT_JUDGED)


def worst(every: Sequence[tuple[Job, Ruling]]) -> Ruling:
    """The first of the worst findings; it says in how many jobs there is such a one."""
    if not every:
        return kept("no job")
    job, first = min(every, key=lambda pair: _ORDER.index(pair[1].verdict))
    same = sum(finding.verdict is first.verdict for _, finding in every)
    if first.verdict is Verdict.NOT_JUDGED:
        return first
    if first.verdict is Verdict.KEPT:
        return Ruling(Verdict.KEPT, first.says if len(every) == 1 else f"{first.says}; in {same} jobs", first.figures)
    figures = {**first.figures, "job": job.to_json(), "jobs": same, "of": len(every)}
    return Ruling(first.verdict, f"{job}: {first.says}", figures)
