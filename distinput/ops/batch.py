# SPDX-License-Identifier: Apache-2.0
"""`batch`: consecutive elements stacked."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from distinput.core.block import Block
from distinput.core.column import Ints, StackError
from distinput.core.failure import Failure, stacked_parts
from distinput.core.rows import RowQueue, Stream
from distinput.core.run import Run
from distinput.core.spec import LeafSpec, Spec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError
from distinput.plan.batching import Batching
from distinput.plan.check import at_least, parallel_calls

__all__ = ["Batch"]


@dataclass(frozen=True, eq=False)
class Batch(Batching):
    """Stack `batch_size` consecutive elements into one.

    Shapes: [...] becomes [batch_size, ...]; the last batch may have fewer rows. Order: unchanged. State: where the first
    element of the next batch stands in the input.

    Args:
      batch_size: elements in a batch, at least 1.
      drop_remainder: leave out a last batch that is not full.
      num_parallel_calls, deterministic: accepted as TensorFlow's; stacking is a view and needs no threads.

    Raises:
      InvalidArgumentError: `batch_size` is below 1; at iteration, elements of one batch differ in shape.

    >>> import distinput as di
    >>> list(di.data.Dataset.range(5).batch(2).as_numpy_iterator())
    [array([0, 1]), array([2, 3]), array([4])]

    Source: `tf.data.Dataset.batch`.
    """

    view_only: ClassVar[bool] = True
    batch_size: int
    drop_remainder: bool = False
    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    def __post_init__(self) -> None:
        at_least("batch", "batch_size", self.batch_size, 1)
        parallel_calls("batch", self.num_parallel_calls)

    @cached_property
    def spec(self) -> Spec:
        self.input.spec.tensors("batch")
        first = int(self.batch_size) if self.drop_remainder else None
        return self.input.spec.map(lambda leaf: batched(leaf, first))

    @property
    def rows_per_batch(self) -> int | None:
        # In TensorFlow a parallel batch is another op, at which the search for the batch size stops.
        return int(self.batch_size) if self.num_parallel_calls is None else None

    def stream(self, state: State, run: Run) -> Stream:
        queue = RowQueue(self.input.open(state["input"], run), state)
        size = int(self.batch_size)
        while True:
            before = queue.mark()
            block = queue.whole(size)
            if block is None:
                if queue.fill(size):
                    block = queue.take_groups(size, lazily=run.by_element)
                elif queue.failure is not None:
                    yield self._lost(queue), queue.mark()
                    continue
                elif queue.size and not self.drop_remainder:
                    size = queue.size
                    block = queue.take(size)
                else:
                    return
            for made, done in stacked_parts(block, size, _differing, tolerant=run.tolerant):
                yield made, queue.mark() if done == block.size else {**before, "skip": before["skip"] + done}

    def _lost(self, queue: RowQueue) -> Failure:
        """The next failure. The elements gathered for its batch are lost with it; after a `map`, the whole batch is."""
        left = self.batch_size - queue.size - 1
        failure = queue.passed()
        while left and self.num_parallel_calls is None and self.input.fails_in_place:
            queue.fill(left)
            size = min(left, queue.size)
            queue.skip(size)
            left -= size
            if left:
                if queue.failure is None:
                    break
                queue.passed()
                left -= 1
        return failure

    @cached_property
    def may_fail(self) -> bool:
        return self.input.may_fail or not self.input.spec.is_static

    @property
    def random_access(self) -> bool:
        return (
            self.input.random_access
            and self.input.cardinality >= 0
            and self.cardinality * self.batch_size == (self.input.cardinality)
        )

    def fetch(self, rows: Ints, epoch: int) -> Block:
        wanted = (rows[:, None] * self.batch_size + np.arange(self.batch_size)).reshape(-1)
        return self.input.fetch(wanted, epoch).stack(int(self.batch_size))


def _differing(error: StackError) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Cannot batch tensors with different shapes: {error}; pad them with padded_batch, or bring them to one shape"
    )


def batched(leaf: LeafSpec, first: int | None) -> LeafSpec:
    """The spec of stacked elements: that of one with a new first dimension."""
    return leaf.with_shape(None if leaf.shape is None else (first, *leaf.shape))
