# SPDX-License-Identifier: Apache-2.0
"""`nulls={column: value}` replaces the nulls of what it names, in every reader; all others are as without it."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.data import Dataset

FLAT = pa.table({"age": [30, None, 1], "size": [None, 2, 3], "w": [0.5, None, 1.5]})
NESTED = FLAT.append_column("s", pa.array([{"a": 1, "b": 2}, None, {"a": None, "b": None}])).append_column(
    "l", pa.array([[1, None], [], None])
)

Reader = Callable[[pa.Table, Path], Callable[..., Any]]


def in_file(write: Callable[[pa.Table, str], Any], read: Any) -> Reader:
    def reader(table: pa.Table, folder: Path) -> Callable[..., Any]:
        write(table, str(folder / "file"))
        return lambda **options: read(str(folder / "file"), **options)

    return reader


def write_json(table: pa.Table, path: str) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def write_csv(table: pa.Table, path: str) -> None:
    rows = [
        table.column_names,
        *[["" if each is None else str(each) for each in row.values()] for row in table.to_pylist()],
    ]
    Path(path).write_text("".join(",".join(row) + "\n" for row in rows))


def in_sql(table: pa.Table, folder: Path) -> Callable[..., Any]:
    connection = sqlite3.connect(folder / "file")
    connection.execute(f"CREATE TABLE t ({', '.join(table.column_names)})")
    marks = ", ".join("?" * table.num_columns)
    connection.executemany(f"INSERT INTO t VALUES ({marks})", [tuple(row.values()) for row in table.to_pylist()])
    connection.commit()
    return lambda **options: Dataset.from_sql("SELECT * FROM t", lambda: sqlite3.connect(folder / "file"), **options)


def in_hub(table: pa.Table, folder: Path) -> Callable[..., Any]:
    datasets = pytest.importorskip("datasets")
    return lambda **options: di.interop.huggingface.from_hf(datasets.Dataset(table), **options)


def in_delta(table: pa.Table, folder: Path) -> Callable[..., Any]:
    pytest.importorskip("deltalake").write_deltalake(str(folder / "file"), table)
    return lambda **options: di.interop.tables.from_delta(str(folder / "file"), **options)


FLAT_READERS: dict[str, Reader] = {"csv": in_file(write_csv, di.data.CsvDataset), "sql": in_sql}
READERS: dict[str, Reader] = {
    "parquet": in_file(pq.write_table, di.data.ParquetDataset),
    "arrow": in_file(lambda table, path: pa.feather.write_feather(table, path, "uncompressed"), di.data.ArrowDataset),
    "json lines": in_file(write_json, di.data.JsonLinesDataset),
    "from_arrow": lambda table, _: lambda **options: Dataset.from_arrow(table, **options),
    "from_arrow, columns": lambda table, _: (
        lambda **options: Dataset.from_arrow({name: table[name] for name in table.column_names}, **options)
    ),
    "from_arrow, batches": lambda table, _: (
        lambda **options: Dataset.from_arrow(pa.concat_tables([table.slice(0, 1), table.slice(1)]), **options)
    ),
    "hugging face": in_hub,
    "delta": in_delta,
}


def plain(value: Any) -> Any:
    """A value of Python's own, with None for NaN."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value
    return None if value != value else value


@pytest.mark.parametrize("name", [*READERS, *FLAT_READERS])
@pytest.mark.parametrize("named", [(), ("age",), ("size",), ("age", "size"), ("w",)])
def test_columns_that_are_not_named_are_as_without_it(name: str, named: tuple[str, ...], tmp_path: Path) -> None:
    read = {**READERS, **FLAT_READERS}[name](FLAT, tmp_path)
    rows = read(nulls=dict.fromkeys(named, -1)).to_list()
    for row, before, given in zip(rows, read().to_list(), FLAT.to_pylist(), strict=True):
        replaced = {name: -1 if given[name] is None else given[name] for name in named}
        assert plain(row) == {**plain(before), **replaced}


@pytest.mark.parametrize("name", [each for each in READERS if each != "from_arrow, columns"])
def test_parts_that_are_not_named_are_as_without_it(name: str, tmp_path: Path) -> None:
    read = READERS[name](NESTED, tmp_path)
    before = [plain(row) for row in read().to_list()]
    for named in ("age", "l"):
        rows = read(nulls={named: 7 if named == "age" else ()}).to_list()
        assert [{**plain(row), named: 0} for row in rows] == [{**row, named: 0} for row in before]
    lists = [plain(row["l"]) for row in read(nulls={"l": ()}).to_list()]  # null items are told, null lists are empty
    assert [row["value"] for row in lists] == [[1, 0], [], []]
    assert [row["valid"] for row in lists] == [[True, False], [], []]
    for given in ({"s.a": 7}, {"s": {"a": 7}}):
        rows = [row["s"] for row in read(nulls=given).to_list()]
        assert [bool(row["valid"]) for row in rows] == [True, False, True]
        assert [int(row["value"]["a"]) for row in rows if row["valid"]] == [1, 7]
        assert [bool(row["value"]["b"]["valid"]) for row in rows if row["valid"]] == [True, False]


@pytest.mark.parametrize("name", ["parquet", "arrow", "from_arrow", "hugging face", "delta"])
def test_a_null_struct_of_which_each_field_is_named_is_a_struct(name: str, tmp_path: Path) -> None:
    read = READERS[name](NESTED.select(["s"]), tmp_path)
    for nulls in ({"s": 5}, {"s": {"a": 5, "b": 5}}, {"s.a": 5, "s.b": 5}):
        rows = [{key: int(part) for key, part in row["s"].items()} for row in read(nulls=nulls)]
        assert rows == [{"a": 1, "b": 2}, {"a": 5, "b": 5}, {"a": 5, "b": 5}]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "nulls, why",
    [
        ({"age": None}, "None cannot replace the nulls of 'age'; give a value"),
        ({"s": {"a": None}}, "None cannot replace the nulls of 's.a'"),
        ({"s": {}}, "the dict for 's' is empty; give a value for each field"),
    ],
)
def test_what_is_no_value_is_refused_as_the_dataset_is_made(name: str, nulls: Any, why: str, tmp_path: Path) -> None:
    read = READERS[name](NESTED, tmp_path)
    with pytest.raises(di.errors.InvalidArgumentError, match=why):
        read(nulls=nulls)


@pytest.mark.parametrize("name", [each for each in READERS if each != "from_arrow, columns"])
def test_a_field_that_is_not_there_is_refused_at_the_first_look(name: str, tmp_path: Path) -> None:
    read = READERS[name](NESTED, tmp_path)
    with pytest.raises(di.errors.InvalidArgumentError, match=r"column 's\.z'"):
        _ = read(nulls={"s": {"z": 1}}).element_spec


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_a_state_of_columns_that_were_not_told_goes_on(name: str, tmp_path: Path) -> None:
    read = READERS[name](FLAT, tmp_path)
    nulls = {"age": 0, "size": 0}
    iterator = iter(read(nulls=nulls, valid={}))
    next(iterator)
    assert read(nulls=nulls).restore(iterator.state()).get_next()["size"] == 2
