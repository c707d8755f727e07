# SPDX-License-Identifier: Apache-2.0
"""Some rows of an array, and where they are: the argument of the scatter methods of a variable."""

from typing import Any

import numpy as np

__all__ = ["IndexedSlices"]


class IndexedSlices:
    """Rows `values[i]` of a larger array at the places `indices[i]` of its first axis.

    Args:
      values: the rows, [n, ...].
      indices: their places, integers [n].
      dense_shape: the shape of the larger array; None if it does not matter.

    >>> import distinput as di
    >>> v = di.Variable([1.0, 2.0, 3.0])
    >>> v.scatter_add(di.IndexedSlices(values=[10.0, 20.0], indices=[0, 2])).numpy()
    array([11.,  2., 23.], dtype=float32)

    Source: `tf.IndexedSlices`.
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices = values, indices
        self.dense_shape = dense_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the rows."""
        return np.asarray(self.values).dtype

    @property
    def shape(self) -> Any:
        """The shape of the larger array; None if it was not given."""
        return self.dense_shape

    def __neg__(self) -> "IndexedSlices":
        return IndexedSlices(-np.asarray(self.values), self.indices, self.dense_shape)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r}, dense_shape={self.dense_shape!r})"
