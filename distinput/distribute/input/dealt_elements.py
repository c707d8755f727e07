# SPDX-License-Identifier: Apache-2.0
"""A source of steps: each replica in turn gets one element of an input pipeline."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, final

from distinput.columns.state import State
from distinput.distribute.core.replicas import CallDescription
from distinput.distribute.input.dealing import END, StepBuilder, has_rows, mark_of, rows_in
from distinput.distribute.input.source import (
    HALF_WAY,
    INFINITE,
    UNKNOWN,
    WHOLE,
    SeenShapes,
    Terms,
    close_input,
    lockstep_of,
    place_after,
    places_before,
    plan_of,
    resumed_input,
    sealed_place,
)
from distinput.errors import StateError
from distinput.plan.node import Node
from distinput.values.spec import Spec

__all__ = ["DealtElements", "DealtSteps"]

_SHAPES = CallDescription("next step of the input: the shapes of its rows", name="the shapes of a step")


@final
@dataclass(frozen=True)
class DealtElements:
    """Gives element k of a worker's dataset to its replica k mod R in step k div R; or each has its own dataset.

    Args:
      terms: the properties of all steps.
      datasets: one for all replicas of this worker, or one for each of them.
      spec: the spec of an element.
      whole: True if elements are global batches for the only replica, so that a place in them is a place in all data.
      has_rows: True if elements are parts of global batches, so that a step in which no worker has a row is skipped.
      tree_of: the tree that a worker reads, for those who ask about other workers; None if only its own is known.
    """

    terms: Terms
    datasets: Sequence[Any]
    spec: Spec
    whole: bool = False
    has_rows: bool = True
    tree_of: Callable[[int], Node] | None = field(default=None, repr=False)

    fails_alone = True
    cut = "one element of the input for each replica, in turn"
    reads = "this worker's part of the data"

    @property
    def agrees(self) -> bool:
        terms = self.terms
        # No worker can tell from its own part whether a step is full, even if the data never ends.
        return terms.agrees or (terms.full_rows > 0 and terms.replicas.workers > 1)

    @property
    def num_steps(self) -> int:
        terms = self.terms
        if terms.cardinality == INFINITE:
            return INFINITE
        if terms.steps is not None and not terms.full_rows:
            return terms.steps
        if self.whole or len(self.datasets) > 1 or terms.replicas.workers > 1 or terms.full_rows:
            return UNKNOWN
        elements = int(self.datasets[0].cardinality())
        if elements < 0:
            return elements
        return -(-elements // terms.replicas.count) if terms.keeps_partial else elements // terms.replicas.count

    @property
    def layout(self) -> Mapping[str, Any]:
        if self.whole:
            return WHOLE
        replicas, cut = self.terms.replicas, "per_replica" if len(self.datasets) > 1 else "per_worker"
        return {"replicas": replicas.total, "workers": replicas.workers, "cut": cut}

    @property
    def pipelines(self) -> int:
        return len(self.datasets)

    @property
    def plan(self) -> str | None:
        return plan_of(self.datasets[0])

    def begin(self) -> "DealtSteps":
        return DealtSteps(self, [iter(dataset) for dataset in self.datasets], 0, None)

    def restore(
        self, inputs: Sequence[State], step: int, seen: SeenShapes, may_differ: str | Collection[str]
    ) -> "DealtSteps":
        pairs = zip(self.datasets, inputs, strict=True)
        return DealtSteps(self, [resumed_input(dataset, state, may_differ) for dataset, state in pairs], step, seen)


@final
class DealtSteps:
    """One iteration over `DealtElements`.

    Args:
      source: the source to iterate.
      iterators: the iterators of its datasets.
      step: how many steps were taken before.
      seen: the shapes of the last element before.
    """

    def __init__(self, source: DealtElements, iterators: Sequence[Any], step: int, seen: SeenShapes) -> None:
        terms = self._terms = source.terms
        self._iterators = iterators
        self._one = iterators[0] if len(iterators) == 1 else None
        self._replicas, self._full = terms.replicas.count, terms.full_rows > 0
        self._rows = partial(rows_in, source.spec.structure)
        self._build, self._cut = StepBuilder(source.spec, terms.replicas, seen), source.has_rows
        # A replica without others sees its end itself; steps that failed were not delivered, so counting would go wrong.
        self._left = None if terms.steps is None or terms.replicas.total == 1 else terms.steps - step
        self._pending: list[Any] = []  # drawn for a step that was cut short
        self._before = [mark_of(iterator) for iterator in iterators]
        self._failed = False  # that step, with an error
        self.partial = False
        self._lockstep = None
        if source.agrees:
            rows_of = self._rows if source.has_rows else None
            lacks = partial(self._build.stand_in.lacks, replicas=self._replicas, cut=source.has_rows)
            self._lockstep = lockstep_of(terms, iterators[0], self._replicas, rows_of, alike=False, lacks=lacks)

    def next(self, keeps_partial: bool) -> Any:
        if self._lockstep is not None:
            return self._agreed()
        steps_left = None if self._left is None else self._left - 1
        if steps_left == -1:
            return END
        replicas, parts = self._replicas, self._pending
        if not parts:
            self._before = [mark_of(iterator) for iterator in self._iterators]
        try:
            missing = self._draw(parts)
        except Exception:
            self._left, self._failed = steps_left, True
            raise
        if missing and self._left is None and (missing == replicas or not keeps_partial):
            parts.clear()
            return END
        if self._full and self._terms.leaves_out(self._rows(parts)):
            parts.clear()
            return END
        step = self._build([*parts], missing)
        self._pending, self._failed, self._left, self.partial = (
            [],
            False,
            steps_left,
            missing > 0 and steps_left is None,
        )
        return step  # no function is called before it is taken

    def _draw(self, parts: list[Any]) -> int:
        """Draw what is missing for a step; how many replicas get nothing."""
        if self._one is not None:
            parts.extend(islice(self._one, self._replicas - len(parts)))
            return self._replicas - len(parts)
        for iterator in self._iterators[len(parts) :]:
            for part in iterator:
                parts.append(part)
                break
            else:
                parts.append(END)
        return sum([part is END for part in parts])

    def _agreed(self) -> Any:
        lockstep = self._lockstep
        assert lockstep is not None
        parts = lockstep.next()
        if parts is None:
            return END
        if self._full and self._terms.leaves_out(lockstep.rows):
            lockstep.close()
            return END
        seen = self._shapes_of_others(parts) if lockstep.lacking else None
        return self._build(parts, self._replicas - len(parts), seen)

    def _shapes_of_others(self, parts: list[Any]) -> SeenShapes:
        """The shapes of the rows of the first worker that has some; empty pieces of this worker become placeholders of them.

        All workers call this in the same step.
        """
        stand_in, peers = self._build.stand_in, self._terms.replicas.peers
        assert peers is not None, "only several workers agree"
        mine = [stand_in.shapes(part) for part in parts]
        own = next((shapes for shapes in mine if has_rows(shapes)), None)
        told = peers.exchange(_SHAPES, lambda: (own, []), peers.control)
        seen: SeenShapes = next((shapes for shapes, _ in told if shapes is not None), None)
        if seen is not None and self._cut:
            empty = stand_in.element(seen)
            parts[:] = [part if has_rows(shapes) else empty for part, shapes in zip(parts, mine, strict=True)]
        return seen

    @property
    def seen(self) -> SeenShapes:
        return self._build.seen

    @property
    def beginning(self) -> tuple[int | None, Sequence[int] | None]:
        return self._iterators[0].epoch if self._terms.alike else None, None

    def places(self, waiting: bool = False) -> list[State]:
        if self._pending and self._failed:
            raise StateError(HALF_WAY)
        if self._lockstep is None and (waiting or self._pending):
            return places_before(self._iterators, self._before)
        return [place_after(iterator, self._lockstep) for iterator in self._iterators]

    def inputs(self, step: int, places: Sequence[State]) -> list[State]:
        return [sealed_place(iterator, place) for iterator, place in zip(self._iterators, places, strict=True)]

    def close(self) -> None:
        self._pending = []
        self._build.close()
        if self._lockstep is not None:
            self._lockstep.close()
        for iterator in self._iterators:
            close_input(iterator)
