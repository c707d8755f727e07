# SPDX-License-Identifier: Apache-2.0
"""Sources of rows: tables, lines of text with columns, databases."""

import json
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.columns.column import Dense, Strings
from distinput.columns.ragged import Ragged
from distinput.columns.regroup import column_of
from distinput.data.dataset import Dataset
from distinput.data.file_datasets import ArrowDataset, NpyDataset, NpzDataset, ParquetDataset
from distinput.data.file_datasets.reading import FileDataset
from distinput.formats.arrow_ipc import write_arrow
from distinput.formats.parquet import write_parquet
from distinput.testing.pipeline import EITHER, DrawFrom, Ingredient, drawing
from distinput.testing.sources.records import (
    COMPRESSION,
    FILES,
    READS,
    by_file,
    read_order,
    rows_with,
    squeezed,
    written,
)
from distinput.tf.datasets import SqlDataset
from distinput.values.ragged_tensor import RaggedTensor

# ----------------------------------------------------------------------------
# Sources that read files of columns: Parquet, Arrow and NumPy.
# ----------------------------------------------------------------------------


def _table_row(index: int) -> dict[str, Any]:
    return {
        "id": np.int64(index),
        "name": b"n%d" % index,
        "values": np.arange(index % 3, dtype=np.float64) + index,
        "lists": _rows_of_lists(index),
    }


def _rows_of_lists(index: int) -> RaggedTensor:
    lengths = (np.arange(index % 4) + index) % 3
    return RaggedTensor.from_row_lengths(np.arange(lengths.sum()) * 2 + index, lengths)


def _draw_table(draw: DrawFrom, _: Any) -> dict[str, Any]:
    # Of files without a row nobody can tell how long the lists are, so the first one has a row.
    columns = draw(st.sampled_from([None, ["id"], ["name", "id"], ["values"], ["lists"]]))
    rows = [draw(st.integers(1, 6)), *draw(st.lists(st.integers(0, 6), max_size=2))]
    return {"rows": rows, "reads": draw(READS), "columns": columns, "group": draw(st.integers(1, 4))}


def _table(rows: list[int]) -> dict[str, Any]:
    made = [_table_row(i) for i in rows]
    return {
        "id": np.array([row["id"] for row in made], np.int64),
        "name": Strings.of([row["name"] for row in made]),
        "values": _lists([row["values"] for row in made]),
        "lists": column_of([row["lists"] for row in made] or [_rows_of_lists(0)]).rows(0, len(made)),
    }


def _of_parquet_files(a: dict[str, Any], **options: Any) -> ParquetDataset:
    def write(path: Path, rows: list[int]) -> None:
        write_parquet(str(path), _table(rows), row_group_size=a["group"])

    return ParquetDataset(written({**a, "format": "parquet"}, write), **options)


def _build_parquet(_: None, a: dict[str, Any]) -> Dataset:
    return _of_parquet_files(a, columns=a["columns"], num_parallel_reads=a["reads"])


def _draw_arrow(draw: DrawFrom, _: Any) -> dict[str, Any]:
    return {**_draw_table(draw, _), **drawing(compression=st.sampled_from([None, None, "lz4"]), stream=EITHER)(draw, _)}


def _build_arrow(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        write_arrow(str(path), _table(rows), a["group"], a["compression"], stream=a["stream"])

    return ArrowDataset(written({**a, "format": "arrow"}, write), a["columns"], num_parallel_reads=a["reads"])


def _draw_in_memory(draw: DrawFrom, _: Any) -> dict[str, Any]:
    return {**_draw_table(draw, _), "reads": None}


def _of_arrow_files(a: dict[str, Any]) -> Any:
    """An Arrow table of several chunks."""
    paths = written({**a, "format": "arrow"}, lambda path, rows: write_arrow(str(path), _table(rows), a["group"]))
    return ArrowDataset(paths, a["columns"]).to_arrow()


def _npy_rows(rows: list[int], shape: list[int], dtype: str) -> Any:
    cells = int(np.prod(shape))
    return (np.array(rows, np.int64)[:, None] * 3 + np.arange(cells)).astype(dtype).reshape(len(rows), *shape)


_OF_NPY = {
    "rows": FILES,
    "reads": READS,
    "shape": st.sampled_from([[], [2], [2, 3], [0], [0, 100], [100]]),
    "dtype": st.sampled_from(["int64", "uint8", ">f4", "bool"]),
}


def _build_npy(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        with open(path, "wb") as file:  # numpy would put .npy behind the name
            np.save(file, _npy_rows(rows, a["shape"], a["dtype"]))

    return NpyDataset(written({**a, "format": "npy"}, write), num_parallel_reads=a["reads"])


def _npy_row(index: int, a: dict[str, Any]) -> Any:
    return _npy_rows([index], a["shape"], a["dtype"]).astype(np.dtype(a["dtype"]).newbyteorder("="))[0]


def _npy_model(_: None, a: dict[str, Any]) -> list[Any]:
    return read_order(by_file(a, lambda i: _npy_row(i, a)), a["reads"])


def _build_npz(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        with open(path, "wb") as file:
            (np.savez_compressed if a["compressed"] else np.savez)(
                file, x=_npy_rows(rows, a["shape"], a["dtype"]), id=np.array(rows, np.int64)
            )

    paths = written({"rows": a["rows"], "shape": a["shape"], "dtype": a["dtype"], "npz": a["compressed"]}, write)
    return NpzDataset(paths, num_parallel_reads=a["reads"])


def _npz_model(_: None, a: dict[str, Any]) -> list[Any]:
    return read_order(by_file(a, lambda i: {"x": _npy_row(i, a), "id": np.int64(i)}), a["reads"])


def _lists(rows: list[Any]) -> Ragged:
    sizes = np.array([len(row) for row in rows], np.int64)
    return Ragged(Dense(np.concatenate([np.empty(0), *rows])), np.cumsum(sizes) - sizes, sizes)


_table_model = rows_with(_table_row)


def _draw_chosen(draw: DrawFrom, _: Any) -> dict[str, Any]:
    drawn = _draw_table(draw, _)
    wanted = draw(st.sampled_from([["id"], ["name"], ["values", "id"]]))
    return {**drawn, "reads": None, "columns": wanted, "least": draw(st.integers(0, 8)), "not": draw(st.integers(0, 8))}


def _build_chosen(_: None, a: dict[str, Any]) -> Dataset:
    from pyarrow.compute import field

    condition = (field("id") >= a["least"]) & ~(field("name") == f"n{a['not']}")
    return _of_parquet_files(a).filter(condition).select(a["columns"])


def _chosen_model(_: None, a: dict[str, Any]) -> list[Any]:
    rows = _table_model(None, {**a, "columns": None})
    kept = [row for row in rows if row["id"] >= a["least"] and row["id"] != a["not"]]
    return [{name: row[name] for name in a["columns"]} for row in kept]


TABLES: tuple[Ingredient, ...] = (
    Ingredient("parquet_where", _build_chosen, _chosen_model, _draw_chosen),
    Ingredient("parquet", _build_parquet, _table_model, _draw_table),
    Ingredient("arrow", _build_arrow, _table_model, _draw_arrow),
    Ingredient(
        "arrow_table",
        lambda _, a: Dataset.from_arrow(_of_arrow_files(a)),
        _table_model,
        _draw_in_memory,
    ),
    Ingredient(
        "arrow_stream",
        lambda _, a: Dataset.from_arrow(partial(_of_arrow_files, a)),
        _table_model,
        _draw_in_memory,
    ),
    Ingredient("npy", _build_npy, _npy_model, drawing(**_OF_NPY)),
    Ingredient("npz", _build_npz, _npz_model, drawing(**_OF_NPY, compressed=EITHER)),
)
"""Sources that read files of columns."""


# ----------------------------------------------------------------------------
# Sources that read rows from text: CSV and JSON Lines.
# ----------------------------------------------------------------------------


_TEXTS = (b"plain", b'a "quoted", text', b"two\nlines", b"", b'"')
_TEXT_SCHEMA = {"id": "int64", "half": "float32", "text": "string"}


def _text_row(index: int) -> dict[str, Any]:
    return {"id": np.int64(index), "half": np.float32(index / 2), "text": _TEXTS[index % len(_TEXTS)]}


_text_model = rows_with(_text_row)


_draw_text = drawing(
    rows=FILES,
    reads=READS,
    compression=COMPRESSION,
    columns=st.sampled_from([None, None, ["text"], ["half", "id"]]),
)


def _read(a: dict[str, Any], format: str, write: Any) -> Dataset:
    def squeeze(path: Path, rows: list[int]) -> None:
        path.write_bytes(squeezed(write(rows), a["compression"]))

    return FileDataset(
        written({"rows": a["rows"], "compression": a["compression"], "format": format}, squeeze),
        format,
        a["reads"],
        schema=_TEXT_SCHEMA,
        columns=a["columns"],
        compression_type=a["compression"],
    )


def _csv(rows: list[int]) -> bytes:
    """Lines that end with or without a return, empty ones among them, and values in quotes where they must be."""
    lines = [b"id,half,text\n"]
    for index in rows:
        text = _text_row(index)["text"]
        if b'"' in text or b"\n" in text:
            text = b'"' + text.replace(b'"', b'""') + b'"'
        lines.append(b"%d,%r,%s" % (index, index / 2, text) + (b"\r\n" if index % 2 else b"\n"))
        if index % 4 == 3:
            lines.append(b"\n")
    return b"".join(lines)


def _jsonl(rows: list[int]) -> bytes:
    """Objects whose keys come in any order, and blank lines."""
    lines = []
    for index in rows:
        row = _text_row(index)
        made = {"text": row["text"].decode(), "id": index, "half": index / 2}
        lines.append(json.dumps(made, sort_keys=index % 2 == 0) + ("\n\n" if index % 4 == 3 else "\n"))
    return "".join(lines).encode()


TEXT_ROWS: tuple[Ingredient, ...] = (
    Ingredient("csv", lambda _, a: _read(a, "csv", _csv), _text_model, _draw_text),
    Ingredient("jsonl", lambda _, a: _read(a, "jsonl", _jsonl), _text_model, _draw_text),
)
"""Sources that read rows from text."""


# ----------------------------------------------------------------------------
# Sources that run a query of a database.
# ----------------------------------------------------------------------------


_DATABASE_SCHEMA = {"id": "int64", "half": "float64", "text": "string"}


def _database_row(index: int) -> dict[str, Any]:
    return {"id": np.int64(3 * index), "half": np.float64(index / 2), "text": b"n%d" % index}


_draw_database = drawing(
    order_by=st.sampled_from([None, "id", "text"]),
    columns=st.sampled_from([["id", "half", "text"], ["text", "id"]]),
    rows=st.integers(0, 9),
    stated=EITHER,
    fetch=st.sampled_from([None, 1, 2, 3]),
)


def _path(a: dict[str, Any]) -> str:
    def write(path: Path, rows: list[int]) -> None:
        with closing(sqlite3.connect(path)) as made, made:
            made.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, half REAL, text TEXT)")
            values = [_database_row(index) for index in rows]
            made.executemany(
                "INSERT INTO rows VALUES (?, ?, ?)",
                [(int(row["id"]), float(row["half"]), row["text"].decode()) for row in values],
            )

    return written({"rows": [a["rows"]], "format": "sqlite"}, write)[0]


def _query(a: dict[str, Any]) -> str:
    return f"SELECT {', '.join(a['columns'])} FROM rows"


def _build_sql(_: None, a: dict[str, Any]) -> Dataset:
    schema = {name: _DATABASE_SCHEMA[name] for name in a["columns"]} if a["stated"] or not a["rows"] else None
    connect = partial(sqlite3.connect, _path(a), check_same_thread=False)
    asked = _query(a) if a["order_by"] else f"{_query(a)} ORDER BY id"
    return Dataset.from_sql(asked, connect, schema=schema, order_by=a["order_by"], fetch_size=a["fetch"])


def _database_model(_: None, a: dict[str, Any]) -> list[Any]:
    whole = [_database_row(index) for index in range(a["rows"])]
    return [{name: row[name] for name in a["columns"]} for row in whole]


def _build_tuples(_: None, a: dict[str, Any]) -> Dataset:
    return SqlDataset(
        "sqlite", _path(a), f"{_query(a)} ORDER BY id", tuple([_DATABASE_SCHEMA[name] for name in a["columns"]])
    )


def _tuples_model(_: None, a: dict[str, Any]) -> list[Any]:
    return [tuple(row.values()) for row in _database_model(None, a)]


DATABASES: tuple[Ingredient, ...] = (
    Ingredient("sql", _build_sql, _database_model, _draw_database),
    Ingredient("sql_tuples", _build_tuples, _tuples_model, _draw_database),
)
"""Sources that run a query of a database."""
