# SPDX-License-Identifier: Apache-2.0
"""Batches of parsed records; the order without shuffling is TensorFlow 2.21's."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, NoMatchError

X = di.data.experimental
FEATURES = {"x": di.io.FixedLenFeature([], "int64"), "w": di.io.VarLenFeature("string")}


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    """Three files of 3, 2 and 1 Examples."""
    for number, count in enumerate((3, 2, 1)):
        with di.io.TFRecordWriter(tmp_path / f"{number}.tfrecord") as writer:
            for i in range(count):
                writer.write(di.io.encode_example({"x": 10 * number + i, "w": [b"w"] * (i % 3)}))
    return str(tmp_path / "*.tfrecord")


@pytest.mark.parametrize(
    "how, expected",
    [
        ({}, [[0, 1], [2, 10], [11, 20]]),
        ({"reader_num_threads": 2}, [[0, 10], [1, 11], [2, 20]]),
        ({"reader_num_threads": 3, "prefetch_buffer_size": 1}, [[0, 10], [20, 1], [11, 2]]),
        ({"reader": di.data.TFRecordDataset, "reader_args": [""]}, [[0, 1], [2, 10], [11, 20]]),
        ({"reader": di.data.TFRecordDataset, "reader_num_threads": 2}, [[0, 10], [1, 11], [2, 20]]),
    ],
)
def test_features_come_in_the_order_of_tensorflow(pattern: str, how: dict[str, Any], expected: list[Any]) -> None:
    ds = X.make_batched_features_dataset(pattern, 2, FEATURES, num_epochs=1, shuffle=False, **how)
    assert [batch["x"].tolist() for batch in ds] == expected


def test_without_an_end_all_batches_are_full(pattern: str) -> None:
    ds = X.make_batched_features_dataset(pattern, 4, FEATURES, shuffle=False)
    assert ds.element_spec["x"] == di.TensorSpec([4], "int64")
    assert [batch["x"].tolist() for batch in ds.take(3)] == [[0, 1, 2, 10], [11, 20, 0, 1], [2, 10, 11, 20]]
    dropped = X.make_batched_features_dataset(pattern, 4, FEATURES, num_epochs=1, shuffle=False, drop_final_batch=True)
    assert [batch["x"].tolist() for batch in dropped] == [[0, 1, 2, 10]]


def test_shuffling_keeps_every_record(pattern: str) -> None:
    ds = X.make_batched_features_dataset(pattern, 2, FEATURES, num_epochs=2, shuffle_seed=1, sloppy_ordering=True)
    assert sorted(x for batch in ds for x in batch["x"].tolist()) == sorted([0, 1, 2, 10, 11, 20] * 2)


def test_a_feature_can_be_the_label(pattern: str) -> None:
    ds = X.make_batched_features_dataset(pattern, 3, FEATURES, label_key="x", num_epochs=1, shuffle=False)
    words, label = next(iter(ds))
    assert label.tolist() == [0, 1, 2]
    assert words["w"].to_list() == [[], [b"w"], [b"w", b"w"]]
    assert set(words) == {"w"}


def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgumentError, match="label_key must be one of the features, w, x; got 'y'"):
        X.make_batched_features_dataset(pattern, 2, FEATURES, label_key="y")
    with pytest.raises(TypeError, match="make_batched_features_dataset: reader must be a function, got 3"):
        X.make_batched_features_dataset(pattern, 2, FEATURES, reader=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="reader_num_threads must be greater than zero, got 0"):
        X.make_batched_features_dataset(pattern, 2, FEATURES, reader_num_threads=0)
    with pytest.raises(NoMatchError):
        X.make_tf_record_dataset(pattern + ".none", 2)


@pytest.mark.parametrize(
    "how, expected",
    [
        ({}, [[0, 10], [20, 1], [11, 2]]),
        ({"num_parallel_reads": 2, "prefetch_buffer_size": 0}, [[0, 10], [1, 11], [2, 20]]),
        ({"num_parallel_reads": 1, "num_parallel_parser_calls": 2}, [[0, 1], [2, 10], [11, 20]]),
    ],
)
def test_records_come_in_the_order_of_tensorflow(pattern: str, how: dict[str, Any], expected: list[Any]) -> None:
    def number(record: bytes) -> Any:
        return di.io.parse_single_example(record, FEATURES)["x"]

    ds = X.make_tf_record_dataset(pattern, 2, number, num_epochs=1, shuffle=False, **how)
    assert ds.to_list() == expected


def test_records_stay_bytes_without_a_parser(pattern: str) -> None:
    ds = X.make_tf_record_dataset(pattern, 4, shuffle_seed=1)
    assert ds.element_spec == di.TensorSpec([4], "string")
    numbers = [di.io.parse_single_example(record, FEATURES)["x"] for batch in ds.take(3) for record in batch]
    assert sorted(numbers) == sorted([0, 1, 2, 10, 11, 20] * 2)
