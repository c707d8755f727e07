# SPDX-License-Identifier: Apache-2.0
"""A trial: the loader that is judged, the jobs it is tried in, and what it has delivered so far."""

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from distinput.testing.judge.batch import Ids
from distinput.testing.judge.delivery import Delivery, Pass, Step, most_steps, read
from distinput.testing.judge.finding import Finding, Verdict, kept
from distinput.testing.judge.job import Job, Maker
from distinput.testing.judge.states import Saved, begun, restored, saved

__all__ = ["Trial", "Walk"]


@dataclass(frozen=True)
class Walk:
    """A pass of one rank with the state after each of its steps."""

    whole: Pass
    states: tuple[Saved, ...]

    def before(self, stop: int) -> tuple[Step, ...]:
        """What was delivered up to a stop."""
        return self.whole.steps[:stop]

    def after(self, stop: int) -> tuple[Step, ...]:
        """What must follow."""
        return self.whole.steps[stop:]

    def state(self, stop: int) -> Saved | None:
        """The state at a stop; that of its end for a rank that has ended before, None where it had no step."""
        return self.states[min(stop, len(self.states)) - 1] if self.states else None


@dataclass
class Trial:
    """What laws look at.

    Args:
      make: makes loaders.
      known: the names of all records.
      jobs: what the loader is tried in.
      ids: the records of a batch.
      stops: after which steps it is stopped; every one where None.
      others: numbers of ranks to go on with.
      workers: numbers of workers of each rank to try.
      patience: seconds that a step may take.
    """

    make: Maker
    known: Sequence[Hashable]
    jobs: Sequence[Job]
    ids: Ids
    stops: Sequence[int] | None
    others: Sequence[int]
    workers: Sequence[int]
    patience: float
    place: str = ""
    hung: str = ""
    last: float = field(default_factory=time.monotonic)
    _delivered: dict[Job, Delivery] = field(default_factory=dict)
    _walked: dict[Job, tuple[Walk, ...]] = field(default_factory=dict)

    def beat(self) -> None:
        """A step was made: the loader does not hang."""
        self.last = time.monotonic()

    def at(self, place: str) -> None:
        """What is done next, in the words of a message."""
        self.place = place
        self.beat()

    def deliver(self, job: Job, *, again: bool = False) -> Delivery:
        """What all ranks of a job get, each from a loader of its own.

        Args:
          job: the job.
          again: make new loaders also where the job was delivered before.
        """
        if again or job not in self._delivered:
            made = Delivery(tuple([self.read(job, rank, partial(self.make, job, rank)) for rank in range(job.ranks)]))
            if again:
                return made
            self._delivered[job] = made
        return self._delivered[job]

    def read(self, job: Job, rank: int, loader: Callable[[], Any]) -> Pass:
        """A pass over a loader that is made here; an error while it is made is the error of the pass."""
        self.at(f"rank {rank} of {job}")
        try:
            batches = begun(loader())
        except Exception as error:  # noqa: BLE001 - whatever a loader raises is what is judged
            return Pass((), error)
        return read(batches, self.ids, most_steps(job), self.beat)

    def walk(self, job: Job) -> tuple[Walk, ...]:
        """The passes of all ranks with the state after each step.

        Raises:
          NoState: the loader has none.
          Exception: what the loader raises.
        """
        if job not in self._walked:
            self._walked[job] = tuple([self._walk(job, rank) for rank in range(job.ranks)])
        return self._walked[job]

    def _walk(self, job: Job, rank: int) -> Walk:
        self.at(f"rank {rank} of {job}, saving a state after each step")
        loader = self.make(job, rank)
        batches = begun(loader)
        states: list[Saved] = []
        whole = read(batches, self.ids, most_steps(job), self.beat, lambda: states.append(saved(loader, batches)))
        if whole.error is not None:
            raise whole.error
        return Walk(whole, tuple(states))

    def rest(self, job: Job, rank: int, state: Saved | None) -> Pass:
        """What a new loader of a rank delivers from a state on."""
        self.at(f"rank {rank} of {job}, going on from a state")
        try:
            loader = self.make(job, rank)
            batches = begun(loader) if state is None else restored(loader, state)
        except Exception as error:  # noqa: BLE001 - whatever a loader raises is what is judged
            return Pass((), error)
        return read(batches, self.ids, most_steps(job), self.beat)

    def stops_of(self, steps: int, most: int) -> list[int]:
        """After which steps a job is stopped: those asked for, or up to `most`, the first and the last among them."""
        if self.stops is not None:
            return [stop for stop in self.stops if stop <= steps]
        if steps <= most:
            return list(range(1, steps + 1))
        return sorted({1 + round(index * (steps - 1) / (most - 1)) for index in range(most)})

    def over_jobs(self, check: Callable[[Job], Finding]) -> Finding:
        """The worst of what a check finds in all jobs, with the job that it was found in."""
        return worst(((job, check(job)) for job in self.jobs), len(self.jobs))


_ORDER = (Verdict.BROKEN, Verdict.REFUSED, Verdict.KEPT, Verdict.NOT_JUDGED)


def worst(found: Iterator[tuple[Job, Finding]], count: int) -> Finding:
    """The first of the worst findings; it says in how many jobs there is such a one."""
    every = list(found)
    if not every:
        return kept("no job")
    job, first = min(every, key=lambda pair: _ORDER.index(pair[1].verdict))
    same = sum(finding.verdict is first.verdict for _, finding in every)
    if first.verdict is Verdict.NOT_JUDGED:
        return first
    if first.verdict is Verdict.KEPT:
        return Finding(Verdict.KEPT, first.says if count == 1 else f"{first.says}; in {same} jobs", first.figures)
    figures = {**first.figures, "job": job.to_json(), "jobs": same, "of": count}
    return Finding(first.verdict, f"{job}: {first.says}", figures)
