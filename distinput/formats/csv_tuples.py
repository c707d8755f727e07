# SPDX-License-Identifier: Apache-2.0
"""CSV files as TensorFlow reads them: every record is a tuple, and each field has a type and perhaps a default."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.arrow import columns_of
from distinput.columns.block import ColumnBlock
from distinput.columns.column import Column
from distinput.columns.dense import Dense
from distinput.columns.strings import Strings
from distinput.errors import DistinputError, InvalidArgumentError
from distinput.files.compression import as_compression
from distinput.files.source import stamp_of
from distinput.formats.csv import PlainRows, first_record
from distinput.formats.csv_fields import FieldError, fields_of, record_values, splits_as_tensorflow
from distinput.formats.row_schema import RowSchema
from distinput.formats.text_records import MARK, Bytes, Head, TextPiece
from distinput.formats.text_table import BadRecordError, Decoded, TextTable
from distinput.kernels.csv_records import BLANKS, MULTILINE, RETURNS, csv_records
from distinput.kernels.plain_csv import FLOAT32, FLOAT64, INT32, INT64, TEXT
from distinput.plan.check import normalized
from distinput.values.spec import Spec, TensorSpec

__all__ = ["CsvTuples"]

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
        names = self._names_in(path)
        options = {"select_cols": self.chosen, "exclude_cols": self.excluded}
        chosen, excluded = (_numbered(path, option, given, names) for option, given in options.items())
        return replace(self, chosen=chosen, excluded=excluded, names=names)

    def _names_in(self, path: str) -> tuple[str, ...]:
        quote = '"' if self.quoted else None
        return first_record(path, stamp_of(path), self.compression, self.delimiter, quote, True, 0).names

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
        quote = '"' if self.quoted else None
        found = first_record(path, stamp_of(path), self.compression, self.delimiter, quote, True, RETURNS | BLANKS)
        if not found.byte:
            raise InvalidArgumentError(f"{path}: Can't read header of file")
        there = self.names if self.names is None else self._names_in(path)
        if there != self.names:
            raise InvalidArgumentError(
                f"{path}: its header has the columns {', '.join(there or ())}, and that of the first file "
                f"{', '.join(self.names or ())}; fields that are named must be at the same places in all files"
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
        import pyarrow as pa
        from pyarrow import csv

        first = data[: self.scan(data, 0, len(data), 1)[1]].tobytes()
        whole = len(self._fields(first))
        if whole > 1 and count > self._full_lines(data):
            raise BadRecordError  # pyarrow takes an empty line for a record of empty fields
        numbers = self._read_of(whole)
        if numbers is None:
            raise BadRecordError
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
        import pyarrow as pa

        columns = self._plain_columns(data, count)
        if columns is not None:
            return ColumnBlock(self._spec.structure, columns, count)
        try:
            batch = self._read(data, count) if self._is_plain(data) else None
        except (pa.ArrowInvalid, FieldError, BadRecordError):
            batch = None
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
        """The columns of records without empty fields, see `kernels.plain_csv`; None: they are not as plain as that."""
        if self.na_value or self.delimiter == '"':
            return None  # any text may count as empty
        returns = np.flatnonzero(data == 13)
        if len(returns) and (returns[-1] + 1 == len(data) or (data[returns + 1] != 10).any()):
            return None  # one that ends a line alone
        try:
            whole = len(self._fields(data[: self.scan(data, 0, len(data), 1)[1]].tobytes()))
        except FieldError:
            return None
        numbers = self._read_of(whole)
        if numbers is None:
            return None
        kinds = {str(number): _PLAIN[kind] for number, kind in zip(numbers, self.types, strict=True)}
        rows = PlainRows(tuple(map(str, range(whole))), kinds, ord(self.delimiter), self._quote)
        columns = rows.columns(data, count)
        if columns is None:
            return None
        for column, default in zip(columns.values(), self.defaults, strict=True):
            if isinstance(column, Strings) and default != b"" and not column.sizes.all():
                return None
        return list(columns.values())

    def _read_of(self, whole: int) -> Sequence[int] | None:
        """The numbers of the fields that are read of a record with so many; None: that is no right number."""
        numbers = range(whole) if self._numbers is None else self._numbers
        right = len(numbers) == len(self.types) and numbers[-1] < whole
        return numbers if right and (not self.excluded or whole == len(numbers) + len(self.excluded)) else None

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
