# SPDX-License-Identifier: Apache-2.0
"""`reduce` of indexed slices, such as the gradient of an embedding: their rows one after the other, still sparse."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from distinput.distribute.arithmetic import Arithmetic
from distinput.distribute.devices.arrays import NUMPY
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.variables.indexed_slices import IndexedSlices
from distinput.errors import InvalidArgumentError

__all__ = ["has_slices", "reduce_slices", "refuse_gather"]


def has_slices(parts: Sequence[Any]) -> bool:
    """True if one of the values is an `IndexedSlices`."""
    return any(isinstance(part, IndexedSlices) for part in parts)


def reduce_slices(
    arithmetic: Arithmetic,
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
        return arithmetic.reduce(op, dense, axis, present=present, call=call, name=name)
    _check_rows(parts, call)

    def joined(arrays: list[Any], what: str) -> Any:
        return arithmetic.gather(arrays, 0, present=present, call=f"{call}, {what}", name=name)

    rows = joined([part.values if np.ndim(part.values) else np.atleast_1d(part.values) for part in parts], "rows")
    indices = joined(
        [part.indices if np.ndim(part.indices) else np.atleast_1d(part.indices) for part in parts], "places"
    )
    shapes = [part.dense_shape for part in parts if part.dense_shape is not None]
    if op is ReduceOp.MEAN:
        replicas = len(joined([np.ones(1)] * len(parts), "replicas"))
        library = NUMPY if arithmetic.arrays is None or not arithmetic.arrays.owns(rows) else arithmetic.arrays
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
