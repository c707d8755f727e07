# SPDX-License-Identifier: Apache-2.0
"""Where the steps of one worker come from: what the three kinds of sources have in common.

`OwnPieces` reads only this worker's pieces of the global batches, `CutBatches` cuts them out of every global batch, and
`DealtElements` gives one element of an input pipeline to each replica. A source describes; its `Steps` are one iteration.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.distribute.input.drawing import drawn, place_of
from distinput.distribute.input.lockstep import Lockstep
from distinput.distribute.input.terms import Terms

__all__ = [
    "HALF_WAY",
    "WHOLE",
    "Seen",
    "Source",
    "Steps",
    "close_input",
    "cut_in_words",
    "lockstep_of",
    "plan_of",
    "resumed_input",
    "saved_input",
]

HALF_WAY = (
    "DistributedIterator.state: the last step failed when some replicas had their element already; go on with next, or "
    "restart from a state taken before"
)

Seen = list[list[int]] | None
"""The shapes of the leaves of the last element, from which those of stand-ins are taken; None before the first one."""


WHOLE: Mapping[str, Any] = {"cut": "batches"}
"""The layout of states that are a place in the global batches, from which any number of workers and replicas can go on."""


def cut_in_words(balanced: bool) -> str:
    """How global batches are cut."""
    if balanced:
        return "each global batch on its own, into parts whose sizes differ by at most one"
    return "each global batch on its own, into equal parts, rounded up; the last ones may be short or empty"


class Steps(Protocol):
    """One iteration over a source."""

    def next(self, keeps_partial: bool) -> Any:
        """The next step, or `END`.

        Args:
          keeps_partial: whether a step counts in which some replicas have no element.
        """
        ...

    @property
    def seen(self) -> Seen:
        """Shapes that a state keeps."""
        ...

    @property
    def beginning(self) -> tuple[int | None, Sequence[int] | None]:
        """The number of the pass, and the seeds that were drawn; each None where workers may have different ones."""
        ...

    def inputs(self, step: int) -> list[State]:
        """The states of the input pipelines, `step` steps after the beginning of the first pass.

        Raises:
          StateError: the last step failed half-way.
        """
        ...

    def close(self) -> None:
        """End what runs in the background."""
        ...


class Source(Protocol):
    """Where the steps of one worker come from."""

    @property
    def terms(self) -> Terms:
        """What holds of all steps."""
        ...

    @property
    def spec(self) -> Spec:
        """Of one replica's part of a step."""
        ...

    @property
    def agrees(self) -> bool:
        """True where the workers agree on each step, because they can tell the end only together."""
        ...

    @property
    def fails_alone(self) -> bool:
        """True where an error of this worker's input need not happen on the others."""
        ...

    @property
    def num_steps(self) -> int:
        """How many steps every worker takes; -1 without end, -2 where that is known only at the end."""
        ...

    @property
    def layout(self) -> Mapping[str, Any]:
        """What must be the same for a state to fit."""
        ...

    @property
    def pipelines(self) -> int:
        """How many input pipelines it reads, each with a state of its own."""
        ...

    @property
    def cut(self) -> str:
        """How the parts of the replicas are made, in words."""
        ...

    @property
    def reads(self) -> str:
        """What each of several workers reads, in words."""
        ...

    @property
    def plan(self) -> str | None:
        """What `explain` says of the input pipeline, where it can."""
        ...

    def begin(self) -> Steps:
        """A new pass."""
        ...

    def restore(self, inputs: Sequence[State], step: int, seen: Seen, may_differ: str | Collection[str]) -> Steps:
        """The rest of a pass, from what `Steps.inputs` and `Steps.seen` gave after so many steps."""
        ...


def lockstep_of(
    terms: Terms, iterator: Iterator[Any], count: int, rows_of: Callable[[list[Any]], int] | None, *, alike: bool
) -> Lockstep:
    """The steps of all workers, `count` elements of this worker's input for each; see `Lockstep`."""
    peers = terms.replicas.peers
    assert peers is not None, "only several workers agree"
    # The function does not refer to the iteration, which would keep it from being dropped.
    return Lockstep(
        peers.control, partial(drawn, iterator, count), place_of(iterator), rows_of,
        about=peers.next_iteration, alike=alike, hints=terms.hints,
    )  # fmt: skip


def saved_input(iterator: Any, lockstep: Lockstep | None) -> State:
    """The state of an input after the last step that was given out, which is behind what was drawn for an agreement."""
    if lockstep is None:
        state: State = iterator.state()
        return state
    seal = getattr(iterator, "sealed", None)
    return lockstep.state if seal is None else seal(lockstep.state)


def resumed_input(dataset: Any, state: State, may_differ: str | Collection[str]) -> Any:
    """An iterator that goes on from a state of an input."""
    # Datasets of other packages know of no such argument.
    return dataset.restore(state, may_differ) if may_differ else dataset.restore(state)


def close_input(iterator: Any) -> None:
    """End what an input runs in the background, if it can."""
    close = getattr(iterator, "close", None)
    if close is not None:
        close()


def plan_of(dataset: Any) -> str | None:
    """What a dataset says of itself, where it can."""
    explain = getattr(dataset, "explain", None)
    return None if explain is None else str(explain())
