# SPDX-License-Identifier: Apache-2.0
"""Saved elements are read one file after the other, or as a function says."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import DataLossError, NotFoundError
from distinput.ops.snapshot import saved_elements

Dataset = di.data.Dataset


def made(folder: Path, rows: int = 5) -> Any:
    return Dataset.range(rows).write(folder, "elements", shard_rows=2)


def test_files_come_one_after_the_other(tmp_path: Path) -> None:
    node = saved_elements(made(tmp_path))
    assert Dataset(node).to_list() == [0, 1, 2, 3, 4]
    assert (node.cardinality, node.random_access) == (5, True)


def test_a_function_decides_otherwise(tmp_path: Path) -> None:
    lengths: list[int] = []

    def read(files: Any) -> Any:
        lengths.append(len(files))
        return files.interleave(lambda file: file, cycle_length=3, block_length=1)

    assert Dataset(saved_elements(made(tmp_path), None, read)).to_list() == [0, 2, 4, 1, 3]
    assert lengths == [3]
    with pytest.raises(TypeError, match="reader_func must return a Dataset, got int"):
        saved_elements(made(tmp_path / "b"), None, lambda _: 3)


def test_a_file_that_changed_or_went_is_named(tmp_path: Path) -> None:
    found = made(tmp_path)
    path = Path(found.paths[1])
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(DataLossError, match=r"part-00001\.arrow: has \d+ bytes, and distinput-manifest\.json says"):
        saved_elements(found)
    path.unlink()
    with pytest.raises(NotFoundError, match=r"part-00001\.arrow"):
        saved_elements(found)
