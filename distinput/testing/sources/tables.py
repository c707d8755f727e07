# SPDX-License-Identifier: Apache-2.0
"""Sources that read files of columns: Parquet, Arrow and NumPy."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.core.dense import Dense
from distinput.core.ragged import Ragged
from distinput.core.ragged_tensor import RaggedTensor
from distinput.core.regroup import column_of
from distinput.core.strings import Strings
from distinput.data.dataset import Dataset
from distinput.data.file_datasets.arrow import ArrowDataset
from distinput.data.file_datasets.npy import NpyDataset
from distinput.data.file_datasets.npz import NpzDataset
from distinput.data.file_datasets.parquet import ParquetDataset
from distinput.formats.arrow_ipc import write_arrow
from distinput.formats.parquet import write_parquet
from distinput.ops.arrow_stream import ArrowStream
from distinput.ops.interleave import Interleave
from distinput.ops.reader import Reader
from distinput.ops.select import Select
from distinput.ops.slices import Slices
from distinput.ops.table_rows import TableRows
from distinput.ops.where import Where
from distinput.testing.pipeline import DrawFrom, Ingredient
from distinput.testing.sources.written import FILES, READS, by_file, read_order, written

__all__ = ["TABLES"]


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


def _build_parquet(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        write_parquet(str(path), _table(rows), row_group_size=a["group"])

    return ParquetDataset(written({**a, "format": "parquet"}, write), a["columns"], num_parallel_reads=a["reads"])


def _draw_arrow(draw: DrawFrom, _: Any) -> dict[str, Any]:
    return {
        **_draw_table(draw, _),
        "compression": draw(st.sampled_from([None, None, "lz4"])),
        "stream": draw(st.booleans()),
    }


def _build_arrow(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        write_arrow(str(path), _table(rows), a["group"], a["compression"], stream=a["stream"])

    return ArrowDataset(written({**a, "format": "arrow"}, write), a["columns"], num_parallel_reads=a["reads"])


def _draw_in_memory(draw: DrawFrom, _: Any) -> dict[str, Any]:
    return {**_draw_table(draw, _), "reads": None}


def _of_arrow_files(paths: list[str], columns: list[str] | None) -> Any:
    """An Arrow table of several chunks."""
    return ArrowDataset(paths, columns).to_arrow()


def _written_arrow(a: dict[str, Any]) -> list[str]:
    return written({**a, "format": "arrow"}, lambda path, rows: write_arrow(str(path), _table(rows), a["group"]))


def _build_chunks(_: None, a: dict[str, Any]) -> Dataset:
    return Dataset.from_arrow(_of_arrow_files(_written_arrow(a), a["columns"]))


def _build_stream(_: None, a: dict[str, Any]) -> Dataset:
    return Dataset.from_arrow(partial(_of_arrow_files, _written_arrow(a), a["columns"]))


def _npy_rows(rows: list[int], shape: list[int], dtype: str) -> Any:
    cells = int(np.prod(shape))
    return (np.array(rows, np.int64)[:, None] * 3 + np.arange(cells)).astype(dtype).reshape(len(rows), *shape)


def _draw_npy(draw: DrawFrom, _: Any) -> dict[str, Any]:
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


def _build_npz(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        with open(path, "wb") as file:
            (np.savez_compressed if a["compressed"] else np.savez)(
                file, x=_npy_rows(rows, a["shape"], a["dtype"]), id=np.array(rows, np.int64)
            )

    paths = written({"rows": a["rows"], "shape": a["shape"], "dtype": a["dtype"], "npz": a["compressed"]}, write)
    return NpzDataset(paths, num_parallel_reads=a["reads"])


def _npz_model(_: None, a: dict[str, Any]) -> list[Any]:
    native = np.dtype(a["dtype"]).newbyteorder("=")

    def row(index: int) -> dict[str, Any]:
        return {"x": _npy_rows([index], a["shape"], a["dtype"]).astype(native)[0], "id": np.int64(index)}

    return read_order(by_file(a, row), a["reads"])


def _draw_npz(draw: DrawFrom, _: Any) -> dict[str, Any]:
    return {**_draw_npy(draw, _), "compressed": draw(st.booleans())}


def _lists(rows: list[Any]) -> Ragged:
    sizes = np.array([len(row) for row in rows], np.int64)
    return Ragged(Dense(np.concatenate([np.empty(0), *rows])), np.cumsum(sizes) - sizes, sizes)


def _table_model(_: None, a: dict[str, Any]) -> list[Any]:
    names = a["columns"] or ["id", "name", "values", "lists"]

    def row(index: int) -> dict[str, Any]:
        whole = _table_row(index)
        return {name: whole[name] for name in names}

    return read_order(by_file(a, row), a["reads"])


def _draw_chosen(draw: DrawFrom, _: Any) -> dict[str, Any]:
    drawn = _draw_table(draw, _)
    wanted = draw(st.sampled_from([["id"], ["name"], ["values", "id"]]))
    return {**drawn, "reads": None, "columns": wanted, "least": draw(st.integers(0, 8)), "not": draw(st.integers(0, 8))}


def _build_chosen(_: None, a: dict[str, Any]) -> Dataset:
    from pyarrow.compute import field

    def write(path: Path, rows: list[int]) -> None:
        write_parquet(str(path), _table(rows), row_group_size=a["group"])

    whole = ParquetDataset(written({**a, "format": "parquet"}, write))
    condition = (field("id") >= a["least"]) & ~(field("name") == f"n{a['not']}")
    return whole.filter(condition).select(a["columns"])


def _chosen_model(_: None, a: dict[str, Any]) -> list[Any]:
    rows = _table_model(None, {**a, "columns": None})
    kept = [row for row in rows if row["id"] >= a["least"] and row["id"] != a["not"]]
    return [{name: row[name] for name in a["columns"]} for row in kept]


TABLES: tuple[Ingredient, ...] = (
    Ingredient("parquet_where", (Where, Select, Reader), _build_chosen, _chosen_model, _draw_chosen),
    Ingredient("parquet", (Reader, Interleave), _build_parquet, _table_model, _draw_table),
    Ingredient("arrow", (Reader, Interleave), _build_arrow, _table_model, _draw_arrow),
    Ingredient("arrow_table", (TableRows, Slices), _build_chunks, _table_model, _draw_in_memory),
    Ingredient("arrow_stream", (ArrowStream,), _build_stream, _table_model, _draw_in_memory),
    Ingredient("npy", (Reader, Interleave), _build_npy, _npy_model, _draw_npy),
    Ingredient("npz", (Reader, Interleave), _build_npz, _npz_model, _draw_npz),
)
"""Sources that read files of columns."""
