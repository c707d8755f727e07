# SPDX-License-Identifier: Apache-2.0
"""What a loader delivers: the ids of a batch, and the batches of ranks."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# Which records are in a batch, and what a batch looks like, whatever library made it.
# ----------------------------------------------------------------------------


Ids = Callable[[Any], Iterable[Hashable]]
"""The records of a batch."""


class UnknownBatch(TypeError):
    """It cannot be told which records are in a batch."""


def ids_of(batch: Any) -> list[Hashable]:
    """The records of a batch of numbers: an array, a tensor or a list; of a dict "id" or its only value, of a tuple the first.

    Raises:
      UnknownBatch: it is none of these.

    >>> ids_of({"x": [[0.5], [0.7]], "id": np.array([3, 4])}), ids_of([[7, 8], ["a", "b"]]), ids_of([])
    ([3, 4], [7, 8], [])
    """
    found = _flat(_component(batch))
    for each in found:
        if not isinstance(each, int | str | bytes):
            raise UnknownBatch(
                f"judge: a batch must have the numbers of its records, got {each!r} in a {type(batch).__name__}; "
                "give ids=, a function from a batch to its records"
            )
    return found


def _component(batch: Any) -> Any:
    """The component that has the records."""
    if isinstance(batch, Mapping):
        if "id" in batch:
            return batch["id"]
        if len(batch) == 1:
            return next(iter(batch.values()))
        raise UnknownBatch(f"judge: a batch has the keys {sorted(map(str, batch))} and no 'id'; give ids=")
    if isinstance(batch, tuple) and len(batch) and not _is_number(batch[0]):
        return _component(batch[0])
    if isinstance(batch, list) and batch and _has_rows(batch[0]):
        return _component(batch[0])  # components side by side, as collated tuples are
    if isinstance(batch, list) and batch and isinstance(batch[0], Mapping):
        return [_component(row) for row in batch]
    return batch


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | str | bytes) or getattr(value, "shape", None) == ()


def _has_rows(value: Any) -> bool:
    return isinstance(value, list | tuple) or bool(getattr(value, "shape", ()))


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "tolist"):  # arrays and tensors; of numbers that are whole, whatever their dtype
        value = value.tolist()
    if isinstance(value, list | tuple | range):
        return [leaf for each in value for leaf in _flat(each)]
    if isinstance(value, float) and value.is_integer():
        return [int(value)]
    return [value]


def look_of(batch: Any) -> Hashable:
    """What all batches of a loader have in common: structure, dtypes and shapes without the first axis.

    >>> look_of({"x": np.zeros((3, 2)), "id": np.arange(3)}) == look_of({"x": np.zeros((0, 2)), "id": np.arange(0)})
    True
    """
    if isinstance(batch, Mapping):
        return ("dict", tuple([(str(key), look_of(batch[key])) for key in sorted(batch, key=str)]))
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return (type(batch).__name__, str(getattr(batch, "dtype", "")), tuple(map(int, shape[1:])))
    if isinstance(batch, list | tuple) and batch and (_has_rows(batch[0]) or isinstance(batch, tuple)):
        return (type(batch).__name__, tuple(map(look_of, batch)))
    return type(batch).__name__


# ----------------------------------------------------------------------------
# What a loader delivers: the steps of each rank, however they end.
# ----------------------------------------------------------------------------


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
