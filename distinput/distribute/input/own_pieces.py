# SPDX-License-Identifier: Apache-2.0
"""Steps of this worker's own pieces of the global batches, which it reads without the others."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, final

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator, Passes, resumed
from distinput.data.seal import Seal, place_in
from distinput.distribute.input.dealing import END, StepBuilder
from distinput.distribute.input.source import HALF_WAY, INFINITE, UNKNOWN, WHOLE, SeenShapes, Terms, cut_in_words
from distinput.errors import StateError
from distinput.plan.assignment import Assignment
from distinput.plan.fingerprint import allowances
from distinput.plan.node import Node
from distinput.sharding.own_rows import own_pieces
from distinput.values.spec import Spec

__all__ = ["OwnBatches", "OwnPiecesSource", "OwnSteps"]

# ---- A worker's own pieces of global batches, read without those of the others, with states of the whole dataset


class OwnBatches:
    """A dataset of global batches of which a worker reads only its own pieces.

    Its positions are positions in the global batches, so its states are those of the whole dataset: any number of
    workers can continue from them.

    Args:
      whole: the dataset of global batches.
      node: its tree without the final prefetch.
      assignment: the pieces that belong to this worker.
      ahead: how many pieces to prefetch.
      passes: the counter of passes; None before the first one.
    """

    def __init__(
        self, whole: Dataset, node: Node, assignment: Assignment, ahead: int, passes: Passes | None = None
    ) -> None:
        self._whole, self._node, self._assignment, self._ahead = whole, node, assignment, ahead
        self._passes = passes or Passes()
        self._runs = whole._runs()  # the tree that positions belong to
        self._seal = Seal(whole.node, self._runs)
        self.pieces = self._made(node)

    @staticmethod
    def of(whole: Dataset, node: Node, assignment: Assignment, ahead: int) -> "OwnBatches | None":
        """The batches as `OwnBatches`; None without random access to rows, so that a worker has to read all batches."""
        if assignment.each is None or own_pieces(node, assignment) is None:
            return None
        made = OwnBatches(whole, node, assignment, ahead)
        return None if made._runs.node.start_at(0, 0) is None else made

    def _made(self, node: Node) -> Dataset:
        pieces = own_pieces(node, self._assignment)
        assert pieces is not None, "the same tree with other seeds"
        return Dataset(pieces, self._passes).prefetch(self._ahead)

    @property
    def whole(self) -> Dataset:
        """The dataset of global batches."""
        return self._whole

    @property
    def node(self) -> Node:
        """Its tree, without the final prefetch."""
        return self._node

    @property
    def element_spec(self) -> Any:
        """The spec of a piece."""
        return self.pieces.element_spec

    def cardinality(self) -> int:
        """The number of pieces."""
        return self.pieces.cardinality()

    def __iter__(self) -> DatasetIterator:
        self._seal = Seal(self._whole.node, self._runs)  # its files are examined again
        return self.pieces.__iter__()

    def state(self, place: State, batches: int) -> State:
        """The state of the whole dataset after `batches` of its batches.

        Args:
          place: the position after this worker's pieces of them, of the iterator that returned the pieces.
          batches: the number of batches since the first pass began.
        """
        return self._seal({**place, "at": self._runs.node.start_at(batches, place["epoch"]), "skip": 0})

    def restore(self, state: State, batches: int, may_differ: Collection[str]) -> tuple["OwnBatches", DatasetIterator]:
        """An iterator of this worker's pieces of the batches after the first `batches` ones, and its `OwnBatches`.

        The latter uses the seeds that had been drawn when `state` was saved.

        Raises:
          StateError: the state belongs to another pipeline.
        """
        place, running = place_in(self._whole.node, self._runs, state, may_differ)
        plan, _ = resumed(self._whole.node, running, place)
        own = self
        if plan is not self._whole.node:
            own = OwnBatches(Dataset(plan), plan.inputs[0], self._assignment, self._ahead, self._passes)
        own._seal = Seal(own._whole.node, own._runs)
        pieces = own.pieces._runs()
        at = pieces.node.start_at(batches * (self._assignment.each or 0), place["epoch"])
        return own, own.pieces._goes_on({**place, "at": at, "skip": 0}, pieces)


# ---- A source of steps: each worker reads only its own pieces of each global batch


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
