# SPDX-License-Identifier: Apache-2.0
"""What do batches of rows from a database cost, beside the driver alone?"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "a query of SQLite for an integer, two floats and a text: batches of 1024 rows"
NOTES = """
`sqlite3, fetchmany` makes Python's objects of all rows and nothing else. Every reader through a DB-API connection must do
that.
"""
BATCH = 1024
QUERY = "SELECT id, a, b, name FROM measured ORDER BY id"
NAMES = ["id", "a", "b", "name"]


def prepare(folder: Path, scale: float) -> None:
    """A table."""
    random = np.random.default_rng(SEED)
    count = _count(scale)
    floats = random.standard_normal((count, 2)).tolist()
    texts = [f"{value:x}" for value in random.integers(0, 2**60, count)]
    connection = _connected(folder)
    with connection:
        connection.execute("CREATE TABLE measured (id INTEGER PRIMARY KEY, a REAL, b REAL, name TEXT)")
        rows = ((number, *pair, text) for number, (pair, text) in enumerate(zip(floats, texts, strict=True)))
        connection.executemany("INSERT INTO measured VALUES (?, ?, ?, ?)", rows)
    connection.close()


def _count(scale: float) -> int:
    return scaled(200_000, scale, 3000)


def _connected(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "measured.db", check_same_thread=False)


def cases(folder: Path, scale: float) -> list[Case]:
    """One query."""
    return [
        Case(
            "batches of rows",
            {"row": _count(scale)},
            [
                Contender("distinput", "ours", lambda: _ours(folder)),
                Contender("sqlite3, fetchmany", "limit", lambda: _fetched(folder)),
                Contender("sqlite3, to arrays", "limit", lambda: _arrays(folder)),
                Contender("pandas.read_sql in chunks", "peer", lambda: _pandas(folder), ("pandas",), 1.0),
            ],
        )
    ]


def _ours(folder: Path) -> Work:
    import distinput as di

    schema = {"id": "int64", "a": "float64", "b": "float64", "name": bytes}
    dataset = di.data.Dataset.from_sql(QUERY, lambda: _connected(folder), schema=schema).batch(BATCH)
    return delivering(lambda: dataset)


def _parts(folder: Path) -> Iterator[list[Any]]:
    connection = _connected(folder)
    try:
        cursor = connection.execute(QUERY)
        while part := cursor.fetchmany(BATCH):
            yield part
    finally:
        connection.close()


def _fetched(folder: Path) -> Work:
    return Work(lambda: sum(map(len, _parts(folder))))


def _arrays(folder: Path) -> Work:
    """The columns of the rows, one by one."""

    def batches() -> Iterator[dict[str, Any]]:
        for part in _parts(folder):
            ids, a, b, names = zip(*part, strict=True)
            texts = np.empty(len(names), object)
            texts[:] = [name.encode() for name in names]
            yield {"id": np.array(ids, np.int64), "a": np.array(a), "b": np.array(b), "name": texts}

    return delivering(batches)


def _pandas(folder: Path) -> Work:
    import pandas as pd

    def chunks() -> Iterator[Any]:
        connection = _connected(folder)
        try:
            yield from pd.read_sql(QUERY, connection, chunksize=BATCH)
        finally:
            connection.close()

    def plain(chunk: Any) -> dict[str, Any]:
        names = np.empty(len(chunk), object)
        names[:] = [name.encode() for name in chunk["name"]]
        return {"name": names, **{each: chunk[each].to_numpy() for each in NAMES[:3]}}

    def once() -> int:
        return sum(len(chunk) for chunk in chunks())

    return Work(once, lambda: in_order(map(plain, chunks())))
