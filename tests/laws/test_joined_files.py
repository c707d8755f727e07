# SPDX-License-Identifier: Apache-2.0
"""A file that is two files, byte by byte one behind the other, has the rows of both, or is an error: none are lost unseen."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distinput as di


def parquet(use_dictionary: bool) -> Callable[[np.ndarray[Any, Any]], bytes]:
    def write(rows: np.ndarray[Any, Any]) -> bytes:
        sink = io.BytesIO()
        pq.write_table(pa.table({"x": rows, "y": rows}), sink, use_dictionary=use_dictionary)
        return sink.getvalue()

    return write


def arrow(open_sink: Callable[..., Any], compression: str | None = None) -> Callable[[np.ndarray[Any, Any]], bytes]:
    def write(rows: np.ndarray[Any, Any]) -> bytes:
        sink, table = io.BytesIO(), pa.table({"x": rows})
        with open_sink(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(table, max_chunksize=300)
        return sink.getvalue()

    return write


def dictionaries(rows: np.ndarray[Any, Any]) -> bytes:
    sink, table = io.BytesIO(), pa.table({"x": pa.array(rows).dictionary_encode()})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def numpy(save: Callable[..., None]) -> Callable[[np.ndarray[Any, Any]], bytes]:
    def write(rows: np.ndarray[Any, Any]) -> bytes:
        sink = io.BytesIO()
        save(sink, rows) if save is np.save else save(sink, x=rows)
        return sink.getvalue()

    return write


def json_lines(rows: np.ndarray[Any, Any]) -> bytes:
    return "".join(json.dumps({"x": row}) + "\n" for row in rows.tolist()).encode()


FORMATS: dict[str, tuple[Callable[[np.ndarray[Any, Any]], bytes], Any]] = {
    "arrow": (arrow(pa.ipc.new_file), di.data.ArrowDataset),
    "arrow, compressed": (arrow(pa.ipc.new_file, "zstd"), di.data.ArrowDataset),
    "arrow, dictionaries": (dictionaries, di.data.ArrowDataset),
    "arrow, stream": (arrow(pa.ipc.new_stream), di.data.ArrowDataset),
    "json lines": (json_lines, di.data.JsonLinesDataset),
    "npy": (numpy(np.save), di.data.NpyDataset),
    "npz": (numpy(np.savez), di.data.NpzDataset),
    "npz, compressed": (numpy(np.savez_compressed), di.data.NpzDataset),
    "parquet": (parquet(False), di.data.ParquetDataset),
    "parquet, dictionaries": (parquet(True), di.data.ParquetDataset),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("counts", [(1000, 1000), (1000, 700), (700, 1000), (1000, 0), (0, 1000)])
def test_no_rows_are_lost(format: str, counts: tuple[int, int], tmp_path: Path) -> None:
    write, dataset = FORMATS[format]
    parts = [write(np.arange(count) + 10_000 * number) for number, count in enumerate(counts)]
    whole, joined = str(tmp_path / "a"), str(tmp_path / "b")
    Path(whole).write_bytes(parts[0] if counts[0] else parts[1])
    Path(joined).write_bytes(b"".join(parts))
    for paths in ([joined], [whole, joined]):
        known = sum(counts) + (len(paths) - 1) * (counts[0] or counts[1])
        try:
            found: Any = len(dataset(paths).to_list())
        except di.errors.DataLossError as error:
            found = str(error)
        assert found == known if isinstance(found, int) else joined in found
    assert dataset([whole]).to_list()
