# SPDX-License-Identifier: Apache-2.0
"""The statement of a query, and what goes wrong with its connection."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from distinput.errors import DataLossError, InputWarning, InvalidArgumentError, UnavailableError
from distinput.formats.sql_query import SqlQuery, check_names


def memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:")


@pytest.mark.parametrize(
    "style, parameters, mark, given",
    [
        ("qmark", (1,), "?", (1, 7)),
        ("format", (1,), "%s", (1, 7)),
        ("pyformat", (), "%s", (7,)),
        ("numeric", (1,), ":2", (1, 7)),
        ("named", (), ":1", (7,)),
        ("named", {"a": 1}, ":distinput_key", {"a": 1, "distinput_key": 7}),
        ("qmark", {"a": 1}, ":distinput_key", {"a": 1, "distinput_key": 7}),
        ("pyformat", {"a": 1}, "%(distinput_key)s", {"a": 1, "distinput_key": 7}),
    ],
)
def test_a_key_is_a_parameter_in_the_style_of_the_driver(style: str, parameters: Any, mark: str, given: Any) -> None:
    text, found = SqlQuery("SELECT 1 AS id", memory, parameters, "id").statement(style, 7)
    assert text.endswith(f"WHERE id >= {mark}\nORDER BY id")
    assert found == given


def test_a_percent_sign_stays_one_when_a_parameter_is_added() -> None:
    query = SqlQuery("SELECT id FROM t WHERE t LIKE 'a%'", memory, order_by="id")
    assert "LIKE 'a%%'" in query.statement("pyformat", 7)[0]
    assert "LIKE 'a%'" in query.statement("pyformat")[0]
    assert "LIKE 'a%'" in query.statement("qmark", 7)[0]


def test_a_comment_at_the_end_hides_nothing() -> None:
    with SqlQuery("SELECT 1 AS id UNION SELECT 2 -- two", memory, order_by="id").open(2) as rows:
        assert rows.fetch(9) == [(2,)]


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((" ", memory), "query must be the text of a SELECT"),
        (("SELECT 1", "a.db"), "connect must be a function that returns a connection.*got str"),
        (("SELECT 1", memory, "a"), "parameters must be a tuple or a dict, got 'a'"),
        (("SELECT 1", memory, (), 'i"d'), "order_by must be the name of a column.*with AS in the query"),
        (("SELECT 1", memory, (), None, "dollar"), "paramstyle must be one of qmark"),
    ],
)
def test_arguments_of_another_kind_are_refused(arguments: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        SqlQuery(*arguments)


def test_what_fails_is_named() -> None:
    with pytest.raises(UnavailableError, match=r"connect\(\) failed: ZeroDivisionError"):
        SqlQuery("SELECT 1", lambda: 1 // 0).open()
    with pytest.raises(
        InvalidArgumentError, match=r"the query failed: OperationalError: no such table: t; it was 'SELECT"
    ):
        SqlQuery("SELECT * FROM t", memory).open()
    with pytest.raises(InvalidArgumentError, match="gives no rows, because it is not a SELECT"):
        SqlQuery("CREATE TABLE t (id)", memory).open()
    with pytest.raises(InvalidArgumentError, match="several columns named id; name them with AS"):
        check_names("from_sql", ["id", "x", "id"])


class Faulty:
    """A connection whose rows are dicts, or come from another thread."""

    description = (("id",),)

    def __init__(self, error: str = "") -> None:
        self.error = error
        self.closed = False

    def cursor(self) -> "Faulty":
        return self

    def execute(self, *_: Any) -> None:
        pass

    def fetchmany(self, _: int) -> list[Any]:
        if self.error:
            raise OSError(self.error)
        return [{"id": 1}]

    def close(self) -> None:
        self.closed = True
        if self.error == "close":
            raise OSError("used in that same thread")


def test_rows_that_cannot_be_read_are_an_error_and_the_connection_is_closed() -> None:
    faulty = Faulty("objects of one thread are used in that same thread")
    with (
        pytest.raises(
            DataLossError,
            match=r"reading rows failed behind row [0-9]+ of those that the query gave: OSError: .*check_same_thread=False",
        ),
        SqlQuery("SELECT 1", lambda: faulty).open() as rows,
    ):
        rows.fetch(1)
    assert faulty.closed
    with (
        pytest.raises(InvalidArgumentError, match="rows must be tuples, got dict"),
        SqlQuery("SELECT 1", Faulty).open() as rows,
    ):
        rows.fetch(1)


class Named:
    """A row that is asked for its values by their names."""

    def __init__(self, _: Any, values: tuple[Any, ...]) -> None:
        self.values = values

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, name: str) -> Any:
        return {"id": self.values[0], "x": self.values[1]}[name]


def rows_of(factory: Any, query: str = "SELECT 1 AS id, 2.5 AS x UNION SELECT 2, 3.5") -> list[Any]:
    connection = memory()
    connection.row_factory = factory
    with SqlQuery(query, lambda: connection).open() as rows:
        assert rows.fetch(1)
        return rows.fetch(2)


@pytest.mark.parametrize("factory", [None, sqlite3.Row, Named, lambda _, values: list(values)])
def test_rows_of_any_kind_have_values_by_place(factory: Any) -> None:
    ((first, second),) = rows_of(factory)
    assert (first, second) == (2, 3.5)
    assert rows_of(factory)[0][1] == 3.5


@pytest.mark.parametrize("count", [0, 1, 3])
def test_rows_that_have_not_as_many_values_as_the_query_has_columns_are_refused(count: int) -> None:
    with pytest.raises(
        InvalidArgumentError, match=f"row 1 has {count} values, but the query gives 2 columns: id, x; let"
    ):
        rows_of(lambda _, values: values if values[0] == 1 else (7,) * count)


def test_a_mistake_in_a_function_of_the_users_stays_one() -> None:
    def connect(mistake: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=nothing if mistake else None)  # type: ignore[name-defined] # noqa: F821
        connection.row_factory = lambda _, row: nothing(row)  # type: ignore[name-defined] # noqa: F821
        return connection

    with pytest.raises(NameError, match="nothing"):
        SqlQuery("SELECT 1", lambda: connect(True)).open()
    with pytest.raises(NameError, match="nothing"), SqlQuery("SELECT 1", connect).open() as rows:
        rows.fetch(1)


def test_a_driver_that_does_not_say_its_style_is_asked_for() -> None:
    query = SqlQuery("SELECT 1 AS id", Faulty, order_by="id")
    with pytest.raises(InvalidArgumentError, match=r"the module of Faulty does not say.*paramstyle="):
        query.open(3)
    SqlQuery("SELECT 1 AS id", Faulty, order_by="id", paramstyle="qmark").open(3)


def test_a_connection_that_cannot_be_closed_is_told() -> None:
    told = pytest.warns(
        InputWarning, match=r"closing the connection failed: OSError: .*; let connect return a connection"
    )
    with told, SqlQuery("SELECT 1", lambda: Faulty("close")).open():
        pass
