# SPDX-License-Identifier: Apache-2.0
"""The columns of record batches as what statistics are made of: nulls, lengths, and numbers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from distinput.arrow.arrow import is_text, take, with_offsets
from distinput.arrow.validity import items_of
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# Times of Arrow arrays as NumPy has them, which knows nanoseconds and years after 9999.
# ----------------------------------------------------------------------------


def times_of(array: Any) -> Any:
    """Times [n] as NumPy has them, NaT for nulls; None for intervals, which it has not.

    >>> times_of(pa.array([5, None], pa.time64("ns")))
    array([    5, 'NaT'], dtype='timedelta64[ns]')
    """
    kind = array.type
    if types.is_interval(kind):
        return None
    if types.is_time(kind):
        array = array.view(pa.int32() if types.is_time32(kind) else pa.int64())
        array = array.cast(pa.int64()).cast(pa.duration(kind.unit))
    return array.to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class LeafColumn:
    """A column without columns below it.

    Attributes:
      name: parts of structs have a dot in it.
      type: of the values.
      rows: of the column.
      missing: nulls among them.
      lengths: [n] of the rows that are there: values of lists, bytes of text; None for single numbers.
      values: an Arrow array of the numbers, without nulls; None for text.
    """

    name: str
    type: str
    rows: int
    missing: int
    lengths: Any = None
    values: Any = None


def parts_of(name: str, array: Any) -> Iterator[LeafColumn]:
    """The parts of a column.

    >>> array = pa.array([[1, 2], None, [3]])
    >>> part = next(parts_of("x", array))
    >>> part.missing, part.lengths.tolist(), part.values.to_pylist()
    (1, [2, 1], [1, 2, 3])
    """
    array = _stored(array)
    kind = array.type
    if types.is_struct(kind):
        for field, part in zip(kind, array.flatten(), strict=True):
            yield from parts_of(f"{name}.{field.name}", part)
    else:
        rows, nulls = len(array), array.null_count
        there = _without_nulls(array)
        type_name = _shown(kind)
        if _is_list(kind):
            lengths = _ints(compute.list_value_length(there))
            flat = _stored(items_of(there)[0])
            while _is_list(flat.type):
                flat = _stored(items_of(flat)[0])
            if types.is_struct(flat.type):
                yield LeafColumn(name, type_name, rows, nulls, lengths)
                yield from parts_of(f"{name}[]", flat)  # whose rows are items, not records
                return
            text = is_text(flat.type)
            yield LeafColumn(name, type_name, rows, nulls, lengths, None if text else _without_nulls(flat))
        elif is_text(kind):
            yield LeafColumn(name, type_name, rows, nulls, _ints(compute.binary_length(there)))
        else:
            yield LeafColumn(name, type_name, rows, nulls, None, there)


def _without_nulls(array: Any) -> Any:
    """Like `drop_null`, which lacks types of which all values are null."""
    return take(array, compute.indices_nonzero(array.is_valid())) if array.null_count else array


def _stored(array: Any) -> Any:
    """Values as they are stored, without what Arrow lacks functions for: views, runs, dictionaries, and types of others."""
    array = with_offsets(array)
    if isinstance(array, pa.ExtensionArray):
        return _stored(array.storage)
    return _stored(take(array.dictionary, array.indices)) if types.is_dictionary(array.type) else array


def numbers_of(array: Any) -> Any:
    """Numbers [n] as NumPy has them: truth values as 0 and 1, times as they are, decimals as float64; None for other types."""
    kind = array.type
    if types.is_boolean(kind):
        return array.cast(pa.uint8()).to_numpy()
    if types.is_temporal(kind):
        return times_of(array)
    if types.is_decimal(kind):
        return array.cast(pa.float64(), safe=False).to_numpy()
    if types.is_integer(kind) or types.is_floating(kind):
        return array.to_numpy(zero_copy_only=False)
    return None


def _ints(array: Any) -> Any:
    return array.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _is_list(kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _shown(kind: Any) -> str:
    if is_text(kind):
        return "string"
    if isinstance(kind, pa.BaseExtensionType):
        return _shown(kind.storage_type)
    if types.is_dictionary(kind):
        return _shown(kind.value_type)
    if _is_list(kind):
        size = kind.list_size if types.is_fixed_size_list(kind) else None
        return f"{_shown(kind.value_type)}[{'?' if size is None else size}]"
    return {"double": "float64", "float": "float32", "halffloat": "float16"}.get(str(kind), str(kind))
