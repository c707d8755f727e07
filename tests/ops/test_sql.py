# SPDX-License-Identifier: Apache-2.0
"""Rows of a query."""

import json
import pickle
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, StateError

Dataset = di.data.Dataset
QUERY = "SELECT id, name FROM people"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """3,000 people."""
    run(tmp_path / "a.db", "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, x)")
    with closing(sqlite3.connect(tmp_path / "a.db")) as made, made:
        made.executemany("INSERT INTO people VALUES (?, ?, ?)", [(2 * i, f"n{i}", i) for i in range(3000)])
    return str(tmp_path / "a.db")


def run(path: Any, statement: str) -> None:
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(statement)


def opens(path: str) -> Any:
    return partial(sqlite3.connect, path, check_same_thread=False)


def state_after(dataset: Any, elements: int) -> Any:
    with iter(dataset) as iterator:
        for _ in range(elements):
            next(iterator)
        return json.loads(json.dumps(iterator.state()))


def ids(dataset: Any) -> list[int]:
    return [row["id"] for row in dataset]


@pytest.mark.parametrize("order_by", [None, "id"])
@pytest.mark.parametrize("fetch_size", [None, 100])
def test_a_restart_goes_on_exactly(path: str, order_by: str | None, fetch_size: int | None) -> None:
    dataset = Dataset.from_sql(QUERY, opens(path), order_by=order_by, fetch_size=fetch_size)
    assert dataset.cardinality() == di.data.UNKNOWN_CARDINALITY
    assert ids(dataset) == list(range(0, 6000, 2))
    for after in (0, 1, 1024, 1500, 3000):
        again = pickle.loads(pickle.dumps(dataset.node))
        assert ids(Dataset(again).restore(state_after(dataset, after))) == list(range(2 * after, 6000, 2))


def test_with_a_key_the_database_passes_over_the_rows_before(path: str) -> None:
    read: list[str] = []

    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(path, check_same_thread=False)
        made.set_trace_callback(read.append)
        return made

    dataset = Dataset.from_sql(
        f"{QUERY} WHERE id < :most", connect, parameters={"most": 5000}, order_by="id", fetch_size=10
    )
    state = state_after(dataset, 25)
    assert state["at"] == {"row": 20, "key": [38]}
    assert ids(dataset.restore(state)) == list(range(50, 5000, 2))
    assert "WHERE id >= 38" in read[-1]


def test_rows_before_the_last_key_may_come_and_go(path: str) -> None:
    dataset = Dataset.from_sql(QUERY, opens(path), order_by="id", fetch_size=10)
    state = state_after(dataset, 20)
    run(path, "DELETE FROM people WHERE id < 18")
    assert ids(dataset.restore(state)) == list(range(40, 6000, 2))


def test_rows_that_are_gone_are_an_error(path: str) -> None:
    by_key = Dataset.from_sql(QUERY, opens(path), order_by="id", fetch_size=10)
    in_order = Dataset.from_sql(f"{QUERY} ORDER BY id", opens(path), fetch_size=10)
    states = state_after(by_key, 25), state_after(in_order, 25)
    run(path, "DELETE FROM people WHERE id > 4")
    with pytest.raises(DataLossError, match="reading must continue after the row with id 38, which is not there"):
        ids(by_key.restore(states[0]))
    with pytest.raises(DataLossError, match="gives 3 rows, but reading must continue at row 20; the rows changed"):
        ids(in_order.restore(states[1]))


def test_a_key_that_is_there_twice_is_an_error(path: str) -> None:
    run(path, "INSERT INTO people VALUES (5001, 'n7', 1)")
    for size in (1, 7, None):
        dataset = Dataset.from_sql(QUERY, opens(path), order_by="name", fetch_size=size)
        with pytest.raises(
            InvalidArgumentError, match=r"column 'name': a key must be there once, found 'n7' after 'n7'"
        ):
            ids(dataset)


@pytest.mark.parametrize(
    "query, order_by, said",
    [
        ("SELECT id / 2.0 AS h FROM people", "h", "'h' is of type double, and a key must be an integer or text"),
        ("SELECT id FROM people", "name", "no such column: name"),
        (
            "SELECT CAST(name AS BLOB) AS b FROM people",
            "b",
            r"row 0, column 'b': a key must be of type str, found b'n0'",
        ),
    ],
)
def test_what_cannot_be_a_key_is_refused(path: str, query: str, order_by: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        list(Dataset.from_sql(query, opens(path), order_by=order_by))


def test_types_are_held_and_rows_before_a_misfit_are_given(path: str) -> None:
    run(path, "UPDATE people SET x = 'many' WHERE id = 4000")
    dataset = Dataset.from_sql("SELECT id, x FROM people", opens(path))
    assert dataset.element_spec == {"id": di.TensorSpec([], "int64"), "x": di.TensorSpec([], "int64")}
    assert len(dataset.take(2000).to_list()) == 2000
    said = r"from_sql: row 2000, column 'x': expected int64, found 'many' \(str\); state another type with schema="
    with pytest.raises(InvalidArgumentError, match=said):
        dataset.to_list()


def test_a_schema_chooses_types_and_order(path: str) -> None:
    stated = {"name": di.TensorSpec([], object), "x": "float32", "id": "int16"}
    dataset = Dataset.from_sql("SELECT * FROM people", opens(path), schema=stated)
    assert dataset.take(2).to_list() == [{"name": b"n0", "x": 0.0, "id": 0}, {"name": b"n1", "x": 1.0, "id": 2}]
    assert list(dataset.element_spec) == ["name", "x", "id"]
    with pytest.raises(
        InvalidArgumentError, match="columns of the schema are id, but the query gives id, name; let the"
    ):
        Dataset.from_sql(QUERY, opens(path), schema={"id": "int64"}).to_list()


def test_null_follows_the_one_rule(path: str) -> None:
    run(path, "UPDATE people SET x = NULL WHERE id = 2")
    query = "SELECT x FROM people WHERE id < 5 ORDER BY id"
    with pytest.raises(InvalidArgumentError, match=r"column 'x' has nulls, the first in row 1, .*nulls=\{'x': value\}"):
        Dataset.from_sql(query, opens(path), nulls="error").to_list()
    assert Dataset.from_sql(query, opens(path)).to_list()[1] == {"x": {"value": 0, "valid": False}}
    assert Dataset.from_sql(query, opens(path), nulls={"x": -1}).to_list() == [{"x": 0}, {"x": -1}, {"x": 2}]
    known = Dataset.from_sql(query, opens(path), valid={"x": "known"}).to_list()
    assert known[1] == {"x": 0, "known": False}
    floats = Dataset.from_sql(query, opens(path), schema={"x": "float64"}).to_list()
    assert str(floats[1]["x"]) == "nan"


def test_fetch_size_must_be_positive(path: str) -> None:
    with pytest.raises(InvalidArgumentError, match="fetch_size must be at least 1, got 0"):
        Dataset.from_sql(QUERY, opens(path), fetch_size=0)


def test_no_more_rows_are_objects_at_a_time_than_stay_in_a_cache(path: str) -> None:
    run(path, "INSERT INTO people SELECT id + 6000, name, x FROM people")
    asked: list[int] = []

    class Cursor(sqlite3.Cursor):
        def fetchmany(self, size: int | None = 1) -> list[Any]:
            asked.append(size or 0)
            return super().fetchmany(size)

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

    dataset = Dataset.from_sql(QUERY, partial(sqlite3.connect, path, factory=Connection, check_same_thread=False))
    asked.clear()  # of the rows by which types are inferred
    assert len(ids(dataset)) == 6000
    assert asked == [1024, 2048, 2048, 2048, 2048]


def test_a_pass_that_ends_early_closes_its_connection(path: str) -> None:
    dataset = Dataset.from_sql(QUERY, opens(path)).batch(10).prefetch(2)
    for _ in range(3):
        with iter(dataset) as iterator:
            next(iterator)
    run(path, "DROP TABLE people")  # SQLite would refuse that while somebody reads


@pytest.mark.parametrize("key", [[], ["a"], [1, 2], [True]])
def test_a_state_with_another_key_is_refused(path: str, key: list[Any]) -> None:
    dataset = Dataset.from_sql(QUERY, opens(path), order_by="id")
    assert "'key' must be" in str(dataset.node.state_misfit({"row": 3, "key": key}))
    assert dataset.node.state_misfit({"row": 3, "key": [4]}) is None
    other = Dataset.from_sql(QUERY, opens(path))
    with pytest.raises(StateError):
        other.restore(state_after(dataset, 3))
