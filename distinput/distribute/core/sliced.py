# SPDX-License-Identifier: Apache-2.0
"""`IndexedSlices`, such as the gradient of an embedding, and their `reduce`: rows one after the other, still sparse."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from distinput.distribute.core.reducer import ReplicaReducer
from distinput.distribute.core.reduction import ReduceOp
from distinput.distribute.devices.arrays import NUMPY
from distinput.errors import InvalidArgumentError

__all__ = ["IndexedSlices", "has_slices", "reduce_slices", "refuse_gather"]

# ---- Some rows of an array, and where they are: the argument of the scatter methods of a variable


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


# ---- `reduce` of indexed slices, such as the gradient of an embedding: their rows one after the other, still sparse


def has_slices(parts: Sequence[Any]) -> bool:
    """True if one of the values is an `IndexedSlices`."""
    return any(isinstance(part, IndexedSlices) for part in parts)


def reduce_slices(
    reducer: ReplicaReducer,
    op: ReduceOp,
    parts: Sequence[Any],
    axis: Any,
    *,
    present: Sequence[bool] | None = None,
    call: str,
    name: str = "",
) -> Any:
    """The sum or mean over all replicas: rows and places of all of them, one after the other, in replica order.

    A place may occur several times; it means the sum of its rows. A mean divides the rows by the number of replicas. With
    an axis, or if some parts are arrays, the slices count as the whole array that they stand for, and the result is an array.

    Raises:
      InvalidArgumentError: rows of different shapes or dtypes.
      ValueError: the whole array is needed and `dense_shape` was not given.

    Source: `tf.distribute.Strategy.reduce` of `tf.IndexedSlices`.
    """
    if axis is not None or not all(isinstance(part, IndexedSlices) for part in parts):
        dense = [part.to_dense() if isinstance(part, IndexedSlices) else part for part in parts]
        return reducer.reduce(op, dense, axis, present=present, call=call, name=name)
    _check_rows(parts, call)

    def joined(arrays: list[Any], what: str) -> Any:
        return reducer.gather(arrays, 0, present=present, call=f"{call}, {what}", name=name)

    rows = joined([part.values if np.ndim(part.values) else np.atleast_1d(part.values) for part in parts], "rows")
    indices = joined(
        [part.indices if np.ndim(part.indices) else np.atleast_1d(part.indices) for part in parts], "places"
    )
    shapes = [part.dense_shape for part in parts if part.dense_shape is not None]
    if op is ReduceOp.MEAN:
        replicas = len(joined([np.ones(1)] * len(parts), "replicas"))
        library = NUMPY if reducer.arrays is None or not reducer.arrays.owns(rows) else reducer.arrays
        rows = rows if replicas == 1 else library.mean(rows, replicas, rows.dtype)
    return IndexedSlices(rows, indices, shapes[0] if shapes else None)


def _check_rows(parts: Sequence[IndexedSlices], call: str) -> None:
    kinds = [(part.dtype, tuple(np.shape(part.values)[1:])) for part in parts]
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise InvalidArgumentError(
                f"{call}: the rows of IndexedSlices must have the same dtype and shape on every replica, got {kinds[0][0]}"
                f"{list(kinds[0][1])} on replica 0 and {kind[0]}{list(kind[1])} on replica {i}"
            )


def refuse_gather(call: str) -> NoReturn:
    """Raise the error for a gather of slices.

    Raises:
      NotImplementedError: always; the type that TensorFlow raises.
    """
    raise NotImplementedError(
        f"{call} does not support IndexedSlices: reduce them with SUM, which puts their rows one after the other, or gather "
        "`values` and `indices`"
    )
