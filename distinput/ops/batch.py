# SPDX-License-Identifier: Apache-2.0
"""`batch`, `ragged_batch` and `sparse_batch`: consecutive elements as one."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, Failure, sound_parts
from distinput.columns.column import Dense, Ints
from distinput.columns.regroup import column_of
from distinput.columns.rows import Stream, loosened
from distinput.columns.state import State
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.names.lazy import dataclass, later
from distinput.plan.check import at_least, parallel_calls
from distinput.plan.families import Stacking
from distinput.run.run import Run
from distinput.values.leaves import as_dtype
from distinput.values.nest import Structure, structure_of
from distinput.values.spec import LeafSpec, RaggedTensorSpec, SparseTensorSpec, Spec, TensorSpec

if TYPE_CHECKING:
    from distinput.values import sparse_tensor
else:
    sparse_tensor = later("distinput.values.sparse_tensor")  # for sparse_batch

# ----------------------------------------------------------------------------
# `batch`: consecutive elements stacked.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Batch(Stacking):
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

    batch_size: int
    drop_remainder: bool = False
    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    def __post_init__(self) -> None:
        at_least("batch", "batch_size", self.batch_size, 1)
        parallel_calls("batch", self.num_parallel_calls)

    @property
    def rows_per_batch(self) -> int | None:
        # In TensorFlow a parallel batch is another op, at which the search for the batch size stops.
        return int(self.batch_size) if self.num_parallel_calls is None else None


# ----------------------------------------------------------------------------
# `ragged_batch`: consecutive elements of several lengths stacked without padding.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RaggedBatch(Stacking):
    """Stack `batch_size` consecutive elements, which may differ in shape, into one.

    The element spec decides, never the data: a component whose shape is known is stacked as `batch` does. One with unknown
    dimensions becomes a `RaggedTensor`, which is ragged up to the last unknown dimension. One that is a `RaggedTensor` already
    becomes a ragged tensor of one more dimension.

    Shapes: [...] becomes [batch_size, ...]; the last batch may have fewer rows. Order: unchanged. State: where the first
    element of the next batch stands in the input. No value is copied where rows lie one after the other.

    Args:
      batch_size: elements in a batch, at least 1.
      drop_remainder: leave out a last batch that is not full.
      row_splits_dtype: accepted as TensorFlow's, int32 or int64; row splits are int64.

    Raises:
      InvalidArgumentError: `batch_size` is below 1, or another `row_splits_dtype`; at iteration, elements of a batch differ in
        a dimension that is not ragged, or in rank.

    >>> import distinput as di
    >>> import numpy as np
    >>> ds = di.data.Dataset.range(4).map(lambda n: np.arange(n), output_signature=di.TensorSpec([None], "int64"))
    >>> for batch in ds.ragged_batch(2):
    ...     print(batch)
    RaggedTensor([[], [0]], dtype=int64)
    RaggedTensor([[0, 1], [0, 1, 2]], dtype=int64)

    Source: `tf.data.Dataset.ragged_batch`.
    """

    batch_size: int
    drop_remainder: bool = False
    row_splits_dtype: Any = "int64"

    def __post_init__(self) -> None:
        at_least("ragged_batch", "batch_size", self.batch_size, 1)
        if as_dtype(self.row_splits_dtype) not in (np.int32, np.int64):
            raise InvalidArgumentError(
                f"ragged_batch: row_splits_dtype must be int32 or int64, got {self.row_splits_dtype!r}; row splits are int64"
            )

    def arguments(self) -> dict[str, Any]:
        return {name: value for name, value in super().arguments().items() if name != "row_splits_dtype"}

    @cached_property
    def rows_spec(self) -> Spec:
        return self.input.spec.map(ragged_row)

    @property
    def rows_known(self) -> Spec:
        return self.rows_spec


def ragged_row(leaf: LeafSpec) -> LeafSpec:
    """The spec of a leaf as a row of the ragged tensors to be; itself if its shape is known."""
    if not isinstance(leaf, TensorSpec) or isinstance(leaf, RaggedTensorSpec | SparseTensorSpec) or leaf.shape is None:
        return leaf
    unknown = [axis for axis, size in enumerate(leaf.shape) if size is None]
    return RaggedTensorSpec(leaf.shape, leaf.dtype, unknown[-1]) if unknown else leaf


# ----------------------------------------------------------------------------
# `sparse_batch`: consecutive elements of several shapes as one sparse tensor.
# ----------------------------------------------------------------------------


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

    batch_size: int
    row_shape: Any
    drop_remainder: ClassVar[bool] = False  # type: ignore[misc]  # the last batch is always kept

    def __post_init__(self) -> None:
        at_least("sparse_batch", "batch_size", self.batch_size, 1)
        self.row_dims  # noqa: B018 - checked now
        if self.input.known_spec is not None:
            self.leaf  # noqa: B018 - what the elements tell is told now

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
                for part, done in sound_parts(block.size, partial(self._part, block), tolerant=run.tolerant):
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
        return ColumnBlock(self.spec.structure, columns, block.size)

    def _of(self, batch: Any) -> "sparse_tensor.SparseTensor":
        if not self.row_dims:
            return sparse_tensor.SparseTensor(np.arange(len(batch))[:, None], batch, np.array([len(batch)], np.int64))
        rows, shapes = batch
        made: sparse_tensor.SparseTensor = rows.to_sparse()
        count, largest = len(shapes), shapes.max(axis=0).tolist()
        for size, wanted in zip(largest, self.row_dims, strict=True):
            if wanted is not None and size > wanted:
                raise DataLossError(
                    f"sparse_batch: every element must fit row_shape {list(self.row_dims)}, got one with a dimension of "
                    f"{size}; give a larger row_shape, or None for the largest of each batch"
                )
        dims = [size if wanted is None else wanted for size, wanted in zip(largest, self.row_dims, strict=True)]
        return made._replace(dense_shape=np.array([count, *dims], np.int64))


_ROWS_AND_SHAPES: Structure = structure_of((0, 0))
