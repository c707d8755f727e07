# SPDX-License-Identifier: Apache-2.0
"""What was written is read by the name of its folder, in every format."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, NoMatchError
from distinput.testing.elements import exact

Dataset = di.data.Dataset
TABLE = {
    "n": np.arange(5) - 2,
    "f": np.array([0.1, np.nan, 1e300, -0.0, 2.0]),
    "t": ["a", "", 'quo"te', "com,ma\nend", "ä"],
    "b": np.array([True, False, True, True, False]),
}


def back(folder: Path, dataset: Any, format: str, **options: Any) -> Any:
    dataset.write(folder, format, shard_rows=2, **options)
    return di.data.FileDataset(folder)


@pytest.mark.parametrize("format", ["arrow", "csv", "elements", "jsonl", "parquet"])
def test_tables_come_back_exactly(tmp_path: Path, format: str) -> None:
    dataset = Dataset.from_tensor_slices(TABLE)
    assert list(map(exact, back(tmp_path, dataset, format))) == list(map(exact, dataset))


EXTREMES = {
    "bool": [True, False],
    **{name: [np.iinfo(name).min, np.iinfo(name).max] for name in ("int8", "uint16", "int64", "uint64")},
    **{name: [np.finfo(name).max, np.finfo(name).tiny] for name in ("float16", "float32", "float64", "longdouble")},
    **{f"m8[{unit}]": [90, -1] for unit in ("D", "s", "ns")},
    **{f"M8[{unit}]": [90, -1] for unit in ("M", "D", "ms", "ns")},
    "complex64": [1j, -1],
    "V3": [b"ab\0", b"\0\0\0"],
    "bfloat16": [1, 2],
}


@pytest.mark.parametrize("format", ["arrow", "csv", "elements", "jsonl", "npy", "parquet"])
@pytest.mark.parametrize("kind", EXTREMES)
def test_what_a_format_takes_it_also_reads(tmp_path: Path, format: str, kind: str) -> None:
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if kind == "bfloat16" else np.dtype(kind)
    dataset = Dataset.from_tensor_slices(np.array(EXTREMES[kind], dtype))
    try:
        found = back(tmp_path, dataset, format)
    except InvalidArgumentError as refused:
        assert str(refused).startswith("write: ")  # noqa: PT017 - else it must come back
        return
    column = [element["value"] if isinstance(element, dict) else element for element in found]
    assert list(map(exact, column)) == list(map(exact, dataset))


def test_halves_in_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("h,t\n1.5,a\n65504,b\n,c\n6e-08,d\n")
    read = di.data.CsvDataset(tmp_path / "a.csv", schema={"h": "float16"}, nulls={"h": np.nan})
    assert read.element_spec["h"] == di.TensorSpec([], "float16")
    assert [str(row["h"]) for row in read] == ["1.5", "6.55e+04", "nan", "6e-08"]
    (tmp_path / "b.csv").write_text("h\n1\n70000\n")
    with pytest.raises(InvalidArgumentError, match="line 3: column 'h': expected halffloat, got '70000'"):
        list(di.data.CsvDataset(tmp_path / "b.csv", schema={"h": "float16"}))


def kept_in_json() -> Any:
    numbers = {
        name: np.array([0, 1, np.iinfo(name).max], name) for name in ("int8", "uint8", "int16", "uint32", "uint64")
    }
    times = {f"M8[{unit}]": np.array(["2020-01-02", "NaT", "0001-02-03"], f"M8[{unit}]") for unit in ("D", "s", "us")}
    return {
        **numbers,
        **times,
        "half": np.array([np.nan, 65504, 6e-8], "float16"),
        "float": np.array([0.1, np.finfo("float32").max, 1e-45], "float32"),
        "nan": np.full(3, np.nan, "float32"),
        "array": np.arange(12, dtype="int16").reshape(3, 2, 2),
        "times": np.full((3, 2), "NaT", "M8[D]"),
        "in": {"b": np.array([True, False, True]), "t": ["", "ä", "x"], "n": {"f": np.ones((3, 1), "float32")}},
    }


@pytest.mark.parametrize("rows", [3, 0])
def test_json_lines_come_back_with_their_types(tmp_path: Path, rows: int) -> None:
    dataset = Dataset.from_tensor_slices(kept_in_json()).take(rows)
    found = back(tmp_path, dataset, "jsonl")
    assert found.element_spec == dataset.element_spec
    assert list(map(exact, found)) == list(map(exact, dataset))


def test_json_lists_without_values_come_back(tmp_path: Path) -> None:
    spec = {"v": di.TensorSpec([None], "int8"), "m": di.TensorSpec([None, 2], "float32")}
    empty = Dataset.range(2).map(
        lambda x: {"v": np.zeros(0, "int8"), "m": np.zeros((0, 2), "float32")}, output_signature=spec
    )
    found = back(tmp_path, empty, "jsonl")
    assert (found.element_spec, found.to_list()) == (spec, [{"v": [], "m": []}] * 2)


@pytest.mark.parametrize("compression", [None, "GZIP", "ZSTD"])
@pytest.mark.parametrize("format", ["csv", "jsonl", "tar", "tfrecord"])
def test_compressed_files_come_back(tmp_path: Path, format: str, compression: str | None) -> None:
    dataset = Dataset.from_tensor_slices({"__key__": ["x", "y", "z"], "txt": ["a", "b", ""]})
    if format == "tfrecord":
        dataset = dataset.map(lambda row: row["txt"])
    found = back(tmp_path, dataset, format, compression=compression)
    assert found.to_list() == dataset.to_list()


def test_csv_without_a_header_and_times(tmp_path: Path) -> None:
    data = {"d": np.array(["2020-01-02T03:04:05", "1969-12-31T23:59:59"], "M8[s]"), "i": np.array([1, 2], np.int16)}
    found = back(tmp_path, Dataset.from_tensor_slices(data), "csv", header=False, delimiter=";")
    assert list(map(exact, found)) == list(map(exact, Dataset.from_tensor_slices(data)))


def test_lists_of_json(tmp_path: Path) -> None:
    dataset = Dataset.range(1, 4).map(
        lambda n: {"v": np.arange(n)}, output_signature={"v": di.TensorSpec([None], "int64")}
    )
    assert back(tmp_path, dataset, "jsonl").to_list() == dataset.to_list()


def test_options_may_be_given_beside(tmp_path: Path) -> None:
    Dataset.from_tensor_slices(TABLE).write(tmp_path, "parquet")
    assert di.data.FileDataset(tmp_path, columns=["n"]).take(1).to_list() == [{"n": -2}]


def test_what_has_no_manifest_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(NoMatchError, match="this directory has no files"):
        di.data.FileDataset(tmp_path)
    (tmp_path / "b.jsonl").write_text('{"x": 2}\n')
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    for names in (tmp_path, str(tmp_path / "*.jsonl"), [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]):
        assert di.data.FileDataset(names).to_list() == [{"x": 1}, {"x": 2}]
    (tmp_path / "c.txt").write_text("3\n")
    with pytest.raises(InvalidArgumentError, match=r"jsonl is jsonl by its name, and .*txt is text"):
        di.data.FileDataset(tmp_path)
    with pytest.raises(TypeError, match="FileDataset: needs a format"):
        di.data.FileDataset(Dataset.list_files(str(tmp_path / "*.jsonl")))


def test_urls_are_recognised() -> None:
    with di.io.TFRecordWriter("memory://recognised/a.data", "GZIP") as writer:
        writer.write(b"one")
    assert di.data.FileDataset("memory://recognised/a.data").to_list() == [b"one"]
