# SPDX-License-Identifier: Apache-2.0
"""`decode_csv`: fields of CSV records as columns, by the rules of `tf.io.decode_csv`."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.core.adopt import leaf_of
from distinput.core.leaves import STRING
from distinput.errors import InvalidArgumentError

__all__ = ["decode_csv"]

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.int64), STRING)
_INTEGER = re.compile(rb"[+-]?[0-9]+\Z")
_FLOAT = re.compile(
    rb"[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|inf|infinity|nan)\Z", re.IGNORECASE
)


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
    name: str | None = None,
) -> list[Any]:
    """The fields of CSV records, an array for each.

    Shapes: an array [...] of records gives arrays [...]; one record gives scalars.

    Args:
      records: a record as bytes or text, or an array or list of them.
      record_defaults: for each field, what stands for an empty one; its dtype is that of the field: int32, int64, float32,
        float64 or string. An empty array: the field must not be empty.
      field_delim: the character between fields.
      use_quote_delim: whether quotes around a field are left out, and may enclose a delimiter.
      na_value: a further text that counts as an empty field.
      select_cols: the numbers of the fields wanted, in ascending order; None: all of them.
      name: ignored.

    Raises:
      InvalidArgumentError: a record has another number of fields, an empty one that must not be, one that is no number, or
        wrong quotes; a default of another dtype.

    >>> decode_csv(["1,2.5,a", '4,,"b,c"'], [0, 0.5, "x"])
    [array([1, 4], dtype=int32), array([2.5, 0.5], dtype=float32), array([b'a', b'b,c'], dtype=object)]

    Source: `tf.io.decode_csv`.
    """
    del name
    if len(field_delim) != 1:
        raise InvalidArgumentError(f"decode_csv: field_delim must be one character, got {field_delim!r}")
    defaults = [_default(place, value) for place, value in enumerate(record_defaults)]
    if not defaults:
        raise InvalidArgumentError("decode_csv: record_defaults must have a value for each field, got none")
    numbers = None if select_cols is None else [int(column) for column in select_cols]
    if numbers is not None and (len(numbers) != len(defaults) or numbers != sorted(set(numbers)) or numbers[0] < 0):
        raise InvalidArgumentError(
            f"decode_csv: select_cols must have as many ascending numbers as record_defaults has values, got {numbers} for "
            f"{len(defaults)}"
        )
    array = np.asarray(records, object)
    columns: list[list[Any]] = [[] for _ in defaults]
    for number, record in enumerate(array.reshape(-1).tolist()):
        text = record.encode() if isinstance(record, str) else bytes(record)
        if not text:  # no field at all, while a comma stands between two empty ones
            raise InvalidArgumentError(f"decode_csv: Expect {len(defaults)} fields but have 0 in record {number}")
        fields = _fields(text, field_delim.encode(), number, quotes=use_quote_delim)
        if numbers is not None:
            if len(fields) <= numbers[-1]:
                raise InvalidArgumentError(
                    f"decode_csv: Expect at least {numbers[-1] + 1} fields but have {len(fields)} in record {number}"
                )
            fields = [fields[column] for column in numbers]
        if len(fields) != len(defaults):
            raise InvalidArgumentError(
                f"decode_csv: Expect {len(defaults)} fields but have {len(fields)} in record {number}"
            )
        for place, (field, default) in enumerate(zip(fields, defaults, strict=True)):
            empty = not field or field == na_value.encode()
            columns[place].append(
                _filled(default, place, number) if empty else _value(field, default.dtype, place, number)
            )
    return [_shaped(column, default.dtype, array.shape) for column, default in zip(columns, defaults, strict=True)]


def _shaped(values: list[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    made = np.empty(len(values), dtype)
    made[:] = values
    return made.reshape(shape) if shape else made[0]


def _default(place: int, value: Any) -> np.ndarray[Any, Any]:
    leaf = leaf_of(value)
    found = np.asarray(leaf, STRING) if isinstance(leaf, bytes) else np.asarray(leaf)
    if found.dtype not in _DTYPES or found.size > 1:
        raise InvalidArgumentError(
            f"decode_csv: the default of field {place} must be one value, or an empty array, of float32, float64, int32, int64 "
            f"or string, got {value!r}"
        )
    return found.reshape(-1)


def _filled(default: np.ndarray[Any, Any], place: int, number: int) -> Any:
    if not default.size:
        raise InvalidArgumentError(f"decode_csv: Field {place} is required but missing in record {number}!")
    return default[0]


def _value(field: bytes, dtype: np.dtype[Any], place: int, number: int) -> Any:
    if dtype == STRING:
        return field
    bare = field.strip()
    whole = dtype.kind == "i"
    if (_INTEGER if whole else _FLOAT).match(bare):
        value = int(bare) if whole else float(bare)
        if not whole or np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            return value
    shown = field.decode(errors="replace")
    raise InvalidArgumentError(f"decode_csv: Field {place} in record {number} is not a valid {dtype}: {shown}")


def _fields(record: bytes, delimiter: bytes, number: int, *, quotes: bool) -> list[bytes]:
    """The fields of one record."""
    fields, position = [], 0
    while True:
        if quotes and record[position : position + 1] == b'"':
            field, position = _quoted(record, position + 1, delimiter, number)
        else:
            end = record.find(delimiter, position)
            end = len(record) if end < 0 else end
            field, position = record[position:end], end
            if b"\n" in field or b"\r" in field or (quotes and b'"' in field):
                raise InvalidArgumentError(
                    f"decode_csv: Unquoted fields cannot have quotes/CRLFs inside, in record {number}"
                )
        fields.append(field)
        if position >= len(record):
            return fields
        position += len(delimiter)


def _quoted(record: bytes, at: int, delimiter: bytes, number: int) -> tuple[bytes, int]:
    """The field whose quote ended before `at`, and where it ends."""
    parts = []
    while True:
        end = record.find(b'"', at)
        after = record[end + 1 : end + 2]
        if end < 0 or after not in (b'"', delimiter, b""):
            raise InvalidArgumentError(
                f"decode_csv: Quoted field has to end with quote followed by delim or end, in record {number}"
            )
        parts.append(record[at:end])
        if after != b'"':
            return b'"'.join(parts), end + 1
        at = end + 2
