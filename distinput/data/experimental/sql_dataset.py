# SPDX-License-Identifier: Apache-2.0
"""`SqlDataset`: the rows of a query to an SQLite file, as tuples or other nests."""

import sqlite3
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from distinput.core.nest import Structure, structure_of
from distinput.core.table_reading import Reading
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.formats.row_schema import RowSchema
from distinput.formats.sql_query import SqlQuery
from distinput.ops.sql import Sql

__all__ = ["SqlDataset"]


class SqlDataset(Dataset[Any]):
    """The rows of a query to an SQLite file, as tuples or in another structure.

    Values must fit the types: text is no number, 1.5 no integer, and NULL is NaN in a column of floats and otherwise an error;
    TensorFlow makes zeros of all these. Other databases, and restarts that need not read all rows before:
    `Dataset.from_sql`.

    Args:
      driver_name: "sqlite".
      data_source_name: the path of the file, which is opened for reading alone.
      query: a SELECT. End it with ORDER BY if a job is to be restarted: rows must come in the same order.
      output_types: a dtype for each column: a tuple, a dict or any nest of them, which elements have the structure of; one
        dtype for the only column.

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
        wanted = tuple(output_types) if isinstance(output_types, list) else output_types
        structure = structure_of(wanted)
        types = structure.flatten(wanted)
        if not types:
            raise InvalidArgumentError(
                f"SqlDataset: output_types must have a dtype for each column, in a tuple for example, got {output_types!r}"
            )
        named = {str(place): one for place, one in enumerate(types)}
        schema = RowSchema.of("SqlDataset", named)
        assert schema is not None
        node = Sql(SqlQuery(text, _Sqlite(path), who="SqlDataset"), schema, Reading(who="SqlDataset"), tuples=True)
        node.check()
        if structure.is_flat_tuple:
            super().__init__(node)
            return
        columns: Any = node.spec.nest
        signature = structure.build(list(columns))
        super().__init__(Dataset(node).map(partial(_arranged, structure), output_signature=signature).node)


def _arranged(structure: Structure, *row: Any) -> Any:
    """A row in the structure of `output_types`."""
    return structure.build(row)


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
