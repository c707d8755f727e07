# SPDX-License-Identifier: Apache-2.0
"""`SqlDataset`, with TensorFlow's arguments."""

import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.testing import check_dataset

SqlDataset = di.data.experimental.SqlDataset


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "a b?.db"
    with closing(sqlite3.connect(file)) as made, made:
        made.execute("CREATE TABLE students (id INTEGER PRIMARY KEY, first TEXT, grade REAL, present INTEGER)")
        made.executemany("INSERT INTO students VALUES (?, ?, ?, ?)", [(1, "John", 1.5, 1), (2, "Jane", None, 0)])
    return str(file)


def test_rows_are_tuples_of_the_stated_types(path: str) -> None:
    query = "SELECT first, id, grade, present FROM students ORDER BY id DESC"
    dataset = SqlDataset("sqlite", path, query, (di.string, di.int8, di.float64, di.bool))
    assert [leaf.dtype.name for leaf in dataset.element_spec] == ["object", "int8", "float64", "bool"]
    (jane, john) = dataset
    assert jane[:2] == (b"Jane", 2)
    assert np.isnan(jane[2])
    assert john == (b"John", 1, 1.5, True)
    assert list(di.data.Dataset(pickle.loads(pickle.dumps(dataset.node))))[1] == john


def test_many_columns_keep_their_order(path: str) -> None:
    query = f"SELECT {', '.join(map(str, range(12)))}"
    assert SqlDataset("sqlite", path, query, (di.int64,) * 12).to_list() == [tuple(range(12))]


def test_no_rows_and_two_columns_of_one_name(path: str) -> None:
    assert SqlDataset("sqlite", path, "SELECT id, id FROM students WHERE id > 5", (di.int64,) * 2).to_list() == []
    assert SqlDataset(b"sqlite", path, b"SELECT 1, 1", [di.int64, di.int32]).to_list() == [(1, 1)]


@pytest.mark.parametrize(
    "query, types, said",
    [
        ("SELECT * FROM no_table", (di.int64,), "SqlDataset: the query failed: .*no such table: no_table"),
        ("SELECT id FROM students", (di.int64,) * 2, "output_types has 2 types, but the query gives 1 columns: id"),
        ("SELECT grade FROM students", (di.int64,), r"row 0, column '0': expected int64, found 1.5 \(float\)"),
        ("SELECT first FROM students", (di.int64,), r"row 0, column '0': expected int64, found 'John' \(str\)"),
        ("SELECT 1, NULL", (di.int64, di.int64), "row 0, column 1: expected int64, found NULL; .*COALESCE"),
        ("DELETE FROM students", (di.int64,), "the query failed: .*readonly"),
    ],
)
def test_what_does_not_fit_is_an_error(path: str, query: str, types: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        SqlDataset("sqlite", path, query, types).to_list()


def test_arguments_that_stand_for_nothing_are_refused(path: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"driver_name must be 'sqlite', got 'mysql'; .*Dataset.from_sql"):
        SqlDataset("mysql", path, "SELECT 1", (di.int64,))
    for types in ((), {}, ((),)):
        with pytest.raises(InvalidArgumentError, match="output_types must have a dtype for each column"):
            SqlDataset("sqlite", path, "SELECT 1", types)
    with pytest.raises(NotFoundError, match=r"there is no file 'none\.db'"):
        SqlDataset("sqlite", "none.db", "SELECT 1", (di.int64,)).to_list()


def test_elements_have_the_structure_of_the_types(path: str) -> None:
    query = "SELECT 1, 'x' UNION ALL SELECT 2, 'y'"
    nested = SqlDataset("sqlite", path, query, {"a": di.int32, "b": (di.string,)})
    assert nested.to_list() == [{"a": 1, "b": (b"x",)}, {"a": 2, "b": (b"y",)}]
    assert nested.element_spec["a"] == di.TensorSpec([], di.int32)
    for one in (di.int64, "int64", np.int64):
        alone = SqlDataset("sqlite", path, "SELECT 1 UNION ALL SELECT 2", one)
        assert (alone.to_list(), alone.element_spec) == ([1, 2], di.TensorSpec([], di.int64))
    with pytest.raises(InvalidArgumentError, match="column"):
        SqlDataset("sqlite", path, query, di.int64).to_list()
    check_dataset(lambda: SqlDataset("sqlite", path, query, {"a": di.int32, "b": (di.string,)}))
