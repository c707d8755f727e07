# SPDX-License-Identifier: Apache-2.0
"""What a loader delivers: the steps of each rank, however they end."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

__all__ = ["Difference", "JobPasses", "RankPass", "RankStep", "compared"]


@dataclass(frozen=True)
class RankStep:
    """The records of one rank in one step, and what the batch looks like without its rows."""

    ids: tuple[Hashable, ...]
    look: Hashable


@dataclass(frozen=True)
class RankPass:
    """The steps of one rank.

    Args:
      steps: in order.
      error: what came in the place of the next step: an error, or how the process of the rank died.
      ended: False where there were more steps than were taken.
      died: the error is not one that was raised.
    """

    steps: tuple[RankStep, ...]
    error: str | None = None
    ended: bool = True
    died: bool = False

    @property
    def ids(self) -> list[Hashable]:
        """All records in order."""
        return [each for step in self.steps for each in step.ids]


@dataclass(frozen=True)
class JobPasses:
    """The passes of all ranks of a job."""

    passes: tuple[RankPass, ...]

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

    def by_step(self) -> Iterator[tuple[RankStep | None, ...]]:
        """Step after step, what each rank has of it; None from a rank that has ended."""
        return zip_longest(*[each.steps for each in self.passes])

    @property
    def refused(self) -> bool:
        """An error was raised before anything was delivered: the loader says that it cannot do this."""
        raised = any(each.error is not None for each in self.passes)
        return raised and not any(each.steps or each.died for each in self.passes)

    @property
    def trouble(self) -> str | None:
        """What is wrong with a pass as a pass, None where all ranks came to their end."""
        for rank, each in enumerate(self.passes):
            if each.error is not None:
                return f"rank {rank} {'' if each.died else 'raised '}{each.error} after {len(each.steps)} steps"
            if not each.ended:
                return f"rank {rank} had not ended after {len(each.steps)} steps"
        return None


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
