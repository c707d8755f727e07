# SPDX-License-Identifier: Apache-2.0
"""Workers write one dataset together."""

import os
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.writers.manifest import MANIFEST, read_written
from distinput.writers.stage import WriteJob

Dataset = di.data.Dataset


def write(folder: Path, index: int, job: str = "j1", rows: int = 10, **more: Any) -> Any:
    part = Dataset.range(rows).shard(3, index)
    return part.write(str(folder), "parquet", shard_rows=2, num_workers=3, index=index, job=job, **more)


def test_the_last_one_writes_the_manifest(tmp_path: Path) -> None:
    assert [write(tmp_path, 2).complete, write(tmp_path, 0).complete] == [False, False]
    assert not (tmp_path / MANIFEST).exists()
    made = write(tmp_path, 1)
    assert made.complete
    assert made == read_written(str(tmp_path))
    assert [file.name for file in made.files] == [
        f"part-{worker:05d}-of-00003-{number:05d}.parquet" for worker in range(3) for number in range(2)
    ]
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, *[file.name for file in made.files]])
    found = [row["value"] for row in di.data.ParquetDataset(made.paths).to_list()]
    assert found == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]


def test_a_worker_that_comes_again_does_nothing_twice(tmp_path: Path) -> None:
    first = write(tmp_path, 0)
    assert write(tmp_path, 0).files == first.files
    write(tmp_path, 1)
    made = write(tmp_path, 2)
    assert write(tmp_path, 1) == made
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, *[file.name for file in made.files]])


def test_parts_of_another_run_are_not_mixed_in(tmp_path: Path) -> None:
    write(tmp_path, 1, "j0", rows=30)
    write(tmp_path, 0)
    assert not write(tmp_path, 2).complete
    assert write(tmp_path, 1).rows == 10
    with pytest.raises(FailedPreconditionError, match="holds a complete dataset of 10 elements"):
        write(tmp_path, 0, "j2")
    for index in range(2):
        assert not write(tmp_path, index, "j2", overwrite=True).complete
        assert read_written(str(tmp_path)).rows == 10  # type: ignore[union-attr]
    made = write(tmp_path, 2, "j2", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, *[file.name for file in made.files]])


@pytest.mark.parametrize(
    "given, says",
    [
        ({"num_workers": 0}, "num_workers must be greater than zero"),
        ({"num_workers": 2, "index": 2, "name": "a"}, "index must be from 0 to 1, got 2"),
        ({"num_workers": 2}, "several workers need job="),
    ],
)
def test_what_cannot_be_is_refused(given: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        WriteJob(**given)


def test_workers_need_a_folder_that_they_share() -> None:
    with pytest.raises(
        InvalidArgumentError, match="workers write together to a local or mounted folder, got 'memory://a'"
    ):
        Dataset.range(3).write("memory://a", "csv", num_workers=2, job="a")
