# SPDX-License-Identifier: Apache-2.0
"""Arrow's memory is free as soon as the columns made of it are."""

import gc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distinput.data import ParquetDataset
from tests.patience import wait_until

COLUMNS = {
    "lists": pa.list_(pa.float32()),
    "lists of one size": pa.list_(pa.float32(), 4),
    "large lists": pa.large_list(pa.int64()),
    "lists of lists": pa.list_(pa.list_(pa.int64())),
    "lists of text": pa.list_(pa.string()),
    "lists of structs": pa.list_(pa.struct({"a": pa.int64(), "b": pa.string()})),
    "maps": pa.map_(pa.string(), pa.int64()),
    "structs": pa.struct({"a": pa.int64(), "b": pa.list_(pa.float64())}),
    "nullable": pa.int64(),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("nested", ["columns", "rows"])
def test_what_is_used_is_free_without_a_garbage_collection(name: str, nested: str, tmp_path: Path) -> None:
    """A batch that holds itself stays until Python looks for such garbage, and so does all of Arrow's memory below it."""
    items = {
        "lists of structs": [{"a": 1, "b": "x"}] * 4,
        "lists of lists": [[1, 2], [3]],
        "lists of text": ["x", "yz"],
        "maps": [("k", 1), ("l", 2)],
        "structs": {"a": 1, "b": [1.0, 2.0]},
        "nullable": 7,
    }
    table = pa.table({"x": pa.array([items.get(name, [1, 2, 3, 4])] * 20_000, COLUMNS[name])})
    path = str(tmp_path / "a.parquet")
    pq.write_table(table, path, row_group_size=4000)
    list(ParquetDataset(path, nested=nested).batch(1000).take(1))  # what is kept of the file, once
    gc.collect()
    gc.disable()
    try:
        before = pa.total_allocated_bytes()
        assert sum(1 for _ in ParquetDataset(path, nested=nested).batch(1000)) == 20
        wait_until(
            lambda: pa.total_allocated_bytes() - before < 0.3 * table.nbytes
        )  # threads of Arrow let go of some later
    finally:
        gc.enable()
