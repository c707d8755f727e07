# SPDX-License-Identifier: Apache-2.0
"""What a loader delivers: the steps of each rank, however they end."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from distinput.testing.judge.batch import Ids, UnknownBatch, look_of
from distinput.testing.judge.job import Job

__all__ = ["Delivery", "Difference", "Pass", "Step", "compared", "most_steps", "read"]


@dataclass(frozen=True)
class Step:
    """The records of one rank in one step, and what the batch looks like without its rows."""

    ids: tuple[Hashable, ...]
    look: Hashable


@dataclass(frozen=True)
class Pass:
    """The steps of one rank.

    Args:
      steps: in order.
      error: what was raised in the place of the next step.
      ended: False where there were more steps than can be right, and no more were taken.
    """

    steps: tuple[Step, ...]
    error: BaseException | None = None
    ended: bool = True

    @property
    def ids(self) -> list[Hashable]:
        """All records in order."""
        return [each for step in self.steps for each in step.ids]


@dataclass(frozen=True)
class Delivery:
    """The passes of all ranks of a job."""

    passes: tuple[Pass, ...]

    @property
    def ids(self) -> list[Hashable]:
        """All records: those of a step together, rank after rank."""
        return [each for row in self.by_step() for step in row if step is not None for each in step.ids]

    @property
    def steps(self) -> list[int]:
        """The number of steps of each rank."""
        return [len(each.steps) for each in self.passes]

    @property
    def order(self) -> tuple[tuple[tuple[Hashable, ...], ...], ...]:
        """The records of each step of each rank, to compare."""
        return tuple([tuple([step.ids for step in each.steps]) for each in self.passes])

    def by_step(self) -> Iterator[tuple[Step | None, ...]]:
        """Step after step, what each rank has of it; None from a rank that has ended."""
        return zip_longest(*[each.steps for each in self.passes])

    @property
    def error(self) -> BaseException | None:
        """The error of the first rank that has one."""
        return next((each.error for each in self.passes if each.error is not None), None)

    @property
    def refused(self) -> bool:
        """An error came before anything was delivered: the loader says that it cannot do this."""
        return self.error is not None and not any(each.steps for each in self.passes)

    @property
    def trouble(self) -> str | None:
        """What is wrong with a pass as a pass, None where all ranks came to their end."""
        for rank, each in enumerate(self.passes):
            if each.error is not None:
                return f"rank {rank} raised {_said(each.error)} after {len(each.steps)} steps"
            if not each.ended:
                return f"rank {rank} had not ended after {len(each.steps)} steps"
        return None


def _said(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    return text if len(text) <= 120 else text[:117] + "..."


def most_steps(job: Job) -> int:
    """More steps of a rank than any loader needs."""
    return 4 * -(-job.records // job.batch) + 16


def read(
    batches: Iterator[Any], ids: Ids, most: int, beat: Callable[[], None], after: Callable[[], None] = lambda: None
) -> Pass:
    """Take steps until the end, an error, or `most` of them.

    Args:
      batches: the iterator of a rank.
      ids: the records of a batch.
      most: how many steps are taken.
      beat: called after each step, by which others see that the loader does not hang.
      after: called after each step, for example to take a state.
    """
    steps: list[Step] = []
    try:
        while len(steps) < most:
            try:
                batch = next(batches)
            except StopIteration:
                return Pass(tuple(steps))
            beat()
            steps.append(Step(tuple(ids(batch)), look_of(batch)))
            after()
    except UnknownBatch:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a loader raises is what is judged
        return Pass(tuple(steps), error)
    return Pass(tuple(steps), ended=False)


@dataclass(frozen=True)
class Difference:
    """What is missing of records, and what is too many.

    >>> str(Difference((3, 4), (7,)))
    '2 lost (3, 4), 1 delivered again (7)'
    """

    lost: tuple[Hashable, ...]
    again: tuple[Hashable, ...]

    def __bool__(self) -> bool:
        return bool(self.lost or self.again)

    def __str__(self) -> str:
        said = []
        if self.lost:
            said.append(f"{len(self.lost)} lost ({_few(self.lost)})")
        if self.again:
            said.append(f"{len(self.again)} delivered again ({_few(self.again)})")
        return ", ".join(said) or "each record once"


def _few(records: Sequence[Hashable]) -> str:
    return ", ".join(map(str, records[:5])) + (", ..." if len(records) > 5 else "")


def compared(found: Sequence[Hashable], expected: Sequence[Hashable]) -> Difference:
    """Which records are missing in `found`, and which are there too often or should not be.

    >>> compared([1, 2, 2, 5], [1, 2, 3])
    Difference(lost=(3,), again=(2, 5))
    """
    have, want = Counter(found), Counter(expected)
    lost = want - have
    again = have - want
    return Difference(_in_order(expected, lost), _in_order(found, again))


def _in_order(records: Sequence[Hashable], some: "Counter[Hashable]") -> tuple[Hashable, ...]:
    return tuple([each for each in dict.fromkeys(records) for _ in range(some[each])])
