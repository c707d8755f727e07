# SPDX-License-Identifier: Apache-2.0
"""JSON Lines that Python's json and pyarrow read."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import json as arrow_json

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset


def lines(made: Any) -> list[Any]:
    return [json.loads(line) for path in made.paths for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_pythons_json_and_pyarrow_read_it(tmp_path: Path) -> None:
    data = {
        "n": np.array([2**63 - 1, -1]),
        "f": np.array([np.float32(0.1), np.nan], np.float32),
        "t": ["ä\n", ""],
        "v": np.arange(4).reshape(2, 2),
        "s": {"b": [True, False]},
        "d": np.array(["2020-01-02T03:04:05.5", "NaT"], "M8[ms]"),
    }
    made = Dataset.from_tensor_slices(data).write(str(tmp_path), "jsonl")
    first, second = lines(made)
    assert list(first) == list(data)
    assert first == {
        "n": 2**63 - 1, "f": float(np.float32(0.1)), "t": "ä\n", "v": [0, 1], "s": {"b": True}, "d": "2020-01-02T03:04:05.500",
    }  # fmt: skip
    assert second == {"n": -1, "f": None, "t": "", "v": [2, 3], "s": {"b": False}, "d": None}
    assert arrow_json.read_json(made.paths[0]).column("n").to_pylist() == [2**63 - 1, -1]


def test_other_elements_and_lists(tmp_path: Path) -> None:
    ragged = Dataset.range(3).map(np.arange, output_signature=di.TensorSpec([None], "int64"))
    assert lines(ragged.write(str(tmp_path / "a"), "jsonl")) == [{"value": []}, {"value": [0]}, {"value": [0, 1]}]
    tensors = ragged.ragged_batch(2).write(str(tmp_path / "b"), "jsonl", compression="GZIP")
    assert gzip.decompress(Path(tensors.paths[0]).read_bytes()) == b'{"value":[[],[0]]}\n{"value":[[0,1]]}\n'
    assert lines(Dataset.from_tensor_slices(([1], ["x"])).write(str(tmp_path / "c"), "jsonl")) == [{"0": 1, "1": "x"}]
    times = np.array([["2020-01-02", "NaT"]], "M8[D]")
    assert lines(Dataset.from_tensor_slices({"a": {"d": times}}).write(str(tmp_path / "d"), "jsonl")) == [
        {"a": {"d": ["2020-01-02", None]}}
    ]


@pytest.mark.parametrize(
    "data, says",
    [
        ([np.inf], "JSON has no infinite numbers, and column 'value' holds inf"),
        ({"x": {"y": [[-np.inf]]}}, r"column 'x\.y' holds -inf"),
        (np.zeros(1, "m8[s]"), "JSON has no durations, and the element is"),
        (np.zeros(1, "c8"), "dtype complex64"),
        ([b"\xff"], "column 'value' cannot become large_string"),
        ({"x": {"d": np.array([["9999-01-01", "10000-01-01"]], "M8[D]")}}, r"years 0 to 9999, and column 'x\.d' holds"),
        (np.array(["-0001-01-01"], "M8[s]"), "years 0 to 9999, and column 'value' holds another"),
    ],
)
def test_what_json_cannot_hold_is_refused(tmp_path: Path, data: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        Dataset.from_tensor_slices(data).write(str(tmp_path), "jsonl")


def test_a_component_that_is_none_is_refused(tmp_path: Path) -> None:
    spec = {"x": di.TensorSpec([], "int64"), "in": (None,)}
    nones = Dataset.range(1).map(lambda x: {"x": x, "in": (None,)}, output_signature=spec)
    with pytest.raises(
        InvalidArgumentError, match=r"\['in'\]\[0\], which is None in every element; leave it out with map"
    ):
        nones.write(str(tmp_path), "jsonl")
    assert not list(tmp_path.iterdir())
