# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from distinput.data import ArrowDataset, FileDataset, ParquetDataset
from distinput.errors import InvalidArgumentError
from tests.formats.reading import plain

DATASETS = {"parquet": ParquetDataset, "arrow": ArrowDataset}


def write(tmp_path: Path, format: str, *tables: pa.Table) -> list[str]:
    names = []
    for number, table in enumerate(tables):
        names.append(str(tmp_path / f"{number}.{format}"))
        if format == "parquet":
            pq.write_table(table, names[-1], row_group_size=2)
        else:
            with pa.OSFile(names[-1], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, 2)
    return names


TABLES = (
    pa.table({"x": pa.array([1, 2, 3], pa.int32()), "t": ["a", "b", None], "s": [{"a": 1}, {"a": 2}, None]}),
    pa.table(
        {"t": pa.nulls(2), "s": [{"b": 1.5, "a": 3}, {"b": 2.5, "a": 4}], "x": pa.array([4, 1 << 40], pa.int64())}
    ),
    pa.table({"x": pa.array([6], pa.int8()), "t": pa.array(["a"]).dictionary_encode(), "new": [True]}),
)
NULLS = {"t": b"?", "s.a": -1, "new": False}
WANT = [
    {"x": 1, "t": b"a", "s": {"a": 1, "b": np.nan}, "new": False},
    {"x": 2, "t": b"b", "s": {"a": 2, "b": np.nan}, "new": False},
    {"x": 3, "t": b"?", "s": {"a": -1, "b": np.nan}, "new": False},
    {"x": 4, "t": b"?", "s": {"a": 3, "b": 1.5}, "new": False},
    {"x": 1 << 40, "t": b"?", "s": {"a": 4, "b": 2.5}, "new": False},
    {"x": 6, "t": b"a", "s": {"a": -1, "b": np.nan}, "new": True},
]
SCHEMA = {"x": "int64", "t": str, "s": {"a": "int64", "b": "float64"}, "new": bool}


@pytest.mark.parametrize("format", DATASETS)
@pytest.mark.parametrize("schema", ["union", SCHEMA], ids=["union", "stated"])
def test_files_that_differ_are_one_dataset(format: str, schema: Any, tmp_path: Path) -> None:
    files = write(tmp_path, format, *TABLES)
    ds = DATASETS[format](files, schema=schema, nulls=NULLS)
    assert str(ds.to_list()) == str(WANT)
    assert [list(row) for row in ds] == [["x", "t", "s", "new"]] * 6
    assert str(ds.element_spec["x"].dtype) == "int64"
    assert len(ds) == 6
    assert str(ds.skip(3).to_list()) == str(WANT[3:])
    assert sorted(map(str, ds.shuffle(9, seed=1).to_list())) == sorted(map(str, WANT))
    assert sorted(map(str, ds.global_shuffle(seed=1).to_list())) == sorted(map(str, WANT))
    assert ds.select(["new", "x"]).to_list() == [{"new": row["new"], "x": row["x"]} for row in WANT]
    assert ds.filter(pc.field("x") > 3).select(["t"]).to_list() == [{"t": row["t"]} for row in WANT[3:]]
    assert [row["new"] for row in DATASETS[format](files, ["new"], schema=schema, nulls=NULLS)] == [False] * 5 + [True]
    assert str(FileDataset(files, format, schema=schema, nulls=NULLS).to_list()) == str(WANT)
    iterator = iter(ds)
    for _ in range(4):
        next(iterator)
    again = DATASETS[format](files, schema=schema, nulls=NULLS)
    assert str([plain(row) for row in again.restore(iterator.state())]) == str([plain(row) for row in list(ds)[4:]])


@pytest.mark.parametrize("format", DATASETS)
def test_nulls_that_are_told_by_a_column(format: str, tmp_path: Path) -> None:
    files = write(tmp_path, format, *TABLES)
    ds = DATASETS[format](files, ["t", "x"], schema="union", valid={"t": "t_valid"})
    assert [row["t"] for row in ds] == [b"a", b"b", b"", b"", b"", b"a"]
    ds = DATASETS[format](files, schema="union", valid={"t": "has", "new": "known"}, nulls={**NULLS, "t": b"-"})
    assert [(row["t"], row["has"], row["known"]) for row in ds.to_list()] == [
        (b"a", True, False),
        (b"b", True, False),
        (b"-", False, False),
        (b"-", False, False),
        (b"-", False, False),
        (b"a", True, True),
    ]
    assert ds.select(["has"]).to_list() == [{"has": row["has"]} for row in ds.to_list()]
    one = DATASETS[format](files[0], valid={"t": "has"}, nulls={"s": 0})
    assert [row["has"] for row in one.to_list()] == [True, True, False]


@pytest.mark.parametrize("format", DATASETS)
def test_what_cannot_be_brought_together_names_file_and_column(format: str, tmp_path: Path) -> None:
    files = write(tmp_path, format, pa.table({"x": [1]}), pa.table({"x": ["a"]}))
    with pytest.raises(
        InvalidArgumentError, match=rf"1\.{format}: its columns cannot be brought together.*state the types"
    ):
        _ = DATASETS[format](files, schema="union").element_spec
    with pytest.raises(
        InvalidArgumentError, match=rf"1\.{format}: column 'x' is of type string, and the schema says int64"
    ):
        DATASETS[format](files, schema={"x": "int64"}).to_list()
    files = write(tmp_path, format, pa.table({"x": [1]}), pa.table({"x": [1 << 40]}))
    with pytest.raises(
        InvalidArgumentError, match=rf"1\.{format}: column 'x' is of type int64, and a value of it does not"
    ):
        DATASETS[format](files, schema={"x": "int32"}).to_list()
    files = write(tmp_path, format, pa.table({"x": [1]}), pa.table({"y": [1]}))
    with pytest.raises(InvalidArgumentError, match=r"column 'y' has nulls.*nulls=\{'y': value\}"):
        DATASETS[format](files, schema="union").to_list()
    with pytest.raises(InvalidArgumentError, match="valid: there is no column 'z'"):
        DATASETS[format](files, schema="union", valid={"z": "has"}).to_list()
    with pytest.raises(InvalidArgumentError, match="its records are"):
        DATASETS[format](files).to_list()
    nothing = write(tmp_path, format, pa.table({"x": [1]}), pa.table({"x": pa.nulls(1)}))
    with pytest.raises(InvalidArgumentError, match="its records are"):
        DATASETS[format](nothing).to_list()
    with pytest.raises(InvalidArgumentError, match="schema must be a dict of types"):
        DATASETS[format](files, schema="all")


def test_states_of_plain_files_do_not_know_of_it(tmp_path: Path) -> None:
    (file,) = write(tmp_path, "parquet", pa.table({"x": range(5)}))
    made = str(FileDataset(file, "parquet").node.format)
    assert "conforming" not in made
    assert made.startswith("Parquet(")


def test_numbers_that_would_become_infinite_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    rows = {
        "f": [1e300, 1.0],
        "l": [[1.0], [1e300]],
        "i": [np.inf, -np.inf],
        "h": [1.5, 7e4],
        "s": [[{"a": 1e300}], []],
    }
    pq.write_table(pa.table(rows), path)
    structs = pa.list_(pa.struct([("a", pa.float32())]))
    for name, kind in (("f", "float32"), ("l", pa.list_(pa.float32())), ("h", "float16"), ("s", structs)):
        with pytest.raises(InvalidArgumentError, match=rf"column '{name}' .* a number would become infinite"):
            ParquetDataset(path, schema={name: kind}).to_list()
    assert ParquetDataset(path, schema={"i": "float32"}).to_list() == [{"i": np.inf}, {"i": -np.inf}]


def test_maps_become_wider_and_lists_of_what_arrow_makes_none_of_stay(tmp_path: Path) -> None:
    maps = [pa.array([[("a", 1)]], pa.map_(pa.string(), kind)) for kind in (pa.int32(), pa.int64())]
    files = write(tmp_path, "parquet", *[pa.table({"m": each}) for each in maps])
    assert [plain(row["m"]) for row in ParquetDataset(files, schema="union")] == [{"key": [b"a"], "value": [1]}] * 2
    texts = write(
        tmp_path,
        "parquet",
        pa.table({"m": maps[0]}),
        pa.table({"m": pa.array([[("a", "b")]], pa.map_("string", "string"))}),
    )
    with pytest.raises(InvalidArgumentError, match=r"column .m. is of type string, and the schema says int64"):
        ParquetDataset(texts, schema={"m": pa.map_("string", "int64")}).to_list()
    lists = pa.nulls(1, pa.list_(pa.list_(pa.uuid())))
    files = write(tmp_path, "parquet", pa.table({"l": lists}), pa.table({"l": lists, "x": [1]}))
    assert len(ParquetDataset(files, schema="union", nulls={"l": (), "x": 0}).to_list()) == 2
