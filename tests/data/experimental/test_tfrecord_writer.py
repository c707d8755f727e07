# SPDX-License-Identifier: Apache-2.0
"""A dataset written as a TFRecord file."""

from pathlib import Path

import pytest

import distinput as di

Writer = di.data.experimental.TFRecordWriter


@pytest.mark.parametrize("compression", [None, "", "GZIP"])
def test_all_elements_are_written(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "a.tfrecord"
    Writer(path, compression).write(di.data.Dataset.from_tensor_slices(["one", "", "three"]))
    assert di.data.TFRecordDataset(str(path), compression).to_list() == [b"one", b"", b"three"]


def test_what_is_no_record_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path / "a.tfrecord"))
    with pytest.raises(TypeError, match=r"TFRecordWriter: elements must be byte strings, got TensorSpec.*int64"):
        writer.write(di.data.Dataset.range(3))
    with pytest.raises(TypeError, match="TFRecordWriter: write takes a dataset, got b'one'"):
        writer.write(b"one")  # type: ignore[arg-type]

    def fails(x: bytes) -> bytes:
        raise ValueError(x)

    names = di.data.Dataset.from_tensor_slices(["one"]).map(fails, output_signature=di.TensorSpec([], "string"))
    with pytest.raises(ValueError, match="one"):
        writer.write(names)
    assert list(tmp_path.iterdir()) == []
