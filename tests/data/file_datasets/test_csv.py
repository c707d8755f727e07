# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.file_datasets.csv import as_defaults


@pytest.mark.parametrize(
    "given, expected",
    [
        (1, ("int32", 1)),
        (1.5, ("float32", 1.5)),
        ("x", ("object", b"x")),
        ([7], ("int32", 7)),
        ([], ("float32", None)),
        (np.int64(3), ("int64", 3)),
        (np.array([], np.int64), ("int64", None)),
        (di.float64, ("float64", None)),
        (di.string, ("object", None)),
    ],
)
def test_defaults(given: Any, expected: Any) -> None:
    (kind,), (default,) = as_defaults([given])
    assert (kind, default) == expected


def test_rows_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,t\n" + "".join(f"{'no' if i % 3 == 0 else i},w\n" for i in range(10)))
    found = di.data.CsvDataset(str(path), schema={"x": int, "t": str}, on_error="skip")
    assert [row["x"] for row in found] == [1, 2, 4, 5, 7, 8]
    tuples = di.data.CsvDataset(str(path), [di.int32, di.string], header=True, on_error="skip")
    assert [row[0] for row in tuples] == [1, 2, 4, 5, 7, 8]


def test_text_that_stands_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n?\n")
    assert di.data.CsvDataset(str(path), na_value="?", nulls={"x": 0}).to_list() == [{"x": 1}, {"x": 0}]
