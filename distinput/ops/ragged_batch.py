# SPDX-License-Identifier: Apache-2.0
"""`ragged_batch`: consecutive elements of several lengths stacked without padding."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from distinput.core.leaves import as_dtype
from distinput.core.spec import LeafSpec, RaggedTensorSpec, SparseTensorSpec, Spec, TensorSpec
from distinput.errors import InvalidArgumentError
from distinput.plan.batching import Stacking
from distinput.plan.check import at_least

__all__ = ["RaggedBatch", "ragged_row"]


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
