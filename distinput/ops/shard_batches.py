# SPDX-License-Identifier: Apache-2.0
"""`shard_batches`: one worker's rows of every global batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Column
from distinput.core.dense import Dense
from distinput.core.failure import Failure, sound_parts
from distinput.core.regroup import column_of
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Run
from distinput.core.sizes import balanced_slice
from distinput.core.sparse_rows import SparseRows, unfolded
from distinput.core.sparse_tensor import sparse_rows
from distinput.core.spec import LeafSpec, Spec, TensorSpec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError
from distinput.ops.unbatch import first_dimension, row_counts
from distinput.plan.check import at_least, integer
from distinput.plan.node import Node
from distinput.plan.seeds import own_draw

__all__ = ["ShardBatches"]


@dataclass(frozen=True, eq=False)
class ShardBatches(Node):
    """The rows of worker `index` in each batch: consecutive rows, whose number differs by at most one between workers.

    For training loops without a strategy: every worker has the same number of steps, the rows of all workers together are the
    batch, and a worker may get no row of a short batch. Shapes: [b, ...] becomes [b / num_shards rounded up or down, ...], as
    views. State: where the input stands, and after how many batches, -1 if that is not known; it resumes on any number of
    workers, and so does that of a process that iterated the batches without this step.

    Args:
      num_shards: how many workers share each batch, at least 1.
      index: which of them this worker is, from 0.

    Raises:
      InvalidArgumentError: `index` is not one of the shards, elements have no batch axis, or their order is random and was
        given no seed, so that each process would cut other batches.

    >>> import distinput as di
    >>> di.data.Dataset.range(7).batch(5).shard_batches(num_shards=2, index=1).to_list()
    [[3, 4], [6]]

    Source: distinput's own; the balanced cut of `InputOptions(balanced_split=True)`.
    """

    tolerant: ClassVar[bool] = True
    indifferent: ClassVar[frozenset[str]] = frozenset(
        {"num_shards", "index"}
    )  # a state is a position in the global batches
    input: Node
    num_shards: int
    index: int

    def __post_init__(self) -> None:
        at_least("shard_batches", "num_shards", self.num_shards, 1)
        if not 0 <= integer("shard_batches", "index", self.index) < self.num_shards:
            raise InvalidArgumentError(
                f"shard_batches: index must be from 0 to {self.num_shards - 1}, got {self.index}"
            )
        first_dimension("shard_batches", self.input.spec)

    def added(self) -> Self:
        if self.num_shards > 1 and (step := own_draw(self.input, self.num_shards)) is not None:
            raise InvalidArgumentError(
                f"shard_batches: all workers must have the same batches in the same order, but {step}, made at {step.origin}, "
                "was given no seed, so each process draws its own: records would be lost and others delivered twice; give it "
                "a seed, the same on all workers (seed=1)"
            )
        return self

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec.map(self._share)

    def _share(self, leaf: LeafSpec) -> LeafSpec:
        assert isinstance(leaf, TensorSpec)
        if not leaf.shape:
            return leaf
        rows = leaf.shape[0]
        size = None if rows is None else len(range(rows)[balanced_slice(rows, self.num_shards, self.index)])
        return leaf.with_shape((size, *leaf.shape[1:]))

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "batch": 0, "epoch": epoch}

    def start_at(self, row: int, epoch: int) -> State | None:
        at = self.input.start_at(row, epoch)
        return None if at is None else {"input": at, "batch": row, "epoch": epoch}

    def stream(self, state: State, run: Run) -> Stream:
        begin = state["batch"]

        def here(done: int, mark: State) -> State:
            made = {"input": mark["input"], "batch": -1 if begin < 0 else begin + done, "epoch": state["epoch"]}
            return {**made, "skip": mark["skip"]} if mark["skip"] else made

        upstream = self.input.open(state["input"], run)
        for block, _, _, at in passing_over(upstream, {"input": state["input"], "skip": state.get("skip", 0)}):
            if type(block) is Failure:
                yield block, here(1, at(0))
                begin += begin >= 0
                continue
            for part, done in self._parts(block, run):
                yield part, here(done, at(done))
            begin += block.size if begin >= 0 else 0

    def _parts(self, block: Block, run: Run) -> Iterator[tuple[Block, int]]:
        """The worker's rows of all batches, in parts, each with the batch after it."""
        return sound_parts(block.size, lambda first, end: self._shares(block.rows(first, end)), tolerant=run.tolerant)

    def _shares(self, block: Block) -> Block:
        if self.num_shards == 1:
            return block
        counts, error = row_counts("shard_batches", block)
        if error is not None:
            raise error
        columns = [self._rows(column, counts) for column in block.materialize().folded().columns]
        return ColumnBlock(block.structure, unfolded(columns), block.size)

    def _rows(self, column: Column, counts: Any) -> Column:
        if isinstance(column, Dense):
            return Dense(column.array[:, balanced_slice(int(counts[0]), self.num_shards, self.index)])
        shares = [balanced_slice(n, self.num_shards, self.index) for n in counts.tolist()]
        if isinstance(column, SparseRows):
            parts = [sparse_rows(value, share) for value, share in zip(column.values(), shares, strict=True)]
            return SparseRows(*[column_of(list(each)) for each in zip(*parts, strict=True)])
        return column_of([value[share] for value, share in zip(column.values(), shares, strict=True)], column.dtype)

    @property
    def random_access(self) -> bool:
        return self.input.random_access

    def fetch(self, rows: np.ndarray[Any, np.dtype[np.int64]], epoch: int) -> Block:
        return self._shares(self.input.fetch(rows, epoch))
