# SPDX-License-Identifier: Apache-2.0
"""Sums over the dimensions of ragged tensors, with the rules of `tf.reduce_sum` and `tf.reduce_mean`."""

from collections.abc import Collection
from typing import Any, SupportsIndex

import numpy as np

from distinput.core.column import Array
from distinput.core.ragged_tensor import RaggedTensor
from distinput.errors import InvalidArgumentError

__all__ = ["axes_of", "counts_over", "mean_over", "sums_over"]


def axes_of(ragged: RaggedTensor, axis: Any) -> tuple[int, ...]:
    """The axes that the argument `axis` names, from 0 on.

    Raises:
      InvalidArgumentError: one of them is not there.
    """
    rank = ragged.ndim
    given = tuple(range(rank)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not given or not all(isinstance(a, SupportsIndex) and -rank <= int(a) < rank for a in given):
        raise InvalidArgumentError(f"RaggedTensor: axis must be from {-rank} to {rank - 1}, or a tuple, got {axis!r}")
    return tuple({int(a) % rank for a in given})


def sums_over(ragged: RaggedTensor, axes: Collection[int], dtype: np.dtype[Any]) -> Any:
    """The sum over some axes: an array, or a ragged tensor where a ragged dimension is left.

    Over the rows, axis 0, the sum has a value for each place of the longest row; rows that are shorter add nothing there.

    Args:
      ragged: the values.
      axes: from 0 to below the rank, at least one.
      dtype: in which to add.

    Raises:
      InvalidArgumentError: what is left would be ragged in a way that no array or ragged tensor of the same rows is.

    >>> rows = RaggedTensor.from_list([[3, 1, 4], [], [1, 5]])
    >>> [np.asarray(sums_over(rows, axes, rows.dtype)).tolist() for axes in ((0,), (1,), (0, 1))]
    [[4, 6, 4], [8, 0, 6], 14]
    """
    values = ragged.values
    below = [axis - 1 for axis in axes if axis >= 1]
    if 0 in axes and 1 in axes:
        return _over(values, below, dtype)
    if not {0, 1} & set(axes):
        return RaggedTensor(_over(values, below, dtype), ragged.row_splits)
    if isinstance(values, RaggedTensor):
        raise InvalidArgumentError(
            f"RaggedTensor: a sum over axes {sorted(axes)} of {ragged.ragged_rank} ragged dimensions is not there; sum over "
            "the last of them, or over axis 0 and all of them"
        )
    inner = [axis for axis in below if axis]
    flat = _over(values, inner, dtype) if inner else values
    if 0 in axes:
        padded = RaggedTensor(flat, ragged.row_splits).to_padded(0)
        return np.add.reduce(padded, axis=0, dtype=dtype)
    return _row_sums(flat, ragged.row_splits, dtype)


def counts_over(ragged: RaggedTensor, axes: Collection[int]) -> Any:
    """How many values `sums_over` adds to each of its results."""
    return sums_over(ragged.with_flat_values(np.ones(ragged.flat_values.shape, np.int64)), axes, np.dtype(np.int64))


def mean_over(ragged: RaggedTensor, axes: Collection[int], dtype: np.dtype[Any] | None) -> Any:
    """The mean over some axes, as `sums_over`; NaN where there are no values.

    Args:
      ragged: the values.
      axes: from 0 to below the rank, at least one.
      dtype: of the mean; None: that of the values, or float64 for integers.
    """
    wanted = dtype if dtype is not None else ragged.dtype if ragged.dtype.kind in "fc" else np.dtype(np.float64)
    total, counts = sums_over(ragged, axes, wanted), counts_over(ragged, axes)
    if isinstance(total, RaggedTensor):
        return RaggedTensor(_quotient(total.flat_values, counts.flat_values, wanted), total.row_splits)
    return _quotient(total, counts, wanted)


def _quotient(total: Any, counts: Any, dtype: np.dtype[Any]) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):  # on purpose: no warning
        return np.true_divide(total, counts).astype(dtype)[()]


def _over(values: Any, axes: Collection[int], dtype: np.dtype[Any]) -> Any:
    if isinstance(values, RaggedTensor):
        return sums_over(values, axes, dtype)
    return np.add.reduce(values, axis=tuple(axes), dtype=dtype)


def _row_sums(values: Array, splits: Any, dtype: np.dtype[Any]) -> Array:
    """The sum of each row [m, ...] -> [n, ...]; 0 for a row without values."""
    out = np.zeros((len(splits) - 1, *values.shape[1:]), dtype)
    filled = splits[1:] > splits[:-1]
    if filled.any():
        # Between the starts of rows with values there are only their own values, since the others have none.
        out[filled] = np.add.reduceat(values, splits[:-1][filled], axis=0, dtype=dtype)
    return out
