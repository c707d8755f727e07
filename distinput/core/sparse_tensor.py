# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors: values with the place of each."""

from typing import Any, NamedTuple

import numpy as np

from distinput.core.leaves import Array, zero
from distinput.core.nest import Structure

__all__ = ["SparseTensor", "holds_sparse"]


class SparseTensor(NamedTuple):
    """Values and their places in a larger array that is empty elsewhere; `sparse_batch` makes them.

    As an element it is a nest of three arrays: functions are given it whole, and specs show those of the arrays.

    Attributes:
      indices: [m, rank] the place of each value, in the order of rows.
      values: [m] the values.
      dense_shape: [rank] the shape of the whole array.

    >>> import distinput as di
    >>> import numpy as np
    >>> di.SparseTensor(np.array([[0, 1], [2, 0]]), np.array([7, 8]), np.array([3, 2])).to_dense().tolist()
    [[0, 7], [0, 0], [8, 0]]

    Source: `tf.sparse.SparseTensor`.
    """

    indices: Any
    values: Any
    dense_shape: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """`dense_shape` as a tuple."""
        return tuple(np.asarray(self.dense_shape).tolist())

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the values."""
        return self.values.dtype  # type: ignore[no-any-return]

    def to_dense(self, default_value: Any = None) -> Array:
        """The whole array, with `default_value` (0 or an empty string if None) where there is no value.

        Source: `tf.sparse.to_dense`.
        """
        values = np.asarray(self.values)
        fill = zero(values.dtype, ()) if default_value is None else default_value
        out = np.full(self.shape, fill, values.dtype)
        out[tuple(np.asarray(self.indices).T)] = values
        return out


def holds_sparse(structure: Structure) -> bool:
    """Whether there is a `SparseTensor` in a nest. Its arrays have no rows in common that an op could stack or take apart."""
    return structure.cls is SparseTensor or any(map(holds_sparse, structure.children))
