# SPDX-License-Identifier: Apache-2.0
"""Columns one after the other."""

from collections.abc import Sequence
from math import prod

import numpy as np

from distinput.core.buffers import empty
from distinput.core.column import Array, Column
from distinput.core.dense import Dense
from distinput.core.objects import Arrays, Datasets, Objects
from distinput.core.ragged import Ragged
from distinput.core.strings import Strings

__all__ = ["concat_columns", "concatenated", "joined_columns"]

_FRESH_BYTES = 1 << 17
"""From this size on the allocator asks for fresh pages; smaller memory it recycles by itself."""


def concat_columns(columns: Sequence[Column]) -> Column:
    """The rows of all columns, one after the other."""
    columns = [column for column in columns if len(column)] or list(columns[:1])
    return columns[0] if len(columns) == 1 else joined_columns(columns)


def joined_columns(columns: Sequence[Column]) -> Column:
    """As `concat_columns`, of several columns that all have rows."""
    columns = [column.materialize() for column in columns]
    first = columns[0]
    dense = _concat_dense(columns)
    if dense is not None:
        return dense
    if isinstance(first, Datasets):
        return Datasets([item for column in columns for item in column.items], first.dtype)  # type: ignore[attr-defined]
    for column in columns:
        if column.dtype != first.dtype:
            raise TypeError(f"the elements differ in dtype: {first.dtype} and {column.dtype}")
    if all(isinstance(c, Strings) for c in columns):
        strings: list[Strings] = columns  # type: ignore[assignment]
        if len({c.starts.shape[1:] for c in strings}) == 1:
            return _concat_strings(strings)
    if all(isinstance(c, Arrays | Ragged | Dense | Strings) for c in columns):
        ragged = [as_ragged(c) for c in columns]
        # Empty rows keep their other dimensions too, so flat columns of other rows must not be joined.
        if all(r is not None for r in ragged) and len({r.flat.inner for r in ragged if r is not None}) == 1:
            flats = concat_columns([r.gathered() for r in ragged])  # type: ignore[union-attr]
            if isinstance(flats, Dense | Strings):
                sizes = np.concatenate([r.sizes for r in ragged])  # type: ignore[union-attr]
                return Ragged(flats, np.cumsum(sizes) - sizes, sizes, any(r.loose for r in ragged if r is not None))
    if first.ragged_rank is not None:
        from distinput.core.ragged_batches import join_ragged

        return join_ragged(columns)
    return Objects([item for column in columns for item in column.values()], first.dtype)


def _concat_dense(columns: Sequence[Column]) -> Dense | None:
    """The rows of all columns, if they are arrays of one dtype and inner shape."""
    arrays = []
    for column in columns:
        if not isinstance(column, Dense):
            return None
        array = column.array
        arrays.append(array)
        if array.dtype != arrays[0].dtype:
            return None
    try:
        return Dense(concatenated(arrays))
    except ValueError:  # the shapes differ, which is rare
        return None


def concatenated(arrays: Sequence[Array]) -> Array:
    """The rows of all arrays, which are of one dtype.

    Raises:
      ValueError: their rows differ in shape.
    """
    first = arrays[0]
    rows = sum(map(len, arrays))
    if rows * prod(first.shape[1:]) * first.itemsize < _FRESH_BYTES:
        return np.concatenate(arrays)
    return np.concatenate(arrays, out=empty((rows, *first.shape[1:]), first.dtype))


def _concat_strings(columns: Sequence[Strings]) -> Strings:
    """Joined buffers, each cut down to the strings in use where that is much less."""
    if all(c.data is columns[0].data for c in columns):
        return Strings(
            columns[0].data, np.concatenate([c.starts for c in columns]), np.concatenate([c.sizes for c in columns])
        )
    cut = [c.used() for c in columns]
    shift = np.cumsum([0, *[len(c.data) for c in cut[:-1]]])
    return Strings(
        concatenated([c.data for c in cut]),
        np.concatenate([c.starts + s for c, s in zip(cut, shift, strict=True)]),
        np.concatenate([c.sizes for c in cut]),
    )


def as_ragged(column: Column) -> Ragged | None:
    """The same rows as spans over a flat column, when rows are not scalars."""
    if isinstance(column, Ragged):
        return column
    if isinstance(column, Arrays):
        return column.joined()
    length = column.lengths()
    if length is None:
        return None
    sizes = np.full(len(column), length, np.int64)
    return Ragged(column.unstack(), np.cumsum(sizes) - sizes, sizes)  # type: ignore[arg-type]
