# SPDX-License-Identifier: Apache-2.0
"""Sources that run a query of a database."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.data.experimental.sql_dataset import SqlDataset
from distinput.ops.sql import Sql
from distinput.testing.pipeline import DrawFrom, Ingredient
from distinput.testing.sources.written import written

__all__ = ["DATABASES"]

_SCHEMA = {"id": "int64", "half": "float64", "text": "string"}


def _row(index: int) -> dict[str, Any]:
    return {"id": np.int64(3 * index), "half": np.float64(index / 2), "text": b"n%d" % index}


def _draw(draw: DrawFrom, _: Any) -> dict[str, Any]:
    order_by = draw(st.sampled_from([None, "id", "text"]))
    columns = draw(st.sampled_from([["id", "half", "text"], ["text", "id"]]))
    return {
        "rows": draw(st.integers(0, 9)),
        "order_by": order_by,
        "columns": columns,
        "stated": draw(st.booleans()),
        "fetch": draw(st.sampled_from([None, 1, 2, 3])),
    }


def _path(a: dict[str, Any]) -> str:
    def write(path: Path, rows: list[int]) -> None:
        with closing(sqlite3.connect(path)) as made, made:
            made.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, half REAL, text TEXT)")
            values = [_row(index) for index in rows]
            made.executemany(
                "INSERT INTO rows VALUES (?, ?, ?)",
                [(int(row["id"]), float(row["half"]), row["text"].decode()) for row in values],
            )

    return written({"rows": [a["rows"]], "format": "sqlite"}, write)[0]


def _query(a: dict[str, Any]) -> str:
    return f"SELECT {', '.join(a['columns'])} FROM rows"


def _build(_: None, a: dict[str, Any]) -> Dataset:
    schema = {name: _SCHEMA[name] for name in a["columns"]} if a["stated"] or not a["rows"] else None
    connect = partial(sqlite3.connect, _path(a), check_same_thread=False)
    asked = _query(a) if a["order_by"] else f"{_query(a)} ORDER BY id"
    return Dataset.from_sql(asked, connect, schema=schema, order_by=a["order_by"], fetch_size=a["fetch"])


def _model(_: None, a: dict[str, Any]) -> list[Any]:
    whole = [_row(index) for index in range(a["rows"])]
    return [{name: row[name] for name in a["columns"]} for row in whole]


def _build_tuples(_: None, a: dict[str, Any]) -> Dataset:
    return SqlDataset("sqlite", _path(a), f"{_query(a)} ORDER BY id", tuple([_SCHEMA[name] for name in a["columns"]]))


def _tuples_model(_: None, a: dict[str, Any]) -> list[Any]:
    return [tuple(row.values()) for row in _model(None, a)]


DATABASES: tuple[Ingredient, ...] = (
    Ingredient("sql", (Sql,), _build, _model, _draw),
    Ingredient("sql_tuples", (Sql,), _build_tuples, _tuples_model, _draw),
)
"""Sources that run a query of a database."""
