# SPDX-License-Identifier: Apache-2.0
"""Law: what is missing is null in the files of every writer that takes it, and is missing again where they are read."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.values.nullable import Nullable
from distinput.writers import WRITERS

Dataset = di.data.Dataset

FLAT = {
    "i": pa.array([1, None, 3]),
    "u": pa.array([None, None, 2**64 - 1], pa.uint64()),
    "b": pa.array([None, True, False]),
    "f": pa.array([0.5, 1.5, float("nan")]),
    "t": pa.array(["a", None, ""]),
    "e": pa.array(["", "NA", "null"]),
    "d": pa.array([None, 1, 2], pa.date32()),
}
NESTED = {
    "l": pa.array([[1, None], None, []]),
    "n": pa.array([{"a": 1, "b": None}, None, {"a": None, "b": "x"}]),
    "m": pa.array([[{"role": None, "x": 1}], [], [{"role": "user", "x": 2}, {"role": "", "x": 3}]]),
    "k": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)),
    "w": pa.array([[0, None], [2, 3], [None, None]], pa.list_(pa.timestamp("ms"), 2)),
    "j": pa.array([[0, None], [2, 3], [None, None]], pa.list_(pa.int8(), 2)),
    "o": pa.array([[{"a": 1, "t": [1, None]}, None, {"a": None, "t": None}], None, []]),
    "oo": pa.array([[[{"a": 1}, None], None], None, [[], [{"a": None}]]]),
    "p": pa.array(
        [
            [{"s": {"a": 1}, "q": [{"c": 1, "l": [[1], None]}, None], "f": 0.5}, None],
            None,
            [{"s": None, "q": None, "f": None}, {"s": {"a": None}, "q": [{"c": None, "l": None}], "f": 1.5}],
        ]
    ),
    "r": pa.array([[{"a": 1}, None], [None, {"a": None}], [None, None]], pa.list_(pa.struct([("a", pa.int64())]), 2)),
}


def of_floats() -> Dataset:
    """A float that is missing is told from NaN where its maker says so."""
    return Dataset.range(3).map(lambda i: {"f": Nullable(value=i / 2, valid=i > 0), "i": i})


def same(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        _same(a, b)


def _same(a: Any, b: Any) -> None:
    assert isinstance(b, Nullable) == isinstance(a, Nullable)
    if isinstance(b, Nullable):
        _same(a["valid"], b["valid"])
        if isinstance(b["valid"], list) or b["valid"]:
            _same(a["value"], b["value"])
    elif isinstance(b, dict):
        assert list(a) == list(b)
        for key in b:
            _same(a[key], b[key])
    elif isinstance(b, list):
        same(a, b)
    else:
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def nulls_in(format: str, paths: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of files as other readers have them."""
    for path in paths:
        if format == "jsonl":
            yield from map(json.loads, Path(path).read_text().splitlines())
        elif format == "csv":
            with open(path, newline="") as file:
                yield from csv.DictReader(file)
        else:
            yield from (pq.read_table(path) if format == "parquet" else pa.ipc.open_file(path).read_all()).to_pylist()


DATASETS = {
    **{
        name: Dataset.from_arrow(pa.table({name: values, "z": [7, 8, 9]}))
        for name, values in {**FLAT, **NESTED}.items()
    },
    "floats": of_floats(),
    "all": Dataset.from_arrow(pa.table(FLAT)),
    "alone": Dataset.from_arrow(pa.table({"i": FLAT["i"]})),
    "itself": Dataset.from_arrow(pa.table({"i": FLAT["i"]})).map(lambda row: row["i"]),
}


@pytest.mark.parametrize("format", ["parquet", "arrow", "jsonl", "csv"])
@pytest.mark.parametrize("name", DATASETS)
def test_nulls_come_back(name: str, format: str, tmp_path: Path) -> None:
    ds = DATASETS[name]
    if format == "csv" and name in NESTED:
        with pytest.raises(InvalidArgumentError, match=r"a cell of CSV|csv (takes|cannot write)"):
            ds.write(str(tmp_path / "a"), format)
        return
    made = ds.write(str(tmp_path / "a"), format, shard_rows=2)
    again = di.data.FileDataset(str(tmp_path / "a"))
    if name == "itself":
        ds = ds.map(lambda value: {"value": value})
    assert str(again.element_spec) == str(ds.element_spec)
    same(again.to_list(), ds.to_list())
    wanted = ds.to_arrow().to_pylist()
    rows = list(nulls_in(format, made.paths))
    for row, want in zip(rows, wanted, strict=True):
        for key, value in want.items():
            if value is None:
                assert row[key] in ((None, "") if format == "csv" else (None,))


@pytest.mark.parametrize("name", ["o", "oo", "p", "r"])
def test_null_items_of_lists_of_objects_are_null_again(name: str) -> None:
    table = pa.table({name: NESTED[name]})
    ds = Dataset.from_arrow(table)
    found = ds.ragged_batch(2).unbatch().to_arrow()
    rows = json.loads(json.dumps(found.to_pylist()).replace("NaN", "null"))
    assert rows == table.to_pylist()
    assert pa.types.is_struct(_innermost(found.schema.field(name).type))
    same(Dataset.from_arrow(found).to_list(), ds.to_list())
    missing = ds.filter(pc.field(name).is_null()).to_list()
    assert len(missing) == table[name].null_count


def _innermost(kind: Any) -> Any:
    return _innermost(kind.value_type) if hasattr(kind, "value_type") else kind


def test_lists_of_a_struct_that_differ_in_length_are_no_rows() -> None:
    def made(i: Any) -> dict[str, Any]:
        return {"o": Nullable(value={"a": [1, 2], "b": [3] * int(i)}, valid=[True, True])}

    lists = di.TensorSpec([None], "int32")
    spec = {"o": Nullable(value={"a": lists, "b": lists}, valid=di.TensorSpec([None], bool))}
    ds = Dataset.range(2, 4).map(made, output_signature=spec)
    assert ds.take(1).to_arrow().to_pylist() == [{"o": [{"a": 1, "b": 3}, {"a": 2, "b": 3}]}]
    with pytest.raises(
        InvalidArgumentError, match="column 'o': its lists differ in length, so they are not rows of one structure"
    ):
        ds.to_arrow()


def test_text_alone_is_refused_by_csv(tmp_path: Path) -> None:
    ds = Dataset.from_arrow(pa.table({"t": FLAT["t"]}))
    with pytest.raises(InvalidArgumentError, match='beside another column; write format="jsonl"'):
        ds.write(str(tmp_path / "a"), "csv")


@pytest.mark.parametrize("format", sorted(set(WRITERS) - {"parquet", "arrow", "jsonl", "csv", "elements"}))
def test_others_refuse_nulls(format: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        DATASETS["i"].write(str(tmp_path / "a"), format)


def test_saved_elements_are_as_they_were(tmp_path: Path) -> None:
    DATASETS["all"].save(str(tmp_path / "a"))
    again = Dataset.load(str(tmp_path / "a"))
    assert again.element_spec == DATASETS["all"].element_spec
    same(again.to_list(), DATASETS["all"].to_list())


@pytest.mark.parametrize("to", ["parquet", "arrow", "jsonl", "csv"])
@pytest.mark.parametrize("source", ["parquet", "arrow", "jsonl", "csv"])
def test_so_does_conversion(source: str, to: str, tmp_path: Path) -> None:
    ds = Dataset.from_arrow(pa.table({"i": FLAT["i"], "b": FLAT["b"], "z": [7, 8, 9]}))
    ds.write(str(tmp_path / "a"), source)
    di.inspect.convert(str(tmp_path / "a"), str(tmp_path / "b"), to)
    same(di.data.FileDataset(str(tmp_path / "b")).to_list(), ds.to_list())


@pytest.mark.parametrize(
    "kind, text", [("csv", 'x,t\n1,a\n,""\n3,\n'), ("jsonl", '{"x":1,"t":"a"}\n{"t":""}\n{"x":3}\n')]
)
def test_valid_says_where_text_has_nulls(kind: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    for schema in (None, {"x": "int64", "t": bytes}, {"x": "int64"}):
        ds = di.data.FileDataset(str(tmp_path / "a"), kind, schema=schema, valid=["x", "t"])
        assert [row["x"]["valid"] for row in ds] == [True, False, True]
        assert [(row["t"]["value"], row["t"]["valid"]) for row in ds] == [(b"a", True), (b"", True), (b"", False)]
    with pytest.raises(InvalidArgumentError, match=f"{kind}: valid: there is nothing at 'y'; there is x, t"):
        _ = di.data.FileDataset(str(tmp_path / "a"), kind, valid=["y"]).element_spec
    with pytest.raises(InvalidArgumentError, match="valid must be a list of columns, got 'x'"):
        di.data.FileDataset(str(tmp_path / "a"), kind, valid="x")


@pytest.mark.parametrize(
    "value, valid, says",
    [(1, 1, "whose mark is int32; `valid` must be"), (None, False, "whose value is None"), ([1], [1], "mark is int32")],
)
def test_a_nullable_that_says_nothing_is_refused(value: Any, valid: Any, says: str) -> None:
    ds = Dataset.range(2).map(lambda i: {"a": Nullable(value=value, valid=valid)})
    with pytest.raises(InvalidArgumentError, match=f"column 'a' is a Nullable .*{says}"):
        ds.to_arrow()
