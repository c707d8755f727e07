# SPDX-License-Identifier: Apache-2.0
"""Tables of other libraries become Arrow tables without a copy where both hold the values the same way."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from distinput.arrow.adopt import (
    array_of_one,
    arrays_of_table,
    arrow_array_of,
    is_arrow_array,
    is_stream,
    is_table,
    table_of,
)

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make test")
pd = pytest.importorskip("pandas", reason="pandas is not installed: make test")
pl = pytest.importorskip("polars", reason="polars is not installed: make test")

TABLE = pa.table({"x": [1, 2], "t": ["a", "b"]})
TABLES = {
    "pyarrow": TABLE,
    "batch": TABLE.to_batches()[0],
    "pandas": TABLE.to_pandas(),
    "polars": pl.DataFrame({"x": [1, 2], "t": ["a", "b"]}),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_known_by_what_they_can_do(name: str) -> None:
    table = TABLES[name]
    assert is_table(table)
    assert not is_stream(table)
    assert not is_arrow_array(table)
    assert table_of(table).to_pydict() == {"x": [1, 2], "t": ["a", "b"]}


def test_what_is_no_table() -> None:
    for value in ({"x": [1]}, [1], np.arange(2), TABLE.schema, TABLE["x"], pl.Series([1]), pd.Series([1]), b"", None):
        assert not is_table(value)


def test_what_is_read_as_a_stream() -> None:
    relation = duckdb.connect().sql("select 1 as x")
    for value in (TABLE.to_reader(), relation):
        assert is_stream(value)
        assert is_table(value)
    assert not any(map(is_stream, [TABLE, TABLE["x"], pl.Series([1]), pd.Series([1])]))


def test_arrays_of_pandas_are_those_of_numpy_where_it_holds_them() -> None:
    assert not is_arrow_array(pd.Series([1.0, np.nan]))
    for series in (pd.Series([1, None], dtype="Int64"), pd.Series(["a"]), pd.Series([[1], [2, 3]])):
        assert is_arrow_array(series)
        assert len(arrow_array_of(series)) == len(series)
    assert is_arrow_array(pl.Series([1]))
    assert is_arrow_array(pa.array([1]))
    assert not any(map(is_arrow_array, [np.arange(2), [1], pa.int32(), None]))


def test_columns_of_pandas_are_not_copied_and_keep_nan() -> None:
    frame = pd.DataFrame({"x": np.arange(3.0), "n": np.array([1.0, np.nan, 2.0]), "i": np.arange(3)}, index=[7, 8, 9])
    table = table_of(frame)
    assert table.column_names == ["x", "n", "i"]
    assert table["n"].null_count == 0
    for name in ("x", "i"):
        address = frame[name].to_numpy().ctypes.data
        assert table[name].chunk(0).buffers()[1].address == address


def test_names_of_columns_are_text_and_differ() -> None:
    assert table_of(pd.DataFrame(np.zeros((1, 2)))).column_names == ["0", "1"]
    for table in (pd.DataFrame(np.zeros((1, 2)), columns=["a", "a"]), pa.table([[1], [2]], names=["a", "a"])):
        with pytest.raises(ValueError, match="several columns have the same name"):
            table_of(table)
    with pytest.raises(TypeError, match="column 'm' of a DataFrame cannot become an array"):
        table_of(pd.DataFrame({"m": [1, "a"]}))


def test_a_table_as_arrays() -> None:
    table: Any = pa.table({"x": [1, 2], "s": [{"a": "u", "b": 1.5}, {"a": "v", "b": None}]})
    found = arrays_of_table(pa.concat_tables([table, table]))
    assert found["x"].tolist() == [1, 2, 1, 2]
    assert found["s"]["a"].tolist() == [b"u", b"v"] * 2
    np.testing.assert_array_equal(found["s"]["b"], [1.5, np.nan] * 2)
    assert arrays_of_table(table.slice(0, 0))["x"].shape == (0,)
    assert arrays_of_table(pa.table({"x": [[1], [1, 2]]}))["x"].to_list() == [[1], [1, 2]]
    with pytest.raises(TypeError, match="column 'x' has 1 nulls"):
        arrays_of_table(pa.table({"x": [1, None]}))


def test_a_scalar_is_an_array_of_its_type() -> None:
    made = array_of_one(pa.scalar(3, pa.int8()))
    assert made.type == pa.int8()
    assert made.to_pylist() == [3]
