# SPDX-License-Identifier: Apache-2.0
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.formats.row_schema import RowSchema


@pytest.mark.parametrize(
    "kind, expected",
    [
        (int, pa.int64()),
        (float, pa.float64()),
        (bool, pa.bool_()),
        (str, pa.binary()),
        (bytes, pa.binary()),
        ("string", pa.binary()),
        ("float32", pa.float32()),
        (np.uint8, pa.uint8()),
        (np.dtype("datetime64[ms]"), pa.timestamp("ms")),
        (pa.date32(), pa.date32()),
        (di.TensorSpec([], "int32"), pa.int32()),
        (di.TensorSpec([None, 2], "float32"), pa.list_(pa.list_(pa.float32(), 2))),
        ({"a": "int8", "b": [str]}, pa.struct([("a", pa.int8()), ("b", pa.list_(pa.binary()))])),
        ([["int8", 3]], pa.list_(pa.list_(pa.int8(), 3))),
        (pa.struct([("a", pa.large_string())]), pa.struct([("a", pa.binary())])),
    ],
)
def test_types_are_stated_in_many_ways(kind: Any, expected: Any) -> None:
    made = RowSchema.of("csv", {"x": kind})
    assert made == RowSchema(pa.schema([("x", expected)]))
    assert pickle.loads(pickle.dumps(made)) == made
    assert hash(pickle.loads(pickle.dumps(made))) == hash(made)


def test_a_schema_prints_on_one_line() -> None:
    made = RowSchema.of("csv", pa.schema([("x", pa.int64()), ("y", pa.string())]))
    assert repr(made) == "x: int64, y: binary"
    assert RowSchema.of("csv", made) is made
    assert RowSchema.of("csv", None) is None


@pytest.mark.parametrize(
    "given, says",
    [
        ({"x": "number"}, "csv: column 'x' must have a dtype, its name, or a pyarrow type, got 'number'"),
        ({"x": None}, "column 'x' must have a dtype, its name, or a pyarrow type, got None"),
        ({"x": ["int8", -1]}, r"column 'x' must have a dtype, its name, or a pyarrow type, got \['int8', -1\]"),
        ({"x": {"a": "number"}}, r"column 'x\.a' must have a dtype, its name, or a pyarrow type, got 'number'"),
        (["x"], r"csv: schema must be a dict of types by column, or a pyarrow Schema, got \['x'\]"),
        (pa.schema([("x", pa.int8()), ("x", pa.int8())]), "several columns of the schema have the same name: x, x"),
    ],
)
def test_what_is_no_schema_is_refused(given: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        RowSchema.of("csv", given)


def test_nulls_of_bytes_of_every_width_are_told() -> None:
    for kind, zero in ((pa.large_binary(), b""), (pa.binary(3), bytes(3))):
        schema = RowSchema(pa.schema({"x": kind}), nulls=(("x",),))
        rows = schema.told(pa.RecordBatch.from_arrays([pa.array([b"abc", None], kind)], ["x"])).to_pylist()
        assert [row["x"] for row in rows] == [{"value": b"abc", "valid": True}, {"value": zero, "valid": False}]


@pytest.mark.parametrize(
    "nulls", [{"s": {"a": 7}, "l": 7, "x": 7}, {"s.a": 7, "l": 7, "x": 7}, {"s": 7, "l": 7, "x": 7}]
)
def test_what_replaces_nulls_does_so_where_they_are_told(nulls: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"x": 1, "s": {"a": 1}, "l": [1, null]}\n{"x": null, "s": {"a": null}, "l": null}\n'
    )
    read = di.data.JsonLinesDataset(str(tmp_path / "a.jsonl"), nulls=nulls, valid=["x", "s.a", "l[]"])
    made = pa.Table.from_pylist([{"x": 1, "s": {"a": 1}, "l": [1, None]}, {"x": None, "s": {"a": None}, "l": None}])
    rows = read.to_list()
    assert rows == di.data.Dataset.from_arrow(made, nulls=nulls, valid=["x", "s.a", "l[]"]).to_list()
    assert [row["x"]["value"] for row in rows] == [1, 7]


def test_behind_a_mark_stands_what_other_tables_have_there(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"t": "2024-02-29", "s": {"a": 1}}\n{"t": null, "s": null}\n')
    schema = {"t": "datetime64[D]", "s": {"a": "int64"}}
    read = di.data.JsonLinesDataset(str(tmp_path / "a.jsonl"), schema=schema, nulls={"s.a": 7}, valid=["t", "s"])
    made = pa.table({"t": pa.array([19782, None], pa.date32()), "s": [{"a": 1}, None]})
    others = di.data.Dataset.from_arrow(made, nulls={"s.a": 7}, valid=["t", "s"])
    assert repr(list(read)) == repr(list(others))
    assert np.isnat(list(read)[1]["t"]["value"])
