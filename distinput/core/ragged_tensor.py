# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors: rows of different lengths as one value, without padding.

The layout is that of Arrow's lists: the rows one after the other, and where each begins and ends. A row may itself consist of
rows of different lengths; then the values are a ragged tensor again.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NoReturn, Self, SupportsIndex

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from distinput.core.column import Array, Ints
from distinput.core.leaves import STRING, as_dtype, as_leaf, dtype_name, zero
from distinput.core.ragged_forms import RaggedForms, as_ints, as_values
from distinput.core.ragged_rows import padded_rows, places_of, row_numbers, rows_of_lists, splits_of
from distinput.core.shape import TensorShape
from distinput.core.sparse_tensor import SparseTensor
from distinput.errors import InvalidArgumentError

__all__ = ["RaggedTensor", "without_rows"]

Values = Any
"""An array [m, ...], or a `RaggedTensor` of m rows."""

_set = object.__setattr__


class RaggedTensor(RaggedForms, NDArrayOperatorsMixin):
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
    """Marks the class as a leaf for `core.leaves`, which cannot import it."""

    _values: Values
    _row_splits: Ints

    def __init__(self, values: Values, row_splits: Ints) -> None:
        """From parts that fit each other; `from_row_splits` checks them."""
        _set(self, "_values", values)
        _set(self, "_row_splits", row_splits)

    @staticmethod
    def from_row_splits(values: Any, row_splits: Any) -> "RaggedTensor":
        """From values and where each row begins and the last one ends.

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
        made = as_values(values)
        splits = as_ints("row_splits", row_splits)
        if not len(splits) or splits[0] != 0 or (splits[1:] < splits[:-1]).any() or splits[-1] != len(made):
            raise InvalidArgumentError(
                f"RaggedTensor: row_splits must not fall, and go from 0 to the {len(made)} values, got {splits.tolist()}"
            )
        return RaggedTensor(made, splits)

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
        made = as_values(values)
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
        lengths, values = rows_of_lists(rows, ragged_rank)
        made: Any = values if dtype is None else _cast(values, as_dtype(dtype))
        for counts in reversed(lengths):
            made = RaggedTensor(made, splits_of(counts))
        return made  # type: ignore[no-any-return]

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

    def nrows(self) -> int:
        """The number of rows."""
        return len(self._row_splits) - 1

    def row_lengths(self) -> Ints:
        """[n] the number of values in each row."""
        splits = self._row_splits
        return splits[1:] - splits[:-1]

    def with_values(self, values: Values) -> "RaggedTensor":
        """The same rows with other values, as many as before.

        Raises:
          InvalidArgumentError: there are more or fewer.

        Source: `tf.RaggedTensor.with_values`.
        """
        made = as_values(values)
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
        rows = self._values.to_list() if isinstance(self._values, RaggedTensor) else self._values.tolist()
        splits = self._row_splits.tolist()
        return [rows[a:b] for a, b in pairwise(splits)]

    tolist = to_list

    def to_padded(self, default_value: Any = None, shape: Sequence[int | None] | None = None) -> Array:
        """An array [n, longest row, ...] in which each row is filled up with `default_value`.

        Args:
          default_value: a scalar; None: 0 or an empty string.
          shape: the shape wanted; None in a dimension, or for all: as large as needed. What lies beyond it is cut off.

        Raises:
          InvalidArgumentError: `shape` has another rank, or other sizes where dimensions are not ragged.

        >>> import distinput as di
        >>> di.RaggedTensor.from_list([[1, 2, 3], [4]]).to_padded(-1, shape=[None, 2]).tolist()
        [[1, 2], [4, -1]]

        Source: `tf.RaggedTensor.to_tensor`.
        """
        own = self.shape
        target = tuple(own if shape is None else [None if d is None else int(d) for d in shape])
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
        from distinput.core.ragged_sums import axes_of, sums_over

        return sums_over(self, axes_of(self, axis), self.dtype if dtype is None else as_dtype(dtype))

    def mean(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        """The mean over an axis or several, as `sum`; NaN where there are no values. Integers become float64.

        >>> import distinput as di
        >>> di.RaggedTensor.from_list([[3, 1], [5]]).mean(axis=0).tolist()
        [4.0, 1.0]

        Source: `tf.reduce_mean`.
        """
        del out
        from distinput.core.ragged_sums import axes_of, mean_over

        return mean_over(self, axes_of(self, axis), None if dtype is None else as_dtype(dtype))

    def copy(self) -> "RaggedTensor":
        """The same rows in memory of their own."""
        return RaggedTensor(self._values.copy(), self._row_splits.copy())

    def take(self, rows: Any) -> "RaggedTensor":
        """The rows at these numbers, in that order.

        Source: `tf.gather`.
        """
        numbers = np.arange(self.nrows())[np.asarray(rows)]
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

    def __len__(self) -> int:
        return len(self._row_splits) - 1

    def __iter__(self) -> Iterator[Any]:
        splits = self._row_splits.tolist()
        values = self._values
        return (values[a:b] for a, b in pairwise(splits))

    def __getitem__(self, key: Any) -> Any:
        """A row, rows in a slice (a view if its step is 1), or the rows at the places of an array of integers or booleans."""
        if isinstance(key, SupportsIndex) and not isinstance(key, np.ndarray):
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
            "RaggedTensor: rows of different lengths are no array; use to_padded() for one with padding, or .values and "
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
        from distinput.core.to_arrow import ragged_to_arrow

        return ragged_to_arrow(self).__arrow_c_array__(requested_schema)

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


def _cast(values: Array, dtype: np.dtype[Any]) -> Array:
    if dtype == STRING and values.dtype != STRING:
        if not values.size:
            return values.astype(object)
        raise TypeError(f"RaggedTensor: values of dtype {values.dtype} are no strings")
    return values.astype(dtype, copy=False)
