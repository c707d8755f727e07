# SPDX-License-Identifier: Apache-2.0
"""CSV files: every record is a row, a dict of its columns."""

import dataclasses
from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.arrow import without_rows
from distinput.columns.column import Column
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.compression import as_compression
from distinput.files.source import EMPTY, FileStream, refuse_pipe, stamp_of
from distinput.formats.row_schema import INFERRED, RowSchema, changed, inferred_type, may_change
from distinput.formats.tables import as_columns, infinities
from distinput.formats.text_records import MARK, MOST_RECORD_BYTES, Bytes, Head, more_lines
from distinput.formats.text_table import PlainColumns, TextTable, as_inferred
from distinput.kernels.lines import MULTILINE, RETURN, RETURNS, csv_records
from distinput.kernels.plain_csv import FLOAT32, FLOAT64, INT32, INT64, LEFT_OUT, OK, TEXT, plain_csv
from distinput.names.lazy import dataclass, library
from distinput.plan.check import normalized

pa = library("pyarrow")
csv = library("pyarrow.csv")
types = library("pyarrow.types")

# ----------------------------------------------------------------------------
# Rows of plain CSV without pyarrow: by one compiled pass over the text, see `kernels.plain_csv`.
# ----------------------------------------------------------------------------


class PlainRows:
    """Reads records whose columns are numbers and text.

    Args:
      names: of the values of a record, in order.
      kinds: of the columns that are read, by name; see `kernels.plain_csv`.
      delimiter: the byte between values.
      quote: the byte around quoted values; -1: nothing is quoted.
    """

    def __init__(self, names: tuple[str, ...], kinds: dict[str, int], delimiter: int, quote: int) -> None:
        self._kinds, self._delimiter, self._quote = kinds, delimiter, quote
        self._order = [(name, kinds.get(name, LEFT_OUT)) for name in names]

    @staticmethod
    def of(
        names: tuple[str, ...], schema: Any, delimiter: int, quote: int, inferred: Collection[str] = ()
    ) -> "PlainRows | None":
        """For the columns of a pyarrow Schema; None if one of them is neither int, float nor binary.

        Args:
          names: of the values of a record, in order.
          schema: of the columns that are read.
          delimiter: the byte between values.
          quote: the byte around quoted values; -1: nothing is quoted.
          inferred: the names of columns whose types may change no number.
        """
        known = {pa.int64(): INT64, pa.float64(): FLOAT64, pa.float32(): FLOAT32, pa.int32(): INT32, pa.binary(): TEXT}
        kinds = {field.name: known.get(field.type) for field in schema}
        if not kinds or None in kinds.values() or not set(kinds) <= set(names):
            return None
        made = {name: as_inferred(kind, name in inferred) for name, kind in kinds.items() if kind is not None}
        return PlainRows(names, made, delimiter, quote)

    def columns(self, data: Bytes, count: int) -> dict[str, Column] | None:
        """The columns by name, in the order of the schema; None if the records are not plain.

        Args:
          data: whole records.
          count: how many there are.
        """
        kinds = [kind for _, kind in self._order]
        room = PlainColumns(kinds, count)
        layout = np.array(list(zip(kinds, room.places, strict=True)), np.int64)
        data = np.ascontiguousarray(data)
        if plain_csv(data, count, self._delimiter, self._quote, layout.reshape(-1), room.out)[0] != OK:
            return None
        made = {
            name: column for (name, _), column in zip(self._order, room.made(data), strict=True) if column is not None
        }
        return {name: made[name] for name in self._kinds}


_HEAD_BYTES = 64 * 1024
_MOST_SHOWN = 60


@dataclass(frozen=True)
class Csv(TextTable):
    r"""Records of values between delimiters, as dicts from column name to value.

    A record ends with "\n", "\r\n" or "\r" outside of quotes; an empty line is none. A value may be in quotes, inside of
    which two stand for one. A missing value is one of `null_values`; a text column has none.

    Args:
      schema: the types of columns, see `RowSchema.of`; those that it leaves out, or all if it is None, are inferred from the
        first megabyte, as int64, uint64, float64, bool or text, and held for all files. An inferred type changes no value:
        numbers with zeros in front, hexadecimal ones and whole ones that the type does not hold are text, and errors later.
      columns: names of the columns to read; None: all.
      column_names: names of the columns in the order of the file, in the place of those in the header; None: those of the
        header, or of the schema where there is none.
      header: whether the first record of each file holds the names.
      delimiter: the character between values.
      quote_char: the character around values with delimiters or newlines in them; None: there are no quotes.
      newlines_in_values: whether values in quotes may contain newlines. If not, a part of a file can be read without all
        that is before it, and a newline in quotes is an error.
      null_values: what a missing value looks like; None: as pyarrow has it, such as an empty value, "NA", "null" and "NaN".
      nulls: a dict of replacement values for nulls, by column; "error": a null is one. None: where the first megabyte has nulls
        in a column of numbers or truth values whose type is inferred, its values are dicts of `value` and `valid`.
      valid: a list of columns in which values may be missing, text too: there stand dicts of `value` and `valid`.
      compression_type: None or "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY", or "AUTO".

    Raises:
      InvalidArgumentError: an option has an invalid value.

    Source: RFC 4180; what is a number, a truth value or a time is for pyarrow's reader to say.
    """

    name: ClassVar[str] = "csv"
    schema: Any = None
    columns: Any = None
    column_names: Any = None
    header: bool = True
    delimiter: str = ","
    quote_char: str | None = '"'
    newlines_in_values: bool = True
    null_values: Any = None
    nulls: Any = None
    compression_type: str | None = None
    valid: Any = dataclasses.field(default=None, repr=False)  # it is told by the schema

    def __post_init__(self) -> None:
        normalized(self, "schema", RowSchema.of("csv", self.schema))
        normalized(self, "columns", as_columns("csv", self.columns))
        self._check_nulls()
        for option in ("column_names", "null_values"):
            given = getattr(self, option)
            if isinstance(given, str | bytes):
                raise InvalidArgumentError(f"csv: {option} must be a list, got {given!r}")
            normalized(self, option, None if given is None else tuple(given))
        as_compression(self.compression_type)
        for option, given in (("delimiter", self.delimiter), ("quote_char", self.quote_char)):
            bad = not isinstance(given, str) or len(given) != 1 or not given.isascii() or given in "\r\n"
            if bad and not (option == "quote_char" and given is None):
                raise InvalidArgumentError(f"csv: {option} must be a single ASCII character, got {given!r}")
        if self.delimiter == self.quote_char:
            raise InvalidArgumentError(f"csv: delimiter and quote_char must differ, both are {self.delimiter!r}")
        if not self.header and self.column_names is None and self.schema is None:
            raise InvalidArgumentError(
                "csv: without a header, the names of the columns come from column_names or schema"
            )
        if self.schema is not None:
            if not self.header and self.column_names is None:
                normalized(self, "schema", replace(self.schema, whole=True))  # it has all names
            self._check_types(self.schema)

    def _check_types(self, schema: RowSchema) -> None:
        for field in schema.arrow:
            if not _is_made_of_text(field.type):
                raise InvalidArgumentError(
                    f"csv: column {field.name!r} cannot have type {field.type}: values of CSV are numbers, truth "
                    "values, times and text"
                )

    @property
    def lines_are_records(self) -> bool:
        return self.quote_char is None or not self.newlines_in_values

    @property
    def dialect(self) -> Hashable:
        return self.name, self.delimiter, self.quote_char, self.header

    def head(self, path: str) -> Head:
        first = first_record(path, stamp_of(path), self.compression, self.delimiter, self.quote_char, self.header, 0)
        header = first.names
        names = self.column_names or header or (self.schema.names if self.schema is not None else ())
        if self.header and first.byte == 0 and not header:
            return Head(0, 0, names)  # an empty file
        if self.header and first.lines and not header and self.column_names is None:
            raise DataLossError(
                f"{path}: line {first.lines}: the header cannot be read, as it is not UTF-8; make the file UTF-8, as `iconv -f "
                "LATIN1 -t UTF-8` does where it is Latin-1, or give the names of all columns with column_names="
            )
        if len(set(names)) != len(names):
            raise UnimplementedError(
                f"{path}: several columns have the same name; give each its own with column_names: {', '.join(names)}"
            )
        if header and len(names) != len(header):
            raise InvalidArgumentError(
                f"{path}: column_names has {len(names)} names, but the header {len(header)}: {', '.join(header)}"
            )
        if self.schema is not None:
            self._check_names(path, names)
        return Head(first.byte, first.lines, names)

    def _check_names(self, path: str, names: tuple[str, ...]) -> None:
        """Refuse a file that lacks a column of the schema, or has one more."""
        wanted = self.schema.names if self.columns is None else self.columns
        there, known = set(names), set(wanted)
        missing = [name for name in wanted if name not in there]
        more = [] if self.columns is not None else [name for name in names if name not in known]
        if missing or more:
            what = f"no column {missing[0]!r}" if missing else f"a column {more[0]!r} that the schema does not have"
            raise InvalidArgumentError(
                f"{path}: has {what}; its columns are {', '.join(names)}, those of the schema {', '.join(self.schema.names)}; "
                "name those to read with columns="
            )

    def named(self, path: str) -> tuple[str, ...] | None:
        return self.head(path).names

    def scan(self, data: Bytes, start: int, until: int, rows: int) -> tuple[int, int, int, int]:
        count, after, lines, problem = self._scanned(data, start, until, rows, 0)
        if problem < 0 or not self._ends_at_return(data, problem):
            return count, after, lines, problem
        more, after, others, problem = self._scanned(data, after, until, rows - count, RETURNS)
        return count + more, after, lines + others, problem

    def scan_piece(self, data: Bytes, start: int, until: int, rows: int) -> tuple[int, int, int, int]:
        found = self._scanned(data, start, until, rows, 0)
        if not found[0] or not self._ends_at_return(data, found[3]):
            return self.scan(data, start, until, rows)
        return (*found[:3], -1)  # what is before is read by the quick way

    def _scanned(self, data: Bytes, start: int, until: int, rows: int, rules: int) -> tuple[int, int, int, int]:
        quote = -1 if self.quote_char is None else ord(self.quote_char)
        rules |= MULTILINE * self.newlines_in_values
        return csv_records(data, start, len(data), until, rows, ord(self.delimiter), quote, rules)

    def _ends_at_return(self, data: Bytes, problem: int) -> bool:
        r"""Whether what stops a scan is a "\r" that ends a line; it is not looked for where all lines are records."""
        return problem >= 0 and bool(data[problem] == RETURN) and not self.lines_are_records

    def problem(self, data: Bytes, place: int) -> str:
        if data[place] == 10:
            return "there is a newline inside of quotes; pass newlines_in_values=True if that is meant"
        return (
            'there is a "\\r" without "\\n", which ends a line only where values may be in quotes with newlines in them: leave '
            'newlines_in_values and use_quote_delim as they are, or write the file anew, as `tr "\\r" "\\n"` does'
        )

    def quick(self, data: Bytes, count: int, schema: RowSchema, head: Head) -> dict[str, Column] | None:
        # Any text may be a missing value where that is stated, numbers too.
        rows = _plain(self, schema, head.names) if self.null_values is None else None
        # A "\r" ends the first line, and perhaps others.
        if rows is None or self._scanned(data, 0, len(data), 1, 0)[3] >= 0:
            return None
        return rows.columns(data, count)

    def parse(self, data: Any, schema: RowSchema, head: Head) -> Any:
        names = list(head.names)
        texts = [name for name, *_ in schema.nulls if pa.types.is_binary(schema.arrow.field(name).type)]
        batch = self._read(data, names, schema.arrow, missing=bool(texts))
        for place, each in enumerate(schema.arrow if texts else ()):  # an empty text is one elsewhere
            if pa.types.is_binary(each.type) and each.name not in texts:
                batch = batch.set_column(place, each, batch.column(place).fill_null(b""))
        at_risk = self._at_risk(data, batch, schema.inferred)
        if at_risk:
            texts = self._texts(data, names, at_risk)
            for name in at_risk:
                if changed(texts.column(name), batch.column(name), name in schema.inferred).any():
                    raise pa.ArrowInvalid(f"a value of column {name!r} would be changed")
        return batch

    def _texts(self, data: Any, names: list[str], wanted: list[str]) -> Any:
        """Columns as they are written."""
        return self._read(data, names, pa.schema([(name, pa.binary()) for name in wanted]))

    @staticmethod
    def _at_risk(data: Any, batch: Any, inferred: Collection[str]) -> list[str]:
        """The columns of which values may have been changed."""
        whole = None  # whether there are such numbers in the text, which takes time to tell
        found = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kind = column.type
            infinite = types.is_floating(kind) and infinities(column)
            if infinite or (types.is_boolean(kind) and name in inferred):
                found.append(name)
            elif types.is_integer(kind) or types.is_duration(kind) or (types.is_floating(kind) and name in inferred):
                whole = may_change(np.frombuffer(data, np.uint8)) if whole is None else whole
                if whole:
                    found.append(name)
        return found

    def _read(self, data: Any, names: list[str], schema: Any, missing: bool = False) -> Any:
        """The records as a record batch; with the schema, or with the types that pyarrow infers if that is None.

        Args:
          data: the text.
          names: of all columns.
          schema: of those to read.
          missing: whether text without quotes may be a missing value.
        """
        convert: dict[str, Any] = {"check_utf8": False}
        if bytes(data[:3]) == MARK:
            data = b"\n" + bytes(data)  # in the middle of a file it is text, but pyarrow would leave it out
        if schema is not None:
            as_read = pa.schema([(field.name, _stored(field.type)) for field in schema])
            convert |= {"column_types": as_read, "include_columns": schema.names}
        if self.null_values is not None:
            convert["null_values"] = self.null_values
        if missing:
            convert |= {"strings_can_be_null": True, "quoted_strings_can_be_null": False}
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(data)),
            csv.ReadOptions(use_threads=False, block_size=max(len(data), 1) + 1, column_names=names),
            csv.ParseOptions(delimiter=self.delimiter, quote_char=self.quote_char or False),
            csv.ConvertOptions(**convert),
        )
        if schema is not None:
            table = table.cast(schema)  # no more than a look where the types are the same
        return table.combine_chunks().to_batches()[0] if len(table) else without_rows(table.schema)

    def infer(self, data: Bytes, head: Head, path: str, stated: RowSchema | None) -> RowSchema | None:
        if not head.names:
            return None
        names, field_types = list(head.names), {field.name: field.type for field in stated.arrow} if stated else {}
        try:
            found = self._read(data, names, None)
        except pa.ArrowInvalid:
            data, found = self._read_good(data, head)
        del path
        kinds = self._inferred_types(data, names, found, field_types)
        free = frozenset(kinds) - frozenset(field_types)
        fields = [(name, pa.binary() if types.is_null(kind) else kind) for name, kind in kinds.items()]
        nulls = [
            (name,)
            for name, kind in fields
            if name in free and found.column(name).null_count and (types.is_integer(kind) or types.is_boolean(kind))
        ]
        return RowSchema(pa.schema(fields), free, nulls=tuple(nulls))

    def _inferred_types(self, data: Any, names: list[str], found: Any, known: Mapping[str, Any]) -> dict[str, Any]:
        """The types of columns by name: those that are known, or those of a record batch where no value is changed by them."""
        kinds = {}
        for name, kind in zip(found.schema.names, found.schema.types, strict=True):
            plain = types.is_int64(kind) or types.is_float64(kind) or types.is_boolean(kind) or types.is_null(kind)
            kinds[name] = known.get(name, kind if plain else pa.binary())
        at_risk = [name for name in self._at_risk(data, found, names) if name not in known and name in kinds]
        if not at_risk:
            return kinds
        texts = self._texts(data, names, at_risk)
        for name in at_risk:
            kinds[name] = inferred_type(texts.column(name), found.column(name))
        return kinds

    def _read_good(self, data: Bytes, head: Head) -> tuple[Bytes, Any]:
        """The records before the first one that has another number of values: as they are, and as a record batch."""
        names = list(head.names)
        good, bad = 0, self.scan(data, 0, len(data), len(data))[0]
        text, found = data[:0], None
        while bad - good > 1:
            middle = (good + bad) // 2
            part = data[: self.scan(data, 0, len(data), middle)[1]]
            try:
                found, text = self._read(part, names, None), part
            except pa.ArrowInvalid:
                bad = middle
            else:
                good = middle
        return text, without_rows(pa.schema([(name, pa.binary()) for name in names])) if found is None else found

    def misfit(self, record: bytes, schema: RowSchema, head: Head) -> tuple[str | None, str]:
        names = list(head.names)
        try:
            texts = self._read(record, names, pa.schema([(name, pa.binary()) for name in names]))
        except pa.ArrowInvalid as error:
            said = str(error).partition("Expected ")[2].partition(":")[0]
            return None, f"expected {said or error}: {_shown(record)}"
        for field in schema.arrow:
            inferred = field.name in schema.inferred
            try:
                self.parse(record, RowSchema(pa.schema([field]), schema.inferred), head)
            except pa.ArrowInvalid:
                found = texts.column(field.name)[0].as_py()
                return field.name, (
                    f"expected {field.type}, got {_shown(found)}; the schema holds for all records"
                    f"{INFERRED if inferred else ''}: state another type with schema=, or what missing values look like with "
                    "null_values="
                )
        return None, f"the record cannot be read: {_shown(record)}"


def _stored(kind: Any) -> Any:
    """The type that is read and then cast: pyarrow reads no halves from text."""
    return pa.float32() if types.is_float16(kind) else kind


@lru_cache(maxsize=256)
def _plain(made: Csv, schema: RowSchema, names: tuple[str, ...]) -> PlainRows | None:
    """The quick way for columns of numbers and text; None for others."""
    quote = -1 if made.quote_char is None else ord(made.quote_char)
    return PlainRows.of(names, schema.arrow, ord(made.delimiter), quote, schema.inferred)


@lru_cache(maxsize=1000)
def _is_made_of_text(kind: Any) -> bool:
    """Whether pyarrow makes values of a type of CSV; asking it takes as long as reading a small file."""
    try:
        csv.read_csv(
            pa.BufferReader(b"1\n"),
            csv.ReadOptions(use_threads=False, column_names=["x"]),
            convert_options=csv.ConvertOptions(column_types={"x": _stored(kind)}),
        )
    except pa.ArrowNotImplementedError:
        return False
    except pa.ArrowInvalid:  # there are, and 1 is none of them
        return True
    return True


def _shown(text: bytes) -> str:
    found = text.decode(errors="backslashreplace").rstrip("\r\n")
    return repr(found if len(found) <= _MOST_SHOWN else found[: _MOST_SHOWN - 3] + "...")


@lru_cache(maxsize=1024)
def first_record(
    path: str, stamp: str, compression: Any, delimiter: str, quote: str | None, header: bool, rules: int
) -> Head:
    """Where the records after a header begin, the lines before, and the names in it; none where it is no UTF-8.

    Args:
      path: the file.
      stamp: of the file.
      compression: of the file.
      delimiter: between values.
      quote: around values.
      header: whether there is one.
      rules: of `csv_records` beside `MULTILINE`; with any, as TensorFlow has them, names and a byte order mark mean nothing.

    Raises:
      FailedPreconditionError: the file is a pipe.
      DataLossError: the header does not end.
    """
    del stamp
    refuse_pipe(path)
    reader = Csv(column_names=(), header=header, delimiter=delimiter, quote_char=quote)
    data, ended = EMPTY, False
    with FileStream(path, compression) as source:
        while True:
            mark = 3 if data[:3].tobytes() == MARK and not rules else 0
            if not header and (len(data) >= 3 or ended):
                return Head(mark)
            count, after, lines, problem = reader._scanned(data, mark, len(data) + 1, 1, rules)
            if problem >= 0 and not count and data[problem] == RETURN and not rules:
                count, after, lines, problem = reader._scanned(data, mark, len(data) + 1, 1, RETURNS)
            if count:
                break
            if problem >= 0:
                raise DataLossError(f"{path}: line {lines + 1}: {reader.problem(data, problem)}")
            if ended and after >= len(data):
                return Head(mark)  # an empty file, or one of empty lines
            if ended or len(data) > MOST_RECORD_BYTES:
                raise DataLossError(f"{path}: line {lines + 1}: the header does not end; is a quote missing?")
            data, ended = more_lines(source, data, max(_HEAD_BYTES, len(data)))
            if not compression:
                reader.check_plain(path, data)
        size = source.offset
    if rules:
        return Head(min(after, size), lines)
    try:
        named = csv.read_csv(
            pa.BufferReader(data[mark:after].tobytes()),
            csv.ReadOptions(use_threads=False, block_size=after + 1),
            csv.ParseOptions(delimiter=delimiter, quote_char=quote or False),
        ).column_names
    except UnicodeDecodeError:
        return Head(min(after, size), lines)
    except pa.ArrowInvalid as error:
        raise DataLossError(f"{path}: line {lines}: the header cannot be read: {error}") from error
    return Head(min(after, size), lines, _distinct(named))


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Names of which none comes twice: behind one that came before stands how often it did.

    >>> _distinct(["a", "", "a", "a.1", ""])
    ('a', '', 'a.2', 'a.1', '.1')
    """
    there, seen, made = set(names), dict.fromkeys(names, -1), []
    for name in names:
        seen[name] += 1
        new = name
        while seen[name] and (new := f"{name}.{seen[name]}") in there:
            seen[name] += 1
        there.add(new)
        made.append(new)
    return tuple(made)
