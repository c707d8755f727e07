# SPDX-License-Identifier: Apache-2.0
"""Sources of the steps of one worker: the interface and functions common to the three kinds.

`OwnPieces` reads only this worker's pieces of the global batches, `CutBatches` cuts them out of every global batch, and
`DealtElements` gives one element of an input pipeline to each replica. A source is a description; its `Steps` are one
iteration over it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from distinput.columns.state import State
from distinput.distribute.core.replicas import Replicas
from distinput.distribute.input.dealing import drawn, place_of
from distinput.distribute.input.lockstep import Lockstep
from distinput.distribute.input.tail import short
from distinput.errors import StateError
from distinput.values.spec import Spec

__all__ = [
    "HALF_WAY",
    "INFINITE",
    "UNKNOWN",
    "WHOLE",
    "SeenShapes",
    "StepSource",
    "Steps",
    "Terms",
    "close_input",
    "cut_in_words",
    "lockstep_of",
    "place_after",
    "places_before",
    "plan_of",
    "resumed_input",
    "sealed_place",
]

# ---- The properties that all steps of a distributed dataset share, whatever their source

INFINITE = -1
UNKNOWN = -2


@dataclass(frozen=True)
class Terms:
    """The properties that all steps of a distributed dataset share, whatever their source.

    Args:
      replicas: the replicas that take the steps.
      cardinality: the cardinality of the dataset as the user gave it.
      keeps_partial: True if `next` delivers a last step in which some replicas have no element.
      steps: the number of steps, if the workers have counted them; None if each sees its end, or they agree on it.
      tail: what happens to a step that is not full.
      full_rows: the number of rows of a full step, if each step has to be checked; else 0.
      open_ends: True if a worker that has no more elements can learn their shape only from others.
      alike: True if all workers have the same pipeline and begin the same passes.
      hints: harmless differences between the pipelines, for the error raised if their elements turn out to differ.
    """

    replicas: Replicas
    cardinality: int
    keeps_partial: bool = True
    steps: int | None = None
    tail: str = "partial"
    full_rows: int = 0
    open_ends: bool = False
    alike: bool = False
    hints: Sequence[str] = ()

    @property
    def agrees(self) -> bool:
        """True if workers can tell the end, or what stands for missing elements, only together."""
        return self.replicas.workers > 1 and self.cardinality != INFINITE and (self.steps is None or self.open_ends)

    def leaves_out(self, rows: int) -> bool:
        """True for a step that is left out because it is not full; it ends the iteration.

        Raises:
          InvalidArgumentError: the step is not full, and tail is "error".
        """
        if rows >= self.full_rows:
            return False
        if self.tail == "error":
            raise short(rows, self.full_rows)
        return True


# ---- Sources of the steps of one worker: the interface and functions common to the three kinds

HALF_WAY = (
    "DistributedIterator.state: the last step failed when some replicas had their element already; go on with next, or "
    "restart from a state taken before"
)

SeenShapes = list[list[int]] | None
"""The shapes of the leaves of the last element, used for placeholders; None before the first element."""


WHOLE: Mapping[str, Any] = {"cut": "batches"}
"""The layout of states that are positions in the global batches: any number of workers and replicas can continue."""


def cut_in_words(balanced: bool) -> str:
    """How global batches are cut, in words."""
    if balanced:
        return "each global batch on its own, into parts whose sizes differ by at most one"
    return "each global batch on its own, into equal parts, rounded up; the last ones may be short or empty"


class Steps(Protocol):
    """One iteration over a source."""

    def next(self, keeps_partial: bool) -> Any:
        """The next step, or `END`. A step that an interrupt cuts short comes with the next call.

        Args:
          keeps_partial: True to return steps in which some replicas have no element.
        """
        ...

    @property
    def seen(self) -> SeenShapes:
        """The shapes that a state saves."""
        ...

    @property
    def beginning(self) -> tuple[int | None, Sequence[int] | None]:
        """The number of the pass, and the seeds drawn; each is None if workers may have different ones."""
        ...

    @property
    def partial(self) -> bool:
        """True if the last step was returned only because partial steps are kept."""
        ...

    def places(self, waiting: bool = False) -> list[State]:
        """The positions of the input pipelines after the last step, which `inputs` makes states of.

        Args:
          waiting: True if the last step that `next` returned was not delivered: the positions before it.

        Raises:
          StateError: the last step failed half-way, or was interrupted, and there is no place before it.
        """
        ...

    def inputs(self, step: int, places: Sequence[State]) -> list[State]:
        """The states of the input pipelines, `step` steps after the beginning of the first pass.

        Args:
          step: the number of steps.
          places: what `places` returned after the last of them.
        """
        ...

    def close(self) -> None:
        """End the background work."""
        ...


class StepSource(Protocol):
    """The source of the steps of one worker."""

    @property
    def terms(self) -> Terms:
        """The properties of all steps."""
        ...

    @property
    def spec(self) -> Spec:
        """The spec of one replica's part of a step."""
        ...

    @property
    def agrees(self) -> bool:
        """True if the workers agree on each step, because they can tell the end only together."""
        ...

    @property
    def fails_alone(self) -> bool:
        """True if this worker's input may fail while those of the others do not."""
        ...

    @property
    def num_steps(self) -> int:
        """The number of steps that every worker takes; -1 infinite, -2 if it is known only at the end."""
        ...

    @property
    def layout(self) -> Mapping[str, Any]:
        """The facts that must be equal for a state to fit."""
        ...

    @property
    def pipelines(self) -> int:
        """The number of input pipelines read, each of which has its own state."""
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
        """The result of `explain` of the input pipeline, if it has that method."""
        ...

    def begin(self) -> Steps:
        """Begin a new pass."""
        ...

    def restore(self, inputs: Sequence[State], step: int, seen: SeenShapes, may_differ: str | Collection[str]) -> Steps:
        """The rest of a pass, from the results of `Steps.inputs` and `Steps.seen` after `step` steps."""
        ...


def lockstep_of(
    terms: Terms,
    iterator: Iterator[Any],
    count: int,
    rows_of: Callable[[list[Any]], int] | None,
    *,
    alike: bool,
    lacks: Callable[[list[Any]], bool] | None = None,
) -> Lockstep:
    """The steps of all workers, each of `count` elements of this worker's input; see `Lockstep`."""
    peers = terms.replicas.peers
    assert peers is not None, "only several workers agree"
    # The functions must not refer to the iteration, which would keep it from being freed.
    return Lockstep(
        peers.control, partial(drawn, iterator, count), place_of(iterator), rows_of,
        about=peers.next_iteration, alike=alike, hints=terms.hints, lacks=lacks,
    )  # fmt: skip


def place_after(iterator: Any, lockstep: Lockstep | None) -> State:
    """The position of an input after the last step, which is behind the elements drawn for agreements."""
    return place_of(iterator) if lockstep is None else lockstep.state


def places_before(iterators: Sequence[Any], marks: Sequence[Any]) -> list[State]:
    """The positions of inputs at the marks that were made before a step.

    Raises:
      StateError: iterators of other packages have no marks.
    """
    if any(mark is None for mark in marks):
        raise StateError(HALF_WAY)
    return [place_of(iterator, mark) for iterator, mark in zip(iterators, marks, strict=True)]


def sealed_place(iterator: Any, place: State) -> State:
    """The state of a position."""
    seal = getattr(iterator, "sealed", None)
    return place if seal is None else seal(place)


def resumed_input(dataset: Any, state: State, may_differ: str | Collection[str]) -> Any:
    """An iterator that continues from a state of an input."""
    # Datasets of other packages lack this argument.
    return dataset.restore(state, may_differ) if may_differ else dataset.restore(state)


def close_input(iterator: Any) -> None:
    """Close an input, if it has such a method."""
    close = getattr(iterator, "close", None)
    if close is not None:
        close()


def plan_of(dataset: Any) -> str | None:
    """The result of `explain` of a dataset, if it has that method."""
    explain = getattr(dataset, "explain", None)
    return None if explain is None else str(explain())
