# SPDX-License-Identifier: Apache-2.0
"""Steps that make batches: groups of consecutive elements, each stacked into one."""

import dataclasses
from functools import cached_property
from itertools import chain
from typing import ClassVar

import numpy as np

from distinput.core.block import Block
from distinput.core.column import Ints, StackError
from distinput.core.failure import Failure, stacked_parts
from distinput.core.rows import RowQueue, Stream, stackable
from distinput.core.run import Run
from distinput.core.spec import LeafSpec, Spec
from distinput.core.state import State
from distinput.core.trouble import trouble_of
from distinput.errors import InvalidArgumentError
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.grouped import Grouped
from distinput.plan.node import UNKNOWN, Node

__all__ = ["Batching", "Stacking", "differing"]


class Batching(Grouped):
    """A `Grouped` step whose groups are batches of `batch_size` elements.

    Subclasses have both arguments among their fields, in TensorFlow's order.
    """

    by_element: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    batch_size: int
    drop_remainder: bool

    @property
    def step(self) -> int:
        return int(self.batch_size)

    @property
    def cardinality(self) -> int:
        return self.groups(full=self.drop_remainder)

    @property
    def drops_rows(self) -> bool:
        return bool(self.drop_remainder)

    @property
    def rows_per_batch(self) -> int | None:
        return int(self.batch_size)

    def with_full_batches(self) -> Node:
        return dataclasses.replace(self, drop_remainder=True)  # type: ignore[call-arg]  # a field of every subclass

    def batch_sizes(self) -> BatchSizes | None:
        n = self.input.count_elements()
        return (
            None if n < 0 else BatchSizes.of([([1], n)]).batched(int(self.batch_size), drop_remainder=self.drops_rows)
        )


class Stacking(Batching):
    """A `Batching` step that stacks elements as they are."""

    view_only: ClassVar[bool] = True
    num_parallel_calls: int | None = None

    @cached_property
    def rows_spec(self) -> Spec:
        """What is stacked: the elements, of which some leaves may be rows of ragged tensors."""
        return self.input.spec

    @property
    def rows_known(self) -> Spec | None:
        """`rows_spec`, where it is needed to stack rows; None: columns tell which rows are those of ragged tensors."""
        return None

    def stacked(self, stream: Stream) -> Stream:
        """What is stacked of the elements of a stream: these, with rows of ragged tensors marked as such."""
        for block, state in stream:
            if block.size:  # the spec may be that of a function, which is not tried where it fails for all elements
                yield from stackable(chain([(block, state)], stream), self.rows_known)
                return
            yield block, state

    @cached_property
    def spec(self) -> Spec:
        self.rows_spec.tensors(self.op)
        first = int(self.batch_size) if self.drop_remainder else None
        return self.rows_spec.map(lambda leaf: _batched(leaf, first))

    def stream(self, state: State, run: Run) -> Stream:
        queue = RowQueue(self._rows(self.input.open(state["input"], run)), state)
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
            for made, done in stacked_parts(block, size, differing, tolerant=run.tolerant):
                yield made, queue.mark() if done == block.size else {**before, "skip": before["skip"] + done}

    def _rows(self, stream: Stream) -> Stream:
        """The elements, with rows of ragged tensors marked as such; what they are is asked when there are some."""
        for block, after in stream:
            if block.size:
                yield from self.stacked(chain(((block, after),), stream))
            else:
                yield block, after

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

    @property
    def fetches(self) -> bool:
        return self.input.random_access and self.input.cardinality != UNKNOWN

    def fetch(self, rows: Ints, epoch: int) -> Block:
        size, n = int(self.batch_size), self.input.cardinality
        wanted = (rows[:, None] * size + np.arange(size)).reshape(-1)
        whole = n < 0 or not len(rows) or (rows.max() + 1) * size <= n
        found = self.input.fetch(wanted if whole else wanted[wanted < n], epoch)
        ((block, _),) = self.stacked(iter([(found, {})]))
        try:
            # The last batch may have fewer rows.
            return block.stack(size) if whole else block.split(np.minimum(size, n - rows * size))
        except StackError as error:
            raise differing(error) from None


def differing(error: StackError) -> InvalidArgumentError:
    """What users are told of elements that cannot be stacked."""
    made = InvalidArgumentError(
        f"Cannot batch tensors with different shapes{error.where}: {error}; pad them with padded_batch, or bring them to one "
        "shape"
    )
    trouble_of(made).row = error.row
    return made


def _batched(leaf: LeafSpec, first: int | None) -> LeafSpec:
    """The spec of stacked elements: that of one with a new first dimension."""
    return leaf.with_shape(None if leaf.shape is None else (first, *leaf.shape))
