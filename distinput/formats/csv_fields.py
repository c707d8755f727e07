# SPDX-License-Identifier: Apache-2.0
"""Fields of CSV as TensorFlow reads them, one record at a time: the rule that the quick way of `csv_tuples` has to keep.

Source: the answers of `tf.data.experimental.CsvDataset`, in `tests/formats/csv_answers.json`.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.values.leaves import STRING, as_leaf

__all__ = ["FieldError", "decode_csv", "fields_of", "record_values", "splits_as_tensorflow"]


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


# ----------------------------------------------------------------------------
# `decode_csv`: fields of CSV records as columns, by the rules of `tf.io.decode_csv`.
# ----------------------------------------------------------------------------


_DTYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.int64), STRING)
_CSV_RECORDS_INTEGER = re.compile(rb"[+-]?[0-9]+\Z")
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
    leaf = as_leaf(value)
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
    if (_CSV_RECORDS_INTEGER if whole else _FLOAT).match(bare):
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
