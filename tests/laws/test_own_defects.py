# SPDX-License-Identifier: Apache-2.0
"""An error of Python itself in our own readers is our defect: it comes out as itself, and is never taken for bad data."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distinput as di

ERRORS = (IndexError, KeyError, TypeError, AttributeError, ValueError)

Make = Callable[[Path], di.data.Dataset]


def _parquet(path: Path, **options: Any) -> di.data.Dataset:
    rows = {
        "x": range(20),
        "l": [[i] for i in range(20)],
        "t": [str(i) for i in range(20)],
        "f": [[i, i] for i in range(20)],
    }
    pq.write_table(pa.table({**rows, "f": pa.array(rows["f"], pa.list_(pa.int64(), 2))}), path, row_group_size=5)
    return di.data.ParquetDataset(str(path), **options)


def _arrow(path: Path, **options: Any) -> di.data.Dataset:
    _parquet(path)
    table = pq.read_table(path)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, 5)
    return di.data.ArrowDataset(str(path), **options)


def _npz(path: Path, **options: Any) -> di.data.Dataset:
    path = path.with_suffix(".npz")
    np.savez_compressed(path, x=np.arange(20))
    return di.data.NpzDataset(str(path), **options)


def _npy(path: Path, **options: Any) -> di.data.Dataset:
    path = path.with_suffix(".npy")
    np.save(path, np.arange(20))
    return di.data.NpyDataset(str(path), **options)


def _tfrecord(path: Path, **options: Any) -> di.data.Dataset:
    with di.io.TFRecordWriter(str(path)) as writer:
        for i in range(20):
            writer.write(b"%d" % i)
    return di.data.TFRecordDataset(str(path), **options)


READERS: dict[str, tuple[Callable[..., di.data.Dataset], list[str]]] = {
    "arrow": (
        _arrow,
        [
            "distinput.core.arrow:_lists",
            "distinput.core.arrow:_numbers",
            "distinput.core.arrow:_strings",
            "distinput.core.arrow_damage:_check_offsets",
            "distinput.core.arrow_damage:_check",
            "distinput.formats.arrow_file:ArrowFile._checked",
            "distinput.formats.arrow_file:ArrowFile.select",
            "distinput.formats.arrow_file:checked_batch",
            "distinput.formats.arrow_ipc:rows_block",
            "distinput.formats.arrow_messages:_number",
            "distinput.formats.tables:block_of",
        ],
    ),
    "npy": (_npy, ["distinput.formats.npy:_array_of", "distinput.formats.npy:_block", "distinput.formats.npy:_parsed"]),
    "npz": (
        _npz,
        [
            "distinput.formats.npz:_array",
            "distinput.formats.npz:_arrays",
            "distinput.formats.npz:_members",
            "distinput.formats.npz:_parsed",
        ],
    ),
    "parquet": (
        _parquet,
        [
            "distinput.core.arrow:_fixed_lists",
            "distinput.core.arrow:_flat",
            "distinput.core.arrow:_lists",
            "distinput.core.arrow:_numbers",
            "distinput.core.arrow:_strings",
            "distinput.core.arrow_damage:_check_offsets",
            "distinput.formats.parquet:Parquet._block",
            "distinput.formats.parquet:checked_batch",
            "distinput.formats.parquet:groups_of",
            "distinput.formats.parquet:rows_block",
            "distinput.formats.parquet_file:RowGroupBatches.decode",
            "distinput.formats.tables:block_of",
        ],
    ),
    "tfrecord": (
        _tfrecord,
        ["distinput.formats.tfrecord:TFRecords.find", "distinput.formats.span_format:SpanFormat._found"],
    ),
}
PLACES = [(name, place) for name, (_, places) in READERS.items() for place in places]


def _found(place: str) -> tuple[Any, str]:
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    found = importlib.import_module(module)
    for owner in owners:
        found = getattr(found, owner)
    return found, name


@pytest.mark.parametrize("reader, place", PLACES, ids=[place for _, place in PLACES])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_fault_of_our_own_comes_out_as_itself(
    reader: str, place: str, on_error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = READERS[reader][0]
    for number, error in enumerate(ERRORS):
        owner, name = _found(place)

        def broken(*_: Any, error: type[Exception] = error, **__: Any) -> Any:
            raise error("our defect")

        with monkeypatch.context() as patch:
            made = make(tmp_path / f"{number}.{reader}", on_error=on_error)
            patch.setattr(owner, name, broken)
            with pytest.raises(error, match="our defect") as caught:
                made.to_list()
        assert type(caught.value) is error
