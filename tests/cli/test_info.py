# SPDX-License-Identifier: Apache-2.0
"""`distinput info` says what files are."""

from pathlib import Path

import pytest

import distinput as di
from tests.cli.commands_of_files import shown, told


def test_what_files_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    di.data.Dataset.range(10).write(str(tmp_path / "a"), "parquet", shards=2)
    text = shown(capsys, "info", str(tmp_path / "a"))
    assert "format:       parquet (its manifest, distinput-manifest.json, says it)" in text
    assert "records:      10" in text
    assert "part-00000-of-00002.parquet and 1 more" in text
    assert text.endswith("column  dtype  shape\nvalue   int64  []\n")
    found = told(capsys, "info", str(tmp_path / "a"))
    assert (found["format"], found["records"], found["record"]) == ("parquet", 10, "row")


def test_features_are_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with di.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        writer.write(di.io.encode_example({"name": "Ada", "scores": [1.0, 2.0]}))
        writer.write(di.io.encode_example({"name": "Alan"}))
    text = shown(capsys, "info", str(tmp_path / "a.tfrecord"), str(tmp_path / "a.tfrecord"))
    assert text.count('scores   float32  [?]          1  di.io.VarLenFeature("float32")') == 2
    assert "not known without reading" in text
