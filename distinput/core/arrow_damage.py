# SPDX-License-Identifier: Apache-2.0
"""Whether the numbers of an Arrow array lead outside of its memory, as those of a damaged file may.

pyarrow takes offsets, views, spans and the indices of dictionaries as they come; nobody may follow one that was not looked
at. Only these numbers are looked at here, a few bytes a value, and no text, number or time that they lead to: what a mapped
file holds is not read from the disk for this.

Source: the format's own description, "Arrow Columnar Format", section "Physical Memory Layout".
"""

from typing import Any

import numpy as np

__all__ = ["ArrowDamageError", "check_array", "check_batch"]

Ints = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


class ArrowDamageError(ValueError):
    """An Arrow array whose numbers lead outside of its memory."""


def check_batch(batch: Any) -> None:
    """Refuse a record batch, or a table, of which a column leads outside of its memory.

    Raises:
      ArrowDamageError: one does.
    """
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        check_array(array, name)


def check_array(array: Any, name: str) -> None:
    """Refuse a pyarrow Array or ChunkedArray that leads outside of its memory; it is called `name` in the error.

    Raises:
      ArrowDamageError: it does.
    """
    import pyarrow as pa

    try:
        for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
            chunk.validate()  # sizes of buffers and of children, which are looked at no more below
            _check(chunk)
    except (pa.ArrowException, ArrowDamageError) as error:
        raise ArrowDamageError(f"column {name!r}: {error}") from error


def _check(array: Any) -> None:
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        _check(array.storage)
        return
    if types.is_dictionary(kind):  # a null is one among the indices, or one in the dictionary: each counts its own
        _check(array.indices)
        _check_indices(array.indices, len(array.dictionary))
        _check(array.dictionary)
        return
    if array.null_count and array.null_count != len(array) - array.is_valid().true_count:
        raise ArrowDamageError(f"{array.null_count} nulls are said to be there, but there are others")
    if types.is_struct(kind):
        for place in range(kind.num_fields):
            _check(array.field(place))
    elif types.is_fixed_size_list(kind):
        _check(array.values)
    elif types.is_list(kind) or types.is_large_list(kind):
        _check_offsets(array, np.int64 if types.is_large_list(kind) else np.int32, len(array.values))
        _check(array.values)
    elif types.is_list_view(kind) or types.is_large_list_view(kind):
        _check_spans(array, np.int64 if types.is_large_list_view(kind) else np.int32)
        _check(array.values)
    elif types.is_string_view(kind) or types.is_binary_view(kind):
        # All of it: views of texts have no part that can be left out, but for whether the texts are UTF-8.
        array.view(pa.binary_view()).validate(full=True)
    elif types.is_string(kind) or types.is_binary(kind):
        _check_offsets(array, np.int32, _size(array.buffers()[2]))
    elif types.is_large_string(kind) or types.is_large_binary(kind):
        _check_offsets(array, np.int64, _size(array.buffers()[2]))


def _size(buffer: Any) -> int:
    return 0 if buffer is None else buffer.size


def _numbers(buffer: Any, dtype: type[np.signedinteger[Any]], first: int, count: int) -> Ints:
    """The numbers [count] in a buffer from number `first` on."""
    width = np.dtype(dtype).itemsize
    if (first + count) * width > _size(buffer):
        raise ArrowDamageError(f"{first + count} numbers of {width} bytes do not fit into {_size(buffer)} bytes")
    return np.frombuffer(buffer, dtype, count, first * width)


def _check_offsets(array: Any, dtype: type[np.signedinteger[Any]], end: int) -> None:
    """N + 1 offsets from 0 to `end` that do not decrease."""
    if not len(array):
        return
    offsets = _numbers(array.buffers()[1], dtype, array.offset, len(array) + 1)
    if offsets[0] < 0 or offsets[-1] > end or (offsets[1:] < offsets[:-1]).any():
        raise ArrowDamageError(
            f"offsets must not decrease, and must stay within the {end} values or bytes that are there"
        )


def _check_spans(array: Any, dtype: type[np.signedinteger[Any]]) -> None:
    """A start and a size for each list, within the values."""
    end = len(array.values)
    if not len(array):
        return
    starts, sizes = [
        _numbers(buffer, dtype, array.offset, len(array)).astype(np.int64) for buffer in array.buffers()[1:3]
    ]
    # Without a sum of two numbers that nobody has looked at.
    if min(starts.min(), sizes.min()) < 0 or sizes.max() > end or (starts > end - sizes).any():
        raise ArrowDamageError(f"each list must lie within the {end} values that are there")


def _check_indices(indices: Any, end: int) -> None:
    """Numbers of entries of a dictionary, where there are no nulls."""
    import pyarrow.compute as pc

    if indices.null_count == len(indices):
        return
    bounds = pc.min_max(indices)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low < 0 or high >= end:
        raise ArrowDamageError(f"indices must be those of the {end} entries of the dictionary, got {low} to {high}")
