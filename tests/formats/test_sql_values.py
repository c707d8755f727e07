# SPDX-License-Identifier: Apache-2.0
"""Values of a database are held to the types of their columns."""

import contextlib
import datetime as dt
import sqlite3
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import InvalidArgumentError
from distinput.formats.row_schema import RowSchema
from distinput.formats.sql_query import inferred_schema, record_batch_of, strict_array

NOON = dt.datetime(2024, 1, 2, 12)


@pytest.mark.parametrize(
    "values, kind, wanted",
    [
        ([1, None], pa.int8(), [1, None]),
        ([0, True, None], pa.bool_(), [False, True, None]),
        ([1, 2.5, Decimal("0.5"), None], pa.float64(), [1.0, 2.5, 0.5, None]),
        ([0.5, float("inf")], pa.float32(), [0.5, float("inf")]),
        (["a", b"b", memoryview(b"c"), None], pa.binary(), [b"a", b"b", b"c", None]),
        (["a"], pa.large_binary(), [b"a"]),
        ([NOON, None], pa.timestamp("s"), [NOON, None]),
        ([NOON.date()], pa.date32(), [NOON.date()]),
        ([NOON.time()], pa.time32("s"), [NOON.time()]),
        ([dt.timedelta(1)], pa.duration("s"), [dt.timedelta(1)]),
        ([[1, 2], []], pa.list_(pa.int64()), [[1, 2], []]),
    ],
)
def test_values_that_fit_stay_as_they_are(values: list[Any], kind: Any, wanted: list[Any]) -> None:
    assert strict_array(values, kind).to_pylist() == wanted


@pytest.mark.parametrize(
    "value, kind",
    [
        (1.5, pa.int64()),
        (1.0, pa.int64()),
        (True, pa.int64()),
        ("1", pa.int64()),
        (300, pa.uint8()),
        (1 << 70, pa.int64()),
        (2, pa.bool_()),
        (True, pa.float64()),
        ((1 << 53) + 1, pa.float64()),
        (1e300, pa.float32()),
        ("0.5", pa.float64()),
        (1, pa.binary()),
        ("\ud800", pa.binary()),
        (1, pa.timestamp("s")),
        ("2024-01-02", pa.timestamp("s")),
        (NOON.replace(microsecond=5), pa.timestamp("s")),
        (NOON, pa.date32()),
        (NOON, pa.time64("us")),
        (1, pa.duration("s")),
        ([1.5], pa.list_(pa.int64())),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_row_and_column(value: Any, kind: Any) -> None:
    schema = RowSchema(pa.schema([("x", kind)]))
    with pytest.raises(InvalidArgumentError, match=r"from_sql: row 8, column 'x': expected .* found .*schema="):
        record_batch_of("from_sql", schema, [(None,), (value,)], 7)


VALUES = [None, True, 0, -7, 1 << 70, 1.5, float("inf"), Decimal("0.5"), "a", b"b", NOON, NOON.date(), NOON.time()]
KINDS = [pa.int64(), pa.bool_(), pa.float64(), pa.binary(), pa.timestamp("s"), pa.date32(), pa.time32("s")]


def taken(values: list[Any], kind: Any) -> list[Any] | None:
    """What becomes of values; None if they are refused."""
    try:
        made: list[Any] = strict_array(values, kind).to_pylist()
    except (TypeError, ValueError, OverflowError):
        return None
    return made


@given(st.lists(st.sampled_from(VALUES), max_size=4), st.sampled_from(KINDS))
def test_values_are_taken_together_as_one_by_one(values: list[Any], kind: Any) -> None:
    alone = [taken([value], kind) for value in values]
    assert taken(values, kind) == (None if None in alone else [item for part in alone if part for item in part])


@pytest.mark.parametrize("kind", [tuple, list, sqlite3.Row])
def test_rows_of_any_kind_become_the_same_columns(kind: Any) -> None:
    columns = {
        "id": list(range(3000)),
        "x": [number / 7 for number in range(3000)],
        "t": [b"%d" % i for i in range(3000)],
    }
    schema = RowSchema(pa.schema([("id", pa.int64()), ("x", pa.float64()), ("t", pa.binary())]))
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        cursor = connection.execute("SELECT 1 AS id, 2.0 AS x, 'a' AS t")
        rows = [kind(cursor, row) if kind is sqlite3.Row else kind(row) for row in zip(*columns.values(), strict=True)]
    assert record_batch_of("from_sql", schema, rows, 0).to_pydict() == columns


def test_types_are_those_of_the_first_rows() -> None:
    rows = [(1, 1, "a", NOON, None), (None, 2.5, None, None, b"b")]
    found = inferred_schema("from_sql", ["id", "x", "t", "at", "b"], rows)
    assert repr(found) == "id: int64, x: double, t: binary, at: timestamp[us], b: binary"


def test_decimals_may_have_more_digits_than_the_first_rows() -> None:
    schema = inferred_schema("from_sql", ["id", "x"], [(1, Decimal("1.50")), (2, None)])
    assert repr(schema) == "id: int64, x: decimal128(3, 2)"  # which states are compared with
    more = [(3, Decimal("123456789012345.25")), (4, Decimal(-7))]
    assert record_batch_of("from_sql", schema, more, 2)["x"].to_pylist() == [value for _, value in more]
    for value in (Decimal("1.234"), Decimal(10) ** 37, 1.5):
        with pytest.raises(InvalidArgumentError, match="from_sql: row 2, column 'x': expected decimal128"):
            record_batch_of("from_sql", schema, [(3, value)], 2)
    stated = RowSchema(pa.schema([("x", pa.decimal128(3, 2))]))
    with pytest.raises(InvalidArgumentError, match="from_sql: row 0, column 'x'"):
        record_batch_of("from_sql", stated, [(Decimal("10.25"),)], 0)


@pytest.mark.parametrize(
    "rows, said",
    [
        ([], "gives no rows, so the types of x are not known; state them with schema="),
        ([(None,)], "column 'x' has only NULL, which has no type; state its type with schema="),
        ([(1,), ("a",)], r"column 'x' has values of type int, str: .*state its type with schema="),
    ],
)
def test_types_that_cannot_be_seen_must_be_stated(rows: list[Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        inferred_schema("from_sql", ["x"], rows)
