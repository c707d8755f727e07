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
