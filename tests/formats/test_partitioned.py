# SPDX-License-Identifier: Apache-2.0
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.cli.main import main
from distinput.data import ArrowDataset, CsvDataset, FileDataset, JsonLinesDataset, NpzDataset, ParquetDataset
from distinput.errors import InvalidArgumentError
from distinput.formats.parquet import Parquet
from distinput.formats.partitioned import NULL, partitioned
from tests.formats.reading import check_positions, plain

FORMATS: dict[str, Any] = {
    "arrow": ArrowDataset,
    "csv": CsvDataset,
    "jsonl": JsonLinesDataset,
    "npz": NpzDataset,
    "parquet": ParquetDataset,
}
FOLDERS = [(year, city) for year in (2023, 2024) for city in ("Oslo", "São Paulo", "a/b")]


def write(path: Path, format: str, rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if format == "npz":
        np.savez(path, **rows)
    elif format in ("parquet", "arrow"):
        (di.io.write_parquet if format == "parquet" else di.io.write_arrow)(str(path), rows)
    else:
        lines = [
            dict(zip(rows, values, strict=True)) for values in zip(*[v.tolist() for v in rows.values()], strict=True)
        ]
        if format == "csv":
            path.write_text("\n".join([",".join(rows), *[",".join(map(str, line.values())) for line in lines]]) + "\n")
        else:
            path.write_text("".join(str(line).replace("'", '"') + "\n" for line in lines))


def folder(tmp_path: Path, format: str) -> tuple[str, list[dict[str, Any]]]:
    want = []
    for number, (year, city) in enumerate(FOLDERS):
        place = tmp_path / "root" / f"year={year}" / f"city={city.replace('/', '%2F').replace(' ', '%20')}"
        write(place / f"part.{format}", format, {"x": np.arange(3) + 10 * number})
        want += [{"x": 10 * number + i, "year": year, "city": city.encode()} for i in range(3)]
    by_name = sorted(
        want, key=lambda row: (row["year"], row["city"].replace(b"/", b"%2F").replace(b" ", b"%20"), row["x"])
    )
    return str(tmp_path / "root"), by_name


@pytest.mark.parametrize("format", FORMATS)
def test_folders_are_columns(format: str, tmp_path: Path) -> None:
    root, want = folder(tmp_path, format)
    ds = FORMATS[format](root)
    assert ds.to_list() == want
    assert [list(row) for row in ds] == [["x", "year", "city"]] * len(want)
    assert str(ds.element_spec["year"].dtype) == "int64"
    assert ds.select(["city", "x"]).to_list() == [{"city": row["city"], "x": row["x"]} for row in want]
    assert ds.select(["year"]).to_list() == [{"year": row["year"]} for row in want]
    assert FORMATS[format](root, partitioning=None).to_list() == [{"x": row["x"]} for row in want]
    assert ds.skip(7).to_list() == want[7:]
    assert sorted(ds.shuffle(100, seed=1).to_list(), key=str) == sorted(want, key=str)
    assert FileDataset(root, format).to_list() == want
    iterator = iter(ds)
    for _ in range(8):
        next(iterator)
    assert [plain(row) for row in ds.restore(iterator.state())] == want[8:]
    kept = ds.filter((pc.field("year") == 2024) & (pc.field("x") > 33)).to_list()
    assert kept == [row for row in want if row["year"] == 2024 and row["x"] > 33]
    assert [len(row) for row in FORMATS[format](root, num_parallel_reads=2)] == [3] * len(want)


def test_folders_are_what_pyarrow_makes_of_them(tmp_path: Path) -> None:
    root, want = folder(tmp_path, "parquet")
    table = pads.dataset(root, partitioning="hive").to_table()
    found = [{**row, "city": row["city"].encode()} for row in table.to_pylist()]
    assert sorted(found, key=str) == sorted(want, key=str)


def test_folders_that_say_two_values_of_a_column_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "y=1" / "y=2" / "a.parquet", "parquet", {"x": np.arange(2)})
    write(tmp_path / "z=1" / "z=1" / "a.parquet", "parquet", {"x": np.arange(2)})
    with pytest.raises(
        InvalidArgumentError, match=r"two of its folders name the column 'y', as '1' and as '2'; give one"
    ):
        ParquetDataset(str(tmp_path / "y=1"))
    assert ParquetDataset(str(tmp_path / "y=1"), partitioning=None).to_list() == [{"x": 0}, {"x": 1}]
    assert ParquetDataset(str(tmp_path / "z=1")).to_list() == [{"x": 0, "z": 1}, {"x": 1, "z": 1}]


def test_a_file_that_a_filter_leaves_out_is_not_opened(tmp_path: Path) -> None:
    root, want = folder(tmp_path, "parquet")
    kept = [row for row in want if row["year"] == 2023]
    ds = ParquetDataset(root)
    filtered, by_city = ds.filter(pc.field("year") == 2023), ds.filter(pc.field("city") == b"Oslo")
    assert ds.element_spec["year"].shape == ()
    for path in (tmp_path / "root" / "year=2024").rglob("*.parquet"):
        content = path.read_bytes()
        path.write_bytes(bytes(len(content)))
    assert ParquetDataset(root).filter(pc.field("year") == 2023).to_list() == kept
    assert filtered.to_list() == kept
    assert by_city.take(3).to_list() == [row for row in kept if row["city"] == b"Oslo"]
    assert by_city.select(["x"]).take(3).to_list() == [{"x": row["x"]} for row in kept if row["city"] == b"Oslo"]


def test_names_and_patterns_have_the_same_columns_as_their_folder(tmp_path: Path) -> None:
    root, want = folder(tmp_path, "parquet")
    assert ParquetDataset(f"{root}/*/*/*.parquet").to_list() == want
    one = ParquetDataset(f"{root}/year=2023/city=Oslo/part.parquet")
    assert one.to_list() == want[:3] or one.to_list() == [row for row in want if row["city"] == b"Oslo"][:3]
    assert ParquetDataset(root, columns=["city", "x"]).to_list() == [{"city": r["city"], "x": r["x"]} for r in want]


def test_null_and_stated_types(tmp_path: Path) -> None:
    for name in ("n=1", "n=__HIVE_DEFAULT_PARTITION__", "n=007"):
        write(tmp_path / "root" / name / "a.parquet", "parquet", {"x": np.arange(1)})
    root = str(tmp_path / "root")
    with pytest.raises(InvalidArgumentError, match=r"n=__HIVE.*a\.parquet: the column 'n' of its folder is null; say"):
        ParquetDataset(root, nulls="error").to_list()
    assert [row["n"] for row in ParquetDataset(root, nulls={"n": -1})] == [7, 1, -1]
    text = ParquetDataset(root, nulls={"n": b"?"}, partitioning={"n": str})
    assert [row["n"] for row in text] == [b"007", b"1", b"?"]
    floats = [row["n"] for row in ParquetDataset(root, partitioning={"n": "float32"})]
    assert floats[:2] == [7.0, 1.0]
    assert np.isnan(floats[2])
    with pytest.raises(InvalidArgumentError, match="no folder names a column 'm'; they name 'n'"):
        ParquetDataset(root, partitioning={"m": str})
    with pytest.raises(InvalidArgumentError, match='partitioning must be "hive", None, or a dict'):
        ParquetDataset(root, partitioning="spark")
    text_root = tmp_path / "words"
    write(text_root / "n=one" / "a.parquet", "parquet", {"x": np.arange(1)})
    with pytest.raises(
        InvalidArgumentError, match=r"a\.parquet: the column 'n' of its folder is 'one', which is no int64"
    ):
        ParquetDataset(str(text_root), partitioning={"n": "int64"}).to_list()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("told", ["7", "Oslo"])
def test_the_null_of_a_folder_is_a_value_and_a_mark(format: str, told: str, tmp_path: Path) -> None:
    for number, name in enumerate((told, "__HIVE_DEFAULT_PARTITION__")):
        write(tmp_path / "root" / f"n={name}" / f"a.{format}", format, {"x": np.arange(2) + 2 * number})
    root = str(tmp_path / "root")
    value, zero = (7, 0) if told == "7" else (told.encode(), b"")
    marks = [{"value": value, "valid": True}, {"value": zero, "valid": False}]
    want = sorted([{"x": 2 * number + i, "n": marks[number]} for number in range(2) for i in range(2)], key=str)
    ds = FORMATS[format](root)
    assert sorted(ds.to_list(), key=str) == want
    assert sorted(ds.batch(3).unbatch().to_list(), key=str) == want
    assert [row["n"] for row in ds.filter(pc.field("n") == value)] == marks[:1] * 2
    assert [row["n"] for row in ds.filter(pc.field("n").is_null())] == marks[1:] * 2
    assert FORMATS[format](root).select(["n"]).to_arrow(text=True)["n"].null_count == 2
    if format != "npz":
        assert {row["n"] for row in FORMATS[format](root, nulls={"n": value})} == {value}
    ds.write(str(tmp_path / "again"), "parquet")
    assert sorted(FileDataset(str(tmp_path / "again")).to_list(), key=str) == want
    iterator = iter(ds)
    next(iterator)
    assert [plain(row) for row in ds.restore(iterator.state())] == ds.to_list()[1:]


def test_what_does_not_fit_names_the_file(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x=1" / "f.parquet", "parquet", {"x": np.arange(1)})
    with pytest.raises(InvalidArgumentError, match=r"f\.parquet: is in a folder 'x=1', and its own column 'x' holds 0"):
        ParquetDataset(str(tmp_path / "a")).to_list()
    assert ParquetDataset(str(tmp_path / "a"), partitioning=None).to_list() == [{"x": 0}]
    for name in ("y=1/f", "y=1/z=2/g", "h"):
        write(tmp_path / "b" / f"{name}.parquet", "parquet", {"x": np.arange(1)})
    with pytest.raises(InvalidArgumentError, match=r"y=1/f\.parquet: its folders name the columns 'y', and .*h\.parq"):
        ParquetDataset(str(tmp_path / "b"))


def test_a_column_of_the_file_that_says_what_the_folder_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "a")
    columns = {"x": np.array([7, 7], np.int32), "text": np.array([b"Oslo", b"Oslo"], object), "y": np.arange(2)}
    write(tmp_path / "a" / "x=7" / "text=Oslo" / "f.parquet", "parquet", columns)
    write(tmp_path / "a" / "x=008" / "text=Bonn" / "g.parquet", "parquet", {"x": np.array([8]), "y": np.arange(1)})
    for made in (ParquetDataset(f"{root}/x=7"), ParquetDataset(f"{root}/x=7").batch(2).unbatch()):
        assert made.to_list() == [{"x": 7, "text": b"Oslo", "y": y} for y in range(2)]
    assert ParquetDataset(root, columns=["y", "x"]).to_list() == [{"y": 0, "x": 8}, {"y": 0, "x": 7}, {"y": 1, "x": 7}]
    assert main(["head", "--json", "-n", "1", f"{root}/x=7"]) == 0
    assert '"value": {"x": 7, "text": "Oslo", "y": 0}' in capsys.readouterr().out
    assert main(["stats", f"{root}/x=7"]) == 0
    for own in ([7, 9], [[7], [7]], [7.5, 7.0], [True, True]):
        write(tmp_path / "b" / "x=7" / "f.parquet", "parquet", {"x": np.array(own)})
        for act in (
            lambda: ParquetDataset(str(tmp_path / "b")).to_list(),
            lambda: di.inspect.head(str(tmp_path / "b")),
        ):
            with pytest.raises(InvalidArgumentError, match=r"its own column 'x' holds|has a column 'x', and is"):
                list(act())


def test_a_column_of_a_csv_file_and_of_its_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x=7").mkdir()
    (tmp_path / "x=7" / "a.csv").write_text("x,y\n7,1\n")
    with pytest.raises(InvalidArgumentError, match=r"csv: has a column 'x', and is in a folder 'x=\.\.\.'"):
        list(di.data.FileDataset(str(tmp_path)))


def test_records_that_are_no_columns_have_none(tmp_path: Path) -> None:
    (tmp_path / "y=1").mkdir()
    (tmp_path / "y=1" / "a.txt").write_text("one\n")
    assert di.data.TextLineDataset(str(tmp_path)).to_list() == [b"one"]


def test_commands_show_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, want = folder(tmp_path, "parquet")
    assert main(["head", "--json", "-n", "1", root]) == 0
    assert '"value": {"x": 0, "year": 2023, "city": "Oslo"}' in capsys.readouterr().out
    assert main(["schema", root]) == 0
    assert "year" in capsys.readouterr().out
    assert main(["stats", root]) == 0
    assert "2,023" in capsys.readouterr().out
    assert main(["verify", root]) == 0
    assert main(["count", root]) == 0
    assert main(["info", root]) == 0
    assert f"{len(want)}" in capsys.readouterr().out


def test_positions_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "y=1" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"x": range(50)}), path, row_group_size=7)
    check_positions(partitioned(Parquet(), [str(path)]), path, [{"x": i, "y": 1} for i in range(50)])


@pytest.mark.parametrize("format, text", [("csv", "x\n1\nbad\n3\n"), ("jsonl", '{"x": 1}\n{"x": "bad"}\n{"x": 3}\n')])
def test_errors_are_of_single_records_in_folders_too(format: str, text: str, tmp_path: Path) -> None:
    place = tmp_path / "y=7" / f"a.{format}"
    place.parent.mkdir()
    place.write_text(text)
    records: Any = FileDataset(str(place), format, schema={"x": "int64"}).ignore_errors()
    plainly = tmp_path / f"a.{format}"
    plainly.write_text(text)
    want = [row["x"] for row in FileDataset(str(plainly), format, schema={"x": "int64"}).ignore_errors()]
    assert [row["x"] for row in records] == want == [1, 3]


@pytest.mark.parametrize("format", FORMATS)
def test_columns_of_files_and_folders_are_chosen(format: str, tmp_path: Path) -> None:
    root, want = folder(tmp_path, format)
    rows = FORMATS[format](root, columns=["year", "x"]).to_list()
    assert [(row["year"], row["x"]) for row in rows] == [(row["year"], row["x"]) for row in want]
    assert list(rows[0]) == ["year", "x"]


@pytest.mark.parametrize("format", FORMATS)
def test_rows_of_which_only_their_folders_are_wanted_are_reached(format: str, tmp_path: Path) -> None:
    root, want = folder(tmp_path, format)
    years = FORMATS[format](root, columns=["year"])
    assert years.to_list() == [{"year": row["year"]} for row in want]
    if format in ("csv", "jsonl"):
        return
    assert len(years) == len(want)
    assert sum(len(batch["year"]) for batch in years.global_shuffle(seed=1).batch(4)) == len(want)
    assert [years[place]["year"] for place in range(len(want))] == [row["year"] for row in want]


def test_rows_of_a_file_that_lacks_the_columns_are_reached(tmp_path: Path) -> None:
    di.io.write_parquet(tmp_path / "a.parquet", {"x": np.arange(3)})
    di.io.write_parquet(tmp_path / "b.parquet", {"x": np.arange(2), "z": np.arange(2.0)})
    rows = ParquetDataset(str(tmp_path / "*.parquet"), schema="union", columns=["z"], nulls={"z": -1.0})
    assert [row["z"] for row in rows] == [rows[place]["z"] for place in range(5)] == [-1, -1, -1, 0, 1]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "jsonl"])
def test_nulls_of_folders_are_told_where_valid_says_so(tmp_path: Path, kind: str) -> None:
    for folder in ("k=1", f"k={NULL}"):
        di.data.Dataset.from_tensor_slices({"a": [1]}).write(tmp_path / folder, kind)
    paths = sorted(str(path) for path in tmp_path.glob("*/part-*"))
    dataset = di.data.FileDataset(paths, kind, valid=["k", "a"])
    a = {"value": 1, "valid": True}
    assert dataset.to_list() == [
        {"a": a, "k": {"value": 1, "valid": True}},
        {"a": a, "k": {"value": 0, "valid": False}},
    ]
    told = di.data.FileDataset(paths[:1], kind, valid=["k"])
    assert told.to_list() == [{"a": 1, "k": {"value": 1, "valid": True}}]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("name", ["k", "t", "f"])
def test_nulls_of_folders_are_told_beside_them(tmp_path: Path, kind: str, name: str) -> None:
    for value in ("1", NULL):
        di.data.Dataset.from_tensor_slices({"a": [1]}).write(tmp_path / f"{name}={value}", kind)
    types = {"k": {"k": int}, "t": {"t": str}, "f": {"f": float}}[name]
    zero = {"k": 0, "t": b"", "f": pytest.approx(np.nan, nan_ok=True)}[name]
    one = b"1" if name == "t" else 1
    paths = sorted(str(path) for path in tmp_path.glob("*/part-*"))
    made = functools.partial(di.data.FileDataset, paths, kind, partitioning=types, valid={name: "known", "a": "there"})
    rows = [
        {"a": 1, "there": True, name: one, "known": True},
        {"a": 1, "there": True, name: zero, "known": False},
    ]
    assert made().to_list() == rows
    assert [dict(made()[place]) for place in (1, 0)] == rows[::-1]
    for columns in (["known"], ["a", "known"], ["known", name], ["there", name]):
        assert made(columns=columns).to_list() == [{each: row[each] for each in columns} for row in rows]
        assert made().select(columns).to_list() == [{each: row[each] for each in columns} for row in rows]
    with pytest.raises(InvalidArgumentError, match="valid: the mark 'a' has the name of a column"):
        made(valid={name: "a"}).to_list()
    mark = {} if name == "f" else {f"{name}_valid": "known"}
    for columns in (None, ["a", name]):
        told = di.data.FileDataset(paths, kind, partitioning=types, nulls="valid", columns=columns).to_list()
        assert told == [{"a": 1, name: row[name]} | {key: row[other] for key, other in mark.items()} for row in rows]
