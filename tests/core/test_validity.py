# SPDX-License-Identifier: Apache-2.0
"""Nulls are told where they are, or by marks beside them: nothing of a table is lost, whatever its types are."""

import json
import logging
import pprint
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset

TABLES: dict[str, tuple[pa.Array, list[dict[str, Any]]]] = {
    "number": (pa.array([1, None]), [{"x": 1, "x_valid": True}, {"x": 0, "x_valid": False}]),
    "text": (pa.array(["", None]), [{"x": b"", "x_valid": True}, {"x": b"", "x_valid": False}]),
    "view": (pa.array(["a", None], pa.string_view()), [{"x": b"a", "x_valid": True}, {"x": b"", "x_valid": False}]),
    "category": (
        pa.array(["a", None]).dictionary_encode(),
        [{"x": b"a", "x_valid": True}, {"x": b"", "x_valid": False}],
    ),
    "decimal": (
        pa.array([Decimal("1.50"), None]),
        [{"x": b"1.50", "x_valid": True}, {"x": b"0.00", "x_valid": False}],
    ),
    "nothing": (pa.nulls(1), [{"x": b"", "x_valid": False}]),
    "list": (
        pa.array([[1, None], None, []]),
        [
            {"x": [1, 0], "x_valid": True, "x_items_valid": [True, False]},
            {"x": [], "x_valid": False, "x_items_valid": []},
            {"x": [], "x_valid": True, "x_items_valid": []},
        ],
    ),
    "list view": (
        pa.array([["a"], None], pa.list_view(pa.string_view())),
        [{"x": [b"a"], "x_valid": True}, {"x": [], "x_valid": False}],
    ),
    "fixed list": (
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
        [{"x": [1, 2], "x_valid": True}, {"x": [0, 0], "x_valid": False}, {"x": [3, 4], "x_valid": True}],
    ),
    "fixed list of nulls": (
        pa.array([[1, None], [3, 4]], pa.list_(pa.int8(), 2)),
        [{"x": [1, 0], "x_items_valid": [True, False]}, {"x": [3, 4], "x_items_valid": [True, True]}],
    ),
    "struct": (
        pa.array([{"a": 1, "f": 0.5}, None]),
        [{"x": {"a": 1, "f": 0.5, "a_valid": True}}, {"x": {"a": 0, "f": "NaN", "a_valid": False}}],
    ),
    "chat": (
        pa.array([[{"role": "user", "n": 1}, {"role": None, "n": 2}], []]),
        [
            {"x": {"role": [b"user", b""], "n": [1, 2], "role_valid": [True, False]}},
            {"x": {"role": [], "n": [], "role_valid": []}},
        ],
    ),
    "map": (
        pa.array([[("k", None)], None], pa.map_(pa.string(), pa.int64())),
        [
            {"x": {"key": [b"k"], "value": [0], "value_valid": [False]}, "x_valid": True},
            {"x": {"key": [], "value": [], "value_valid": []}, "x_valid": False},
        ],
    ),
}


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value
    return "NaN" if value != value else value


@pytest.mark.parametrize("how", ["arrow", "stream", "parquet", "table", "polars"])
@pytest.mark.parametrize("name", sorted(TABLES))
def test_nulls_are_told_beside_what_stands_for_them(name: str, how: str, tmp_path: Path) -> None:
    array, expected = TABLES[name]
    if how == "polars" and name in ("map", "fixed list of nulls", "list view", "view"):
        pytest.skip("polars has no such type, or writes it otherwise")
    path = str(tmp_path / f"a.{how}")
    ds: Dataset[Any]
    if how == "parquet":
        di.io.write_parquet(path, {"x": array})
        ds = di.data.ParquetDataset(path, nulls="valid")
    elif how in ("arrow", "stream"):
        di.io.write_arrow(path, {"x": array}, stream=how == "stream")
        ds = di.data.ArrowDataset(path, nulls="valid")
    else:
        table: Any = pa.table({"x": array})
        if how == "polars":
            table = pytest.importorskip("polars").from_arrow(table)
        ds = Dataset.from_arrow(table, nulls="valid")
    assert [plain(row) for row in ds] == expected
    assert [plain(row) for row in ds.skip(1)] == expected[1:]
    assert sorted(map(str, map(plain, ds.global_shuffle(seed=1)))) == sorted(map(str, expected))


def test_columns_take_their_marks_along_and_select_does_not(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    di.io.write_parquet(path, {"x": pa.array([1, None]), "y": pa.array(["a", None]), "n": [1, 2]})
    ds = di.data.ParquetDataset(path, columns=["x", "n"], nulls="valid")
    assert ds.to_list()[1] == {"x": 0, "n": 2, "x_valid": False}
    assert di.data.ParquetDataset(path, nulls="valid").select(["y"]).to_list() == [{"y": b"a"}, {"y": b""}]
    marks = di.data.ParquetDataset(path, nulls="valid").select(["y_valid"])
    assert marks.to_list() == [{"y_valid": True}, {"y_valid": False}]


def test_files_behind_the_first_one_have_the_same_marks(tmp_path: Path) -> None:
    for number, values in enumerate(([1, None], [3, 4])):
        di.io.write_parquet(str(tmp_path / f"{number}.parquet"), {"x": pa.array(values)})
    files = [str(tmp_path / f"{number}.parquet") for number in (0, 1)]
    ds = di.data.ParquetDataset(files, nulls="valid")
    assert [(row["x"].item(), row["x_valid"].item()) for row in ds] == [(1, True), (0, False), (3, True), (4, True)]
    with pytest.raises(di.errors.InvalidArgumentError, match="column 'x' has nulls"):
        di.data.ParquetDataset(files[::-1], nulls="valid").to_list()


def test_where_nothing_is_null_nothing_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    di.io.write_parquet(path, {"x": pa.array([1, 2]), "f": pa.array([0.5, None]), "l": pa.array([["a"], []])})
    assert list(di.data.ParquetDataset(path, nulls="valid").element_spec) == ["x", "f", "l"]


def test_a_name_that_is_in_use_is_not_taken(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    di.io.write_parquet(path, {"x": pa.array([1, None]), "x_valid": [1, 2]})
    with pytest.raises(di.errors.InvalidArgumentError, match="column 'x' has nulls"):
        di.data.ParquetDataset(path, nulls="valid").to_list()
    assert di.data.ParquetDataset(path, valid={"x": "known"}).to_list()[1] == {"x": 0, "x_valid": 2, "known": False}
    with pytest.raises(di.errors.InvalidArgumentError, match=r"valid: there is no column 'x\[\]'"):
        di.data.ParquetDataset(path, valid={"x[]": "known"}).to_list()


def test_what_is_read_in_parts_cannot_be_looked_through() -> None:
    stream = pa.table({"x": [1, None]}).to_reader()
    with pytest.raises(di.errors.InvalidArgumentError, match="read in parts; name the columns with valid="):
        Dataset.from_arrow(stream, nulls="valid")


IN_PLACE: dict[str, list[Any]] = {
    "number": [(1, True), (0, False)],
    "text": [(b"", True), (b"", False)],
    "view": [(b"a", True), (b"", False)],
    "category": [(b"a", True), (b"", False)],
    "decimal": [(b"1.50", True), (b"0.00", False)],
    "nothing": [(b"", False)],
    "list": [(([1, 0], [True, False]), True), (([], []), False), (([], []), True)],
    "list view": [([b"a"], True), ([], False)],
    "fixed list": [([1, 2], True), ([0, 0], False), ([3, 4], True)],
    "fixed list of nulls": [([1, 0], [True, False]), ([3, 4], [True, True])],
    "struct": [({"a": 1, "f": 0.5}, True), ({"a": 0, "f": "NaN"}, False)],
    "chat": [{"role": ([b"user", b""], [True, False]), "n": [1, 2]}, {"role": ([], []), "n": []}],
    "map": [({"key": [b"k"], "value": ([0], [False])}, True), ({"key": [], "value": ([], [])}, False)],
    "interval": [
        ({"months": 1, "days": 2, "nanoseconds": 3}, True),
        ({"months": 0, "days": 0, "nanoseconds": 0}, False),
    ],
    "struct in struct": [
        ({"t": ({"a": 1}, True)}, True),
        ({"t": ({"a": 0}, False)}, True),
        ({"t": ({"a": 0}, False)}, False),
    ],
    "structs in lists": [({"a": ([1, 0, 0], [True, False, False])}, [True, False, True])],
    "lists of lists": [(([[1, 0], []], [[True, False], []]), [True, False])],
    "float": [0.5, "NaN"],
    "struct of floats": [{"f": 0.5}, {"f": "NaN"}],
}
"""What stands in the place of columns; a tuple is a value and its mark."""

ARRAYS: dict[str, pa.Array] = {name: array for name, (array, _) in TABLES.items()} | {
    "interval": pa.array([pa.MonthDayNano([1, 2, 3]), None]),
    "struct in struct": pa.array([{"t": {"a": 1}}, {"t": None}, None]),
    "structs in lists": pa.array([[{"a": 1}, None, {"a": None}]]),
    "lists of lists": pa.array([[[1, None], None]]),
    "float": pa.array([0.5, None]),
    "struct of floats": pa.array([{"f": 0.5}, None]),
}
READERS = ["arrow", "stream", "parquet", "table", "chunks", "dict"]


def opened(array: pa.Array, how: str, folder: Path, **options: Any) -> Any:
    path = str(folder / f"a.{how}")
    if how == "parquet":
        di.io.write_parquet(path, {"x": array})
        return di.data.ParquetDataset(path, **options)
    if how in ("arrow", "stream"):
        di.io.write_arrow(path, {"x": array}, stream=how == "stream")
        return di.data.ArrowDataset(path, **options)
    if how == "dict":
        return Dataset.from_arrow({"x": array}, **options)
    table = pa.table({"x": pa.chunked_array([array[:1], array[1:]]) if how == "chunks" else array})
    return Dataset.from_arrow(table, **options)


def pairs(value: Any) -> Any:
    """Elements with a tuple for each `Nullable`."""
    if isinstance(value, di.data.Nullable):
        return pairs(value["value"]), pairs(value["valid"])
    if isinstance(value, dict):
        return {name: pairs(each) for name, each in value.items()}
    return plain(value.to_list() if hasattr(value, "to_list") else value)


@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_without_arguments_a_value_and_its_mark_stand_where_nulls_are(name: str, how: str, tmp_path: Path) -> None:
    if name == "interval" and how == "parquet":
        pytest.skip("Parquet files hold no such intervals")
    if name == "struct of floats" and how == "dict":
        pytest.skip("a column of its own is refused: it is no row of a table")
    ds = opened(ARRAYS[name], how, tmp_path)
    expected = [{"x": each} for each in IN_PLACE[name]]
    assert [pairs(row) for row in ds] == expected
    assert [pairs(row) for row in ds.skip(1)] == expected[1:]
    iterator = iter(ds)
    next(iterator)
    assert [pairs(row) for row in ds.restore(json.loads(json.dumps(iterator.state())))] == expected[1:]
    assert sorted(map(str, map(pairs, ds.global_shuffle(seed=1)))) == sorted(map(str, expected))


def as_bytes(value: Any) -> Any:
    """Values as elements have them."""
    if isinstance(value, str | Decimal):
        return str(value).encode()
    if isinstance(value, list):
        return [as_bytes(each) for each in value]
    if isinstance(value, pa.MonthDayNano):
        return {"months": value.months, "days": value.days, "nanoseconds": value.nanoseconds}
    return {key: as_bytes(each) for key, each in value.items()} if isinstance(value, dict) else value


KIND = [("a", pa.int64()), *[(name, pa.struct([("a", pa.int64())])) for name in "tu"]]
NESTED = st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(0, 9)})
NESTED = st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "t": NESTED, "u": NESTED})
PLACES = [(), ("a",), ("t",), ("t", "a"), ("u",), ("u", "a")]


def mark_of(value: Any, place: tuple[str, ...]) -> bool | None:
    """The mark of a field; None if it has none."""
    for name in place:
        value = (value["value"] if isinstance(value, di.data.Nullable) else value)[name]
    return bool(value["valid"]) if isinstance(value, di.data.Nullable) else None


@given(st.lists(NESTED, min_size=1, max_size=6), st.sampled_from(["table", "parquet", "jsonl"]))
def test_nothing_is_valid_in_a_struct_that_is_null(values: list[Any], how: str) -> None:
    array = pa.array(values, pa.struct(KIND))
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        path.write_text("".join([json.dumps({"x": value}) + "\n" for value in values]))
        schema = {"x": pa.struct(KIND)}
        ds = (
            di.data.JsonLinesDataset(str(path), schema=schema, valid=["x", "x.a", "x.t", "x.t.a", "x.u.a"])
            if how == "jsonl"
            else opened(array, how, Path(folder))
        )
        rows = ds.to_list()
    for row, value in zip(rows, values, strict=True):
        for place in PLACES:
            field = value
            for name in place:
                field = None if field is None else field[name]
            assert mark_of(row["x"], place) in (None, field is not None), (value, place)


ALIKE = sorted(set(ARRAYS) - {"chat", "map", "structs in lists", "struct of floats", "float"})
"""Columns that come back as they were: lists of structs are structs of lists, and a null float is NaN."""


@pytest.mark.parametrize("how", ["arrow", "parquet", "table"])
@pytest.mark.parametrize("name", ALIKE)
def test_what_is_written_holds_the_nulls_again(name: str, how: str, tmp_path: Path) -> None:
    array = ARRAYS[name]
    ds = opened(array, "table", tmp_path)
    if how == "table":
        back = ds.ragged_batch(2).unbatch().to_arrow()
    else:
        ds.write(str(tmp_path / "out"), how)
        (path,) = (tmp_path / "out").glob("part-*")
        back = pq.read_table(path) if how == "parquet" else pa.ipc.open_file(path).read_all()
    assert back["x"].to_pylist() == as_bytes(array.to_pylist())
    again = Dataset.from_arrow(back)
    assert again.element_spec == ds.element_spec
    assert again.to_arrow()["x"].to_pylist() == back["x"].to_pylist()


def test_structs_of_lists_hold_the_nulls_of_lists_of_structs() -> None:
    columns = [
        Dataset.from_arrow(pa.table({"x": ARRAYS[name]})).to_arrow()["x"].to_pylist() for name in ("chat", "map")
    ]
    assert columns[0] == [{"role": [b"user", None], "n": [1, 2]}, {"role": [], "n": []}]
    assert columns[1] == [{"key": [b"k"], "value": [None]}, None]


@pytest.mark.parametrize("wrong", [lambda x: x + 1, lambda x: x * 2, np.float32, np.mean, lambda x: np.stack([x, x])])
def test_code_that_takes_it_for_a_number_fails_at_once(wrong: Any) -> None:
    ds = Dataset.from_arrow(pa.table({"x": [1, None]}))
    with pytest.raises(TypeError, match="Nullable"):
        ds.map(lambda row: wrong(row["x"])).to_list()


def test_a_null_elsewhere_in_a_later_file_names_file_column_and_cure(tmp_path: Path) -> None:
    for number, table in enumerate(
        [{"x": [1, None], "s": [{"a": 1}] * 2}, {"x": [3, 4], "s": [{"a": 1}, {"a": None}]}]
    ):
        pq.write_table(pa.table(table), tmp_path / f"{number}.parquet")
        with pa.ipc.new_file(tmp_path / f"{number}.arrow", pa.table(table).schema) as writer:
            writer.write_table(pa.table(table))
    for make, suffix in ((di.data.ParquetDataset, "parquet"), (di.data.ArrowDataset, "arrow")):
        files = str(tmp_path / f"*.{suffix}")
        with pytest.raises(
            di.errors.InvalidArgumentError, match=rf"1\.{suffix}: column 's.a' has nulls.*valid=\['s.a'\]"
        ):
            make(files).to_list()
        rows = make(files, valid=["x", "s.a"]).to_list()
        assert rows[3] == {"x": {"value": 4, "valid": True}, "s": {"a": {"value": 0, "valid": False}}}
        with pytest.raises(di.errors.InvalidArgumentError, match=rf"0\.{suffix}: column 'x' has nulls.*valid=\['x'\]"):
            make(files, nulls="error").to_list()


@pytest.mark.parametrize("how", ["parquet", "arrow", "table"])
def test_the_cure_in_the_error_is_one(how: str, tmp_path: Path) -> None:
    for name in sorted(set(IN_PLACE) - {"float", "struct of floats", "interval", "nothing"}):
        told: list[str] = []
        for _ in range(5):
            try:
                found = opened(
                    ARRAYS[name], how, tmp_path, **({"valid": told} if told else {"nulls": "error"})
                ).to_list()
                break
            except di.errors.InvalidArgumentError as error:
                told.append(str(error).partition("valid=['")[2].partition("'")[0])
        assert found, (name, told)


def test_columns_without_nulls_are_read_as_ever(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    di.io.write_parquet(path, {"x": pa.array([1, None]), "y": [1, 2]})
    ds = di.data.ParquetDataset(path).select(["y"])
    assert "Parquet(columns=('y',), batch_rows=None, nulls='error')" in ds.explain()
    before = di.data.ParquetDataset(path, nulls="error").select(["y"])
    iterator = iter(before)
    next(iterator)
    assert ds.restore(iterator.state()).get_next() == {"y": 2}  # a state that was saved when nulls were errors


@pytest.mark.parametrize("make", [di.data.ParquetDataset, di.data.ArrowDataset])
def test_names_with_dots_are_no_fields(make: Any, tmp_path: Path) -> None:
    path, columns = str(tmp_path / "a"), {"a": [1, 2], "a.b": pa.array([1, None])}
    (di.io.write_parquet if make is di.data.ParquetDataset else di.io.write_arrow)(path, columns)
    assert make(path).select(["a"]).to_list() == [{"a": 1}, {"a": 2}]
    assert make(path, columns=["a.b"]).to_list()[1] == {"a.b": {"value": 0, "valid": False}}
    assert make(path).to_list()[1] == {"a": 2, "a.b": {"value": 0, "valid": False}}


def test_every_file_of_what_is_written_has_the_same_elements(tmp_path: Path) -> None:
    ds = Dataset.from_arrow(pa.table({"x": [1, 2, 3, None], "l": [["a"], [], ["b"], ["c", None]]}))
    for how, make in (
        ("parquet", di.data.ParquetDataset),
        ("arrow", di.data.ArrowDataset),
        ("jsonl", di.data.FileDataset),
    ):
        ds.write(str(tmp_path / how), how, shards=2)
        again = make(str(tmp_path / how))
        assert again.element_spec == ds.element_spec
        assert (
            [pairs(row) for row in again] == [pairs(row) for row in ds]
            if how != "jsonl"
            else again.to_list() == ds.to_list()
        )
    ds.save(str(tmp_path / "saved"))
    assert di.data.Dataset.load(str(tmp_path / "saved")).to_arrow()["l"].to_pylist()[3] == [b"c", None]


@pytest.mark.parametrize(
    "function",
    [
        lambda row: row["x"] == 1,
        lambda row: row["x"] != 1,
        lambda row: np.int64(1) == row["x"],
        lambda row: row["s"] == b"a",
        lambda row: row["x"] == None,  # noqa: E711 - as one writes it
        lambda row: row["x"] in (1, 2),
        lambda row: row["x"] == Decimal(1),
        lambda row: bool(row["x"]),
        lambda row: not row["s"],
    ],
)
@pytest.mark.parametrize("batched", [False, True])
def test_a_value_that_may_be_missing_is_not_compared(function: Any, batched: bool) -> None:
    """Each of these would be false, or true, for all rows."""
    ds = Dataset.from_arrow(pa.table({"x": [1, None], "s": ["a", None]}))
    with pytest.raises(TypeError, match=r'a Nullable, .* is not .*: its value is \["value"\]'):
        (ds.batch(2).map(function) if batched else ds.filter(function)).to_list()


def test_values_that_may_be_missing_are_equal_as_dicts_are() -> None:
    one, two = [di.data.Nullable(value=value, valid=True) for value in (1, 2)]
    assert one == {"value": 1, "valid": True}
    assert one != two
    assert one != [1]
    assert [one] == [di.data.Nullable(one)]


def test_modules_of_python_may_ask_whether_it_is_empty(caplog: pytest.LogCaptureFixture) -> None:
    one = di.data.Nullable(value=1, valid=True)
    assert json.loads(json.dumps([one], indent=2)) == [one]
    logging.getLogger("rows").warning("a row: %s", one)
    assert "a row: {'value': 1, 'valid': True}" in caplog.messages
    assert "value" in pprint.pformat([one], width=10)


def test_a_filter_sees_nulls_and_a_function_makes_them() -> None:
    ds = Dataset.from_arrow(pa.table({"x": [1, None, 3]}))
    assert [row["x"]["value"] for row in ds.filter(pc.field("x") > 1)] == [3]
    assert ds.filter(pc.field("x").is_null()).to_list() == [{"x": {"value": 0, "valid": False}}]
    made = ds.map(lambda row: {"y": di.data.Nullable(value=row["x"]["value"] * 2, valid=row["x"]["value"] != 3)})
    assert made.to_arrow()["y"].to_pylist() == [2, 0, None]
    items = Dataset.from_tensor_slices([1]).map(lambda n: {"y": di.data.Nullable(value=[n, n], valid=[True])})
    with pytest.raises(di.errors.InvalidArgumentError, match="lists of its values and of its marks differ in length"):
        items.ragged_batch(1).unbatch().to_arrow()


def test_datasets_with_and_without_nulls_are_put_together_by_name() -> None:
    some, none = pa.table({"x": [1, None]}), pa.table({"x": [3]})
    with pytest.raises(TypeError, match="the same structure of elements"):
        Dataset.from_arrow(some).concatenate(Dataset.from_arrow(none))
    both = Dataset.from_arrow(some).concatenate(Dataset.from_arrow(none, valid=["x"]))
    assert both.to_arrow()["x"].to_pylist() == [1, None, 3]


def test_a_struct_of_the_same_names_is_no_value_with_a_mark(tmp_path: Path) -> None:
    table = pa.table({"x": [{"value": 1, "valid": False}, {"value": 2, "valid": True}], "n": [1, None]})
    ds = Dataset.from_arrow(table)
    assert ds.to_arrow().to_pylist() == table.to_pylist()
    assert type(ds.element_spec["x"]) is dict


_BOTH = [("value", pa.int64()), ("valid", pa.bool_())]


@pytest.mark.parametrize(
    "kind", [pa.struct(_BOTH), pa.struct(_BOTH[::-1]), pa.struct([("value", pa.struct(_BOTH)), _BOTH[1]])]
)
def test_nulls_of_a_struct_of_the_same_names_are_nulls_again(kind: Any) -> None:
    there = {"value": 1, "valid": False} if kind.field("value").type == pa.int64() else {"value": None, "valid": True}
    table = pa.table(
        {"x": pa.array([there, None], kind), "s": pa.array([{"f": there}, {"f": None}], pa.struct([("f", kind)]))}
    )
    assert Dataset.from_arrow(table).to_arrow().to_pylist() == table.to_pylist()
    lists = Dataset.from_arrow(pa.table({"l": pa.array([[there, None], None], pa.list_(kind))})).to_arrow()
    assert lists["l"].to_pylist() == [[there, None], None]


@pytest.mark.parametrize("name", ["", "x[]", "s.a[]", "[]"])
@pytest.mark.parametrize("how", ["arrow", "parquet", "table"])
@pytest.mark.parametrize("value", [1, {"a": 1, "b": None}, [1, None], [{"a": None, "b": 1}], [[None, 1], None]])
def test_columns_of_any_name_hold_nulls(name: str, how: str, value: Any, tmp_path: Path) -> None:
    made = {"arrow": di.data.ArrowDataset, "parquet": di.data.ParquetDataset, "table": Dataset.from_arrow}[how]
    datasets = []
    for each in ("plain", name):
        table = pa.table({each: [value, None], "n": [0, 1]})
        source: Any = table
        if how != "table":
            source = str(tmp_path / f"{len(datasets)}.{how}")
            write = di.io.write_parquet if how == "parquet" else di.io.write_arrow
            write(source, {column: table[column] for column in table.column_names})
        datasets.append(made(source))
    usual, odd = datasets
    assert [pairs(row[name]) for row in odd] == [pairs(row["plain"]) for row in usual]
    assert odd.to_arrow()[name].to_pylist() == usual.to_arrow()["plain"].to_pylist()
    beside = made(source, nulls="valid")
    assert beside.element_spec.keys() >= {name, "n"}
    assert len(beside.to_list()) == 2


def test_trees_of_jax_and_torch_reach_into_it() -> None:
    batch = next(iter(Dataset.from_arrow(pa.table({"x": [1, None]})).batch(2)))
    jax = pytest.importorskip("jax")
    assert jax.jit(lambda rows: rows["x"]["value"] + rows["x"]["valid"])(batch).tolist() == [2, 0]
    assert type(jax.tree.map(lambda leaf: leaf, batch)["x"]) is di.data.Nullable
    trees = pytest.importorskip("torch.utils._pytree")
    assert trees.tree_map(lambda leaf: leaf.shape, batch) == {"x": {"value": (2,), "valid": (2,)}}


def _uuids(*values: bytes) -> Any:
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array([value * 16 for value in values], pa.binary(16)))


_HALVES = pa.DictionaryArray.from_arrays(
    pa.array([0, 1], pa.int8()), pa.array([1.0, 2.0], pa.float32()).cast("float16")
)
_HOLES = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))


@pytest.mark.parametrize(
    "array, expected",
    [
        (pa.array([[], None], pa.list_(pa.int64(), 0)), [[], None]),
        (pa.array([[[]], [None]], pa.list_(pa.list_(pa.int64(), 0), 1)), [[[]], [None]]),
        (
            pa.ListViewArray.from_arrays(
                pa.array([0, 0], pa.int32()), pa.array([0, 0], pa.int32()),
                pa.FixedSizeListArray.from_arrays(_uuids(b"a", b"b"), 1), mask=pa.array([False, True]),
            ),
            [[], None],
        ),
        (
            pa.StructArray.from_arrays(
                [pa.FixedSizeListArray.from_arrays(_HALVES, 1)], ["h"], mask=pa.array([False, True])
            ),
            [{"h": [1.0]}, None],
        ),
        (
            pa.StructArray.from_arrays(
                [pa.FixedSizeListArray.from_arrays(_HOLES, 1)], ["h"], mask=pa.array([True, False])
            ),
            [None, {"h": [None]}],
        ),
        (
            pa.StructArray.from_arrays(
                [pa.FixedSizeListArray.from_arrays(_uuids(b"a", b"b"), 1)], ["u"], mask=pa.array([False, True])
            ),
            [{"u": [b"a" * 16]}, None],
        ),
        (pa.nulls(2, pa.list_(pa.null(), 2)), [None, None]),
        (pa.array([Decimal("1E+3"), None], pa.decimal128(5, -3)), [b"1E+3", None]),
    ],
    ids=["lists of none", "lists of lists of none", "empty views", "halves", "holes", "uuids", "nulls", "thousands"],
)  # fmt: skip
def test_nulls_of_odd_types_are_told_in_place(array: Any, expected: list[Any], tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    table = pa.table({"x": array})
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert di.data.ArrowDataset(path).to_arrow()["x"].to_pylist() == expected


@pytest.mark.parametrize("value, why", [(1.5, "it would become 1"), ("x", "Could not convert"), (2**70, "too large")])
@pytest.mark.parametrize("valid", [None, ["x"]])
def test_what_replaces_nulls_is_a_value_of_the_column(value: Any, why: str, valid: Any, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, None]), "l": pa.array([[1, None], []])})
    pq.write_table(table, str(tmp_path / "a.parquet"))
    (tmp_path / "a.csv").write_text("x,y\n1,1\n,2\n")
    (tmp_path / "a.jsonl").write_text('{"x":1}\n{"x":null}\n')
    made: list[Any] = [
        lambda nulls: Dataset.from_arrow(table.select(["x"]), nulls=nulls, valid=valid),
        lambda nulls: di.data.ParquetDataset(str(tmp_path / "a.parquet"), columns=["x"], nulls=nulls, valid=valid),
    ]
    if valid is None:
        made.append(lambda nulls: di.data.CsvDataset(str(tmp_path / "a.csv"), columns=["x"], nulls=nulls))
        made.append(lambda nulls: di.data.JsonLinesDataset(str(tmp_path / "a.jsonl"), nulls=nulls))
    for make in made:
        with pytest.raises(di.errors.InvalidArgumentError, match=f"nulls: column 'x' is of type int64, and .*{why}"):
            make({"x": value}).to_list()
        assert [row["x"]["value"] if valid else row["x"] for row in make({"x": 2.0}).to_list()] == [1, 2]
    with pytest.raises(di.errors.InvalidArgumentError, match=r"column 'l' is of type int64, and 0\.5 is not"):
        Dataset.from_arrow(table, nulls={"x": 0, "l": 0.5}).to_list()


@pytest.mark.parametrize("kind, value", [(pa.float16(), 1e6), (pa.float32(), 1e40), (pa.float32(), 10**40)])
@pytest.mark.parametrize("valid", [None, ["x"]])
def test_what_replaces_nulls_does_not_become_infinite(kind: Any, value: Any, valid: Any) -> None:
    table = pa.table({"x": pa.array([np.float16(1), None], pa.float16()).cast(kind)})
    with pytest.raises(di.errors.InvalidArgumentError, match=f"nulls: column 'x' is of type {kind}, and .* is not: "):
        Dataset.from_arrow(table, nulls={"x": value}, valid=valid).to_list()
    assert Dataset.from_arrow(table, nulls={"x": float("inf")}).to_list()[1] == {"x": float("inf")}


@pytest.mark.parametrize("valid", [[5], {"x": 5}, {5: "x"}])
def test_names_of_marks_are_text(valid: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, None]}), str(tmp_path / "a.parquet"))
    for make in (
        lambda: Dataset.from_arrow(pa.table({"x": [1, None]}), valid=valid),
        lambda: di.data.ParquetDataset(str(tmp_path / "a.parquet"), valid=valid),
    ):
        with pytest.raises(di.errors.InvalidArgumentError, match=r"valid must be a dict .* or a list of columns, got"):
            make().to_list()


@pytest.mark.parametrize("nulls", [{"s.a": 7}, {"s": {"a": 7}}, {"s": 7}, {"m": {"a": 7}}, {"m": 7}, {"m.a": 7}])
@pytest.mark.parametrize("in_place", [False, True])
def test_what_replaces_nulls_of_a_field_does_so_where_they_are_told(nulls: Any, in_place: bool, tmp_path: Path) -> None:
    table = pa.table({"s": [{"a": 1}, {"a": None}], "m": [[{"a": 1}, {"a": None}], []]})
    pq.write_table(table, str(tmp_path / "a.parquet"))
    name = next(iter(nulls))[0]
    valid = [f"{name}.a"] if in_place else {f"{name}.a": "known"}
    for ds in (
        Dataset.from_arrow(table.select([name]), nulls=nulls, valid=valid),
        di.data.ParquetDataset(str(tmp_path / "a.parquet"), columns=[name], nulls=nulls, valid=valid),
    ):
        rows = [row[name] for row in ds.to_list()]
        values = [row["a"]["value"] if in_place else row["a"] for row in rows]
        assert values == ([1, 7] if name == "s" else [[1, 7], []])


@pytest.mark.parametrize(
    "items, value, stored",
    [
        (_uuids(b"a", b"b"), b"z" * 16, b"z" * 16),
        (pa.array(["a", "b"], pa.string_view()), "z", b"z"),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), (), None),
        (pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), _uuids(b"a", b"b")), (), None),
        (pa.StructArray.from_arrays([_uuids(b"a", b"b")], ["u"]), {"u": b"z" * 16}, None),
        (pa.array([1, None]), 7, 7),
    ],
    ids=["uuids", "views", "maps", "lists", "structs", "numbers"],
)
def test_values_of_any_type_stand_in_the_place_of_null_lists_of_one_size(items: Any, value: Any, stored: Any) -> None:
    array = pa.FixedSizeListArray.from_arrays(items, 1, mask=pa.array([False, True]))
    for valid in (None, ["x[]"]):
        rows = Dataset.from_arrow(pa.table({"x": array}), nulls={"x": value}, valid=valid).to_list()
        last = rows[1]["x"] if valid is None else rows[1]["x"]["value"]
        assert stored is None or last == [stored]
        assert valid is None or rows[1]["x"]["valid"] == [False]


@pytest.mark.parametrize("nulls", [{"l": []}, {"l": (), "s": {"a": 7}}])
def test_replacements_that_are_lists_and_dicts_serve_every_way_to_read(nulls: Any, tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2, 3, 4], "l": [[1], None] * 2, "s": [{"a": 1}, {"a": 2}] * 2})
    pq.write_table(table, str(tmp_path / "a.parquet"), row_group_size=2)
    di.io.write_arrow(str(tmp_path / "a.arrow"), {name: table[name] for name in table.column_names}, batch_rows=2)
    parquet = di.data.ParquetDataset(str(tmp_path / "a.parquet"), nulls=nulls)
    arrow = di.data.ArrowDataset(str(tmp_path / "a.arrow"), nulls=nulls)
    assert [row["l"].tolist() for row in parquet.filter(pc.field("x") > 2)] == [[1], []]
    for ds in (parquet, arrow):
        assert ds[3]["l"].tolist() == []
        assert sorted(int(row["x"]) for row in ds.global_shuffle(seed=1)) == [1, 2, 3, 4]


def test_an_empty_list_stands_for_null_lists_and_not_for_nulls_in_them() -> None:
    table = pa.table({"f": [[0.5, None], None], "t": pa.array([[1, None], None], pa.list_(pa.time32("ms")))})
    rows = list(Dataset.from_arrow(table, nulls={"f": (), "t": ()}))
    assert [np.isnan(row["f"]).tolist() for row in rows] == [[False, True], []]
    assert [np.isnat(row["t"]).tolist() for row in rows] == [[False, True], []]
    with pytest.raises(di.errors.InvalidArgumentError, match=r"column 'i' has nulls.*valid=\['i\[\]'\]"):
        Dataset.from_arrow(pa.table({"i": [[1, None], None]}), nulls={"i": ()}, valid=[]).to_list()
    with pytest.raises(di.errors.InvalidArgumentError, match=r"column 'i' is of type int64, and \(\) is not"):
        Dataset.from_arrow(pa.table({"i": [1, None]}), nulls={"i": ()}).to_list()


_PAIR = pa.struct([("x", pa.int64()), ("y", pa.int64())])


def _null_pairs() -> pa.Table:
    return pa.table({"c": pa.array([[{"x": 1, "y": 2}] * 2, None], pa.list_(_PAIR, 2))})


@pytest.mark.parametrize("nulls", [{"c": {"x": 7}}, {"c.x": 7, "c": ()}, {"c": ()}])
@pytest.mark.parametrize("file", [False, True])
def test_a_field_without_a_replacement_is_no_zero_in_a_null_list_of_one_size(
    nulls: Any, file: bool, tmp_path: Path
) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(_null_pairs(), path)
    make: Any = partial(di.data.ParquetDataset, path) if file else partial(Dataset.from_arrow, _null_pairs())
    assert [bool(row["c"]["valid"]) for row in make(nulls=nulls).to_list()] == [True, False]
    with pytest.raises(di.errors.InvalidArgumentError, match=r"column 'c.*' has nulls.*first in .*row 1"):
        make(nulls=nulls, valid=[]).to_list()
    full = make(nulls={"c": {"x": 7, "y": 8}}).to_list()[1]["c"]
    assert full == {"x": [7, 7], "y": [8, 8]}


@pytest.mark.parametrize("levels", [1, 2])
def test_null_lists_of_structs_of_floats_are_told_though_an_empty_list_is_given(levels: int) -> None:
    kind, value = pa.struct([("a", pa.float32())]), {"a": 1.0}
    for _ in range(levels):
        kind, value = pa.list_(kind, 1), [value]  # type: ignore[assignment]
    rows = Dataset.from_arrow(pa.table({"c": pa.array([None, value], kind)}), nulls={"c": ()}).to_list()
    assert [row["c"]["valid"] for row in rows] == [False, True]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_an_empty_list_is_no_list_of_two(kind: Any) -> None:
    table = pa.table({"c": pa.array([None], pa.list_(kind, 2))})
    assert not Dataset.from_arrow(table, nulls={"c": ()}).to_list()[0]["c"]["valid"]
    with pytest.raises(di.errors.InvalidArgumentError, match="column 'c' has nulls, the first in row 0"):
        Dataset.from_arrow(table, nulls={"c": ()}, valid=[]).to_list()


@pytest.mark.parametrize("nulls", [{"s": {"a": np.array(7)}}, {"s.a": np.array(7)}])
def test_an_array_without_an_axis_is_one_value(nulls: Any) -> None:
    table = pa.table({"s": [{"a": 1}, {"a": None}]})
    assert Dataset.from_arrow(table, nulls=nulls).to_list() == [{"s": {"a": 1}}, {"s": {"a": 7}}]


@pytest.mark.parametrize("value", [[1, 2], (1, 2), np.array([1, 2]), [[1], [2, 3]], np.zeros(0, int)])
@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.list_(pa.int64(), 2)])
def test_a_list_of_values_replaces_no_null_list(kind: Any, value: Any) -> None:
    table = pa.table({"c": pa.array([[1, 2], None], kind)})
    with pytest.raises(
        di.errors.InvalidArgumentError, match="cannot replace the nulls of 'c': only an empty list stands"
    ):
        Dataset.from_arrow(table, nulls={"c": value}).to_list()
