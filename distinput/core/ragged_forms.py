# SPDX-License-Identifier: Apache-2.0
"""The other forms of a ragged tensor: from and to row numbers, starts, limits, arrays with padding and sparse tensors.

A base class, since the layout itself, values and row splits, is what `core.ragged_tensor` is about.
"""

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.core.column import Ints
from distinput.core.leaves import STRING, as_dtype, as_leaf, is_ragged
from distinput.core.ragged_rows import row_numbers, splits_of
from distinput.core.sparse_tensor import SparseTensor
from distinput.errors import InvalidArgumentError

if TYPE_CHECKING:
    from distinput.core.ragged_tensor import RaggedTensor

__all__ = ["RaggedForms", "as_ints", "as_values"]


class RaggedForms:
    """What `RaggedTensor` can be made of besides lists, lengths and splits, and what it says of its rows besides these."""

    __slots__ = ()

    @classmethod
    def from_value_rowids(cls: Any, values: Any, value_rowids: Any, nrows: int | None = None) -> "RaggedTensor":
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
        made, rows = as_values(values), as_ints("value_rowids", value_rowids)
        least = int(rows[-1]) + 1 if len(rows) else 0
        if len(rows) != len(made) or (np.diff(rows, prepend=0) < 0).any():
            raise InvalidArgumentError(
                f"RaggedTensor: value_rowids must be at least 0, not fall, and be one for each of the {len(made)} values, got "
                f"{_shown(rows)}"
            )
        if nrows is not None and nrows < least:
            raise InvalidArgumentError(f"RaggedTensor: nrows must be at least {least}, the rows of values, got {nrows}")
        counts = np.bincount(rows, minlength=least if nrows is None else int(nrows))
        return cls(made, splits_of(counts))  # type: ignore[no-any-return]

    @classmethod
    def from_row_starts(cls: Any, values: Any, row_starts: Any) -> "RaggedTensor":
        """From values and where each row begins; the last one ends with the values.

        Raises:
          InvalidArgumentError: the starts fall, or do not go from 0 to at most the number of values.

        >>> import distinput as di
        >>> di.RaggedTensor.from_row_starts([1, 2, 3], [0, 2, 2]).to_list()
        [[1, 2], [], [3]]

        Source: `tf.RaggedTensor.from_row_starts`.
        """
        made, starts = as_values(values), as_ints("row_starts", row_starts)
        splits = np.append(starts, len(made))
        if splits[0] != 0 or (splits[1:] < splits[:-1]).any():
            raise InvalidArgumentError(
                f"RaggedTensor: row_starts must not fall, and go from 0 to at most the {len(made)} values, got "
                f"{_shown(starts)}"
            )
        return cls(made, splits)  # type: ignore[no-any-return]

    @classmethod
    def from_row_limits(cls: Any, values: Any, row_limits: Any) -> "RaggedTensor":
        """From values and where each row ends.

        Raises:
          InvalidArgumentError: the limits fall, or the last one is not the number of values.

        >>> import distinput as di
        >>> di.RaggedTensor.from_row_limits([1, 2, 3], [2, 2, 3]).to_list()
        [[1, 2], [], [3]]

        Source: `tf.RaggedTensor.from_row_limits`.
        """
        made, limits = as_values(values), as_ints("row_limits", row_limits)
        splits = np.insert(limits, 0, 0)
        if splits[-1] != len(made) or (splits[1:] < splits[:-1]).any():
            raise InvalidArgumentError(
                f"RaggedTensor: row_limits must be at least 0, not fall, and end with the {len(made)} values, got "
                f"{_shown(limits)}"
            )
        return cls(made, splits)  # type: ignore[no-any-return]

    @classmethod
    def from_uniform_row_length(
        cls: Any, values: Any, uniform_row_length: int, nrows: int | None = None
    ) -> "RaggedTensor":
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
        made, width = as_values(values), int(uniform_row_length)
        rows = (len(made) // width if width > 0 else 0) if nrows is None else int(nrows)
        if width < 0 or rows < 0 or rows * width != len(made):
            raise InvalidArgumentError(
                f"RaggedTensor: uniform_row_length times nrows must be the {len(made)} values, got {width} times {rows}"
            )
        return cls(made, np.arange(rows + 1) * width)  # type: ignore[no-any-return]

    @classmethod
    def from_tensor(
        cls: Any, tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1
    ) -> "RaggedTensor":
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
        array = as_values(tensor)
        if is_ragged(array):
            raise InvalidArgumentError(
                "RaggedTensor: from_tensor takes an array, got a RaggedTensor, which is one already"
            )
        if lengths is not None and padding is not None:
            raise InvalidArgumentError("RaggedTensor: from_tensor takes lengths or padding, but not both")
        if not 1 <= ragged_rank < array.ndim:
            raise InvalidArgumentError(
                f"RaggedTensor: ragged_rank must be from 1 to {array.ndim - 1} for an array of {array.ndim} dimensions, which "
                f"must be 2 or more, got {ragged_rank}"
            )
        n, m = array.shape[:2]
        flat = array.reshape(n * m, *array.shape[2:])
        if ragged_rank > 1:
            inner = cls.from_tensor(flat, lengths, padding, ragged_rank - 1)
            return cls(inner, np.arange(n + 1) * m)  # type: ignore[no-any-return]
        if padding is not None:
            fill = as_leaf(padding) if array.dtype == STRING else padding
            kept = np.asarray(array != fill, bool).any(tuple(range(2, array.ndim)))
            counts = (kept * np.arange(1, m + 1)).max(1, initial=0)
        elif lengths is not None:
            counts = np.clip(as_ints("lengths", lengths), 0, m)
            if len(counts) != n:
                raise InvalidArgumentError(
                    f"RaggedTensor: there must be a length for each of {n} rows, got {len(counts)}"
                )
        else:
            return cls(flat, np.arange(n + 1) * m)  # type: ignore[no-any-return]
        return cls(flat[row_numbers(np.arange(n) * m, counts)], splits_of(counts))  # type: ignore[no-any-return]

    @classmethod
    def from_sparse(cls: Any, st_input: SparseTensor) -> "RaggedTensor":
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
        return cls(values[order], splits_of(counts))  # type: ignore[no-any-return]

    def row_starts(self: Any) -> Ints:
        """[n] where each row begins in the values."""
        return self.row_splits[:-1]  # type: ignore[no-any-return]

    def row_limits(self: Any) -> Ints:
        """[n] where each row ends in the values."""
        return self.row_splits[1:]  # type: ignore[no-any-return]

    def value_rowids(self: Any) -> Ints:
        """[m] the number of the row of each value.

        >>> import distinput as di
        >>> di.RaggedTensor.from_list([[7, 8], [], [9]]).value_rowids().tolist()
        [0, 0, 2]
        """
        return np.repeat(np.arange(self.nrows()), self.row_lengths())

    def nested_row_lengths(self: Any) -> tuple[Ints, ...]:
        """The lengths of the rows of all ragged dimensions, the outermost first."""
        return tuple(np.diff(splits) for splits in self.nested_row_splits)

    def bounding_shape(self: Any, axis: Any = None, out_type: Any = None) -> Any:
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

    def merge_dims(self: Any, outer_axis: int, inner_axis: int) -> Any:
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


def _shown(numbers: Ints) -> str:
    return str(numbers[:20].tolist()) + (" ..." if len(numbers) > 20 else "")


def as_values(values: Any) -> Any:
    """The values of rows as an array, or as the ragged tensor that they are.

    Raises:
      InvalidArgumentError: a scalar.
    """
    if is_ragged(values):
        return values
    made = as_leaf(values)
    if not isinstance(made, np.ndarray):
        raise InvalidArgumentError(f"RaggedTensor: values must be an array with a first axis, got {values!r}")
    return made


def as_ints(what: str, given: Any) -> Ints:
    """A vector of integers; `what` names it in the error.

    Raises:
      InvalidArgumentError: it is none.
    """
    made = np.asarray(given)
    if made.ndim != 1 or (made.size and made.dtype.kind not in "iu"):
        raise InvalidArgumentError(f"RaggedTensor: {what} must be a vector of integers, got {given!r}")
    return made.astype(np.int64, copy=False)
