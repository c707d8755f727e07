# SPDX-License-Identifier: Apache-2.0
"""A query that is run through any DB-API connection: its text, its parameters, and the rows it gives."""

import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from distinput.errors import DataLossError, DistinputError, InputWarning, InvalidArgumentError, UnavailableError
from distinput.plan.binding import bound

__all__ = ["OpenQuery", "SqlQuery", "check_names"]

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
        if not callable(self.connect):
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
        except DistinputError:
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
            raise InvalidArgumentError(f"{self.who}: the query gives no rows, it is no SELECT: {text!r}")
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
          InvalidArgumentError: they are dicts.
        """
        try:
            records = list(self.cursor.fetchmany(rows))
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
