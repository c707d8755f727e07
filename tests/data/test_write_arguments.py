# SPDX-License-Identifier: Apache-2.0
"""The arguments of `write`, and what is refused before anything is written."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di

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
