# SPDX-License-Identifier: Apache-2.0
"""Nulls are told by marks beside them: nothing of a table is lost, whatever its types are."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

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
