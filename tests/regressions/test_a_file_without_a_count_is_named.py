# SPDX-License-Identifier: Apache-2.0
"""Where elements cannot be reached by position because of one file, the error names it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc

import distinput as di
from distinput.errors import InvalidArgumentError


def test_an_array_that_was_cut_short(tmp_path: Path) -> None:
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path in paths:
        np.save(path, np.arange(6))
    paths[1].write_bytes(paths[1].read_bytes()[:-10])
    dataset = di.data.NpyDataset(list(map(str, paths)))
    with pytest.raises(InvalidArgumentError, match=rf"the records of {paths[1]} cannot be counted"):
        dataset.map(lambda x: x + 1).global_shuffle(seed=1)


def test_a_stream_that_is_not_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.arrows"
    table = pa.table({"x": [1, 2]})
    with ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InvalidArgumentError, match=rf"the records of {path} cannot be counted"):
        di.data.ArrowDataset(str(path), memory_map=False).global_shuffle(seed=1)


def test_a_format_that_counts_nothing_names_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n")
    with pytest.raises(InvalidArgumentError, match=r"got text; use shuffle"):
        di.data.TextLineDataset(str(path)).global_shuffle(seed=1)
