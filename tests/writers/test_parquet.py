# SPDX-License-Identifier: Apache-2.0
"""Parquet files that pyarrow and `ParquetDataset` read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.writers import parquet as module

Dataset = di.data.Dataset


@pytest.mark.parametrize("compression", [None, "snappy", "zstd"])
def test_pyarrow_reads_it(tmp_path: Path, compression: str | None) -> None:
    dataset = Dataset.range(7).map(lambda x: {"x": x, "y": (x / 2, b"t")})
    made = dataset.write(str(tmp_path), "parquet", compression=compression, row_group_size=3)
    file = parquet.ParquetFile(made.paths[0])
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [3, 3, 1]
    assert file.read().column("x").to_pylist() == list(range(7))
    assert di.data.ParquetDataset(made.paths).map(lambda row: row["x"]).to_list() == list(range(7))


def test_row_groups_end_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GROUP_BYTES", 1)
    made = Dataset.from_tensor_slices(np.zeros((3, 1 << 19))).write(str(tmp_path), "parquet")
    assert parquet.ParquetFile(made.paths[0]).num_row_groups > 1
    assert made.rows == parquet.ParquetFile(made.paths[0]).metadata.num_rows == 3


@pytest.mark.parametrize(
    "options, says",
    [
        ({"compression": "lzo"}, "compression of Parquet files must be one of none, snappy"),
        ({"row_group_size": 0}, "row_group_size"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        Dataset.range(3).write(str(tmp_path), "parquet", **options)
