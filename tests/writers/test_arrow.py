# SPDX-License-Identifier: Apache-2.0
"""Arrow files that pyarrow and `ArrowDataset` read."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc

import distinput as di
from distinput.errors import InvalidArgumentError

DATA = {"x": np.arange(6, dtype=np.int16).reshape(3, 2), "t": ["a", "", "c"]}
Dataset = di.data.Dataset


@pytest.mark.parametrize("compression", [None, "LZ4", "zstd"])
def test_pyarrow_reads_it(tmp_path: Path, compression: str | None) -> None:
    made = Dataset.from_tensor_slices(DATA).write(str(tmp_path), "arrow", compression=compression, text=["t"])
    table = ipc.open_file(made.paths[0]).read_all()
    assert table.schema.field("t").type == pa.large_string()
    assert table.to_pylist() == [{"x": [0, 1], "t": "a"}, {"x": [2, 3], "t": ""}, {"x": [4, 5], "t": "c"}]
    assert di.data.ArrowDataset(made.paths).to_list() == Dataset.from_tensor_slices(DATA).to_list()


def test_what_arrow_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match="write: column 'value' is of dtype complex64, for which Arrow has no type"
    ):
        Dataset.from_tensors(np.complex64(1)).write(str(tmp_path), "arrow")
    with pytest.raises(
        InvalidArgumentError, match="compression of Arrow files must be None, 'LZ4' or 'ZSTD', got 'GZIP'"
    ):
        Dataset.range(3).write(str(tmp_path), "arrow", compression="GZIP")
    with pytest.raises(InvalidArgumentError, match="text: there is no column 'z'"):
        Dataset.range(3).write(str(tmp_path), "arrow", text=["z"])
    assert list(tmp_path.iterdir()) == []
