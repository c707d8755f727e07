# SPDX-License-Identifier: Apache-2.0
"""Rows of different lengths as spans of one array: where they begin, the places of their values, and the array with padding."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.kernels.spans import pad_spans
from distinput.values.buffers import empty
from distinput.values.leaves import Array, Ints, as_leaf, as_wide_leaf

_ROWS = (list, tuple, np.ndarray)


def splits_of(lengths: Ints) -> Ints:
    """The row splits [n + 1] of rows of these lengths [n]."""
    splits = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=splits[1:])
    return splits


def row_numbers(starts: Ints, lengths: Ints) -> Ints:
    """The numbers starts[i], starts[i] + 1, ... of each span, one after the other.

    >>> row_numbers(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    numbers: Ints = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return numbers


def rows_of_lists(
    rows: Sequence[Any], ragged_rank: int | None = None, dtype: np.dtype[Any] | None = None
) -> tuple[list[Ints], Array]:
    """The lengths of the rows on each level of lists, the outermost first, and the values under them.

    Args:
      rows: lists, which may be nested to any depth, or arrays, which end the nesting.
      ragged_rank: how many levels there must be; None: all that there are.
      dtype: what the caller makes of the values; floats of Python do not become float32 on the way to it.

    Raises:
      TypeError: lists stand beside values on one level, or values cannot be an array.
      InvalidArgumentError: `ragged_rank` is not from 1 to the depth of the lists.

    >>> lengths, values = rows_of_lists([[[1, 2], []], [[3]]])
    >>> [each.tolist() for each in lengths], values.tolist()
    ([[2, 1], [2, 0, 1]], [1, 2, 3])
    """
    if ragged_rank is not None and ragged_rank < 1:
        raise InvalidArgumentError(f"RaggedTensor: ragged_rank must be at least 1, got {ragged_rank}")
    level: list[Any] = list(rows)
    lengths: list[Ints] = []
    while not lengths or (level and isinstance(level[0], _ROWS) and len(lengths) != ragged_rank):
        if not all(isinstance(row, _ROWS) for row in level):
            wrong = next(row for row in level if not isinstance(row, _ROWS))
            raise TypeError(f"RaggedTensor: every row must be a list or an array, got {wrong!r} among them")
        lengths.append(np.fromiter(map(len, level), np.int64, len(level)))
        if level and any(isinstance(row, np.ndarray) for row in level):
            values = np.concatenate(
                [as_leaf(row) if isinstance(row, np.ndarray) else _values_of(list(row), dtype) for row in level]
            )
            break
        level = [item for row in level for item in row]
    else:
        if any(isinstance(item, _ROWS) for item in level) and len(lengths) != ragged_rank:
            raise TypeError("RaggedTensor: lists and values must not stand on one level")
        values = _values_of(level, dtype)
    if ragged_rank is not None and len(lengths) != ragged_rank:
        raise InvalidArgumentError(
            f"RaggedTensor: ragged_rank must be from 1 to the depth of the lists, {len(lengths)}, got {ragged_rank}"
        )
    return lengths, values


def _values_of(items: list[Any], dtype: np.dtype[Any] | None) -> Any:
    return as_leaf(items) if dtype is None or dtype.kind not in "fc" else as_wide_leaf(items)


def places_of(nested_splits: Sequence[Ints], inner: Sequence[int]) -> Ints:
    """[m, rank] the place of each value, as a sparse tensor has them.

    Args:
      nested_splits: where the rows of each level begin, the outermost first.
      inner: the shape of a value.

    >>> places_of([np.array([0, 1, 1, 3])], ()).tolist()
    [[0, 0], [2, 0], [2, 1]]
    """
    places: Ints = np.arange(len(nested_splits[0]) - 1)[:, None]
    for splits in nested_splits:
        lengths = splits[1:] - splits[:-1]
        each = np.arange(lengths.sum()) - np.repeat(splits[:-1], lengths)
        places = np.concatenate((np.repeat(places, lengths, 0), each[:, None]), 1)
    if not inner:
        return places
    more = np.stack(np.unravel_index(np.arange(int(np.prod(inner))), inner), 1)
    return np.concatenate((np.repeat(places, len(more), 0), np.tile(more, (len(places), 1))), 1)


def padded_rows(values: Array, starts: Ints, lengths: Ints, width: int, fill: Any) -> Array:
    """The rows values[starts[i]:starts[i] + lengths[i]] as an array [n, width, ...]."""
    shape = (len(starts), width, *values.shape[1:])
    dtype = values.dtype
    if dtype.hasobject or 0 in shape:
        out = np.full(shape, fill, dtype)
        if 0 not in shape:
            out[np.arange(width) < lengths[:, None]] = values[row_numbers(starts, lengths)]
        return out
    out = empty(shape, dtype)
    item = np.full(values.shape[1:], fill, dtype)
    counts, widths = np.array([len(starts)]), np.array([width])
    flat = np.ascontiguousarray(values)
    pad_spans(_bytes(flat), np.ascontiguousarray(starts), lengths, counts, widths, _bytes(out), _bytes(item))
    return out


def _bytes(array: Array) -> Any:
    return array.reshape(-1).view(np.uint8)


def row_sums(values: Array, splits: Ints, dtype: np.dtype[Any]) -> Array:
    """The sum of each row [m, ...] -> [n, ...]; 0 for a row without values."""
    out = np.zeros((len(splits) - 1, *values.shape[1:]), dtype)
    filled = splits[1:] > splits[:-1]
    if filled.any():
        # Between the starts of rows with values there are only their own values, since the others have none.
        out[filled] = np.add.reduceat(values, splits[:-1][filled], axis=0, dtype=dtype)
    return out


def as_ints(what: str, given: Any) -> Ints:
    """A vector of integers; `what` names it in the error.

    Raises:
      InvalidArgumentError: it is none.
    """
    made = np.asarray(given)
    if made.ndim != 1 or (made.size and made.dtype.kind not in "iu"):
        raise InvalidArgumentError(f"RaggedTensor: {what} must be a vector of integers, got {given!r}")
    return made.astype(np.int64, copy=False)
