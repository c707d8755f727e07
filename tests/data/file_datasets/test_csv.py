# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.file_datasets.csv import as_defaults
from distinput.errors import InvalidArgumentError


@pytest.mark.parametrize(
    "given, expected",
    [
        (1, ("int32", 1)),
        (1.5, ("float32", 1.5)),
        ("x", ("object", b"x")),
        ([7], ("int32", 7)),
        (2**31 - 1, ("int32", 2**31 - 1)),
        (2**40, ("int64", 2**40)),
        ([-(2**40)], ("int64", -(2**40))),
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


def test_text_that_stands_for_nothing_is_beside_other_words(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n?\n-\n")
    found = di.data.CsvDataset(str(path), na_value="?", null_values=["-"], schema={"x": int}, nulls={"x": 0})
    assert [row["x"] for row in found] == [1, 0, 0]


@pytest.mark.parametrize("chosen", [{"select_cols": np.array([0, 2])}, {"exclude_cols": np.array([1])}])
def test_numbers_of_fields_may_be_an_array(tmp_path: Path, chosen: dict[str, Any]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,2,3\n")
    assert di.data.CsvDataset(str(path), [0, 0], **chosen).to_list() == [(1, 3)]


@pytest.mark.parametrize("given", [2**70, None, [None]])
def test_a_default_is_a_number_or_text(given: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a default must be a number or text, field 0"):
        as_defaults([given])
