# SPDX-License-Identifier: Apache-2.0
"""Fields of CSV as TensorFlow reads them, one record at a time: the rule that the quick way of `csv_tuples` has to keep.

Source: the answers of `tf.data.experimental.CsvDataset`, in `tests/formats/csv_answers.json`.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["FieldError", "fields_of", "record_values", "splits_as_tensorflow"]

_SPACE = b" \t\n\v\f\r"
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(rb"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?")
_SPECIAL = re.compile(rb"([+-]?)(inf|infinity|nan|nan\([0-9a-zA-Z_]*\))", re.IGNORECASE)


class FieldError(ValueError):
    """A record that TensorFlow does not read."""


def fields_of(record: bytes, delimiter: bytes, quote: bytes | None) -> list[bytes]:
    """The fields of a record without its line end.

    Raises:
      FieldError: a quote inside of a field without quotes, or one in quotes that is not doubled.
    """
    fields, position = [], 0
    while True:
        if quote and record[position : position + 1] == quote:
            end = position + 1
            while True:
                end = record.find(quote, end)
                if end < 0:
                    raise FieldError("Reached end of file without closing quoted field in record")
                if record[end + 1 : end + 2] != quote:
                    break
                end += 2
            field = record[position + 1 : end].replace(quote * 2, quote)
            position = end + 1
            if position < len(record) and record[position : position + 1] != delimiter:
                raise FieldError("Quote inside a string has to be escaped by another quote")
        else:
            end = record.find(delimiter, position)
            end = len(record) if end < 0 else end
            field, position = record[position:end], end
            if quote and quote in field:
                raise FieldError("Unquoted fields cannot have quotes inside")
        fields.append(field)
        if position >= len(record):
            return fields
        position += 1


def _converted(field: bytes, dtype: np.dtype[Any]) -> Any:
    """A number, or the text itself.

    Raises:
      FieldError: it is no number of this type.
    """
    if dtype.kind == "O":
        return field
    text = field.strip(_SPACE)
    if dtype.kind == "i":
        if _INTEGER.fullmatch(text) and np.iinfo(dtype).min <= int(text) <= np.iinfo(dtype).max:
            return dtype.type(int(text))
    elif _DECIMAL.fullmatch(text):
        return _nearest(text.decode(), dtype)
    elif _HEXADECIMAL.fullmatch(text):
        return dtype.type(float.fromhex(text.decode()))
    elif special := _SPECIAL.fullmatch(text):
        name = "nan" if special[2][:1] in b"nN" else "inf"
        return dtype.type(special[1].decode() + name)
    raise FieldError


def _nearest(text: str, dtype: np.dtype[Any]) -> Any:
    """The number of this type that is nearest to a decimal one, which is rounded once."""
    import pyarrow as pa

    try:
        return dtype.type(pa.array([text.removeprefix("+")]).cast(pa.from_numpy_dtype(dtype))[0].as_py())
    except pa.ArrowInvalid:  # beyond the largest number, or "5."
        with np.errstate(over="ignore"):
            return dtype.type(float(text))


def splits_as_tensorflow(data: np.ndarray[Any, np.dtype[np.uint8]], delimiter: int, quote: int) -> bool:
    """Whether each quote opens a field, closes one, or is one of two inside of one, so that all readers agree on the fields."""
    places = np.flatnonzero(data == quote)
    if not len(places):
        return True
    if len(places) % 2:
        return False
    opens, closes = places[::2], places[1::2]
    before = data[opens - 1]
    begins = (before == delimiter) | (before == 10) | (before == 13) | (opens == 0)
    doubled = np.concatenate([[False], opens[1:] == closes[:-1] + 1])
    after = data[np.minimum(closes + 1, len(data) - 1)]
    ends = (after == delimiter) | (after == 10) | (after == 13) | (after == quote)
    return bool((begins | doubled).all() and ends.all())


def _wrong_count(found: int, wanted: int, more: bool) -> FieldError:
    """The error of a record with another number of fields than there are defaults."""
    return FieldError(f"Expect {wanted} fields but have {'more' if more else found} in record")


def record_values(
    fields: Sequence[bytes], chosen: Sequence[int] | None, dtypes: Sequence[np.dtype[Any]], defaults: Any, na: bytes
) -> list[Any]:
    """The values of a record.

    Args:
      fields: all of its fields.
      chosen: which of them are wanted; None: all.
      dtypes: of the values.
      defaults: what stands for an empty field; None: there must be one.
      na: text that counts as empty.

    Raises:
      FieldError: as TensorFlow has it.
    """
    if chosen is not None:
        if chosen[-1] >= len(fields):
            # An empty line has one field, which is passed over if it is not chosen.
            raise _wrong_count(sum(index < len(fields) for index in chosen), len(chosen), False)
        fields = [fields[index] for index in chosen]
    values = []
    for index, (field, dtype, default) in enumerate(zip(fields, dtypes, defaults, strict=False)):
        if field in (b"", na):
            if default is None:
                raise FieldError(f"Field {index} is required but missing in record!")
            values.append(default)
            continue
        try:
            values.append(_converted(field, dtype))
        except FieldError:
            kind = "double" if dtype == np.float64 else "float" if dtype == np.float32 else str(dtype)
            shown = field.decode(errors="backslashreplace")
            raise FieldError(f"Field {index} in record is not a valid {kind}: {shown}") from None
    if len(fields) != len(dtypes):
        raise _wrong_count(len(fields), len(dtypes), len(fields) > len(dtypes))
    return values
