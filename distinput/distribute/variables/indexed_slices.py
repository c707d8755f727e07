# SPDX-License-Identifier: Apache-2.0
"""Some rows of an array, and where they are: the argument of the scatter methods of a variable."""

from collections.abc import Callable
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
    def dtype(self) -> Any:
        """The dtype of the rows."""
        return self.values.dtype if hasattr(self.values, "dtype") else np.asarray(self.values).dtype

    @property
    def shape(self) -> Any:
        """The shape of the larger array; None if it was not given."""
        return self.dense_shape

    def to_dense(self) -> Any:
        """The larger array: zeros, and at each place the sum of its rows.

        Raises:
          ValueError: `dense_shape` was not given.

        >>> import distinput as di
        >>> di.IndexedSlices(values=[1.0, 2.0, 4.0], indices=[0, 2, 0], dense_shape=[3]).to_dense()
        array([5., 0., 2.])
        """
        if self.dense_shape is None:
            raise ValueError(
                f"IndexedSlices without dense_shape cannot become an array, got rows {list(np.shape(self.values))}; give it "
                "dense_shape"
            )
        rows = np.asarray(self.values)
        whole = np.zeros(tuple([int(size) for size in self.dense_shape]), rows.dtype)
        np.add.at(whole, np.asarray(self.indices), rows)
        return whole

    def map(self, function: Callable[[Any], Any]) -> "IndexedSlices":
        """Slices whose rows and places are what the function makes of them."""
        return IndexedSlices(function(self.values), function(self.indices), self.dense_shape)

    def __neg__(self) -> "IndexedSlices":
        return IndexedSlices(-np.asarray(self.values), self.indices, self.dense_shape)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r}, dense_shape={self.dense_shape!r})"
