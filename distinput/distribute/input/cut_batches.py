# SPDX-License-Identifier: Apache-2.0
"""A source of steps: every worker reads all global batches and cuts its own pieces out of each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from distinput.columns.state import State
from distinput.distribute.input.dealing import END, Cutter, StepBuilder, mark_of, rows_in
from distinput.distribute.input.source import (
    INFINITE,
    UNKNOWN,
    WHOLE,
    SeenShapes,
    Terms,
    close_input,
    cut_in_words,
    lockstep_of,
    place_after,
    places_before,
    plan_of,
    resumed_input,
    sealed_place,
)
from distinput.values.spec import Spec

__all__ = ["CutBatches", "CutSteps"]


@final
@dataclass(frozen=True)
class CutBatches:
    """Each worker reads all global batches and keeps its pieces of them.

    Args:
      terms: the properties of all steps.
      dataset: the global batches.
      cutter: cuts them.
      spec: the spec of a piece.
      balanced: True if the pieces of a batch differ by at most one row.
    """

    terms: Terms
    dataset: Any
    cutter: Cutter
    spec: Spec
    balanced: bool

    fails_alone = False  # all workers read the same elements and meet the same error
    layout = WHOLE
    pipelines = 1
    reads = "all global batches, of which this worker keeps its rows: not all rows can be reached by position"

    @property
    def agrees(self) -> bool:
        return self.terms.agrees

    @property
    def cut(self) -> str:
        return cut_in_words(self.balanced)

    @property
    def num_steps(self) -> int:
        if self.terms.cardinality == INFINITE:
            return INFINITE
        return UNKNOWN if self.terms.steps is None or self.terms.full_rows else self.terms.steps

    @property
    def plan(self) -> str | None:
        return plan_of(self.dataset)

    def begin(self) -> "CutSteps":
        return CutSteps(self, iter(self.dataset), None)

    def restore(
        self, inputs: Sequence[State], step: int, seen: SeenShapes, may_differ: str | Collection[str]
    ) -> "CutSteps":
        return CutSteps(self, resumed_input(self.dataset, inputs[0], may_differ), seen)


@final
class CutSteps:
    """One iteration over `CutBatches`.

    Args:
      source: the source to iterate.
      iterator: the iterator of the global batches.
      seen: the shapes of the last element of a restored iteration.
    """

    partial = False

    def __init__(self, source: CutBatches, iterator: Any, seen: SeenShapes) -> None:
        terms = self._terms = source.terms
        self._iterator, self._cutter = iterator, source.cutter
        self._full = terms.full_rows > 0
        self._rows = partial(rows_in, source.spec.structure)
        self._seen = seen
        self._pending: tuple[Any, ...] = ()  # drawn for a step that an interrupt cut short
        self._before = mark_of(iterator)
        # One worker can run out of batches while others continue only where workers agree on each step.
        self._build = StepBuilder(source.spec, terms.replicas, seen) if source.agrees else None
        self._lockstep = lockstep_of(terms, iterator, 1, self._rows, alike=terms.alike) if source.agrees else None

    def next(self, keeps_partial: bool) -> Any:
        if self._lockstep is None:
            if not self._pending:
                self._before = mark_of(self._iterator)
                for batch in self._iterator:
                    self._pending = (batch,)
                    break
                else:
                    return END
            try:
                leaves_out = self._full and self._terms.leaves_out(self._rows([*self._pending]))
                step = END if leaves_out else self._cutter(*self._pending)
            except Exception:
                self._pending = ()
                raise
            self._pending = ()
            return step  # no function is called before it is taken
        drawn = self._lockstep.next()
        if drawn is None:
            return END
        if self._full and self._terms.leaves_out(self._rows(drawn)):
            self._lockstep.close()
            return END
        if drawn:
            return self._cutter(drawn[0])
        assert self._build is not None
        return self._build([], self._terms.replicas.count)

    @property
    def seen(self) -> SeenShapes:
        return self._seen if self._build is None else self._build.seen

    @property
    def beginning(self) -> tuple[int | None, Sequence[int] | None]:
        return (self._iterator.epoch, self._iterator.seeds) if self._terms.alike else (None, None)

    def places(self, waiting: bool = False) -> list[State]:
        if waiting or self._pending:
            return places_before([self._iterator], [self._before])
        return [place_after(self._iterator, self._lockstep)]

    def inputs(self, step: int, places: Sequence[State]) -> list[State]:
        return [sealed_place(self._iterator, places[0])]

    def close(self) -> None:
        self._pending = ()
        if self._build is not None:
            self._build.close()
        if self._lockstep is not None:
            self._lockstep.close()
        close_input(self._iterator)
