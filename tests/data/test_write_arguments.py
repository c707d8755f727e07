# SPDX-License-Identifier: Apache-2.0
"""The arguments of `write`, and what is refused before anything is written."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InputWarning, InvalidArgumentError
from distinput.inspect.conversion import convert

Dataset = di.data.Dataset


@pytest.mark.parametrize(
    "format, options, error, says",
    [
        ("txt", {}, ValueError, "unknown writer 'txt'; known are arrow, csv"),
        (3, {}, TypeError, "format must be the name of a format, got 3; known are arrow, csv"),
        (
            "csv",
            {"quote": "x"},
            TypeError,
            "write: csv: got an unexpected keyword argument 'quote'; its options are header",
        ),
        ("csv", {"shards": 2, "shard_rows": 2}, ValueError, "give one of shards and shard_rows"),
        ("csv", {"prefix": "../a"}, ValueError, "prefix must be the start of a file name"),
        ("csv", {"prefix": ".a"}, ValueError, "prefix must be the start of a file name"),
        ("csv", {"prefix": "a\udcff"}, ValueError, "prefix must be the start of a file name"),
        ("parquet", {"compression": 5}, ValueError, "compression of Parquet files must be one of"),
    ],
)
def test_arguments_that_cannot_be_are_refused(
    tmp_path: Path, format: Any, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Dataset.range(3).write(tmp_path / "a", format, **options)
    assert not (tmp_path / "a").exists()


def test_an_endless_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        di.errors.InvalidArgumentError, match=r"write: the dataset is infinite; take\(n\) elements of it"
    ):
        Dataset.range(3).repeat().write(tmp_path, "csv")


@pytest.mark.parametrize("name", ["a", "a/b"])
def test_a_file_where_a_folder_must_be_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text("mine")
    dataset = di.data.Dataset.range(3)
    for says, write in (
        ("save", lambda: dataset.save(tmp_path / name)),
        ("write", lambda: dataset.write(tmp_path / name, "parquet")),
        ("cache", lambda: list(dataset.cache(f"{tmp_path}/{name}"))),
        ("snapshot", lambda: list(dataset.snapshot(f"{tmp_path}/{name}"))),
    ):
        with pytest.raises(
            InvalidArgumentError, match=rf"^{says}: {tmp_path}/{name}.* is a file, or below one; name a folder"
        ):
            write()
    assert (tmp_path / "a").read_text() == "mine"


@pytest.mark.parametrize(
    "given", [{"shards": 3}, {"shard_rows": 4}, {"shard_bytes": 1}, {"num_workers": 1, "index": 0, "job": "a"}]
)
def test_numbers_may_be_those_of_numpy(tmp_path: Path, given: dict[str, Any]) -> None:
    of_numpy = {name: np.int64(value) if isinstance(value, int) else value for name, value in given.items()}
    made = Dataset.range(10).write(tmp_path / "a", "csv", **of_numpy)
    same = Dataset.range(10).write(tmp_path / "b", "csv", **given)
    assert [(file.rows, file.bytes) for file in made.files] == [(file.rows, file.bytes) for file in same.files]


@pytest.mark.parametrize(
    "name, format, options, file",
    [
        ("a.csv", "csv", {}, "part-00000-of-00001.csv"),
        ("a.csv.gz", "csv", {"compression": "GZIP"}, "part-00000-of-00001.csv.gz"),
        ("a.csv", "csv", {"compression": "GZIP"}, "part-00000-of-00001.csv.gz"),
        ("a.parquet", "parquet", {}, "part-00000-of-00001.parquet"),
    ],
)
def test_a_new_folder_that_is_called_as_a_file_is_told(
    name: str, format: str, options: dict[str, Any], file: str, tmp_path: Path
) -> None:
    rows = di.data.Dataset.from_tensor_slices({"x": [1, 2]})
    with pytest.warns(InputWarning, match=f"{re.escape(name)} is a folder, .*shards=1.*{re.escape(file)}"):
        written = rows.write(tmp_path / name, format, shards=1, **options)
    assert [each.name for each in written.files] == [file]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows.write(tmp_path / name, format, overwrite=True, **options)
        rows.write(tmp_path / "a", format, **options)
        rows.write(tmp_path / "a.of_mine", format, **options)
        rows.save(tmp_path / "saved.arrow")
        convert([str(tmp_path / "saved.arrow")], str(tmp_path / "converted.csv"), "csv")
