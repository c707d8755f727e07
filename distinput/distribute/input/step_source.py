# SPDX-License-Identifier: Apache-2.0
"""Sources of the steps of one worker: their interface, and the lockstep in which workers agree on another step."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from distinput.columns.state import State
from distinput.distribute.collectives.channel import packed, unpacked
from distinput.distribute.core.replicas import Replicas
from distinput.distribute.input.dealing import drawn, place_of, short
from distinput.errors import AbortedError, CollectiveError, FailedPreconditionError, StateError
from distinput.values.spec import Spec

if TYPE_CHECKING:
    from distinput.distribute.collectives.agreements import Agreement
    from distinput.distribute.collectives.collectives import Collectives


__all__ = [
    "AHEAD",
    "BLOCK",
    "HALF_WAY",
    "INFINITE",
    "UNKNOWN",
    "WHOLE",
    "Drawn",
    "Lockstep",
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


# ----------------------------------------------------------------------------
# Lockstep: workers agree, ahead of time, on whether there is another step and whether any input failed.
#
# While step k is used, the agreement on the steps from k + `ahead` on is under way, so a loop hardly waits for it. One
# agreement covers a few steps, since starting one costs more than waiting for it. Every worker takes part in the same
# number of agreements, so that they stay in order.
# ----------------------------------------------------------------------------


AHEAD = 4
BLOCK = 4
"""Steps per agreement; the first agreements cover fewer, so that the first step is ready soon."""
_FACTS = 5
"""Values per step: elements, rows, failures, whether rows are lacking, and the square of a size (see `_size_facts`)."""
_LARGEST = 1 << 20  # sizes are compared modulo this number, so that the sums of their squares fit into an agreement


@dataclass(slots=True)
class Drawn:
    """The elements that one worker has drawn for one step.

    Args:
      parts: one element for each replica that has one.
      state: the state of the input after them.
      error: the error that the input raised instead.
    """

    parts: list[Any]
    state: State
    error: Exception | None


class Lockstep:
    """Iterates steps such that all workers end at the same one.

    Args:
      control: a channel of its own for agreements.
      draw: takes the next elements of this worker's input, none at its end, and returns them with the state after them.
      before: the input's state before the first of them.
      rows_of: counts the rows of elements, to skip steps in which no worker has a row. None keeps every step.
      ahead: how many steps are agreed on before they are needed.
      about: names the input, the same on every worker; called at the first step.
      alike: True if all workers draw the same global batches, so that they must end together, with equal numbers of
        rows.
      hints: harmless differences between the workers, for the error raised if their batches do not match.
      lacks: tells of this worker's elements whether a replica is without rows and has to know their shape from another
        worker; only if workers are not alike.
    """

    def __init__(
        self,
        control: "Collectives",
        draw: Callable[[], tuple[list[Any], State]],
        before: State,
        rows_of: Callable[[list[Any]], int] | None = None,
        ahead: int = AHEAD,
        about: Callable[[], str] = str,
        *,
        alike: bool = False,
        hints: Sequence[str] = (),
        lacks: Callable[[list[Any]], bool] | None = None,
    ) -> None:
        self._control, self._draw, self._rows_of, self._ahead = control, draw, rows_of, ahead
        self._alike, self._hints, self._lacks = alike, hints, lacks
        self._waiting: deque[Drawn] = deque()
        # The agreements on the waiting steps, without those whose results are already in `_facts`.
        self._agreements: deque[Agreement] = deque()
        self._facts: deque[int] = deque()
        self._state = before
        self._block = 0
        self._failed = False
        self._ended = False
        self._about: Callable[[], str] | str = about
        self.rows = 0
        """The number of rows of all workers together in the last step that `next` returned."""
        self.lacking = False
        """True if `lacks` was true for some worker in that step."""

    @property
    def state(self) -> State:
        """The input's state after the last step that `next` returned."""
        return self._state

    def next(self) -> list[Any] | None:
        """This worker's elements of the next step, an empty list if it has run out; None when all workers have.

        Raises:
          Exception: the error of this worker's input.
          AbortedError: another worker's input failed; the message names the worker and its error.
          FailedPreconditionError: the workers had to draw the same global batches, and did not.
        """
        facts = self._facts
        while not self._ended:
            while len(self._waiting) <= self._ahead:
                self._post()
            if not facts:
                facts.extend(self._agreements[0].result())
                self._agreements.popleft()
            drawn = self._waiting.popleft()
            have, rows, failed, total, squares = [facts.popleft() for _ in range(_FACTS)]
            if failed:
                self._end()
                self._raise(drawn.error)
            # All s_i are equal exactly if size * sum(s_i ** 2) is sum(s_i) ** 2.
            if self._alike and self._control.size * squares != total * total:
                self._end()
                self._raise_apart(drawn.parts)
            if not have:
                self._end()
                break
            self._state, self.rows, self.lacking = drawn.state, rows, not self._alike and total > 0
            if rows or self._rows_of is None:
                return drawn.parts
        return None

    def close(self) -> None:
        """Wait for the agreements under way, so that those of a later iteration stay in order.

        If the workers have lost one another, the wait ends without an error; the next call between workers raises it.
        """
        if not self._ended:
            with suppress(CollectiveError):
                self._end()

    def _post(self) -> None:
        """Draw the next few steps, and start an agreement on them."""
        self._block = min(self._block + 1, BLOCK)
        facts: list[int] = []
        state = self._waiting[-1].state if self._waiting else self._state
        for _ in range(self._block):
            parts: list[Any] = []
            error = None
            if not self._failed:
                try:
                    parts, state = self._draw()
                except Exception as failure:  # noqa: BLE001 - raised in its step, on all workers
                    error, parts, self._failed = failure, [], True
            self._waiting.append(Drawn(parts, state, error))
            rows = 0 if self._rows_of is None else self._rows_of(parts)
            facts += (len(parts), rows, int(error is not None), *self._size_facts(parts, rows))
        if callable(self._about):
            self._about = self._about()
        self._agreements.append(self._control.agree(facts, self._about))

    def _size_facts(self, parts: list[Any], rows: int) -> tuple[int, int]:
        """A size that must be equal on all workers and its square, if they are alike; else whether rows are lacking."""
        if not self._alike:
            return (int(self._lacks is not None and self._lacks(parts)), 0)
        size = (rows + 1) % _LARGEST if parts else 0
        return size, size * size

    def _end(self) -> None:
        self._ended = True
        self._waiting.clear()
        self._facts.clear()
        while self._agreements:
            self._agreements.popleft().result()

    def _raise(self, error: Exception | None) -> None:
        """Exchange the errors, and raise."""
        said = None if error is None else f"{type(error).__name__}: {_text(error)}"
        notes = [unpacked(data)[0] for data in self._control.all_gather(packed(said, []), name="a failed input")]
        if error is not None:
            raise error
        worker = next(i for i, note in enumerate(notes) if note is not None)
        raise AbortedError(f"the input of worker {worker} of {len(notes)} failed in this step: {notes[worker]}")

    def _raise_apart(self, parts: list[Any]) -> None:
        """Exchange the numbers of rows of this step, and raise an error that names the differences."""
        rows = self._rows_of(parts) if parts and self._rows_of is not None else None
        notes = [unpacked(data)[0] for data in self._control.all_gather(packed(rows, []))]
        had = ["nothing" if n is None else f"a batch of {n} rows" for n in notes]
        raise FailedPreconditionError(
            "the workers do not read the same elements, so records would be lost or delivered twice: in this step "
            + ", ".join([f"worker {worker} has {what}" for worker, what in enumerate(had)])
            + "".join([f"; {hint}" for hint in self._hints])
            + "; build the dataset alike on every worker, of the same data, with functions that decide alike, or use policy OFF"
        )


def _text(error: Exception) -> str:
    return "; ".join([str(error), *getattr(error, "__notes__", [])])


# ----------------------------------------------------------------------------
# Sources of the steps of one worker: the interface and functions common to the three kinds.
#
# `OwnPieces` reads only this worker's pieces of the global batches, `CutBatches` cuts them out of every global batch, and
# `DealtElements` gives one element of an input pipeline to each replica. A source is a description; its `Steps` are one
# iteration over it.
# ----------------------------------------------------------------------------


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
      earlier: makes the source that goes on with the states of a job of another layout; it gives None where none can.
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
    earlier: "Callable[[Mapping[str, Any]], StepSource | None] | None" = None

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
