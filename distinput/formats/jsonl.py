# SPDX-License-Identifier: Apache-2.0
"""JSON Lines: every line is an object, a dict of its columns; the types of values are read with care."""

import dataclasses
import json
import math
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from distinput.columns.column import Column
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.compression import MARK_BYTES, as_compression
from distinput.files.source import EMPTY, FileStream, refuse_pipe, wanted_until
from distinput.formats.row_schema import INFERRED, Path, RowSchema, may_change, null_places
from distinput.formats.tables import as_columns, infinities
from distinput.formats.text_records import MARK, Bytes, Head
from distinput.formats.text_table import PlainColumns, TextTable, as_inferred
from distinput.kernels.lines import json_lines
from distinput.kernels.plain_csv import FLOAT32, FLOAT64, INT32, INT64, LEFT_OUT, TEXT, TRUTH
from distinput.kernels.plain_json import ESCAPED, OK, plain_json
from distinput.names.lazy import dataclass, library
from distinput.plan.check import normalized

pa = library("pyarrow")
arrow_json = library("pyarrow.json")
types = library("pyarrow.types")

# ----------------------------------------------------------------------------
# One object of JSON, read with care: keys that come twice, halves of surrogate pairs and numbers that are too large are
# told.
#
# The rules are those of the quick readers: text is what its bytes are, UTF-8 or not; NaN and Infinity are floats.
# ----------------------------------------------------------------------------


_MOST_DIGITS = 400
"""Of a whole number that is looked at; no type holds longer ones."""


class Large(float):
    """A number that no float64 holds, as infinity.

    Args:
      text: the number as it is written.
    """

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, "-inf" if text.startswith("-") else "inf")
        made.text = text
        return made

    text: str


class Twice(dict[str, Any]):
    """An object in which a key comes twice."""

    key: str


def read_record(line: bytes, errors: str = "replace") -> Any:
    """The value of a line; bytes that are no UTF-8 are decoded as `errors` says.

    Raises:
      json.JSONDecodeError: it is no JSON.
      RecursionError: objects and arrays are nested too deeply.

    >>> read_record(b'{"id": 1e400}')["id"].text
    '1e400'
    """
    text = line.decode(errors=errors)
    return json.loads(text, parse_int=_whole, parse_float=_decimal, object_pairs_hook=_object)


def _whole(text: str) -> int | Large:
    return int(text) if len(text) <= _MOST_DIGITS else Large(text)


def _decimal(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else Large(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    made, seen = Twice(found), set()
    for key, _ in pairs:
        if key in seen:
            made.key = key
        seen.add(key)
    return made


def refusal(record: dict[str, Any], columns: tuple[str, ...] | None) -> tuple[str, str] | None:
    """The key for which an object is refused whatever types it should have, and the reason; None: it is not.

    Args:
      record: as `read_record` has it.
      columns: the keys that are read; None: all.

    >>> refusal(read_record(b'{"id": 7, "id": 8}'), None)
    ('id', 'the key comes twice')
    """
    if isinstance(record, Twice) and (columns is None or record.key in columns):
        return record.key, "the key comes twice"
    for key, value in record.items():
        if has_half(key):
            return key, "the key has half of a surrogate pair, which is no character"
        for part in _parts(value):
            if isinstance(part, Twice) and (columns is None or key in columns):
                return key, f"the key {part.key!r} comes twice in it"
            texts = part if isinstance(part, dict) else [part] if isinstance(part, str) else ()
            if any(map(has_half, texts)):
                return key, 'the text has half of a surrogate pair, such as "\\ud83d", which is no character'
            if isinstance(part, Large) and not part.text.lstrip("-").isdigit():
                return key, f"no float64 is as large as {part.text}"
    return None


def has_half(text: str) -> bool:
    """Whether a text has half of a surrogate pair, and so no UTF-8."""
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


def _parts(value: Any) -> Iterator[Any]:
    """A value, and all that is in it."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _parts(each)


def changes(value: Any, kind: Any, inferred: bool) -> bool:
    """Whether a type changes a number in a value, more than a stated one rounds it.

    Args:
      value: as `read_record` has it.
      kind: the pyarrow DataType that it is read as.
      inferred: whether nobody stated the type.

    >>> import pyarrow as pa
    >>> changes([2**53 + 1], pa.list_(pa.float64()), True), changes([2**53 + 1], pa.list_(pa.float64()), False)
    (True, False)
    """
    if isinstance(value, list):
        return types.is_nested(kind) and any(changes(item, kind.value_type, inferred) for item in value)
    if isinstance(value, dict):
        return types.is_struct(kind) and any(changes(value.get(part.name), part.type, inferred) for part in kind)
    if not types.is_floating(kind) or isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, Large) or (isinstance(value, int) and abs(value) > 2**1023):
        return True
    with np.errstate(over="ignore"):
        if math.isfinite(value) and not np.isfinite(kind.to_pandas_dtype()(value)):
            return True
    return inferred and isinstance(value, int) and int(float(value)) != value


# ----------------------------------------------------------------------------
# The types of JSON values, from which a schema is inferred: integers and other numbers become one type, nothing else does.
#
# No number is changed by a type that is inferred: integers are int64 or uint64, and beside other numbers they must be
# float64s.
# ----------------------------------------------------------------------------


NO_TYPE: Final = None
"""The type of a null, and of what is in an empty array."""

_MOST_DEEP = 64

_INT64, _UINT64 = range(-(2**63), 2**63), range(2**64)
_EXACT = 2**53


class TypeConflict(Exception):
    """There is no one type for some values."""


class Integers(NamedTuple):
    """The type of some integers, of which only the bounds are known.

    Args:
      low: the smallest.
      high: the largest.
      exact: whether each of them is a float64.
    """

    low: int
    high: int
    exact: bool

    @property
    def name(self) -> str | None:
        """The type that holds them; None: there is none."""
        if self.low in _INT64 and self.high in _INT64:
            return "int64"
        return "uint64" if self.low in _UINT64 and self.high in _UINT64 else None


def type_of(value: Any, key: str = "", depth: int = 0) -> Any:
    """The type of a value: a name, `Integers`, a list with the type of its values, or a dict of types.

    Raises:
      TypeConflict: values of an array differ in type, or the value is nested too deeply.

    >>> type_of({"x": [1, 2.5], "y": "text", "z": None})
    {'x': ['float64'], 'y': 'text', 'z': None}
    """
    if depth > _MOST_DEEP:
        raise TypeConflict(f"arrays and objects are nested more than {_MOST_DEEP} deep")
    match value:
        case None:
            return NO_TYPE
        case bool():
            return "bool"
        case int():
            return Integers(value, value, -_EXACT <= value <= _EXACT or _is_float(value))
        case float():
            return "float64"
        case str():
            return "text"
        case list():
            inner = NO_TYPE
            for item in value:
                inner = merged(inner, type_of(item, key, depth + 1), key)
            return [inner]
        case _:
            under = f"{key}." if key else ""
            return {name: type_of(item, under + name, depth + 1) for name, item in value.items()}


def _is_float(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def merged(a: Any, b: Any, key: str = "") -> Any:
    """The type of values of which some have one type and some another.

    Raises:
      TypeConflict: there is none.
    """
    if a == b or b is NO_TYPE:
        return a
    if a is NO_TYPE:
        return b
    match a, b:
        case Integers(), Integers():
            if a.low <= b.low and b.high <= a.high and b.exact >= a.exact:
                return a
            return Integers(min(a.low, b.low), max(a.high, b.high), a.exact and b.exact)
        case (Integers() as some, "float64") | ("float64", Integers() as some):
            if not some.exact:
                raise TypeConflict(
                    f"key {key!r} has integers from {some.low} to {some.high} beside other numbers, and some would change as "
                    "float64"
                )
            return "float64"
        case list(), list():
            return [merged(a[0], b[0], key)]
        case dict(), dict():
            under = f"{key}." if key else ""
            return {name: merged(a.get(name), b.get(name), under + name) for name in {**a, **b}}
    raise TypeConflict(f"key {key!r} has values of several types, {_told(a)} and {_told(b)}")


def _told(kind: Any) -> str:
    if isinstance(kind, Integers):
        return kind.name or "int64"
    return kind if isinstance(kind, str) else "array" if isinstance(kind, list) else "object"


def arrow_type(kind: Any, key: str) -> Any:
    """The pyarrow DataType.

    Raises:
      TypeConflict: it is unknown.
    """
    match kind:
        case None:
            return pa.binary()  # of text, all of which is null
        case list():
            return pa.list_(arrow_type(kind[0], key))
        case dict():
            return pa.struct([(name, arrow_type(inner, f"{key}.{name}")) for name, inner in kind.items()])
        case Integers():
            if kind.name is None:
                raise TypeConflict(f"key {key!r} has integers from {kind.low} to {kind.high}, which no type holds")
            return pa.type_for_alias(kind.name)
    return {"bool": pa.bool_(), "float64": pa.float64(), "text": pa.binary()}[kind]


# ----------------------------------------------------------------------------
# Plain objects of JSON Lines without pyarrow: by one compiled pass over the text, see `kernels.plain_json`.
# ----------------------------------------------------------------------------


_FIRST = re.compile(rb"[ \t\r\n]*([^\n]*)\n")
_MOST_FIRST_BYTES = 64 * 1024  # of the object whose keys are looked at
_STRANGE = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
_NOTHING = np.empty(0, np.uint8)


class PlainObjects:
    """Reads objects whose values are numbers, truth values and text.

    Args:
      kinds: of the values that are read, by key; see `kernels.plain_json`.
    """

    def __init__(self, kinds: dict[str, int]) -> None:
        self._kinds = kinds

    @staticmethod
    def of(schema: Any, inferred: Collection[str] = ()) -> "PlainObjects | None":
        """For the columns of a pyarrow Schema; None if one of them is neither int, float, bool nor binary.

        Args:
          schema: of the values that are read.
          inferred: the keys of values whose types may change no number.
        """
        known = {pa.int64(): INT64, pa.float64(): FLOAT64, pa.float32(): FLOAT32, pa.int32(): INT32}
        known |= {pa.binary(): TEXT, pa.bool_(): TRUTH}
        kinds = {field.name: known[field.type] for field in schema if field.type in known}
        if not kinds or len(kinds) < len(schema) or any(_STRANGE.search(name) for name in kinds):
            return None
        return PlainObjects({name: as_inferred(kind, name in inferred) for name, kind in kinds.items()})

    def columns(self, data: Bytes, count: int, others: bool) -> dict[str, Column] | None:
        """The columns by name, in the order of the schema; None if the objects are not plain.

        Args:
          data: whole lines.
          count: how many objects there are.
          others: whether objects may have keys that are not read.
        """
        names = self._keys(data, others)
        if names is None:
            return None
        kinds = [self._kinds.get(name, LEFT_OUT) for name in names]
        room = PlainColumns(kinds, count)
        keys = [f'"{name}"'.encode() for name in names]
        places = zip(accumulate(map(len, keys)), kinds, room.places, strict=True)
        layout = np.array(list(places), np.int64).reshape(-1)
        data, written = np.ascontiguousarray(data), np.frombuffer(b"".join(keys), np.uint8)
        text = data
        status, _ = plain_json(data, count, written, layout, room.out, _NOTHING)
        if status == ESCAPED:
            text = data.copy()
            status, _ = plain_json(data, count, written, layout, room.out, text)
        if status != OK:
            return None
        made = dict(zip(names, room.made(text), strict=True))
        found = ((name, made[name]) for name in self._kinds)
        return {name: column for name, column in found if column is not None}

    def _keys(self, data: Bytes, others: bool) -> list[str] | None:
        """The keys of the first object; None if it is not plain."""
        first = _FIRST.match(data[:_MOST_FIRST_BYTES].tobytes())
        if first is None:
            return None
        try:
            pairs = json.loads(first[1], object_pairs_hook=list)
        except (ValueError, RecursionError):
            return None
        if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
            return None  # an array, or no collection at all
        if any(isinstance(value, list) for _, value in pairs):
            return None
        names = [name for name, _ in pairs]
        known = set(names)
        if len(known) < len(names) or not known >= self._kinds.keys() or (not others and len(names) > len(self._kinds)):
            return None
        return None if any(_STRANGE.search(name) for name in names) else names


# ----------------------------------------------------------------------------
# JSON Lines: every line is an object, a dict of its columns.
# ----------------------------------------------------------------------------


_MOST_SHOWN = 60
_STATE = "state its type with schema=, the types of the others are inferred, or name those to read with columns="
_SUSPECT = re.compile(rb"\\u[dD][89a-fA-F]|[0-9]{309}|[eE]\+?[0-9]{3}")
"""A line with half of a surrogate pair, or with a number beyond float64, has one of these."""

_NO_OBJECT = "expected an object on a line of its own, {...}"


@dataclass(frozen=True)
class JsonLines(TextTable):
    r"""The objects in files of JSON Lines, one a line, as dicts from key to value.

    The types of keys are stated by `schema`, or inferred from the first megabyte of the first file; then they hold for all
    files, and a value that does not fit is an error with file, line and key. An inferred type changes no number: integers are
    int64 or uint64, or float64 if each of them is one. Text becomes its UTF-8 bytes, an array a row of varying length, an
    object a dict. A key that is missing is a null. Lines of white space are passed over.

    Args:
      schema: types by key, of which a dict may leave some out, or a pyarrow Schema. A `TensorSpec` with a shape is an array of
        this shape.
      columns: the keys to read; others are passed over. All when None, and a key that the schema does not have is an error.
      compression_type: "" for none, "GZIP" or another codec; None and "AUTO" go by the suffix of each name.
      nulls: a dict with what to put in the place of missing values, by key; "error": one is an error. None: where the first
        megabyte has some, other than numbers that become float64, values are dicts of `value` and `valid`.
      valid: a list of what may be null, such as "x", "s.a" for field a of an object, or "x[]" for values of arrays.

    Raises:
      InvalidArgumentError: an option has an invalid value; at iteration, an object does not fit.
      NotFoundError: a file is not there.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.jsonl").write_text('{"id": 1, "tags": ["x", "y"]}\n{"id": 2, "tags": []}\n')
    >>> di.data.JsonLinesDataset("a.jsonl").to_list()
    [{'id': 1, 'tags': [b'x', b'y']}, {'id': 2, 'tags': []}]

    Source: jsonlines.org; RFC 8259.
    """

    name: ClassVar[str] = "jsonl"
    schema: Any = None
    columns: Any = None
    nulls: Any = None
    compression_type: str | None = None
    valid: Any = dataclasses.field(default=None, repr=False)  # it is told by the schema

    def __post_init__(self) -> None:
        normalized(self, "schema", RowSchema.of("jsonl", self.schema))
        normalized(self, "columns", as_columns("jsonl", self.columns))
        self._check_nulls()
        as_compression(self.compression_type)
        if self.schema is not None:
            self._check_types(self.schema)

    @classmethod
    def of_options(cls, columns: Sequence[str] | None = None, **options: Any) -> "JsonLines":
        return cls(columns=columns, **options)

    def _check_types(self, schema: RowSchema) -> None:
        for field in schema.arrow:
            try:
                self._read(b"{}\n", pa.schema([field]), "error")
            except pa.ArrowNotImplementedError:
                raise InvalidArgumentError(
                    f"jsonl: column {field.name!r} cannot have type {field.type}: values of JSON are numbers, truth values, "
                    "text, arrays and objects; cast to other types in map"
                ) from None

    def head(self, path: str) -> Head:
        refuse_pipe(path)
        # No more is asked for than is looked at; where it is compressed, nobody knows how much that is.
        with wanted_until(None if self.compression else MARK_BYTES), FileStream(path, self.compression) as source:
            data, _ = source.more(EMPTY, MARK_BYTES)
        self.check_plain(path, data)
        return Head(3 if data[:3].tobytes() == MARK else 0)

    def scan(self, data: Bytes, start: int, until: int, rows: int) -> tuple[int, int, int, int]:
        return json_lines(data, start, len(data), until, rows)

    def problem(self, data: Bytes, place: int) -> str:
        line = data[place:].tobytes().partition(b"\n")[0]
        return f"{_NO_OBJECT}, got {_shown(line)}{_cure(line)}"

    def quick(self, data: Bytes, count: int, schema: RowSchema, head: Head) -> dict[str, Column] | None:
        objects = _plain(schema)
        return None if objects is None else objects.columns(data, count, others=self.columns is not None)

    def parse(self, data: Any, schema: RowSchema, head: Head) -> Any:
        # A null in the place of the first object ends the process in pyarrow.
        if self.scan(data, 0, sys.maxsize, sys.maxsize)[3] >= 0:
            raise pa.ArrowInvalid("the line is not an object")
        batch = self._read(data, schema.arrow, "error" if self.columns is None else "ignore")
        _check_numbers(data, batch, schema)
        return batch

    def _read(self, data: Any, schema: Any, unexpected: str) -> Any:
        def table(dates: Any) -> Any:
            stored = pa.schema([(field.name, _stored(field.type, dates)) for field in schema])
            return arrow_json.read_json(
                pa.BufferReader(pa.py_buffer(data)),
                arrow_json.ReadOptions(use_threads=False, block_size=max(len(data), 1) + 1),
                arrow_json.ParseOptions(explicit_schema=stored, unexpected_field_behavior=unexpected),
            )

        try:
            found = table(pa.timestamp("s"))
        except pa.ArrowInvalid:
            if not any("date32" in str(field.type) for field in schema):
                raise
            found = table(pa.date32())  # numbers of days
        batch = found.combine_chunks().to_batches()[0]
        if not all(_of_whole_days(batch.column(field.name), field.type) for field in schema):
            raise pa.ArrowInvalid("a date with a time of the day")
        return batch if batch.schema == schema else batch.cast(schema)

    def infer(self, data: Bytes, head: Head, path: str, stated: RowSchema | None) -> RowSchema | None:
        field_types = {} if stated is None else {field.name: field.type for field in stated.arrow}
        common: Any = NO_TYPE
        good: list[bytes] = []
        bad: DataLossError | None = None  # the first line that is no object; the reader says what is wrong there
        for number, line in enumerate(data.tobytes().split(b"\n"), head.lines + 1):
            if not line.strip():
                continue
            value, reason = _object_of(line, self.columns)
            if reason is not None:
                bad = bad or DataLossError(f"{path}: line {number}: {reason}")
                continue
            good.append(line)
            try:
                common = merged(common, type_of(_unstated(value, field_types)))
            except TypeConflict as error:
                raise InvalidArgumentError(f"{path}: line {number}: {error}; {_STATE}") from None
        if common is None:
            if bad is not None:
                raise bad
            return None
        for key in self.columns or ():
            if key not in common and key not in field_types:
                raise InvalidArgumentError(
                    f"{path}: there is no column {key!r}; the columns are {', '.join(common)}; state the schema with schema= "
                    "if it comes later"
                )
        wanted = {key: kind for key, kind in common.items() if self.columns is None or key in self.columns}
        try:
            arrow_types = {key: arrow_type(kind, key) for key, kind in wanted.items()}
        except TypeConflict as error:
            raise InvalidArgumentError(f"{path}: {error}; {_STATE}") from None
        whole = {**field_types, **{key: _completed(field_types.get(key), kind) for key, kind in arrow_types.items()}}
        data = np.frombuffer(b"\n".join([*good, b""]), np.uint8)
        parts = [
            {key: whole[key] for key in arrow_types},
            {key: whole[key] for key in arrow_types if key not in field_types},
        ]
        found = next((places for part in parts if (places := self._null_places(data, pa.schema(part))) is not None), ())
        nulls = tuple([place for place in found if not _is_stated(place, field_types)])
        return RowSchema(pa.schema(whole), frozenset(arrow_types), nulls=nulls)

    def _null_places(self, data: Bytes, schema: Any) -> tuple[Path, ...] | None:
        """Where there are nulls in some objects; None if the schema does not fit them."""
        try:
            return null_places(self._read(data, schema, "ignore"))
        except (pa.ArrowException, UnicodeDecodeError):  # the reader says what is wrong
            return None

    def misfit(self, record: bytes, schema: RowSchema, head: Head) -> tuple[str | None, str]:
        try:
            content = read_record(record.rstrip(b"\r\n"))
        except RecursionError:
            return None, "objects and arrays are nested too deeply"
        except json.JSONDecodeError as error:
            return None, f"not a JSON object: {error.msg}: column {error.colno}: {_shown(record)}"
        if not isinstance(content, dict):
            return None, f"{_NO_OBJECT}, got {_shown(record)}{_cure(record)}"
        refused = refusal(content, self.columns)
        if refused is not None:
            return refused[0], f"{refused[1]}: {_shown(record)}"
        unknown = [key for key in content if key not in schema.names]
        if unknown and self.columns is None:
            return unknown[0], _unknown_key(schema.inferred, f", only {', '.join(schema.names)}")
        if self.columns is None:
            inner = next((name for field in schema.arrow for name in _unknown(content.get(field.name), field)), None)
            if inner is not None:
                return inner, _unknown_key(inner.partition(".")[0] in schema.inferred)
        for field in schema.arrow:
            alone, data = RowSchema(pa.schema([field]), schema.inferred), np.frombuffer(record, np.uint8)
            try:
                _check_numbers(data, self._read(data, alone.arrow, "ignore"), alone)
            except (pa.ArrowInvalid, UnicodeDecodeError):
                value = content.get(field.name)
                said = _shown((value.text if isinstance(value, Large) else json.dumps(value)).encode())
                how = INFERRED if field.name in schema.inferred else ""
                return field.name, (
                    f"expected {field.type}, got {said[1:-1]}; the schema holds for all records{how}: state another type with "
                    "schema="
                )
        return None, f"the record cannot be read: {_shown(record)}"


def _unknown_key(inferred: Any, more: str = "") -> str:
    """What is said of a key that is not among the columns; `inferred`: whether these are those of the first records."""
    lacks = "the first megabyte, from which types are inferred, has" if inferred else "the schema has"
    return f"{lacks} no such key{more}; state it with schema=, or name the keys to read with columns="


def _cure(line: bytes) -> str:
    """What helps where a file is one JSON text rather than one in each line."""
    text = line.strip()
    if text.startswith(b"["):
        return "; if the file is one array of objects, write each on a line of its own, as `jq -c '.[]'` does"
    return "; if objects go over several lines, write each on one, as `jq -c .` does" if text == b"{" else ""


def _object_of(line: bytes, columns: tuple[str, ...] | None) -> tuple[dict[str, Any], str | None]:
    """The object on a line, and the reason if there is none that can be read."""
    try:
        value = read_record(line.rstrip(b"\r"), "surrogateescape")
    except (json.JSONDecodeError, RecursionError) as error:
        whole = line.strip().startswith(b"{") and line.strip().endswith(b"}")
        said = f"{error.msg}: column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        what = f"not a JSON object: {said}:" if whole else f"{_NO_OBJECT}, got"
        return {}, f"{what} {_shown(line)}{'' if whole else _cure(line)}"
    if not isinstance(value, dict):
        return {}, f"{_NO_OBJECT}, got {_shown(line)}{_cure(line)}"
    if isinstance(value, Twice) or _SUSPECT.search(line):
        refused = refusal(read_record(line), columns)
        if refused is not None:
            return value, f"column {refused[0]!r}: {refused[1]}: {_shown(line)}"
    unnamed = None if line.isascii() else next(filter(has_half, value), None)
    return value, None if unnamed is None else f"column {unnamed!r}: the key is not UTF-8: {_shown(line)}"


def _unstated(value: Any, stated: Any) -> Any:
    """What is left of an object without what has a stated type; in the place of an array, an object for each in it.

    >>> import pyarrow as pa
    >>> _unstated({"a": 1, "b": {"c": 2, "d": 3}, "e": [4]}, {"a": pa.int64(), "b": pa.struct({"c": pa.int64()})})
    {'b': {'d': 3}, 'e': [4]}
    """
    left = {}
    for key, item in value.items():
        kind = stated.get(key)
        fields = _fields(kind)
        if kind is None:
            left[key] = item
        elif fields and isinstance(item, dict):
            inner = _unstated(item, fields)
            left |= {key: inner} if inner else {}
        elif fields and isinstance(item, list) and all(isinstance(each, dict) for each in item):
            several = [_unstated(each, fields) for each in item]
            left |= {key: several} if any(several) else {}
    return left


def _fields(kind: Any) -> dict[str, Any]:
    """The types of the fields of an object, or of each object in an array."""
    while kind is not None and types.is_list(kind):
        kind = kind.value_type
    return {field.name: field.type for field in kind} if kind is not None and types.is_struct(kind) else {}


def _is_stated(place: Path, stated: Any) -> bool:
    kind = stated.get(place[0])
    for part in place[1:]:
        kind = getattr(kind, "value_type", None) if part is None else _fields(kind).get(part)
    return kind is not None


def _completed(stated: Any, inferred: Any) -> Any:
    """A type that is stated, with the fields that only the inferred one has."""
    if stated is None:
        return inferred
    if types.is_list(stated) and types.is_list(inferred):
        return pa.list_(_completed(stated.value_type, inferred.value_type))
    if not (types.is_struct(stated) and types.is_struct(inferred)):
        return stated
    more = {field.name: field.type for field in inferred}
    own = {field.name: _completed(field.type, more.pop(field.name, field.type)) for field in stated}
    return pa.struct(list({**own, **more}.items()))


def _unknown(value: Any, field: Any, around: str = "") -> Iterator[str]:
    """Keys inside of a value that its type does not have."""
    name, fields = f"{around}{field.name}", _fields(field.type)
    for each in value if isinstance(value, list) else [value]:
        if fields and isinstance(each, dict):
            yield from (f"{name}.{key}" for key in each if key not in fields)
            for key, kind in fields.items():
                yield from _unknown(each.get(key), pa.field(key, kind), f"{name}.")


def _check_numbers(data: Any, batch: Any, schema: RowSchema) -> None:
    """Refuse objects of which a number is changed by its type.

    Raises:
      pyarrow.ArrowInvalid: there is one.
    """
    inferred = schema.inferred and any("double" in str(field.type) for field in schema.arrow)
    if not (any(map(infinities, batch.columns)) or (inferred and may_change(data))):
        return
    for line in data.tobytes().split(b"\n"):
        found = read_record(line) if line.strip() else {}
        for field in schema.arrow:
            if changes(found.get(field.name), field.type, field.name in schema.inferred):
                raise pa.ArrowInvalid(f"a number of column {field.name!r} would be changed")


@lru_cache(maxsize=256)
def _plain(schema: RowSchema) -> PlainObjects | None:
    """The quick way for values that are numbers, truth values and text; None for others."""
    return PlainObjects.of(schema.arrow, schema.inferred)


def _stored(kind: Any, dates: Any) -> Any:
    """The type that is read from JSON and then cast: lists of one size, halves and dates are not what pyarrow reads.

    Args:
      kind: the type.
      dates: in the place of dates.
    """
    if types.is_fixed_size_list(kind) or types.is_list(kind):
        return pa.list_(_stored(kind.value_type, dates))
    if types.is_struct(kind):
        return pa.struct([(field.name, _stored(field.type, dates)) for field in kind])
    if types.is_float16(kind):
        return pa.float32()
    return dates if types.is_date32(kind) else kind


def _of_whole_days(array: Any, kind: Any) -> bool:
    """Whether no value is cut where times become dates."""
    if types.is_date32(kind):
        return bool(array.cast(kind).cast(array.type).equals(array))
    if types.is_struct(kind):
        return all(_of_whole_days(part, field.type) for part, field in zip(array.flatten(), kind, strict=True))
    if types.is_fixed_size_list(kind) or types.is_list(kind):
        return _of_whole_days(array.flatten(), kind.value_type)
    return True


def _shown(text: bytes) -> str:
    found = text.decode(errors="backslashreplace").strip()
    return repr(found if len(found) <= _MOST_SHOWN else found[: _MOST_SHOWN - 3] + "...")
