# SPDX-License-Identifier: Apache-2.0
"""Sources that read files of columns: Parquet, Arrow and NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.core.column import Dense, Ragged, Strings
from distinput.data.dataset import Dataset
from distinput.data.makers import (
    ArrowDataset,
    NpyDataset,
    ParquetDataset,
)
from distinput.formats.arrow_ipc import write_arrow
from distinput.formats.parquet import write_parquet
from distinput.ops.interleave import Interleave
from distinput.ops.reader import Reader
from distinput.testing.pipeline import Draw, Ingredient
from distinput.testing.sources.written import FILES, READS, by_file, read_order, written

__all__ = ["TABLES"]


def _table_row(index: int) -> dict[str, Any]:
    return {
        "id": np.int64(index),
        "name": b"n%d" % index,
        "values": np.arange(index % 3, dtype=np.float64) + index,
    }


def _draw_table(draw: Draw, _: Any) -> dict[str, Any]:
    # Of files without a row nobody can tell how long the lists are, so the first one has a row.
    columns = draw(st.sampled_from([None, ["id"], ["name", "id"], ["values"]]))
    rows = [draw(st.integers(1, 6)), *draw(st.lists(st.integers(0, 6), max_size=2))]
    return {"rows": rows, "reads": draw(READS), "columns": columns, "group": draw(st.integers(1, 4))}


def _table(rows: list[int]) -> dict[str, Any]:
    made = [_table_row(i) for i in rows]
    return {
        "id": np.array([row["id"] for row in made], np.int64),
        "name": Strings.of([row["name"] for row in made]),
        "values": _lists([row["values"] for row in made]),
    }


def _build_parquet(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        write_parquet(str(path), _table(rows), row_group_size=a["group"])

    return ParquetDataset(written({**a, "format": "parquet"}, write), a["columns"], num_parallel_reads=a["reads"])


def _draw_arrow(draw: Draw, _: Any) -> dict[str, Any]:
    return {
        **_draw_table(draw, _),
        "compression": draw(st.sampled_from([None, None, "lz4"])),
        "stream": draw(st.booleans()),
    }


def _build_arrow(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        write_arrow(str(path), _table(rows), a["group"], a["compression"], stream=a["stream"])

    return ArrowDataset(written({**a, "format": "arrow"}, write), a["columns"], num_parallel_reads=a["reads"])


def _npy_rows(rows: list[int], shape: list[int], dtype: str) -> Any:
    cells = int(np.prod(shape))
    return (np.array(rows, np.int64)[:, None] * 3 + np.arange(cells)).astype(dtype).reshape(len(rows), *shape)


def _draw_npy(draw: Draw, _: Any) -> dict[str, Any]:
    return {
        "rows": draw(FILES),
        "reads": draw(READS),
        "shape": draw(st.sampled_from([[], [2], [2, 3], [0], [0, 100], [100]])),
        "dtype": draw(st.sampled_from(["int64", "uint8", ">f4", "bool"])),
    }


def _build_npy(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        with open(path, "wb") as file:  # numpy would put .npy behind the name
            np.save(file, _npy_rows(rows, a["shape"], a["dtype"]))

    return NpyDataset(written({**a, "format": "npy"}, write), num_parallel_reads=a["reads"])


def _npy_model(_: None, a: dict[str, Any]) -> list[Any]:
    native = np.dtype(a["dtype"]).newbyteorder("=")
    return read_order(by_file(a, lambda i: _npy_rows([i], a["shape"], a["dtype"]).astype(native)[0]), a["reads"])


def _lists(rows: list[Any]) -> Ragged:
    sizes = np.array([len(row) for row in rows], np.int64)
    return Ragged(Dense(np.concatenate([np.empty(0), *rows])), np.cumsum(sizes) - sizes, sizes)


def _table_model(_: None, a: dict[str, Any]) -> list[Any]:
    names = a["columns"] or ["id", "name", "values"]

    def row(index: int) -> dict[str, Any]:
        whole = _table_row(index)
        return {name: whole[name] for name in names}

    return read_order(by_file(a, row), a["reads"])


TABLES: tuple[Ingredient, ...] = (
    Ingredient("parquet", (Reader, Interleave), _build_parquet, _table_model, _draw_table),
    Ingredient("arrow", (Reader, Interleave), _build_arrow, _table_model, _draw_arrow),
    Ingredient("npy", (Reader, Interleave), _build_npy, _npy_model, _draw_npy),
)
"""Sources that read files of columns."""
