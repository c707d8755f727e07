# SPDX-License-Identifier: Apache-2.0
"""TFRecord files of bytes and of Examples."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
def test_bytes_are_records(tmp_path: Path, compression: str | None) -> None:
    records = [b"", b"a", b"\0" * 1000]
    made = Dataset.from_tensor_slices(records).write(str(tmp_path), "tfrecord", compression=compression)
    assert list(di.data.TFRecordDataset(made.paths, compression)) == records
    assert list(di.data.FileDataset(made.paths, made.format, **made.options)) == records


def test_dicts_are_examples(tmp_path: Path) -> None:
    data = {"i": np.array([[1, -2]], np.int16), "f": np.array([0.5], np.float16), "b": [True], "t": [["x", ""]]}
    made = Dataset.from_tensor_slices(data).write(str(tmp_path), "tfrecord")
    features = {
        "i": di.io.FixedLenFeature([2], "int64"),
        "f": di.io.FixedLenFeature([], "float32"),
        "b": di.io.FixedLenFeature([], "int64"),
        "t": di.io.FixedLenFeature([2], object),
    }
    (row,) = di.data.TFRecordDataset(made.paths).parse_example(features).to_list()
    assert row == {"i": [1, -2], "f": 0.5, "b": 1, "t": [b"x", b""]}


@pytest.mark.parametrize(
    "data, says",
    [
        ({"x": np.zeros(1)}, "feature 'x' is float64, and an Example holds int64, float32 and bytes; cast it with map"),
        ({"x": np.zeros(1, np.uint64)}, "feature 'x' is uint64"),
        ({"x": {"y": [1]}}, r"a TFRecord is bytes, or a dict of features"),
        ([1], "a TFRecord is bytes, or a dict of features"),
        ({1: [1]}, "names of the features of an Example are text, got 1"),
        ({"x": di.RaggedTensor.from_list([[[1], [2]]]).values}, "feature 'x' is not an array"),
    ],
)
def test_what_an_example_cannot_hold_is_refused(tmp_path: Path, data: Any, says: str) -> None:
    dataset = Dataset.from_tensor_slices(data)
    if isinstance(data, dict) and isinstance(data.get("x"), di.RaggedTensor):
        dataset = dataset.ragged_batch(1)
    with pytest.raises(InvalidArgumentError, match=says):
        dataset.write(str(tmp_path), "tfrecord")
