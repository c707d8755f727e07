# SPDX-License-Identifier: Apache-2.0
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.data import (
    CsvDataset,
    FileDataset,
    FixedLengthRecordDataset,
    JsonLinesDataset,
    TextLineDataset,
    TFRecordDataset,
)
from distinput.errors import DataLossError


def tfrecords(path: str, compression: str = "") -> None:
    with di.io.TFRecordWriter(path, compression or None) as writer:
        writer.write(b"one")


MADE: dict[str, tuple[Callable[..., Any], bytes, list[Any]]] = {
    "csv": (CsvDataset, b"x\n1\n", [{"x": 1}]),
    "fixed": (lambda path, **options: FixedLengthRecordDataset(path, 3, **options), b"one", [b"one"]),
    "jsonl": (JsonLinesDataset, b'{"x": 1}\n', [{"x": 1}]),
    "text": (TextLineDataset, b"one\n", [b"one"]),
}


@pytest.mark.parametrize("kind", MADE)
def test_a_compression_that_is_not_stated_is_that_of_the_name(kind: str, tmp_path: Path) -> None:
    make, content, want = MADE[kind]
    plain, packed = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    assert make(str(packed)).to_list() == want
    assert make([str(plain), str(packed)]).to_list() == 2 * want
    assert make(str(plain)).to_list() == want


def test_records_of_tensorflow(tmp_path: Path) -> None:
    tfrecords(str(tmp_path / "a.tfrecord.gz"), "GZIP")
    tfrecords(str(tmp_path / "b.tfrecord"))
    assert TFRecordDataset(str(tmp_path / "a.tfrecord.gz")).to_list() == [b"one"]
    assert TFRecordDataset(str(tmp_path / "*")).to_list() == [b"one", b"one"]
    assert FileDataset(str(tmp_path / "a.tfrecord.gz"), "tfrecord").to_list() == [b"one"]
    with pytest.raises(DataLossError):
        TFRecordDataset(str(tmp_path / "a.tfrecord.gz"), compression_type="").to_list()


def test_states_of_plain_files_are_as_before(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    assert "compression_type=None" in str(TextLineDataset(str(tmp_path / "a.txt")).node.format)


def test_a_compression_that_is_unknown_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.z").write_text("one\n")
    assert TextLineDataset(str(tmp_path / "a.z")).to_list() == [b"one"]
