# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors: rows of different lengths as one value, without padding.

The layout is that of Arrow's lists: the rows one after the other, and where each begins and ends. A row may itself consist of
rows of different lengths; then the values are a ragged tensor again.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NoReturn, Self

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from distinput.errors import InvalidArgumentError
from distinput.values.leaves import (
    STRING,
    Array,
    Ints,
    TensorShape,
    as_dtype,
    as_leaf,
    as_python,
    cast_within,
    counts_several,
    dtype_name,
    is_ragged,
    zero,
)
from distinput.values.ragged_rows import (
    as_ints,
    padded_rows,
    places_of,
    row_numbers,
    row_sums,
    rows_of_lists,
    splits_of,
)
from distinput.values.sparse_tensor import SparseTensor

Values = Any
"""An array [m, ...], or a `RaggedTensor` of m rows."""

_set = object.__setattr__


class RaggedTensor(NDArrayOperatorsMixin):
    """Rows of different lengths: row i is `values[row_splits[i]:row_splits[i + 1]]`; the counterpart of `tf.RaggedTensor`.

    It is one leaf of an element, as an array is: `ragged_batch`, `parse_example` of batches and lists of lists in tables give
    such leaves. Slices are views. Operators and elementwise functions of NumPy apply to the values (`x + 1`, `np.sqrt(x)`,
    `x == y`). A ragged tensor cannot be changed; make one with `from_list`, `from_row_lengths` or `from_row_splits`.

    Attributes:
      values: an array [m, ...], or a `RaggedTensor` where rows consist of rows of different lengths.
      row_splits: [n + 1] of int64, where each row begins and the last one ends; the first is 0.

    >>> import distinput as di
    >>> rows = di.RaggedTensor.from_list([[3, 1, 4], [], [5]])
    >>> rows.values, rows.row_splits
    (array([3, 1, 4, 5], dtype=int32), array([0, 3, 3, 4]))
    >>> rows.to_padded().tolist()
    [[3, 1, 4], [0, 0, 0], [5, 0, 0]]
    >>> (rows[:2] * 10).to_list()
    [[30, 10, 40], []]

    Source: `tf.RaggedTensor`.
    """

    __slots__ = ("__weakref__", "_row_splits", "_values")

    is_ragged = True
    """Marks the class as a leaf for `values.leaves`, which cannot import it."""

    _values: Values
    _row_splits: Ints

    def __init__(self, values: Values, row_splits: Ints) -> None:
        """From parts that fit each other; `from_row_splits` checks them."""
        _set(self, "_values", values)
        _set(self, "_row_splits", row_splits)

    @staticmethod
    def from_row_splits(values: Any, row_splits: Any) -> "RaggedTensor":
        """From values and the positions where each row begins and the last one ends.

        Args:
          values: an array [m, ...] or what becomes one, or a `RaggedTensor` of m rows.
          row_splits: [n + 1] integers, not falling, from 0 to m.

        Raises:
          InvalidArgumentError: the splits are not that.

        >>> import distinput as di
        >>> di.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 3]).to_list()
        [[1, 2], [3]]

        Source: `tf.RaggedTensor.from_row_splits`.
        """
        made = _as_values(values)
        splits = as_ints("row_splits", row_splits)
        return _of_splits(made, splits, "row_splits must not fall, and go from 0 to", splits)

    @staticmethod
    def from_row_lengths(values: Any, row_lengths: Any) -> "RaggedTensor":
        """From values and the number of values in each row.

        Args:
          values: an array [m, ...] or what becomes one, or a `RaggedTensor` of m rows.
          row_lengths: [n] integers, at least 0, whose sum is m.

        Raises:
          InvalidArgumentError: the lengths are not that.

        >>> import distinput as di
        >>> di.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1]).to_list()
        [[1, 2], [], [3]]

        Source: `tf.RaggedTensor.from_row_lengths`.
        """
        made = _as_values(values)
        lengths = as_ints("row_lengths", row_lengths)
        if (lengths < 0).any() or lengths.sum() != len(made):
            raise InvalidArgumentError(
                f"RaggedTensor: row_lengths must be at least 0 and sum to the {len(made)} values, got {lengths.tolist()}"
            )
        return RaggedTensor(made, splits_of(lengths))

    @staticmethod
    def from_list(rows: Sequence[Any], dtype: Any = None, ragged_rank: int | None = None) -> "RaggedTensor":
        """From lists of lists, or from a list of arrays that differ in their first dimension.

        Args:
          rows: the rows. Lists may be nested to any depth; each level adds a ragged dimension. Arrays end the nesting.
          dtype: of the values; None: as NumPy arrays have it, int32 or float32 for numbers of Python.
          ragged_rank: how many dimensions differ in length; None: all levels of lists.

        Raises:
          TypeError: lists stand beside values on one level, or values cannot be an array.
          InvalidArgumentError: `ragged_rank` is not from 1 to the depth of the lists.

        >>> import distinput as di
        >>> di.RaggedTensor.from_list([[[1, 2], []], [], [[3]]]).ragged_rank
        2
        >>> import numpy as np
        >>> di.RaggedTensor.from_list([np.ones((2, 3)), np.ones((1, 3))]).shape
        TensorShape([2, None, 3])

        Source: `tf.ragged.constant`.
        """
        to = None if dtype is None else as_dtype(dtype)
        lengths, values = rows_of_lists(rows, ragged_rank, to)
        made: Any = values if to is None else _cast(values, to, within=True)
        for counts in reversed(lengths):
            made = RaggedTensor(made, splits_of(counts))
        return made  # type: ignore[no-any-return]

    @staticmethod
    def from_value_rowids(values: Any, value_rowids: Any, nrows: int | None = None) -> "RaggedTensor":
        """From values and the number of the row of each.

        Args:
          values: an array [m, ...] or what becomes one, or a `RaggedTensor` of m rows.
          value_rowids: [m] integers, at least 0, not falling.
          nrows: how many rows there are; None: up to that of the last value.

        Raises:
          InvalidArgumentError: the numbers are not that, or not below `nrows`.

        >>> import distinput as di
        >>> di.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2], nrows=4).to_list()
        [[1, 2], [], [3], []]

        Source: `tf.RaggedTensor.from_value_rowids`.
        """
        made, rows = _as_values(values), as_ints("value_rowids", value_rowids)
        least = int(rows[-1]) + 1 if len(rows) else 0
        if len(rows) != len(made) or (np.diff(rows, prepend=0) < 0).any():
            raise InvalidArgumentError(
                f"RaggedTensor: value_rowids must be at least 0, not fall, and be one for each of the {len(made)} values, got "
                f"{_shown(rows)}"
            )
        if nrows is not None and nrows < least:
            raise InvalidArgumentError(f"RaggedTensor: nrows must be at least {least}, the rows of values, got {nrows}")
        counts = np.bincount(rows, minlength=least if nrows is None else int(nrows))
        return RaggedTensor(made, splits_of(counts))

    @staticmethod
    def from_row_starts(values: Any, row_starts: Any) -> "RaggedTensor":
        """From values and the positions where each row begins; the last row ends with the values.

        Raises:
          InvalidArgumentError: the starts fall, or do not go from 0 to at most the number of values.

        >>> import distinput as di
        >>> di.RaggedTensor.from_row_starts([1, 2, 3], [0, 2, 2]).to_list()
        [[1, 2], [], [3]]

        Source: `tf.RaggedTensor.from_row_starts`.
        """
        made, starts = _as_values(values), as_ints("row_starts", row_starts)
        splits = np.append(starts, len(made))
        return _of_splits(made, splits, "row_starts must not fall, and go from 0 to at most", starts)

    @staticmethod
    def from_row_limits(values: Any, row_limits: Any) -> "RaggedTensor":
        """From values and the positions where each row ends.

        Raises:
          InvalidArgumentError: the limits fall, or the last one is not the number of values.

        >>> import distinput as di
        >>> di.RaggedTensor.from_row_limits([1, 2, 3], [2, 2, 3]).to_list()
        [[1, 2], [], [3]]

        Source: `tf.RaggedTensor.from_row_limits`.
        """
        made, limits = _as_values(values), as_ints("row_limits", row_limits)
        splits = np.insert(limits, 0, 0)
        return _of_splits(made, splits, "row_limits must be at least 0, not fall, and end with", limits)

    @staticmethod
    def from_uniform_row_length(values: Any, uniform_row_length: int, nrows: int | None = None) -> "RaggedTensor":
        """From values and the length that all rows have. The shape still has None there, which is TensorFlow's length.

        Args:
          values: an array [m, ...] or what becomes one, or a `RaggedTensor` of m rows.
          uniform_row_length: at least 0.
          nrows: how many rows there are, needed where the length is 0; None: m / `uniform_row_length`.

        Raises:
          InvalidArgumentError: the rows do not have m values together.

        >>> import distinput as di
        >>> di.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2).to_list()
        [[1, 2], [3, 4]]

        Source: `tf.RaggedTensor.from_uniform_row_length`.
        """
        made, width = _as_values(values), int(uniform_row_length)
        rows = (len(made) // width if width > 0 else 0) if nrows is None else int(nrows)
        if width < 0 or rows < 0 or rows * width != len(made):
            raise InvalidArgumentError(
                f"RaggedTensor: uniform_row_length times nrows must be the {len(made)} values, got {width} times {rows}"
            )
        return RaggedTensor(made, np.arange(rows + 1) * width)

    @staticmethod
    def from_tensor(tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1) -> "RaggedTensor":
        """From an array of at least two dimensions, whole or without its padding.

        Args:
          tensor: [n, m, ...].
          lengths: [n] how many values of each row count, cut to 0 and m; with a `ragged_rank` of r, of the rows of axis r.
          padding: a value; those that equal it at the ends of rows are left out.
          ragged_rank: how many dimensions become ragged; those before the last one keep their rows whole.

        Raises:
          InvalidArgumentError: there are too few dimensions, lengths for other rows, or both of `lengths` and `padding`.

        >>> import distinput as di
        >>> di.RaggedTensor.from_tensor([[1, 2, 0], [0, 0, 0], [3, 0, 4]], padding=0).to_list()
        [[1, 2], [], [3, 0, 4]]

        Source: `tf.RaggedTensor.from_tensor`.
        """
        tensor_values = _as_values(tensor)
        if is_ragged(tensor_values):
            raise InvalidArgumentError(
                "RaggedTensor: from_tensor takes an array, got a RaggedTensor, which is one already"
            )
        if lengths is not None and padding is not None:
            raise InvalidArgumentError("RaggedTensor: from_tensor takes lengths or padding, but not both")
        if not 1 <= ragged_rank < tensor_values.ndim:
            raise InvalidArgumentError(
                f"RaggedTensor: ragged_rank must be from 1 to {tensor_values.ndim - 1} for an array of {tensor_values.ndim} "
                f"dimensions, which must be 2 or more, got {ragged_rank}"
            )
        n, m = tensor_values.shape[:2]
        flat = tensor_values.reshape(n * m, *tensor_values.shape[2:])
        if ragged_rank > 1:
            inner = RaggedTensor.from_tensor(flat, lengths, padding, ragged_rank - 1)
            return RaggedTensor(inner, np.arange(n + 1) * m)
        if padding is not None:
            fill = as_leaf(padding) if tensor_values.dtype == STRING else padding
            kept = np.asarray(tensor_values != fill, bool).any(tuple(range(2, tensor_values.ndim)))
            counts = (kept * np.arange(1, m + 1)).max(1, initial=0)
        elif lengths is not None:
            counts = np.clip(as_ints("lengths", lengths), 0, m)
            if len(counts) != n:
                raise InvalidArgumentError(
                    f"RaggedTensor: there must be a length for each of {n} rows, got {len(counts)}"
                )
        else:
            return RaggedTensor(flat, np.arange(n + 1) * m)
        return RaggedTensor(flat[row_numbers(np.arange(n) * m, counts)], splits_of(counts))

    @staticmethod
    def from_sparse(st_input: SparseTensor) -> "RaggedTensor":
        """From a sparse tensor of two dimensions whose rows have no gaps. Its rows may come in any order, but not their values.

        Raises:
          InvalidArgumentError: it has another rank, or a row has gaps.

        >>> import distinput as di
        >>> di.RaggedTensor.from_sparse(di.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [3, 5])).to_list()
        [[1, 2], [], [3]]

        Source: `tf.RaggedTensor.from_sparse`.
        """
        places, values = np.asarray(st_input.indices), np.asarray(st_input.values)
        if len(st_input.dense_shape) != 2:
            raise InvalidArgumentError(
                f"RaggedTensor: from_sparse takes two dimensions, got the shape {list(st_input.shape)}"
            )
        order = np.argsort(places[:, 0], kind="stable")
        counts = np.bincount(places[:, 0], minlength=int(st_input.dense_shape[0]))
        if (places[order, 1] != row_numbers(np.zeros_like(counts), counts)).any():
            raise InvalidArgumentError(
                "RaggedTensor: from_sparse takes rows without gaps, whose values come in order from column 0 on; use to_dense"
            )
        return RaggedTensor(values[order], splits_of(counts))

    @property
    def values(self) -> Values:
        """The rows one after the other: an array [m, ...], or a `RaggedTensor` where they consist of rows themselves."""
        return self._values

    @property
    def row_splits(self) -> Ints:
        """[n + 1] where each row begins in the values, and the last one ends."""
        return self._row_splits

    @property
    def flat_values(self) -> Array:
        """The values under all ragged dimensions, as an array."""
        values = self._values
        while isinstance(values, RaggedTensor):
            values = values.values
        return values  # type: ignore[no-any-return]

    @property
    def nested_row_splits(self) -> tuple[Ints, ...]:
        """The row splits of all ragged dimensions, the outermost first.

        >>> import distinput as di
        >>> [splits.tolist() for splits in di.RaggedTensor.from_list([[[1, 2], []], [[3]]]).nested_row_splits]
        [[0, 2, 3], [0, 2, 2, 3]]
        """
        if isinstance(self._values, RaggedTensor):
            return (self._row_splits, *self._values.nested_row_splits)
        return (self._row_splits,)

    @property
    def ragged_rank(self) -> int:
        """How many dimensions differ in length."""
        return 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensor) else 0)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the values; that of byte strings is `object`."""
        return self.flat_values.dtype

    @property
    def shape(self) -> TensorShape:
        """The number of rows, None for each ragged dimension, then the dimensions of a value."""
        return TensorShape((self.nrows(), None, *self._values.shape[1:]))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._row_splits) - 1

    nrows = __len__

    def row_lengths(self) -> Ints:
        """[n] the number of values in each row."""
        splits = self._row_splits
        return splits[1:] - splits[:-1]

    def row_starts(self) -> Ints:
        """[n] where each row begins in the values."""
        return self.row_splits[:-1]

    def row_limits(self) -> Ints:
        """[n] where each row ends in the values."""
        return self.row_splits[1:]

    def value_rowids(self) -> Ints:
        """[m] the number of the row of each value.

        >>> import distinput as di
        >>> di.RaggedTensor.from_list([[7, 8], [], [9]]).value_rowids().tolist()
        [0, 0, 2]
        """
        return np.repeat(np.arange(self.nrows()), self.row_lengths())

    def nested_row_lengths(self) -> tuple[Ints, ...]:
        """The lengths of the rows of all ragged dimensions, the outermost first."""
        return tuple(np.diff(splits) for splits in self.nested_row_splits)

    def bounding_shape(self, axis: Any = None, out_type: Any = None) -> Any:
        """The shape of the smallest array that holds all rows, or its size along some axes.

        Args:
          axis: an int, or several; None: all.
          out_type: the dtype; None: int64.

        Raises:
          InvalidArgumentError: an axis that is not there.

        >>> import distinput as di
        >>> di.RaggedTensor.from_list([[7, 8], [], [9]]).bounding_shape().tolist()
        [3, 2]

        Source: `tf.RaggedTensor.bounding_shape`.
        """
        sizes = self.dense_shape.astype(np.int64 if out_type is None else as_dtype(out_type))
        try:
            return sizes if axis is None else sizes[np.asarray(axis)]
        except IndexError:
            raise InvalidArgumentError(
                f"RaggedTensor: axis must be from {-len(sizes)} to {len(sizes) - 1}, got {axis!r}"
            ) from None

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """The same values with the axes from `outer_axis` to `inner_axis` made one: an array, where none is ragged then.

        Raises:
          InvalidArgumentError: an axis that is not there, or the outer one is behind the inner one.

        >>> import distinput as di
        >>> rows = di.RaggedTensor.from_list([[[1, 2], []], [], [[3]]])
        >>> rows.merge_dims(1, 2).to_list(), rows.merge_dims(0, 2).tolist()
        ([[1, 2], [], [3]], [1, 2, 3])

        Source: `tf.RaggedTensor.merge_dims`.
        """
        rank = self.ndim
        for name, axis in (("outer_axis", outer_axis), ("inner_axis", inner_axis)):
            if not -rank <= axis < rank:
                raise InvalidArgumentError(f"RaggedTensor: {name} must be from {-rank} to {rank - 1}, got {axis}")
        outer, inner = outer_axis % rank, inner_axis % rank
        if outer > inner:
            raise InvalidArgumentError(
                f"RaggedTensor: outer_axis must not be behind inner_axis, got {outer_axis} and {inner_axis}"
            )
        return _merged(self, outer, inner)

    def with_values(self, values: Values) -> "RaggedTensor":
        """The same rows with other values, as many as before.

        Raises:
          InvalidArgumentError: there are more or fewer.

        Source: `tf.RaggedTensor.with_values`.
        """
        made = _as_values(values)
        if len(made) != self._row_splits[-1]:
            raise InvalidArgumentError(
                f"RaggedTensor: with_values must be given {self._row_splits[-1]} values, got {len(made)}"
            )
        return RaggedTensor(made, self._row_splits)

    def with_flat_values(self, values: Any) -> "RaggedTensor":
        """The same rows on all levels, with other values under them.

        Source: `tf.RaggedTensor.with_flat_values`.
        """
        inner = self._values
        return self.with_values(inner.with_flat_values(values) if isinstance(inner, RaggedTensor) else values)

    def to_list(self) -> list[Any]:
        """Lists of Python values, nested as the rows are."""
        rows = self._values.to_list() if isinstance(self._values, RaggedTensor) else as_python(self._values)
        splits = self._row_splits.tolist()
        return [rows[a:b] for a, b in pairwise(splits)]

    tolist = to_list

    def to_padded(self, default_value: Any = None, shape: Sequence[int | None] | None = None) -> Array:
        """An array [n, longest row, ...] in which each row is filled up with `default_value`.

        Args:
          default_value: a scalar; None: 0, an empty string, or NaT in dates and times.
          shape: the shape wanted; None in a dimension, or for all: as large as needed. What lies beyond it is cut off.

        Raises:
          InvalidArgumentError: `shape` has another rank, or other sizes where dimensions are not ragged; `default_value` is no
            number of the dtype.

        >>> import distinput as di
        >>> di.RaggedTensor.from_list([[1, 2, 3], [4]]).to_padded(-1, shape=[None, 2]).tolist()
        [[1, 2], [4, -1]]

        Source: `tf.RaggedTensor.to_tensor`.
        """
        own = self.shape
        target = tuple(own if shape is None else [None if d is None else int(d) for d in shape])
        if any(d is not None and d < 0 for d in target):
            raise InvalidArgumentError(f"RaggedTensor: sizes of shape must be at least 0, or None, got {list(target)}")
        if len(target) != len(own):
            raise InvalidArgumentError(f"RaggedTensor: shape must have the rank {len(own)}, got {list(target)}")
        inner = self.ragged_rank + 1
        if any(w not in (None, d) for w, d in zip(target[inner:], own[inner:], strict=True)):
            raise InvalidArgumentError(
                f"RaggedTensor: shape must have {list(own[inner:])} where dimensions are not ragged, got {list(target)}"
            )
        values, dtype = self._values, self.dtype
        fill: Any = default_value
        if fill is None:
            fill = zero(dtype, ())
        elif dtype == STRING:
            fill = as_leaf(fill)
        else:
            fill = _fill(fill, dtype)
        if isinstance(values, RaggedTensor):
            values = values.to_padded(fill, (None, *target[2:]))
        lengths = self.row_lengths()
        width = target[1] if target[1] is not None else int(lengths.max(initial=0))
        made = padded_rows(values, self._row_splits[:-1], np.minimum(lengths, width), width, fill)
        rows = target[0]
        if rows is None or rows == len(made):
            return made
        out = np.full((rows, *made.shape[1:]), fill, dtype)
        out[: len(made)] = made[:rows]
        return out

    to_tensor = to_padded

    def numpy(self) -> Array:
        """An array of one array for each row; one array of all where the rows are equally long.

        Source: `tf.RaggedTensor.numpy`.
        """
        rows = [row.numpy() if isinstance(row, RaggedTensor) else row for row in self]
        if len({row.shape for row in rows}) == 1 and not any(row.dtype == STRING for row in rows):
            return np.stack(rows)
        out = np.empty(len(rows), object)
        out[:] = rows
        return out

    @property
    def indices(self) -> Ints:
        """[m, rank] the place of each value, as a sparse tensor of the same values has them."""
        places: Ints = self.to_sparse().indices
        return places

    @property
    def dense_shape(self) -> Ints:
        """[rank] the number of rows and the size of the largest on each level."""
        found = [self.nrows()]
        values: Any = self
        while isinstance(values, RaggedTensor):
            found.append(int(values.row_lengths().max(initial=0)))
            values = values.values
        return np.array([*found, *values.shape[1:]], np.int64)

    def to_sparse(self) -> SparseTensor:
        """The same values with the place of each.

        >>> import distinput as di
        >>> di.RaggedTensor.from_list([[7], [], [8, 9]]).to_sparse().indices.tolist()
        [[0, 0], [2, 0], [2, 1]]

        Source: `tf.RaggedTensor.to_sparse`.
        """
        values = self.flat_values
        places = places_of(self.nested_row_splits, values.shape[1:])
        return SparseTensor(places, values.reshape(-1), self.dense_shape)

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        """The sum over an axis or several: an array, or a ragged tensor where a ragged dimension is left.

        Args:
          axis: an int, a tuple of them, or None for all values. Over axis 0 there is a value for each place of the longest row.
          dtype: of the sum; None: that of the values.
          out: must be None; for calls of `np.sum`.

        Raises:
          InvalidArgumentError: an axis that is not there, or what is left is ragged in another way.

        >>> import distinput as di
        >>> rows = di.RaggedTensor.from_list([[3, 1, 4], [], [1, 5]])
        >>> rows.sum(axis=1).tolist(), rows.sum(axis=0).tolist()
        ([8, 0, 6], [4, 6, 4])

        Source: `tf.reduce_sum`.
        """
        del out
        return sums_over(self, _axes_of(self, axis), self.dtype if dtype is None else as_dtype(dtype))

    def mean(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        """The mean over an axis or several, as `sum`; NaN where there are no values. Integers become float64.

        >>> import distinput as di
        >>> di.RaggedTensor.from_list([[3, 1], [5]]).mean(axis=0).tolist()
        [4.0, 1.0]

        Source: `tf.reduce_mean`.
        """
        del out
        own, axes = self.dtype, _axes_of(self, axis)
        wanted = as_dtype(dtype) if dtype is not None else own if own.kind in "fc" else np.dtype(np.float64)
        total, counts = sums_over(self, axes, wanted), counts_over(self, axes)
        if isinstance(total, RaggedTensor):
            return RaggedTensor(_quotient(total.flat_values, counts.flat_values, wanted), total.row_splits)
        return _quotient(total, counts, wanted)

    def copy(self) -> "RaggedTensor":
        """The same rows in memory of their own."""
        return RaggedTensor(self._values.copy(), self._row_splits.copy())

    def take(self, rows: Any) -> "RaggedTensor":
        """The rows at these numbers, in that order.

        Raises:
          IndexError: there is no such row, or they are no integers or booleans.

        Source: `tf.gather`.
        """
        try:
            numbers = np.arange(self.nrows())[np.asarray(rows, None if np.size(rows) else np.int64)]
        except IndexError as error:
            raise IndexError(
                f"RaggedTensor: rows must be integers or booleans for {self.nrows()} rows, got {rows!r}: {error}"
            ) from None
        lengths = self.row_lengths()[numbers]
        return RaggedTensor(self._values[row_numbers(self._row_splits[:-1][numbers], lengths)], splits_of(lengths))

    def astype(self, dtype: Any) -> "RaggedTensor":
        """The same rows with values of another dtype."""
        if isinstance(self._values, RaggedTensor):
            return RaggedTensor(self._values.astype(dtype), self._row_splits)
        return RaggedTensor(_cast(self._values, as_dtype(dtype)), self._row_splits)

    @property
    def nbytes(self) -> int:
        """The bytes of values and splits."""
        return int(self._values.nbytes) + self._row_splits.nbytes

    def __iter__(self) -> Iterator[Any]:
        splits = self._row_splits.tolist()
        values = self._values
        return (values[a:b] for a, b in pairwise(splits))

    def __getitem__(self, key: Any) -> Any:
        """A row, rows in a slice (a view if its step is 1), or the rows at the places of an array of integers or booleans."""
        if hasattr(key, "__index__") and not isinstance(key, np.ndarray):
            number = int(key)
            if not -len(self) <= number < len(self):
                raise IndexError(f"RaggedTensor: row {number} is out of range for {len(self)} rows")
            number %= len(self)
            return self._values[self._row_splits[number] : self._row_splits[number + 1]]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1:
                return self.take(np.arange(start, stop, step))
            splits = self._row_splits[start : max(start, stop) + 1]
            first = splits[0]
            return RaggedTensor(self._values[first : splits[-1]], splits - first if first else splits)
        if isinstance(key, tuple):
            if key and not isinstance(key[0], slice):
                return self[key[0]][key[1:]] if len(key) > 1 else self[key[0]]
            raise IndexError(
                "RaggedTensor: only a row can be looked into further, as in x[i, j]; take values of x.values"
            )
        return self.take(key)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or "out" in options:
            return NotImplemented
        ragged = [x for x in inputs if isinstance(x, RaggedTensor)]
        splits = ragged[0].row_splits
        for other in ragged[1:]:
            if other.row_splits is not splits and not np.array_equal(other.row_splits, splits):
                raise ValueError(f"RaggedTensor: {ufunc.__name__} needs rows of the same lengths on both sides")
        for x in inputs:
            if not isinstance(x, RaggedTensor) and np.ndim(x):
                raise ValueError(
                    f"RaggedTensor: {ufunc.__name__} takes ragged tensors and scalars, got an array of shape "
                    f"{list(np.shape(x))}; apply it to .values, or to the array of to_padded()"
                )
        made = ufunc(*[x.values if isinstance(x, RaggedTensor) else x for x in inputs], **options)
        return tuple([RaggedTensor(x, splits) for x in made]) if isinstance(made, tuple) else RaggedTensor(made, splits)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise ValueError(
            "RaggedTensor: rows of different lengths cannot be one array; use to_padded() for one with padding, or .values and "
            ".row_splits"
        )

    def __bool__(self) -> NoReturn:
        raise ValueError("RaggedTensor: the truth of many values is ambiguous; use .values.any() or .values.all()")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"RaggedTensor: {name} cannot be set; make another with with_values, or from_row_splits")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"RaggedTensor: {name} cannot be deleted")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> "RaggedTensor":
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return RaggedTensor, (self._values, self._row_splits)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        """The rows as an Arrow array of lists; copied only where Arrow has another layout (text)."""
        return _to_arrow(self).__arrow_c_array__(requested_schema)

    def __repr__(self) -> str:
        shown = self.to_list() if self._row_splits[-1] <= _SHOWN_VALUES and len(self) <= _SHOWN_VALUES else None
        what = f"{len(self)} rows, {self._row_splits[-1]} values" if shown is None else repr(shown)
        return f"RaggedTensor({what}, dtype={dtype_name(self.dtype)})"


_SHOWN_VALUES = 100


def without_rows(dtype: np.dtype[Any], ragged_rank: int, inner: tuple[int, ...] = ()) -> RaggedTensor:
    """A ragged tensor of no rows, whose values would have the shape `inner`.

    >>> import distinput as di
    >>> without_rows(np.dtype("int64"), 2, (3,)).shape
    TensorShape([0, None, None, 3])
    """
    made: Any = np.empty((0, *inner), dtype)
    for _ in range(ragged_rank):
        made = RaggedTensor(made, np.zeros(1, np.int64))
    return made  # type: ignore[no-any-return]


def _fill(value: Any, dtype: np.dtype[Any]) -> Any:
    """What rows of numbers are filled up with, as a number of their dtype."""
    given = np.asarray(value)
    whole = given.dtype.kind != "f" or dtype.kind not in "iu" or bool((np.trunc(given) == given).all())
    try:
        if whole and given.dtype.kind in "biufc":
            return cast_within(given, dtype)[()]
    except InvalidArgumentError:
        pass
    raise InvalidArgumentError(
        f"RaggedTensor: default_value must be a number of {dtype}, as the values are, got {value!r}"
    )


def _cast(values: Array, dtype: np.dtype[Any], within: bool = False) -> Array:
    if dtype == STRING and values.dtype != STRING:
        if not values.size:
            return values.astype(object)
        raise TypeError(f"RaggedTensor: values of dtype {values.dtype} are not strings")
    return cast_within(values, dtype) if within else values.astype(dtype, copy=False)


def _merged(values: Any, outer: int, inner: int) -> Any:
    """An array or a ragged tensor with these axes made one."""
    if outer == inner:
        return values
    if not is_ragged(values):
        shape = values.shape
        return values.reshape(*shape[:outer], prod(shape[outer : inner + 1]), *shape[inner + 1 :])
    if outer == 0:
        return _merged(values.values, 0, inner - 1)
    below, splits = values.values, values.row_splits
    if outer > 1:
        return type(values)(_merged(below, outer - 1, inner - 1), splits)
    while inner > 1 and is_ragged(below):
        splits, below, inner = below.row_splits[splits], below.values, inner - 1
    if inner > 1:
        splits, below = splits * prod(below.shape[1:inner]), _merged(below, 0, inner - 1)
    return type(values)(below, splits)


def _of_splits(values: Any, splits: Ints, rule: str, given: Ints) -> RaggedTensor:
    """Values in rows that were `given` in some form.

    Raises:
      InvalidArgumentError: they break the rule.
    """
    if not len(splits) or splits[0] != 0 or (splits[1:] < splits[:-1]).any() or splits[-1] != len(values):
        raise InvalidArgumentError(f"RaggedTensor: {rule} the {len(values)} values, got {_shown(given)}")
    return RaggedTensor(values, splits)


def _shown(numbers: Ints) -> str:
    return str(numbers[:20].tolist()) + (" ..." if len(numbers) > 20 else "")


def _as_values(values: Any) -> Any:
    """The values of rows as an array, or as the ragged tensor that they are.

    Raises:
      InvalidArgumentError: a scalar.
    """
    if is_ragged(values):
        return values
    made = as_leaf(values)
    if not isinstance(made, np.ndarray) and not is_ragged(made):  # as an array of lists of Arrow is
        raise InvalidArgumentError(f"RaggedTensor: values must be an array with a first axis, got {values!r}")
    return made


def _axes_of(ragged: RaggedTensor, axis: Any) -> tuple[int, ...]:
    """The axes that the argument `axis` names, from 0 on.

    Raises:
      InvalidArgumentError: one of them is not there.
    """
    rank = ragged.ndim
    given = tuple(range(rank)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not given or not all(hasattr(a, "__index__") and -rank <= int(a) < rank for a in given):
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
    return row_sums(flat, ragged.row_splits, dtype)


def counts_over(ragged: RaggedTensor, axes: Collection[int]) -> Any:
    """How many values `sums_over` adds to each of its results."""
    return sums_over(ragged.with_flat_values(np.ones(ragged.flat_values.shape, np.int64)), axes, np.dtype(np.int64))


def _quotient(total: Any, counts: Any, dtype: np.dtype[Any]) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):  # on purpose: no warning
        return np.true_divide(total, counts).astype(dtype)[()]


def _over(values: Any, axes: Collection[int], dtype: np.dtype[Any]) -> Any:
    if isinstance(values, RaggedTensor):
        return sums_over(values, axes, dtype)
    return np.add.reduce(values, axis=tuple(axes), dtype=dtype)


def _to_arrow(ragged: RaggedTensor) -> Any:
    """The rows as an Arrow array of lists."""
    import pyarrow as pa

    values = ragged.values
    flat = _to_arrow(values) if isinstance(values, RaggedTensor) else arrow_rows(values)
    return pa.LargeListArray.from_arrays(pa.array(ragged.row_splits), flat)


def arrow_rows(values: Array) -> Any:
    """The rows of an array [n, ...] as an Arrow array [n]; those of more than one dimension become fixed-size lists."""
    import pyarrow as pa

    if values.dtype == STRING:
        flat = pa.array(values.reshape(-1).tolist(), pa.large_binary())
    elif counts_several(values.dtype):
        raise TypeError(f"Arrow has no type for {values.dtype}; cast it to one unit, such as datetime64[s]")
    else:
        flat = pa.array(np.ascontiguousarray(values, values.dtype.newbyteorder("=")).reshape(-1))
    return fixed_size_lists(flat, values.shape)


def fixed_size_lists(flat: Any, shape: tuple[int, ...]) -> Any:
    """Values of an Arrow array as rows [n, ...] of this shape."""
    for axis in range(len(shape) - 1, 0, -1):
        flat = lists_of_size(flat, shape[axis], prod(shape[:axis]), None)
    return flat


def lists_of_size(items: Any, size: int, count: int, nulls: Any) -> Any:
    """An Arrow array of lists of one size, which may be 0: Arrow's own constructor takes none.

    Args:
      items: of the lists, one after the other.
      size: of each.
      count: how many lists there are.
      nulls: which of them are null, as an Arrow array; None: none of them.
    """
    import pyarrow as pa
    from pyarrow import compute

    if size:
        return pa.FixedSizeListArray.from_arrays(items, size, mask=nulls)
    bits = None if nulls is None else compute.invert(nulls).buffers()[1]
    return pa.Array.from_buffers(pa.list_(items.type, 0), count, [bits], children=[items])
