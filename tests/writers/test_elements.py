# SPDX-License-Identifier: Apache-2.0
"""Exact elements in Arrow files (what is read of them: tests/formats/test_elements.py)."""

from pathlib import Path

import pytest
from pyarrow import ipc

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset


def test_any_reader_of_arrow_sees_the_columns(tmp_path: Path) -> None:
    made = Dataset.range(3).map(lambda x: {"x": x, "y": [x, x]}).write(str(tmp_path), "elements")
    assert ipc.open_file(made.paths[0]).read_all().to_pylist()[1] == {"x": 1, "y": [1, 1]}
    assert made.options == {
        "layout": '{"dict": [["x", {"dtype": "<i8", "shape": []}], ["y", {"dtype": "<i8", "shape": [2]}]]}'
    }


def test_datasets_inside_elements_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="write: the element is a dataset; flat_map or zip it first"):
        Dataset.range(4).window(2).write(str(tmp_path), "elements")
