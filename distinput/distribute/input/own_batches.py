# SPDX-License-Identifier: Apache-2.0
"""A worker's own pieces of global batches, read without those of the others, with states of the whole dataset."""

from collections.abc import Collection
from typing import Any

from distinput.core.state import State
from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator, resumed
from distinput.data.passes import Passes
from distinput.data.seal import Seal, place_in
from distinput.partition.assignment import Assignment
from distinput.plan.node import Node
from distinput.sharding.own_rows import own_pieces

__all__ = ["OwnBatches"]


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
