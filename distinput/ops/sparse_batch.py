# SPDX-License-Identifier: Apache-2.0
"""`sparse_batch`: consecutive elements of several shapes as one sparse tensor."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Ints
from distinput.core.dense import Dense
from distinput.core.failure import Failure, sound_parts
from distinput.core.nest import Structure, structure_of
from distinput.core.regroup import column_of
from distinput.core.rows import Stream, loosened
from distinput.core.run import Run
from distinput.core.sparse_tensor import SparseTensor
from distinput.core.spec import RaggedTensorSpec, SparseTensorSpec, Spec, TensorSpec
from distinput.core.state import State
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.plan.batching import Stacking
from distinput.plan.check import at_least
from distinput.plan.needs import Needs

__all__ = ["SparseBatch"]


@dataclass(frozen=True, eq=False)
class SparseBatch(Stacking):
    """Collect `batch_size` consecutive elements, arrays of one rank, in a `SparseTensor` of all their values.

    Shapes: arrays [...] become a sparse tensor [batch_size, ...]; the last batch may have fewer rows. Order: unchanged, values
    in the order of rows. State: where the first element of the next batch stands in the input.

    Args:
      batch_size: elements in a batch, at least 1.
      row_shape: the shape of each row, at least that of every element; None or -1 in a dimension: the largest of the batch.

    Raises:
      TypeError: elements are not single arrays.
      InvalidArgumentError: `batch_size` is below 1; an element has another rank than `row_shape`.
      DataLossError: at iteration, an element is larger than `row_shape`.

    >>> import distinput as di
    >>> import numpy as np
    >>> ds = di.data.Dataset.range(1, 3).map(lambda n: np.full(n, n), output_signature=di.TensorSpec([None], "int64"))
    >>> batch, = ds.sparse_batch(2, row_shape=[4])
    >>> batch.indices.tolist(), batch.values.tolist(), batch.dense_shape.tolist()
    ([[0, 0], [1, 0], [1, 1]], [1, 2, 2], [2, 4])

    Source: `tf.data.Dataset.sparse_batch`.
    """

    needs: ClassVar[Needs] = Needs.PART
    batch_size: int
    row_shape: Any
    drop_remainder: ClassVar[bool] = False  # type: ignore[misc]  # the last batch is always kept

    def __post_init__(self) -> None:
        at_least("sparse_batch", "batch_size", self.batch_size, 1)
        assert self.row_dims is not None
        if self.input.known_spec is not None:
            assert self.leaf is not None  # what the elements tell is told now

    @cached_property
    def row_dims(self) -> tuple[int | None, ...]:
        """`row_shape` as a tuple, None for a dimension that is that of the largest element."""
        given = self.row_shape
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
            raise TypeError(f"sparse_batch: row_shape must be a list of sizes, got {given!r}")
        return tuple(
            [None if size is None or size == -1 else at_least("sparse_batch", "row_shape", size, 0) for size in given]
        )

    @cached_property
    def leaf(self) -> TensorSpec:
        """The spec of the only component."""
        spec = self.input.spec
        if not spec.structure.is_leaf or type(spec.leaves[0]) is not TensorSpec:
            raise TypeError(
                f"sparse_batch: elements must be single arrays, got {spec.nest}; choose a component with map"
            )
        leaf = spec.leaves[0]
        if leaf.shape is not None and len(leaf.shape) != len(self.row_dims):
            raise InvalidArgumentError(
                f"sparse_batch: row_shape must have the rank of the elements, got {list(self.row_dims)} for {leaf}"
            )
        return leaf

    @cached_property
    def rows_spec(self) -> Spec:
        rank = len(self.row_dims)
        if not rank:
            return self.input.spec
        return Spec(self.input.spec.structure, (RaggedTensorSpec([None] * rank, self.leaf.dtype, rank - 1),))

    @property
    def rows_known(self) -> Spec:
        return self.rows_spec

    @cached_property
    def spec(self) -> Spec:
        return Spec.of(SparseTensorSpec([None, *self.row_dims], self.leaf.dtype))

    def stream(self, state: State, run: Run) -> Stream:
        before = state
        for block, after in super().stream(state, run):
            if type(block) is Failure:
                yield block, after
            else:
                made = partial(self._part, block)
                for part, done in sound_parts(block.size, made, tolerant=run.tolerant):
                    rows = before["skip"] + done * int(self.batch_size)
                    yield part, after if done == block.size else {**before, "skip": rows}
            before = after

    def stacked(self, stream: Stream) -> Stream:
        if not self.row_dims:
            return stream
        return ((self._with_shapes(block) if block.size else block, state) for block, state in stream)

    def _with_shapes(self, block: Block) -> Block:
        """Rows beside their shapes, which ragged tensors do not tell where there are no values."""
        column, rank = block.columnar().columns[0], len(self.row_dims)
        rows = loosened(block, self.rows_spec).columnar().columns[0]
        if column.inner is not None:
            shapes = np.broadcast_to(np.array(column.inner, np.int64), (block.size, rank)).copy()
        else:
            shapes = np.array(list(map(np.shape, column.values())), np.int64)
        return ColumnBlock(_ROWS_AND_SHAPES, [rows, Dense(shapes)], block.size)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._sparse(super().fetch(rows, epoch))

    def _part(self, block: Block, first: int, end: int) -> Block:
        return self._sparse(block.rows(first, end))

    def _sparse(self, block: Block) -> Block:
        batches = [self._of(batch) for batch in block.elements()]
        columns = [column_of(list(parts)) for parts in zip(*batches, strict=True)]
        return ColumnBlock(_STRUCTURE, columns, block.size)

    def _of(self, batch: Any) -> SparseTensor:
        if not self.row_dims:
            return SparseTensor(np.arange(len(batch))[:, None], batch, np.array([len(batch)], np.int64))
        rows, shapes = batch
        made: SparseTensor = rows.to_sparse()
        count, largest = len(shapes), shapes.max(axis=0).tolist()
        for size, wanted in zip(largest, self.row_dims, strict=True):
            if wanted is not None and size > wanted:
                raise DataLossError(
                    f"sparse_batch: every element must fit row_shape {list(self.row_dims)}, got one with a dimension of "
                    f"{size}; give a larger row_shape, or None for the largest of each batch"
                )
        dims = [size if wanted is None else wanted for size, wanted in zip(largest, self.row_dims, strict=True)]
        return made._replace(dense_shape=np.array([count, *dims], np.int64))


_STRUCTURE: Structure = structure_of(SparseTensor(0, 0, 0))
_ROWS_AND_SHAPES: Structure = structure_of((0, 0))
