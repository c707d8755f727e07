# SPDX-License-Identifier: Apache-2.0
"""CSV files that Python's csv module and pyarrow read."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset
TEXTS = ["a", "", 'quo"te', "com,ma", "line\nend", "ä"]
DATA = {"n": np.arange(6) - 3, "t": TEXTS, "f": np.array([0.1, np.nan, np.inf, 1e300, -0.0, 2], np.float64)}


def test_pythons_csv_reads_it(tmp_path: Path) -> None:
    made = Dataset.from_tensor_slices(DATA).write(str(tmp_path), "csv", shard_rows=4)
    rows: list[Any] = []
    for path in made.paths:
        with open(path, newline="", encoding="utf-8") as file:
            rows += csv.DictReader(file)
    assert [row["t"] for row in rows] == TEXTS
    assert [int(row["n"]) for row in rows] == [-3, -2, -1, 0, 1, 2]
    assert np.array_equal([float(row["f"]) for row in rows], DATA["f"], equal_nan=True)  # type: ignore[arg-type]


def test_pyarrow_tells_empty_text_from_nothing(tmp_path: Path) -> None:
    data = {"t": TEXTS[:3], "d": np.array(["2020-01-02", "NaT", "2020-01-03"], "M8[D]")}
    (path,) = Dataset.from_tensor_slices(data).write(str(tmp_path), "csv").paths
    options = arrow_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    table = arrow_csv.read_csv(path, convert_options=options)
    assert table.column("t").to_pylist() == TEXTS[:3]
    assert table.column("d").null_count == 1


def test_other_elements_options_and_no_rows(tmp_path: Path) -> None:
    (path,) = Dataset.range(2).write(str(tmp_path / "a"), "csv", compression="GZIP", header=False).paths
    assert path.endswith("part-00000.csv.gz")
    assert gzip.decompress(Path(path).read_bytes()) == b"0\n1\n"
    pairs = Dataset.from_tensor_slices(([1, 2], [True, False])).write(str(tmp_path / "b"), "csv", delimiter=";")
    assert Path(pairs.paths[0]).read_text() == '"0";"1"\n1;true\n2;false\n'
    (none,) = Dataset.range(0).write(str(tmp_path / "c"), "csv").paths
    assert Path(none).read_text() == '"value"\n'


@pytest.mark.parametrize(
    "data, options, says",
    [
        (
            np.zeros((2, 2)),
            {},
            r"a cell of CSV is a number, a time or text, and the element is TensorSpec\(shape=\(2,\)",
        ),
        ({"x": np.zeros(2, "c8")}, {}, r"a cell of CSV .* component \['x'\]"),
        ({"x": {"y": [1]}}, {}, "csv takes elements of one level"),
        ([1], {"delimiter": "::"}, "delimiter must be one ASCII character"),
        ([1], {"compression": "LZ99"}, "Unsupported compression_type"),
        ([b"\xff"], {}, "column 'value' cannot become large_string"),
    ],
)
def test_what_csv_cannot_hold_is_refused(tmp_path: Path, data: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        Dataset.from_tensor_slices(data).write(str(tmp_path / "a"), "csv", **options)
    assert not (tmp_path / "a").exists() or list((tmp_path / "a").iterdir()) == []


@pytest.mark.parametrize("dtype", ["M8[D]", "M8[ms]", "m8[s]"])
def test_a_missing_time_alone_in_its_line_is_a_row(tmp_path: Path, dtype: str) -> None:
    data = {"t": np.array([5, "NaT", 7, "NaT"], dtype)}
    Dataset.from_tensor_slices(data).write(str(tmp_path), "csv")
    found = np.array([row["t"] for row in di.data.FileDataset(str(tmp_path))])
    assert found.dtype == data["t"].dtype
    assert found.tolist() == data["t"].tolist()


@pytest.mark.parametrize("fields", [{"e": "a"}, {"e": 1}, {"e": 1, "f": 2}])
def test_a_struct_that_may_be_null_is_no_cell(fields: dict[str, Any], tmp_path: Path) -> None:
    table = pa.table({"x": [fields, None], "n": [1, 2]})
    with pytest.raises(InvalidArgumentError, match=r"csv cannot write the nulls of component \['x'\]"):
        di.data.Dataset.from_arrow(table).write(tmp_path / "a", "csv")
