# SPDX-License-Identifier: Apache-2.0
"""CSV files as TensorFlow reads them: every record is a tuple, and each field has a default or is required."""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.arrow import columns_of
from distinput.columns.block import ColumnBlock
from distinput.columns.column import Column, Dense, Strings
from distinput.errors import DistinputError, InvalidArgumentError
from distinput.files.compression import as_compression
from distinput.files.source import stamp_of
from distinput.formats.csv import PlainRows, first_record
from distinput.formats.row_schema import RowSchema
from distinput.formats.text_records import MARK, Bytes, Head, TextPiece, has_lone_return
from distinput.formats.text_table import BadRecordError, Decoded, TextTable
from distinput.kernels.lines import BLANKS, MULTILINE, RETURNS, csv_records
from distinput.kernels.plain_csv import FLOAT32, FLOAT64, INT32, INT64, TEXT
from distinput.names.lazy import dataclass, library
from distinput.plan.check import byte_string, normalized
from distinput.values.leaves import STRING, as_leaf
from distinput.values.spec import Spec, TensorSpec

pa = library("pyarrow")
csv = library("pyarrow.csv")

# ----------------------------------------------------------------------------
# Fields of CSV as TensorFlow reads them, one record at a time: the rule that the quick way of `csv_tuples` has to keep.
#
# Source: the answers of `tf.data.experimental.CsvDataset`, in `tests/formats/csv_answers.json`.
# ----------------------------------------------------------------------------


_SPACE = b" \t\n\v\f\r"
_MOST_DIGITS = 20  # of an integer of 64 bits, and one more
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEXADECIMAL_NUMBER = re.compile(rb"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?")
_SPECIAL = re.compile(rb"([+-]?)(inf|infinity|nan|nan\([0-9a-zA-Z_]*\))", re.IGNORECASE)


class FieldError(ValueError):
    """A record that TensorFlow does not read."""


_OF_FILES = (
    "Reached end of file without closing quoted field in record",
    "Quote inside a string has to be escaped by another quote",
    "Unquoted fields cannot have quotes inside",
)
_OF_RECORDS = (
    *2 * ("Quoted field has to end with quote followed by delim or end",),
    "Unquoted fields cannot have quotes/CRLFs inside",
)


def fields_of(
    record: bytes, delimiter: bytes, quote: bytes | None, says: tuple[str, str, str] = _OF_FILES, never: bytes = b""
) -> list[bytes]:
    """The fields of a record without its line end.

    Args:
      record: the record.
      delimiter: what is between fields.
      quote: what may be around a field; None: nothing.
      says: errors of quotes that are not closed, of more behind them, and of a field without quotes that has what it must not.
      never: bytes that no field without quotes has, besides the quote.

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
                    raise FieldError(says[0])
                if record[end + 1 : end + 2] != quote:
                    break
                end += 2
            field = record[position + 1 : end].replace(quote * 2, quote)
            position = end + 1
            if position < len(record) and not record.startswith(delimiter, position):
                raise FieldError(says[1])
        else:
            end = record.find(delimiter, position)
            end = len(record) if end < 0 else end
            field, position = record[position:end], end
            if (quote and quote in field) or any(each in field for each in never):
                raise FieldError(says[2])
        fields.append(field)
        if position >= len(record):
            return fields
        position += len(delimiter)


def _converted(field: bytes, dtype: np.dtype[Any]) -> Any:
    """A number, or the text itself.

    Raises:
      FieldError: it is not a number of this type.
    """
    if dtype.kind == "O":
        return field
    text = field.strip(_SPACE)
    if dtype.kind == "i":
        if (value := _whole(text, dtype)) is not None:
            return dtype.type(value)
    elif _DECIMAL.fullmatch(text):
        return _nearest(text.decode(), dtype)
    elif _HEXADECIMAL_NUMBER.fullmatch(text):
        return _from_hexadecimal(text.decode(), dtype)
    elif special := _SPECIAL.fullmatch(text):
        name = "nan" if special[2][:1] in b"nN" else "inf"
        return dtype.type(special[1].decode() + name)
    raise FieldError


def _whole(text: bytes, dtype: np.dtype[Any]) -> int | None:
    """The whole number of a text; None if it is none of this type. Python reads only so many digits."""
    if not _INTEGER.fullmatch(text) or len(text.lstrip(b"+-").lstrip(b"0")) > _MOST_DIGITS:
        return None
    value = int(text.lstrip(b"+-").lstrip(b"0") or b"0") * (-1 if text.startswith(b"-") else 1)
    return value if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max else None


def _from_hexadecimal(text: str, dtype: np.dtype[Any]) -> Any:
    try:
        value = float.fromhex(text)
    except OverflowError:
        value = float("-inf" if text.startswith("-") else "inf")
    with np.errstate(over="ignore"):
        return dtype.type(value)


def _nearest(text: str, dtype: np.dtype[Any]) -> Any:
    """The number of this type that is nearest to a decimal one, which is rounded once."""
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
    for index, (text, dtype, default) in enumerate(zip(fields, dtypes, defaults, strict=False)):
        if text in (b"", na):
            if default is None:
                raise FieldError(f"Field {index} is required but missing in record!")
            values.append(default)
            continue
        try:
            values.append(_converted(text, dtype))
        except FieldError:
            kind = "double" if dtype == np.float64 else "float" if dtype == np.float32 else str(dtype)
            shown = text.decode(errors="backslashreplace")
            raise FieldError(f"Field {index} in record is not a valid {kind}: {shown}") from None
    if len(fields) != len(dtypes):
        raise _wrong_count(len(fields), len(dtypes), len(fields) > len(dtypes))
    return values


# ----------------------------------------------------------------------------
# `decode_csv`: fields of CSV records as columns, by the rules of `tf.io.decode_csv`.
# ----------------------------------------------------------------------------


_DTYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.int64), STRING)
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
      InvalidArgumentError: a record has another number of fields, an empty one that must not be, one that is not a number, or
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
        text = byte_string("decode_csv", record)
        if not text:  # no field at all, while a comma stands between two empty ones
            raise InvalidArgumentError(f"decode_csv: Expect {len(defaults)} fields but have 0 in record {number}")
        try:
            fields = fields_of(text, field_delim.encode(), b'"' if use_quote_delim else None, _OF_RECORDS, b"\r\n")
        except FieldError as error:
            raise InvalidArgumentError(f"decode_csv: {error}, in record {number}") from None
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
        for place, (text, default) in enumerate(zip(fields, defaults, strict=True)):
            empty = not text or text == na_value.encode()
            columns[place].append(
                _filled(default, place, number) if empty else _value(text, default.dtype, place, number)
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
    if dtype.kind != "i" and _FLOAT.match(bare):
        return float(bare)
    if dtype.kind == "i" and (value := _whole(bare, dtype)) is not None:
        return value
    shown = field.decode(errors="replace")
    raise InvalidArgumentError(f"decode_csv: Field {place} in record {number} is not a valid {dtype}: {shown}")


# ----------------------------------------------------------------------------
# CSV files as TensorFlow reads them: every record is a tuple, and each field has a type and perhaps a default.
# ----------------------------------------------------------------------------


_TYPES = ("int32", "int64", "float32", "float64", "object")
_PLAIN = {"int32": INT32, "int64": INT64, "float32": FLOAT32, "float64": FLOAT64, "object": TEXT}
_QUOTE = 34
_HEXADECIMAL = np.frombuffer(b"xX", np.uint8)


@dataclass(frozen=True)
class CsvTuples(TextTable):
    r"""Records of CSV as tuples of numbers and byte strings, by the rules of `tf.data.experimental.CsvDataset`.

    An empty line is a record with an empty field; a "\r" alone ends a line; a quote may only stand around a field, or twice
    inside of quotes.

    Args:
      types: of the fields that are read: "int32", "int64", "float32", "float64" or "object" for byte strings.
      defaults: what an empty field becomes; None for a field that must not be empty.
      chosen: the numbers of the fields that are read, in order; None: all of them. Names in headers are held as numbers.
      excluded: the numbers of fields that are not read, in the place of `chosen`, or their names.
      header: whether the first record of a file is left out.
      delimiter: the character between fields.
      quoted: whether a field may be in double quotes.
      na_value: text that counts as an empty field.
      compression_type: None or "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY", or "AUTO".
      names: what each header has to say, where fields were named.

    Raises:
      InvalidArgumentError: an option has an invalid value.
    """

    name: ClassVar[str] = "csv_tuples"
    refusal: ClassVar[type[DistinputError]] = InvalidArgumentError
    endless: ClassVar[str] = "Reached end of file without closing quoted field in record"
    types: tuple[str, ...]
    defaults: tuple[Any, ...]
    chosen: Any = None
    excluded: Any = None
    header: bool = False
    delimiter: str = ","
    quoted: bool = True
    na_value: str = ""
    compression_type: str | None = None
    names: tuple[str, ...] | None = field(default=None, repr=False)
    schema: Any = field(default=None, init=False, repr=False)
    columns: Any = field(default=None, init=False, repr=False)
    nulls: Any = field(default="error", init=False, repr=False)

    def __post_init__(self) -> None:
        for option in ("types", "defaults", "chosen", "excluded"):
            given = getattr(self, option)
            normalized(self, option, None if given is None else tuple(given))
        if not self.types or len(self.types) != len(self.defaults):
            raise InvalidArgumentError(
                f"csv: there must be a default for each of at least one field, got {len(self.types)} types and "
                f"{len(self.defaults)} defaults"
            )
        for kind in self.types:
            if kind not in _TYPES:
                raise InvalidArgumentError(f"csv: a field must be int32, int64, float32, float64 or text, got {kind}")
        if self._by_name and not self.header:
            raise InvalidArgumentError(
                "csv: fields are named in headers; pass header=True, or the numbers of the fields"
            )
        if not self._by_name:
            _check_numbers("select_cols", self.chosen, len(self.types))
            _check_numbers("exclude_cols", self.excluded, None)
        if self.chosen is not None and self.excluded is not None:
            raise InvalidArgumentError("csv: either select_cols or exclude_cols must be empty, got both")
        if len(self.delimiter.encode()) != 1 or self.delimiter in "\r\n":
            raise InvalidArgumentError(
                f"csv: field_delim must be a single character of one byte, got {self.delimiter!r}"
            )
        as_compression(self.compression_type)
        stated = RowSchema.of("csv", {str(i): t for i, t in enumerate(self.types)})
        assert stated is not None
        normalized(self, "schema", replace(stated, whole=True))

    @property
    def _by_name(self) -> bool:
        return any(isinstance(column, str) for column in (*(self.chosen or ()), *(self.excluded or ())))

    def held(self, paths: Iterable[str]) -> "TextTable":
        """This format with numbers in the place of names, which are those in the header of the first file."""
        if not self._by_name:
            return self
        path = next(iter(paths), None)
        if path is None:
            raise InvalidArgumentError("csv: fields are named in headers, and there is no file")
        names = self._first(path, 0).names
        options = {"select_cols": self.chosen, "exclude_cols": self.excluded}
        chosen, excluded = (_numbered(path, option, given, names) for option, given in options.items())
        return replace(self, chosen=chosen, excluded=excluded, names=names)

    def _first(self, path: str, rules: int) -> Head:
        quote = '"' if self.quoted else None
        return first_record(path, stamp_of(path), self.compression, self.delimiter, quote, True, rules)

    @property
    def lines_are_records(self) -> bool:
        return False

    @property
    def dialect(self) -> Hashable:
        return self.name, self.delimiter, self.quoted, self.header

    @cached_property
    def _spec(self) -> Spec:
        return Spec.of(tuple(TensorSpec((), np.dtype(kind)) for kind in self.types))

    @cached_property
    def _numbers(self) -> tuple[int, ...] | None:
        """The fields that are read; None: all."""
        if self.excluded is None:
            return self.chosen  # type: ignore[no-any-return]
        whole = len(self.types) + len(self.excluded)
        return tuple(number for number in range(whole) if number not in self.excluded)

    @property
    def _quote(self) -> int:
        return _QUOTE if self.quoted else -1

    def head(self, path: str) -> Head:
        if not self.header:
            return Head()
        found = self._first(path, RETURNS | BLANKS)
        if not found.byte:
            raise InvalidArgumentError(f"{path}: Can't read header of file")
        there = self.names if self.names is None else self._first(path, 0).names
        if there != self.names:
            raise InvalidArgumentError(
                f"{path}: its header has the columns {', '.join(there or ())}, and that of the first file "
                f"{', '.join(self.names or ())}; named fields must be at the same positions in all files"
            )
        return found

    def scan(self, data: Bytes, start: int, until: int, rows: int) -> tuple[int, int, int, int]:
        rules = MULTILINE | RETURNS | BLANKS
        return csv_records(data, start, len(data), until, rows, ord(self.delimiter), self._quote, rules)

    def problem(self, data: Bytes, place: int) -> str:
        return "the record cannot be read"

    def _read(self, data: Bytes, count: int) -> Any:
        """The fields that are read as a record batch, with nulls where they are empty.

        Raises:
          pyarrow.ArrowInvalid, FieldError, BadRecordError: a record is not as plain as that.
        """
        whole, numbers = self._layout(data)
        if whole > 1 and count > self._full_lines(data):
            raise BadRecordError  # pyarrow takes an empty line for a record of empty fields
        names = [str(number) for number in range(whole)]
        kinds = {str(number): kind for number, kind in zip(numbers, self.wanted.arrow.types, strict=True)}
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(data)),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            csv.ParseOptions(
                delimiter=self.delimiter, quote_char='"' if self.quoted else False, ignore_empty_lines=False
            ),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=kinds,
                include_columns=list(kinds),
                null_values=sorted({"", self.na_value}),
                strings_can_be_null=True,
            ),
        )
        return table.combine_chunks().to_batches()[0]

    def _block(self, data: Bytes, count: int, head: Head) -> ColumnBlock:
        try:
            columns = self._plain_columns(data, count)
            batch = self._read(data, count) if columns is None and self._is_plain(data) else None
        except (pa.ArrowInvalid, FieldError, BadRecordError):
            columns = batch = None
        if columns is not None:
            return ColumnBlock(self._spec.structure, columns, count)
        if batch is None or batch.num_rows != count:
            return self._by_record(data, count)
        fill = {}
        for place, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
            if column.null_count:
                if self.defaults[place] is None:
                    raise BadRecordError
                fill[name] = self.defaults[place]
        return ColumnBlock(self._spec.structure, list(columns_of(batch, fill).values()), count)

    def _plain_columns(self, data: Bytes, count: int) -> list[Column] | None:
        """The columns of records without empty fields, see `kernels.plain_csv`; None: they are not as plain as that.

        Raises:
          FieldError, BadRecordError: see `_layout`.
        """
        # Any text may count as empty, and a "\r" may end a line alone.
        if self.na_value or self.delimiter == '"' or has_lone_return(data):
            return None
        whole, numbers = self._layout(data)
        kinds = {str(number): _PLAIN[kind] for number, kind in zip(numbers, self.types, strict=True)}
        rows = PlainRows(tuple(map(str, range(whole))), kinds, ord(self.delimiter), self._quote)
        columns = rows.columns(data, count)
        if columns is None:
            return None
        for column, default in zip(columns.values(), self.defaults, strict=True):
            if isinstance(column, Strings) and default != b"" and not column.sizes.all():
                return None
        return list(columns.values())

    def _layout(self, data: Bytes) -> tuple[int, Sequence[int]]:
        """How many fields the first record has, and the numbers of those that are read.

        Raises:
          FieldError: the record cannot be read.
          BadRecordError: it has not as many fields as it must have.
        """
        whole = len(self._fields(data[: self.scan(data, 0, len(data), 1)[1]].tobytes()))
        numbers = range(whole) if self._numbers is None else self._numbers
        right = len(numbers) == len(self.types) and numbers[-1] < whole
        if not right or (self.excluded and whole != len(numbers) + len(self.excluded)):
            raise BadRecordError
        return whole, numbers

    def _full_lines(self, data: Bytes) -> int:
        rules = MULTILINE | RETURNS
        return csv_records(data, 0, len(data), len(data), len(data), ord(self.delimiter), self._quote, rules)[0]

    def _decoded(self, piece: TextPiece, head: Head) -> Decoded:
        if piece.data[-1] == 13:  # which might be followed by a newline; here it is not
            whole = np.concatenate([piece.data, np.array([10], np.uint8)])
            piece = replace(piece, data=whole, end=piece.byte + len(piece.data))
        return super()._decoded(piece, head)

    def _is_plain(self, data: Bytes) -> bool:
        """Whether pyarrow reads all fields as TensorFlow does, if it reads them at all: it takes 0x10 for an integer."""
        if self.quoted and not splits_as_tensorflow(data, ord(self.delimiter), _QUOTE):
            return False
        if data[:3].tobytes() == MARK:  # which pyarrow leaves out
            return False
        return not any(kind.startswith("int") for kind in self.types) or not np.isin(data, _HEXADECIMAL).any()

    def _by_record(self, data: Bytes, count: int) -> ColumnBlock:
        """The records one by one."""
        rows, at = [], 0
        try:
            for _ in range(count):
                after = self.scan(data, at, len(data), 1)[1]
                after = len(data) if after == at else after  # a "\r" at the end, behind which there might be a newline
                rows.append(self._values(data[at:after].tobytes()))
                at = after
        except FieldError as error:
            raise BadRecordError from error
        columns: list[Column] = []
        for values, kind in zip(zip(*rows, strict=True), self.types, strict=True):
            columns.append(Strings.of(values) if kind == "object" else Dense(np.array(values, kind)))
        return ColumnBlock(self._spec.structure, columns, count)

    def _fields(self, record: bytes) -> list[bytes]:
        text = record[:-2] if record.endswith(b"\r\n") else record[:-1] if record.endswith((b"\n", b"\r")) else record
        return fields_of(text, self.delimiter.encode(), b'"' if self.quoted else None)

    def _values(self, record: bytes) -> list[Any]:
        fields = self._fields(record)
        if self.excluded is not None and len(fields) > len(self.types) + len(self.excluded):
            raise FieldError(f"Expect {len(self.types)} fields but have more in record")
        dtypes = [np.dtype(kind) for kind in self.types]
        return record_values(fields, self._numbers, dtypes, self.defaults, self.na_value.encode())

    def _error(self, where: str, record: bytes, head: Head) -> InvalidArgumentError:
        try:
            self._values(record)
        except FieldError as error:
            return InvalidArgumentError(f"{where}: {error}")
        return InvalidArgumentError(f"{where}: the record cannot be read")

    def parse(self, data: Any, schema: RowSchema, head: Head) -> Any:
        return self._read(data, self._full_lines(data))

    def misfit(self, record: bytes, schema: RowSchema, head: Head) -> tuple[str | None, str]:
        return None, "the record cannot be read"

    def infer(self, data: Bytes, head: Head, path: str, stated: RowSchema | None) -> RowSchema | None:
        return self.wanted


def _numbered(path: str, option: str, given: Any, names: tuple[str, ...]) -> tuple[int, ...] | None:
    """Numbers of fields, for those that are named."""
    if given is None:
        return None
    numbers = {name: number for number, name in enumerate(names)}
    for column in given:
        if isinstance(column, str) and column not in numbers:
            raise InvalidArgumentError(
                f"{path}: {option}: there is no column {column!r}; the columns are {', '.join(names)}"
            )
    return tuple(numbers.get(column, column) for column in given)


def _check_numbers(option: str, numbers: tuple[int, ...] | None, wanted: int | None) -> None:
    """Numbers of fields, as TensorFlow wants them."""
    if numbers is None:
        return
    if any(number < 0 for number in numbers):
        raise InvalidArgumentError(f"csv: {option} must not be negative, got {list(numbers)}")
    if any(a >= b for a, b in pairwise(numbers)):
        raise InvalidArgumentError(f"csv: {option} must be strictly increasing, got {list(numbers)}")
    if wanted is not None and len(numbers) != wanted:
        raise InvalidArgumentError(
            f"csv: {option} must have a field for each of {wanted} defaults, got {list(numbers)}"
        )
