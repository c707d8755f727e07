# SPDX-License-Identifier: Apache-2.0
"""A query that is run through any DB-API connection: its text, its parameters, and the rows it gives."""

import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from operator import itemgetter
from types import TracebackType
from typing import Any, Self

import numpy as np

from distinput.columns.block import DEFECTS
from distinput.errors import DataLossError, DistinputError, InputWarning, InvalidArgumentError, UnavailableError
from distinput.formats.row_schema import RowSchema
from distinput.names.lazy import dataclass, library
from distinput.plan.binding import bound

pa = library("pyarrow")
types = library("pyarrow.types")

# ----------------------------------------------------------------------------
# Values of a database as Arrow columns: their types are inferred once, and then held; nothing is cut off or made up.
# ----------------------------------------------------------------------------


_FAULTS = (TypeError, ValueError, OverflowError, NotImplementedError)
"""What pyarrow raises for values that do not fit; its own errors are some of these."""


def inferred_schema(who: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> RowSchema:
    """The types of the columns of some rows.

    Args:
      who: the caller, for error messages.
      names: of the columns.
      rows: the first ones.

    Raises:
      InvalidArgumentError: there is no row; a column holds nothing but NULL, or values of several types.

    >>> inferred_schema("from_sql", ["id", "name"], [(1, "a"), (2, None)])
    id: int64, name: binary
    """
    if not rows:
        raise InvalidArgumentError(
            f"{who}: the query gives no rows, so the types of {', '.join(names)} are not known; state them with schema="
        )
    fields = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        cure = f"state its type with schema=, or cast it in the query; the first {len(rows)} rows were read"
        if all(value is None for value in values):
            raise InvalidArgumentError(f"{who}: column {name!r} has only NULL, which has no type; {cure}")
        try:
            fields.append((name, pa.array(list(values)).type))
        except _FAULTS as error:
            kinds = ", ".join(sorted({type(value).__name__ for value in values if value is not None}))
            raise InvalidArgumentError(f"{who}: column {name!r} has values of type {kinds}: {error}; {cure}") from None
    made = RowSchema.of(who, pa.schema(fields))
    assert made is not None
    return replace(made, inferred=frozenset(names))


def record_batch_of(who: str, schema: RowSchema, rows: Sequence[Sequence[Any]], first: int) -> Any:
    """Rows as a pyarrow RecordBatch.

    Args:
      who: the caller, for error messages.
      schema: the types of the columns, in the order of the values of a row.
      rows: the rows; one that does not fit is the last one.
      first: the number of the first row.

    Raises:
      InvalidArgumentError: a value does not fit its column.
    """
    arrays = []
    for place, column in enumerate(schema.arrow):
        # zip(*rows) makes an iterator for each row: the collector visits them all.
        values = list(map(itemgetter(place), rows))
        try:
            arrays.append(strict_array(values, _wide(column.type) if column.name in schema.inferred else column.type))
        except _FAULTS:
            found = values[-1]
            raise InvalidArgumentError(
                f"{who}: row {first + len(rows) - 1}, column {column.name!r}: expected {column.type}, found {found!r} "
                f"({type(found).__name__}); state another type with schema=, or cast the column in the query"
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema.names)


def _wide(kind: Any) -> Any:
    """A type with room for all numbers of a column: decimals are inferred with as many digits as the first rows need."""
    if not types.is_decimal(kind):
        return kind
    return pa.decimal128(38, kind.scale) if kind.bit_width == 128 else pa.decimal256(76, kind.scale)


def strict_array(items: list[Any], kind: Any) -> Any:
    """Items as a pyarrow Array of this type; None stays null.

    pyarrow cuts fractions off where it makes integers of floats, and so on; here the values are those that were given.

    Raises:
      TypeError, ValueError, OverflowError: one does not fit.

    >>> strict_array([1, None], __import__("pyarrow").int64()).to_pylist()
    [1, None]
    >>> strict_array([1.5], __import__("pyarrow").int64())
    Traceback (most recent call last):
    ...
    TypeError: float is no int64
    """
    if types.is_integer(kind):
        _only(items, kind, int, np.integer)
        return pa.array(items, kind)
    if types.is_boolean(kind):
        _only(items, kind, bool, np.bool_, int)
        if not {value for value in items if value is not None} <= {0, 1}:
            raise ValueError("only 0 and 1 are truth values")
        return pa.array([None if value is None else bool(value) for value in items], kind)
    if types.is_floating(kind):
        return _floats(items, kind)
    if types.is_binary(kind) or types.is_large_binary(kind):
        _only(items, kind, str, bytes, bytearray, memoryview)
        return pa.array(items, kind)
    if types.is_timestamp(kind):
        _only(items, kind, datetime, date, np.datetime64)
        return pa.array(items, pa.timestamp("us", kind.tz)).cast(kind)
    if types.is_date(kind):
        _only(items, kind, date)
        return pa.array(items, kind)
    if types.is_time(kind):
        _only(items, kind, time)
        return pa.array(items, pa.time64("us")).cast(kind)
    if types.is_duration(kind):
        _only(items, kind, timedelta, np.timedelta64)
        return pa.array(items, pa.duration("us")).cast(kind)
    made = pa.array(items, kind)
    if made.to_pylist() != items:
        raise ValueError("values would be changed")
    return made


def _floats(given: list[Any], kind: Any) -> Any:
    if Decimal in _only(given, kind, float, int, np.floating, np.integer, Decimal):
        given = [float(value) if type(value) is Decimal else value for value in given]
    wide = pa.array(given, pa.float64())
    if kind == wide.type:
        return wide
    made = wide.cast(kind, safe=False)
    if np.any(np.isinf(made.to_numpy(zero_copy_only=False)) & np.isfinite(wide.to_numpy(zero_copy_only=False))):
        raise OverflowError("too large")
    return made


def _only(values: list[Any], kind: Any, *wanted: type) -> set[type]:
    """Refuse values of other types, and tell those there are. A truth value is not an integer, and a time of a day no day."""
    kinds = list(map(type, values))
    # Mostly all are of the first type. To compare types is less work than to hash them.
    if kinds.count(wanted[0]) + kinds.count(type(None)) == len(kinds):
        return {wanted[0]}
    there = set(kinds)
    for found in there - {type(None)}:
        fits = issubclass(found, wanted)
        if (found is bool and bool not in wanted) or (issubclass(found, datetime) and datetime not in wanted):
            fits = False
        if not fits:
            raise TypeError(f"{found.__name__} is no {kind}")
    return there


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_STYLES = ("qmark", "format", "pyformat", "numeric", "named")
_KEY = "distinput_key"
"""The name of the parameter behind which a restart goes on, where parameters have names."""


@dataclass(frozen=True)
class SqlQuery:
    """A query, and how to run it.

    Args:
      query: a SELECT, without a semicolon.
      connect: returns a DB-API connection; called in each pass.
      parameters: a sequence or a dict of values for the placeholders of the query.
      order_by: a column of integers or text, each value of which is there once; rows are in its order.
      paramstyle: as in the DB-API; None: that of the module of the connection.
      who: the caller, for error messages.

    Raises:
      InvalidArgumentError: an argument is of the wrong kind.

    Source: the query is wrapped as a subselect (keyset pagination); PEP 249.
    """

    query: str
    connect: Callable[[], Any] = field(repr=False)
    parameters: Any = ()
    order_by: str | None = None
    paramstyle: str | None = None
    who: str = "from_sql"

    def __post_init__(self) -> None:
        if not isinstance(self.query, str) or not self.query.strip():
            raise InvalidArgumentError(f"{self.who}: query must be the text of a SELECT, got {self.query!r}")
        object.__setattr__(self, "connect", bound(self.connect))
        opened = hasattr(self.connect, "cursor") and not isinstance(self.connect, type)  # one of sqlite3 can be called
        if opened or not callable(self.connect):
            raise InvalidArgumentError(
                f"{self.who}: connect must be a function that returns a connection, such as "
                f"lambda: sqlite3.connect('a.db'), got {type(self.connect).__name__}: a connection itself can neither go to "
                "another process nor come back after a restart"
            )
        if isinstance(self.parameters, str | bytes) or not isinstance(self.parameters, Sequence | Mapping):
            raise InvalidArgumentError(f"{self.who}: parameters must be a tuple or a dict, got {self.parameters!r}")
        if self.order_by is not None and not (isinstance(self.order_by, str) and _NAME.match(self.order_by)):
            raise InvalidArgumentError(
                f"{self.who}: order_by must be the name of a column, of letters, digits and _, got {self.order_by!r}; give the "
                "column such a name with AS in the query"
            )
        if self.paramstyle not in (None, *_STYLES):
            raise InvalidArgumentError(
                f"{self.who}: paramstyle must be one of {', '.join(_STYLES)}, got {self.paramstyle!r}"
            )

    def statement(self, style: str | None, key: Any = None) -> tuple[str, Any]:
        """The text to run, and its parameters.

        Args:
          style: of placeholders; it matters only with `key`.
          key: of the first row; None: from the beginning.

        >>> SqlQuery("SELECT id FROM t;", print, order_by="id").statement("qmark", 7)[0].replace(chr(10), " ")
        'SELECT * FROM ( SELECT id FROM t ) distinput_rows WHERE id >= ? ORDER BY id'
        """
        query, parameters = self.query.strip().rstrip(";"), self.parameters
        if self.order_by is None:
            return query, parameters
        place = ""
        if key is not None:
            if not parameters and style in ("format", "pyformat"):
                query = query.replace("%", "%%")  # drivers look for placeholders once there are parameters
            if isinstance(parameters, Mapping) and parameters:
                mark = f"%({_KEY})s" if style in ("format", "pyformat") else f":{_KEY}"
                parameters = {**parameters, _KEY: key}
            else:
                marks = {"qmark": "?", "format": "%s", "pyformat": "%s"}
                mark = marks.get(style or "", f":{len(parameters) + 1}")
                parameters = (*parameters, key)
            place = f"WHERE {self.order_by} >= {mark}\n"
        # A comment at the end of the query must not hide what is behind it.
        return f"SELECT * FROM (\n{query}\n) distinput_rows\n{place}ORDER BY {self.order_by}", parameters

    def open(self, key: Any = None) -> "OpenQuery":
        """Run it.

        Args:
          key: of the first row; None: from the beginning.

        Raises:
          UnavailableError: there is no connection.
          InvalidArgumentError: the query fails.
        """
        try:
            connection = self.connect()
        except (DistinputError, *DEFECTS):
            raise
        except Exception as error:  # each driver has errors of its own
            raise UnavailableError(f"{self.who}: connect() failed: {type(error).__name__}: {error}") from error
        try:
            return OpenQuery(
                self, connection, *self.statement(self._style(connection) if key is not None else None, key)
            )
        except BaseException:
            connection.close()
            raise

    def _style(self, connection: Any) -> str:
        if self.paramstyle is not None:
            return self.paramstyle
        for kind in type(connection).__mro__:
            parts = kind.__module__.split(".")
            for end in range(len(parts), 0, -1):
                found = getattr(sys.modules.get(".".join(parts[:end])), "paramstyle", None)
                if found in _STYLES:
                    return str(found)
        raise InvalidArgumentError(
            f"{self.who}: the module of {type(connection).__name__} does not say how it writes placeholders; say so with "
            f"paramstyle=, one of {', '.join(_STYLES)}"
        )


class OpenQuery:
    """The rows of a query that runs; a context, behind which the connection is closed.

    Args:
      query: what was asked for.
      connection: through which it runs.
      text: the statement.
      parameters: of the statement.
    """

    def __init__(self, query: SqlQuery, connection: Any, text: str, parameters: Any) -> None:
        self.who, self.connection, self._fetched = query.who, connection, 0
        try:
            self.cursor = connection.cursor()
            if parameters:
                self.cursor.execute(text, parameters)
            else:
                self.cursor.execute(text)
        except Exception as error:
            raise InvalidArgumentError(
                f"{self.who}: the query failed: {type(error).__name__}: {error}; it was {text!r}"
            ) from error
        if self.cursor.description is None:
            raise InvalidArgumentError(f"{self.who}: the query gives no rows, because it is not a SELECT: {text!r}")
        self.names = [str(column[0]) for column in self.cursor.description]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.connection.close()
        except Exception as failure:  # noqa: BLE001 - the rows were read; it must not hide what ends the pass
            warnings.warn(
                f"{self.who}: closing the connection failed: {type(failure).__name__}: {failure}{_cure(failure)}",
                InputWarning,
                stacklevel=2,
            )

    def fetch(self, rows: int) -> list[Any]:
        """The next rows, at most so many; none at the end.

        Raises:
          DataLossError: they cannot be read.
          InvalidArgumentError: they are dicts, or have more or fewer values than the query has columns.
        """
        try:
            records = list(self.cursor.fetchmany(rows))
        except DEFECTS:  # of a function of the user's that makes rows or values
            raise
        except Exception as error:
            raise DataLossError(
                f"{self.who}: reading rows failed behind row {self._fetched} of those that the query gave: "
                f"{type(error).__name__}: {error}{_cure(error)}"
            ) from error
        if records and isinstance(records[0], Mapping):
            raise InvalidArgumentError(
                f"{self.who}: rows must be tuples, got {type(records[0]).__name__}; let connect return a connection without a "
                "factory of rows"
            )
        if records and not isinstance(records[0], Sequence):
            records = list(map(tuple, records))  # some rows know their values by name alone
        if list(map(len, records)).count(len(self.names)) < len(records):
            place, count = next((i, len(row)) for i, row in enumerate(records) if len(row) != len(self.names))
            raise InvalidArgumentError(
                f"{self.who}: row {self._fetched + place} has {count} values, but the query gives {len(self.names)} columns: "
                f"{', '.join(self.names)}; let connect return a connection without a factory of rows"
            )
        self._fetched += len(records)
        return records

    def skip(self, rows: int, at_once: int) -> int:
        """Pass over rows; how many there were."""
        left = rows
        while left:
            found = len(self.fetch(min(left, at_once)))
            if not found:
                break
            left -= found
        return rows - left


def check_names(who: str, names: Sequence[str]) -> None:
    """Refuse a query with several columns of one name.

    Raises:
      InvalidArgumentError: there are some.
    """
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgumentError(
            f"{who}: the query gives several columns named {', '.join(twice)}; name them with AS"
        )


def _cure(error: Exception) -> str:
    if "same thread" not in str(error):
        return ""
    return "; let connect return a connection that other threads may use, as sqlite3.connect(path, check_same_thread=False)"
