# SPDX-License-Identifier: Apache-2.0
"""`distinput schema` prints columns, and features as Python."""

from pathlib import Path

import numpy as np
import pytest

import distinput as di
from tests.cli.commands_of_files import shown, told


def test_the_code_parses_the_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(path) as writer:
        writer.write(di.io.encode_example({"name": "Ada", "scores": [1.0, 2.0]}))
        writer.write(di.io.encode_example({"name": "Alan"}))
    features = eval(shown(capsys, "schema", path, "--code"), {"di": di})  # noqa: S307 - it is Python for users to paste
    rows = di.data.TFRecordDataset(path).parse_example(features).to_list()
    assert [row["name"] for row in rows] == [b"Ada", b"Alan"]
    assert [row["scores"] for row in rows] == [[1.0, 2.0], []]


def test_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 2), np.int16))
    assert shown(capsys, "schema", str(tmp_path / "a.npy")) == "column  dtype  shape\nvalue   int16  [2]\n"
    (column,) = told(capsys, "schema", str(tmp_path / "a.npy"))
    assert column == {"name": "value", "dtype": "int16", "shape": [2], "declaration": None, "present": None}
