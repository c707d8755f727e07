# SPDX-License-Identifier: Apache-2.0
import gzip
import zipfile
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
from distinput.files.sink import Sink


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


@pytest.mark.parametrize(
    "chosen",
    [
        lambda names: names.shuffle(9),
        lambda names: names.shard(1, 0),
        lambda names: names.take(9).repeat(1),
        lambda names: names.filter(lambda name: True),
        lambda names: names.take(1).concatenate(names.take(1)),
    ],
    ids=["shuffle", "shard", "take", "filter", "concatenate"],
)
@pytest.mark.parametrize("kind", MADE)
def test_names_that_are_listed_are_known_in_any_order(kind: str, chosen: Any, tmp_path: Path) -> None:
    make, content, want = MADE[kind]
    for number in range(2):
        (tmp_path / f"{number}.{kind}.gz").write_bytes(gzip.compress(content))
    listed = di.data.Dataset.list_files(str(tmp_path / "*.gz"))  # shuffled, as it is unless somebody says otherwise
    assert make(listed).to_list() == 2 * want
    assert make(chosen(listed)).to_list() == 2 * want
    assert make(chosen(listed), num_parallel_reads=2).to_list() == 2 * want


def test_names_that_are_made_later_have_no_compression(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\n"))
    names = di.data.Dataset.from_tensor_slices([str(tmp_path / "a.txt")]).map(lambda name: name + b".gz")
    assert TextLineDataset(names).to_list() != [b"one"]
    assert TextLineDataset(names, "AUTO").to_list() == [b"one"]


def test_a_link_of_a_chain_has_the_suffix(tmp_path: Path) -> None:
    folder = f"memory://{tmp_path.name}"
    with Sink(f"{folder}/a.txt.gz", "GZIP") as sink:
        sink.write(b"one\n")
    assert TextLineDataset(f"simplecache::{folder}/a.txt.gz").to_list() == [b"one"]
    assert FileDataset(f"simplecache::{folder}/a.txt.gz").to_list() == [b"one"]
    inner = tmp_path / "a.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("in.txt.gz", gzip.compress(b"two\n"))
    assert TextLineDataset(f"zip://in.txt.gz::file://{inner}").to_list() == [b"two"]


def test_a_local_name_has_no_query(tmp_path: Path) -> None:
    (tmp_path / "a?b.txt.gz").write_bytes(gzip.compress(b"one\n"))
    assert TextLineDataset(str(tmp_path / "a?b.txt.gz")).to_list() == [b"one"]
