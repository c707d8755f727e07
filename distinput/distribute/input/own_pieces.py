# SPDX-License-Identifier: Apache-2.0
"""A source of steps: each worker reads only its own pieces of each global batch."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, final

from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.distribute.input.drawing import END
from distinput.distribute.input.own_batches import OwnBatches
from distinput.distribute.input.source import HALF_WAY, WHOLE, SeenShapes, cut_in_words
from distinput.distribute.input.step_builder import StepBuilder
from distinput.distribute.input.terms import INFINITE, UNKNOWN, Terms
from distinput.errors import StateError
from distinput.plan.fingerprint import allowances

__all__ = ["OwnPiecesSource", "OwnSteps"]


@final
@dataclass(frozen=True)
class OwnPiecesSource:
    """Each worker reads only its own pieces of the global batches; all workers know the number of steps beforehand.

    Args:
      terms: the properties of all steps.
      batches: the global batches, of which this worker's pieces are read.
      spec: the spec of a piece.
      balanced: True if the pieces of a batch differ by at most one row.
    """

    terms: Terms
    batches: OwnBatches
    spec: Spec
    balanced: bool

    agrees = False
    fails_alone = True
    layout = WHOLE
    pipelines = 1
    reads = "only this worker's rows of each global batch"
    plan = None

    @property
    def cut(self) -> str:
        return cut_in_words(self.balanced)

    @property
    def num_steps(self) -> int:
        if self.terms.cardinality == INFINITE:
            return INFINITE
        return UNKNOWN if self.terms.steps is None else self.terms.steps

    def begin(self) -> "OwnSteps":
        return OwnSteps(self, self.batches, iter(self.batches), 0, None)

    def restore(
        self, inputs: Sequence[State], step: int, seen: SeenShapes, may_differ: str | Collection[str]
    ) -> "OwnSteps":
        batches, iterator = self.batches.restore(inputs[0], step, allowances(may_differ))
        return OwnSteps(self, batches, iterator, step, seen)


@final
class OwnSteps:
    """One iteration over `OwnPiecesSource`.

    Args:
      source: the source to iterate.
      batches: the batches of the source, with the seeds of a restored iteration if there is one.
      iterator: the iterator of the pieces.
      step: how many steps were taken before.
      seen: the shapes of the last element before.
    """

    def __init__(
        self, source: OwnPiecesSource, batches: OwnBatches, iterator: Any, step: int, seen: SeenShapes
    ) -> None:
        terms = source.terms
        self._batches, self._iterator, self._alike = batches, iterator, terms.alike
        self._replicas = terms.replicas.count
        self._build = StepBuilder(source.spec, terms.replicas, seen)
        self._left = None if terms.steps is None else terms.steps - step
        self._pending: list[Any] = []  # drawn for a step that was cut short
        self._before = iterator.mark()
        self._failed = False  # that step, with an error
        self.partial = False

    def next(self, keeps_partial: bool) -> Any:
        steps_left = None if self._left is None else self._left - 1
        if steps_left == -1:
            return END
        parts = self._pending
        if not parts:
            self._before = self._iterator.mark()
        try:
            parts.extend(islice(self._iterator, self._replicas - len(parts)))
        except Exception:
            self._left, self._failed = steps_left, True
            raise
        missing = self._replicas - len(parts)
        if missing and self._left is None and (missing == self._replicas or not keeps_partial):
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

    @property
    def seen(self) -> SeenShapes:
        return self._build.seen

    @property
    def beginning(self) -> tuple[int | None, Sequence[int] | None]:
        return (self._iterator.epoch, self._iterator.seeds) if self._alike else (None, None)

    def places(self, waiting: bool = False) -> list[State]:
        if self._pending and self._failed:
            raise StateError(HALF_WAY)
        return [self._iterator.place(self._before if waiting or self._pending else None)]

    def inputs(self, step: int, places: Sequence[State]) -> list[State]:
        return [self._batches.state(places[0], step)]

    def close(self) -> None:
        self._pending = []
        self._build.close()
        self._iterator.close()
