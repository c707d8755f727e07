# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors: values with the place of each."""

from typing import Any, NamedTuple, Self

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.values.buffers import told_by
from distinput.values.leaves import Array, as_leaf, zero

_INT64 = np.dtype(np.int64)


class _Parts(NamedTuple):
    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor(_Parts):
    """Values and their places in a larger array that is empty elsewhere; `sparse_batch` makes them.

    It is a namedtuple of three arrays. As an element, or a component of one, it is what an array is: it is batched, taken apart
    and sliced along the first dimension of the whole array. Its spec is a `SparseTensorSpec`.

    Attributes:
      indices: [m, rank] the place of each value, in the order of rows; integers become int64.
      values: [m] the values; lists become arrays.
      dense_shape: [rank] the shape of the whole array; integers become int64.

    Raises:
      InvalidArgumentError: the arrays do not fit each other.

    >>> import distinput as di
    >>> import numpy as np
    >>> di.SparseTensor(np.array([[0, 1], [2, 0]]), np.array([7, 8]), np.array([3, 2])).to_dense().tolist()
    [[0, 7], [0, 0], [8, 0]]

    Source: `tf.sparse.SparseTensor`.
    """

    __slots__ = ()

    is_sparse = True
    """Marks the class for `values.nest`, which cannot import it."""

    def __new__(cls, indices: Any, values: Any, dense_shape: Any) -> Self:
        made = _integers(indices), as_leaf(values) if isinstance(values, list) else values, _integers(dense_shape)
        if all(isinstance(part, np.ndarray) for part in made) and not _fit(*made):
            raise InvalidArgumentError(
                "SparseTensor: for m values there must be indices [m, rank] and a dense_shape [rank], got arrays of the shapes "
                f"{[list(part.shape) for part in made]}"
            )
        return super().__new__(cls, *made)

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

        Raises:
          InvalidArgumentError: the places or the shape are not integers of at least 0, or a place is outside of the shape.
          ResourceExhaustedError: there is no memory for an array of this shape.

        Source: `tf.sparse.to_dense`.
        """
        values, places, shape = np.asarray(self.values), np.asarray(self.indices), np.asarray(self.dense_shape)
        if not all(part.dtype.kind in "iu" or not part.size for part in (places, shape)) or (shape < 0).any():
            raise InvalidArgumentError(
                f"SparseTensor.to_dense: indices and dense_shape must be integers of at least 0 in int64, got indices of "
                f"{places.dtype} and dense_shape {shape.tolist()}"
            )
        outside = np.flatnonzero(((places < 0) | (places >= shape)).any(1)) if places.size else places[:0]
        if len(outside):
            raise InvalidArgumentError(
                f"SparseTensor.to_dense: all places must be inside of the shape {shape.tolist()}, got "
                f"{places[outside[0]].tolist()} for value {outside[0]}; give a larger dense_shape"
            )
        fill = zero(values.dtype, ()) if default_value is None else default_value
        with told_by("SparseTensor.to_dense", self.shape, values.dtype):
            out = np.empty(self.shape, values.dtype)
        out[...] = fill
        if len(values):
            out[tuple(places.T)] = values
        return out


def sparse_rows(sparse: SparseTensor, rows: slice) -> SparseTensor:
    """Some rows of a sparse tensor of rank 1 or more: those from `start` to before `stop`, which lie inside of its shape."""
    first = sparse.indices[:, 0]
    there = (first >= rows.start) & (first < rows.stop)
    indices, shape = sparse.indices[there], np.array(sparse.dense_shape)
    indices[:, 0] -= rows.start
    shape[0] = rows.stop - rows.start
    return SparseTensor(indices, sparse.values[there], shape)


def _fit(indices: Array, values: Array, dense_shape: Array) -> bool:
    return values.ndim == dense_shape.ndim == 1 and indices.shape == (len(values), len(dense_shape))


def _integers(given: Any) -> Any:
    """Lists and arrays of integers as int64; anything else as it is, such as the parts of replicas."""
    if isinstance(given, np.ndarray):
        return given if given.dtype == _INT64 or given.dtype.kind not in "iu" else given.astype(_INT64)
    if isinstance(given, list | tuple) and given:
        made = np.asarray(given)
        return made.astype(_INT64) if made.dtype.kind in "iu" else given
    return given
