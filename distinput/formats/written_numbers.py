# SPDX-License-Identifier: Apache-2.0
"""Numbers as text has them, and those that a type would change.

A type that is stated changes no number either, but for the rounding of decimals. One that is inferred from the first records
also keeps every digit: zeros in front belong to identifiers, and a long whole number is not rounded for its neighbours.
"""

from typing import Any

import numpy as np

from distinput.formats.text_piece import Bytes

__all__ = ["INFERRED", "changed", "inferred_type", "may_change"]

INFERRED = ", and as it was inferred from the first ones, it changes none of their values"
"""What is said of the schema in an error."""

_DOUBTFUL = r"0[xX]|[0-9]{16}|(?:^|[^0-9A-Za-z.:+-])[+-]?0[0-9]"
"""Somewhere in text: what may be hexadecimal, long, or have zeros in front; dates, times and decimals are none of these."""

_ZEROS_FIRST = r"^\s*[+-]?0[0-9]"
_LONG_WHOLE = r"^\s*[+-]?[0-9]{16,}\s*$"
_WHOLE = r"^\s*-?(0|[1-9][0-9]*)\s*$"

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def may_change(data: Bytes) -> bool:
    """False if all numbers in some text are such that no type changes them, or only to an infinity; this is quick to tell.

    >>> [may_change(np.frombuffer(text, np.uint8)) for text in (b"10,2024-01-05", b"02116", b"0x1F", b"1234567890123456")]
    [False, True, True, True]
    """
    import pyarrow as pa
    from pyarrow import compute

    ends = pa.array([0, len(data)], pa.int32()).buffers()[1]
    text = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(np.ascontiguousarray(data))])
    return bool(compute.match_substring_regex(text, _DOUBTFUL)[0].as_py())


def changed(texts: Any, values: Any, inferred: bool) -> Mask:
    """Which values are not what their text says.

    Args:
      texts: a pyarrow array of binary.
      values: what it was read as, an array of as many.
      inferred: whether the type was inferred, so that nobody has said that these are numbers.

    >>> import pyarrow as pa
    >>> changed(pa.array([b"02116", b"7"]), pa.array([2116, 7]), True).tolist()
    [True, False]
    """
    import pyarrow as pa
    from pyarrow import compute, types

    def has(pattern: str) -> Any:
        return compute.match_substring_regex(texts, pattern)

    kind, masks = values.type, []
    if types.is_signed_integer(kind) or types.is_duration(kind):
        below = compute.less(values.cast(pa.int64()), 0)
        masks.append(compute.and_(below, has("[xX]")))
    if types.is_floating(kind):
        masks.append(compute.and_(compute.is_inf(values), has("[0-9]")))
    if inferred and types.is_boolean(kind):
        masks.append(has("[01]"))
    if inferred and (types.is_integer(kind) or types.is_floating(kind)):
        masks.append(has(_ZEROS_FIRST + "|[xX]"))
    made = np.zeros(len(values), bool)
    for each in masks:
        made |= compute.fill_null(each, False).to_numpy(zero_copy_only=False)
    if inferred and types.is_floating(kind):
        made |= _rounded(texts, values)
    found_ones: Mask = made & values.is_valid().to_numpy(zero_copy_only=False)
    return found_ones


def _rounded(texts: Any, values: Any) -> Mask:
    """Which whole numbers the floats are not."""
    from pyarrow import compute

    long: Mask = compute.fill_null(compute.match_substring_regex(texts, _LONG_WHOLE), False).to_numpy(
        zero_copy_only=False
    )
    for place in np.flatnonzero(long).tolist():
        value, text = values[place].as_py(), texts[place].as_py()
        # Python refuses to read very many digits; a float64 has no more than 309.
        long[place] = value is not None and (len(text) > 400 or not np.isfinite(value) or int(text) != int(value))
    return long


def inferred_type(texts: Any, values: Any) -> Any:
    """The type of a column: that of its values, uint64 for whole numbers beyond int64, or binary where these would change it.

    >>> import pyarrow as pa
    >>> inferred_type(pa.array([b"18446744073709551615", b"1"]), pa.array([1.8446744073709552e19, 1.0]))
    DataType(uint64)
    """
    import pyarrow as pa
    from pyarrow import compute, types

    if types.is_boolean(values.type) or types.is_integer(values.type):
        return pa.binary() if changed(texts, values, True).any() else values.type
    there = texts.filter(values.is_valid())
    if compute.all(compute.match_substring_regex(there, _WHOLE)).as_py():  # but they are not int64
        try:
            compute.ascii_trim_whitespace(there.cast(pa.string())).cast(pa.uint64())
        except pa.ArrowInvalid:
            return pa.binary()
        return pa.uint64()
    return pa.binary() if changed(texts, values, True).any() else values.type
