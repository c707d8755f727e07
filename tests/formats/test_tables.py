# SPDX-License-Identifier: Apache-2.0
"""What Parquet and Arrow IPC share: options are checked once, and errors name the file, the part and the cure."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from distinput.columns.column import Strings
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.formats.tables import (
    arrays_of,
    as_columns,
    as_nulls,
    check_nulls,
    checked_batch,
    naming_damage,
    rows_block,
    table_spec,
)


def test_columns_are_a_list_of_names() -> None:
    assert as_columns("who", None) is None
    assert as_columns("who", ["b", "a"]) == ("b", "a")
    assert as_columns("who", []) == ()
    for name in ("a", b"a"):
        with pytest.raises(InvalidArgumentError, match=f"who: columns must be a list of names, got {name!r}"):
            as_columns("who", name)


def test_replacements_of_nulls_do_not_depend_on_their_order() -> None:
    assert as_nulls("who", {"b": 1, "a": 2}) == (("a", 2), ("b", 1)) == as_nulls("who", {"a": 2, "b": 1})
    assert as_nulls("who", as_nulls("who", {"a": 2})) == (("a", 2),)
    assert as_nulls("who", "error") == "error"
    for given in ("zero", None, 0):
        with pytest.raises(InvalidArgumentError, match='who: nulls must be "error" or a dict of values by column'):
            as_nulls("who", given)


SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.sparse_union([pa.field("i", pa.int64())]))])


def test_the_spec_has_the_columns_that_are_named() -> None:
    assert list(table_spec("f", SCHEMA, ["b", "a"]).nest) == ["b", "a"]
    with pytest.raises(InvalidArgumentError, match="f: has no column 'd'; its columns are a, b, c"):
        table_spec("f", SCHEMA, ["a", "d"])
    with pytest.raises(
        UnimplementedError, match=r"f: column 'c' is of type sparse_union.*, which no array can hold; cast it"
    ):
        table_spec("f", SCHEMA, None)
    with pytest.raises(UnimplementedError, match="f: several columns have the same name; give each its own: a, a"):
        table_spec("f", pa.schema([("a", pa.int64()), ("a", pa.int8())]), ["a"])


@pytest.mark.parametrize(
    "error, kind, message",
    [
        (pa.ArrowInvalid("bad"), DataLossError, "f: row group 3: not a table, or damaged: bad"),
        (pa.ArrowNotImplementedError("not yet"), UnimplementedError, "f: row group 3: not yet"),
        (OSError("of pyarrow"), DataLossError, "f: row group 3: not a table, or damaged: of pyarrow"),
        (IndexError("own"), IndexError, "own"),
        (OverflowError("own"), OverflowError, "own"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "own"), UnicodeDecodeError, "own"),
        (PermissionError(13, "no"), PermissionError, "no"),
        (KeyError("own"), KeyError, "own"),
    ],
)
def test_errors_of_pyarrow_are_translated_and_no_others(error: Exception, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)) as caught, naming_damage("a table", "f", "row group 3"):
        raise error
    if isinstance(error, PermissionError):
        assert caught.value is error
        assert error.__notes__ == ["while reading 'f'"]


def test_damage_outside_of_the_parts_of_a_file_is_in_its_footer() -> None:
    with (
        pytest.raises(DataLossError, match=r"^f: not a table, or damaged: its footer: bad$"),
        naming_damage("a table", "f", None),
    ):
        raise pa.ArrowInvalid("bad")


def block(batch: Any, nulls: Any, rows: Any = (10, 11)) -> Any:
    return rows_block("f", "row group 3", batch, table_spec("f", batch.schema, None).structure, nulls, rows)


BATCH = pa.RecordBatch.from_pydict({"a": [1, None], "b": ["x", "y"]})


def test_nulls_are_replaced_or_named_by_their_row() -> None:
    rows = list(block(BATCH, as_nulls("who", {"a": -1})).elements())
    assert [(int(row["a"]), row["b"]) for row in rows] == [(1, b"x"), (-1, b"y")]
    with pytest.raises(
        InvalidArgumentError, match=r"f: column 'a' has nulls in row group 3 \(first in its row 11\)"
    ) as caught:
        block(BATCH, "error", np.array([10, 11]))
    assert "nulls={'a': value}" in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="f: nulls: column 'a' is of type int64, and 'text' is not"):
        block(BATCH, as_nulls("who", {"a": "text"}))


def test_the_cure_for_nulls_in_a_struct_names_the_column() -> None:
    batch = pa.RecordBatch.from_pylist([{"s": {"t": 1}}, {"s": {"t": None}}])
    with pytest.raises(InvalidArgumentError, match=r"column 's\.t' has nulls.*nulls=\{'s\.t': value\}"):
        block(batch, "error")
    assert int(block(batch, as_nulls("who", {"s": 5})).row(1)["s"]["t"]) == 5
    assert int(block(batch, as_nulls("who", {"s.t": 6})).row(1)["s"]["t"]) == 6
    assert int(block(batch, as_nulls("who", {"s": {"t": 7}})).row(1)["s"]["t"]) == 7


def test_a_name_that_is_no_text_is_damage() -> None:
    schema = pa.schema({"xyz": pa.struct({"inner": pa.int64()})}).serialize().to_pybytes()
    for name in (b"xyz", b"inner"):
        damaged = pa.ipc.read_schema(pa.BufferReader(schema.replace(name, b"\xec" + name[1:])))
        with pytest.raises(DataLossError, match="f: damaged: the name of a column is not UTF-8"):
            table_spec("f", damaged, None)


def test_replacements_are_for_columns_that_are_there() -> None:
    schema = pa.schema({"s": pa.struct({"t": pa.int64()}), "x": pa.int64()})
    check_nulls("f", "error", schema)
    check_nulls("f", as_nulls("who", {"s.t": 1, "x": 0}), schema)
    with pytest.raises(InvalidArgumentError, match=r"f: nulls: has no column 's\.u'; its columns are s, s\.t, x"):
        check_nulls("f", as_nulls("who", {"s.u": 1}), schema)


def test_a_damaged_batch_is_refused() -> None:
    offsets = np.zeros(2, np.int32)
    damaged = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")])
    batch = pa.RecordBatch.from_arrays([damaged], ["x"])
    offsets[1] = 99  # later, since pyarrow makes no batch from wrong ones
    with pytest.raises(DataLossError, match="f: row group 3: damaged: column 'x': "):
        checked_batch("f", "row group 3", batch)
    assert checked_batch("f", "row group 3", BATCH) is BATCH


def test_columns_to_write_may_be_of_many_kinds() -> None:
    arrays = arrays_of(
        "who",
        {
            "a": np.arange(4).reshape(2, 2),
            "b": [b"x", "y"],
            "c": Strings.of([b"a", b"bc"]),
            "d": pa.array([1, None]),
            "e": np.zeros((2, 1, 3), np.int8),
        },
    )
    assert arrays["a"].to_pylist() == [[0, 1], [2, 3]]
    assert arrays["c"].to_pylist() == [b"a", b"bc"]
    assert arrays["d"].to_pylist() == [1, None]
    assert arrays["e"].type == pa.list_(pa.list_(pa.int8(), 3), 1)


def test_columns_of_other_lengths_or_kinds_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="who: columns must have the same number of rows, got a: 1, b: 2"):
        arrays_of("who", {"a": [1], "b": [1, 2]})
    for values in ([object()], [1, "a"], np.array([[object()]])):
        with pytest.raises(InvalidArgumentError, match="who: column 'a': "):
            arrays_of("who", {"a": values})
