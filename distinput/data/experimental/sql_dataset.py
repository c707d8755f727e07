# SPDX-License-Identifier: Apache-2.0
"""`SqlDataset`: the rows of a query to an SQLite file, as TensorFlow's tuples."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distinput.core.table_reading import Reading
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.formats.row_schema import RowSchema
from distinput.formats.sql_query import SqlQuery
from distinput.ops.sql import Sql

__all__ = ["SqlDataset"]


class SqlDataset(Dataset[Any]):
    """The rows of a query to an SQLite file, as tuples.

    Values must fit the types: text is no number, 1.5 no integer, and NULL is NaN in a column of floats and otherwise an error;
    TensorFlow makes zeros of all these. Other databases, and restarts that need not read all rows before:
    `Dataset.from_sql`.

    Args:
      driver_name: "sqlite".
      data_source_name: the path of the file, which is opened for reading alone.
      query: a SELECT. End it with ORDER BY if a job is to be restarted: rows must come in the same order.
      output_types: a tuple of dtypes, one for each column.

    Raises:
      InvalidArgumentError: another driver; at iteration, the query fails, has another number of columns, or a value does not
        fit.
      NotFoundError: at iteration, the file is not there.

    >>> import distinput as di
    >>> with sqlite3.connect("b.db") as connection:
    ...     _ = connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
    ...     _ = connection.execute("INSERT INTO people VALUES (1, 'Ada'), (2, 'Alan')")
    >>> connection.close()
    >>> query = "SELECT name, id FROM people ORDER BY id"
    >>> di.data.experimental.SqlDataset("sqlite", "b.db", query, (di.string, di.int32)).to_list()
    [(b'Ada', 1), (b'Alan', 2)]

    Source: `tf.data.experimental.SqlDataset`.
    """

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        driver, path, text = map(_text, (driver_name, data_source_name, query))
        if driver != "sqlite":
            raise InvalidArgumentError(
                f"SqlDataset: driver_name must be 'sqlite', got {driver_name!r}; read other databases with Dataset.from_sql"
            )
        nests = (tuple, list, dict)
        if (
            not isinstance(output_types, tuple | list)
            or not output_types
            or any(isinstance(t, nests) for t in output_types)
        ):
            raise InvalidArgumentError(
                f"SqlDataset: output_types must be a tuple of dtypes, one for each column, got {output_types!r}"
            )
        named = {str(place): one for place, one in enumerate(output_types)}
        schema = RowSchema.of("SqlDataset", named)
        assert schema is not None
        node = Sql(SqlQuery(text, _Sqlite(path), who="SqlDataset"), schema, Reading(who="SqlDataset"), tuples=True)
        node.check()
        super().__init__(node)


@dataclass(frozen=True)
class _Sqlite:
    """Opens a file for reading, also in another process."""

    path: str

    def __call__(self) -> sqlite3.Connection:
        where = Path(self.path).absolute()
        if not where.is_file():
            raise NotFoundError(
                f"SqlDataset: there is no file {self.path!r}; data_source_name is the path of an SQLite file"
            )
        return sqlite3.connect(f"{where.as_uri()}?mode=ro", uri=True, check_same_thread=False)


def _text(given: Any) -> Any:
    """Text as users of TensorFlow have it, which may be bytes or an array."""
    found = given.item() if isinstance(given, np.ndarray | np.generic) and np.ndim(given) == 0 else given
    return found.decode() if isinstance(found, bytes) else found
