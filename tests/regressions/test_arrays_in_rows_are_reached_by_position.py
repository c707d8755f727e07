# SPDX-License-Identifier: Apache-2.0
"""Arrays of two dimensions and more are lists of one size in such lists, of which pyarrow takes others than those asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.arrow.arrow import take, taken
from distinput.data.dataset import Dataset

N = 20
ARRAYS = np.arange(N * 6).reshape(N, 3, 2)
NUMBERS = np.arange(N)


def fixed(values: Any, *sizes: int) -> Any:
    for size in sizes:
        values = pa.FixedSizeListArray.from_arrays(values, size)
    return values


def arrays_of(dtype: str = "int64", skipped: int = 0) -> Any:
    """The arrays, which begin `skipped` arrays behind the beginning of their memory."""
    before = np.full((skipped, 3, 2), -1)
    return fixed(pa.array(np.concatenate([before, ARRAYS]).reshape(-1).astype(dtype)), 2, 3).slice(skipped)


def check(dataset: Any) -> None:
    """Rows that are reached by position are those of a pass."""
    rows = [
        *[dataset[i] for i in range(N)],
        *dataset.global_shuffle(seed=1),
        *dataset.shuffle(5, seed=1),
        *dataset.skip(3),
    ]
    assert len(rows) == 4 * N - 3
    for row in rows:
        assert np.array_equal(row["x"], ARRAYS[int(row["n"])]), int(row["n"])


@pytest.mark.parametrize("dtype", ["int64", "float16", "float32"])
@pytest.mark.parametrize("group", [7, N])
def test_arrays_of_parquet_files(dtype: str, group: int, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    di.io.write_parquet(path, {"n": NUMBERS, "x": ARRAYS.astype(dtype)}, row_group_size=group)
    check(di.data.ParquetDataset(path))
    pq.write_table(pa.table({"n": NUMBERS, "x": arrays_of(dtype)}), path, row_group_size=group, data_page_size=64)
    check(di.data.ParquetDataset(path))


@pytest.mark.parametrize("skipped", [0, 4])
def test_arrays_of_tables_and_arrow_files(skipped: int, tmp_path: Path) -> None:
    table = pa.table({"n": NUMBERS, "x": arrays_of(skipped=skipped)})
    check(Dataset.from_arrow(table))
    path = str(tmp_path / "a.arrow")
    di.io.write_arrow(path, {name: table[name] for name in table.column_names}, batch_rows=6)
    check(di.data.ArrowDataset(path))
    check(di.data.ArrowDataset(path, memory_map=False))


def rows_of(column: Any) -> list[Any]:
    return Dataset.from_arrow(pa.table({"x": column}), nulls={}).to_arrow()["x"].to_pylist()


def test_arrays_beside_nulls() -> None:
    arrays = arrays_of(skipped=4)
    mask = pa.array([i == 3 for i in range(N)])
    offsets = pa.array(range(N + 1), pa.int32())
    for column in (
        pa.StructArray.from_arrays([arrays], ["f"], mask=mask),
        pa.ListArray.from_arrays(offsets, arrays, mask=mask),
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 5]), arrays),
        pa.ListViewArray.from_arrays(offsets[:-1], pa.array([1] * N, pa.int32()), arrays, mask=mask),
        fixed(arrays, 2),
        pa.FixedSizeListArray.from_arrays(arrays, 2, mask=mask[: N // 2]),
    ):
        assert rows_of(column) == column.to_pylist(), column.type


@pytest.mark.parametrize("skipped", [0, 1, 4])
def test_places_of_all_kinds_of_arrays(skipped: int) -> None:
    flat = pa.array(range(N * 12))
    kinds = [
        fixed(flat, 2, 6),
        fixed(flat, 2, 3, 2),
        fixed(fixed(flat.slice(12), 2), 6),
        fixed(fixed(flat, 2).slice(6), 6),
        fixed(flat.cast(pa.decimal128(20)), 2, 6),
        pa.StructArray.from_arrays([fixed(flat, 2, 6)], ["f"]),
        pa.ListArray.from_arrays(pa.array(range(N - 1), pa.int32()), fixed(flat, 2, 6).slice(2)),
        fixed(pa.ExtensionArray.from_storage(pa.opaque(pa.list_(pa.int64(), 2), "t", "v"), fixed(flat, 2)), 6),
        pa.FixedSizeListArray.from_arrays(fixed(flat, 2), 6, mask=pa.array([i == 9 for i in range(N)])),
    ]
    for whole in kinds:
        array = whole.slice(skipped)
        want = [array[i].as_py() for i in (5, 2, 5)]
        assert take(array, pa.array([5, 2, 5])).to_pylist() == want, array.type
        assert take(array, pa.array([5, None])).to_pylist() == [want[0], None], array.type
        table = pa.table({"x": pa.chunked_array([array[:3], array[3:]])})
        assert taken(table, np.array([5, 2, 5]))["x"].to_pylist() == want, array.type
    assert taken(pa.table({"x": kinds[0].slice(skipped)}), np.array([], np.int64)).num_rows == 0


def test_an_expression_keeps_the_arrays_of_its_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": NUMBERS, "x": arrays_of()}), path, row_group_size=8)
    kept = di.data.ParquetDataset(path).filter(pc.field("n") > 8)
    assert [row["x"].tolist() for row in kept] == ARRAYS[9:].tolist()
