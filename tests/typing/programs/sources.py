# SPDX-License-Identifier: Apache-2.0
"""The type of the elements of a source, as far as a type checker can know it."""

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import distinput as di

Dataset = di.data.Dataset

# Arrays: one of unknown rank may have scalars or arrays as its rows.
images: NDArray[np.float32] = np.zeros((4, 2, 2), np.float32)
labels: NDArray[np.int64] = np.arange(4)
line = np.zeros(4, np.float32)
square = np.zeros((4, 4), np.float32)
assert_type(Dataset.from_tensor_slices(line), di.data.Dataset[np.float32])
assert_type(Dataset.from_tensor_slices(square), di.data.Dataset[NDArray[np.float32]])
assert_type(Dataset.from_tensor_slices(images), di.data.Dataset[Any])

# The structure is known where it is written down.
examples = Dataset.from_tensor_slices((images, labels))
assert_type(examples, di.data.Dataset[tuple[Any, Any]])
for batch in examples.shuffle(4).batch(2):
    assert_type(batch, tuple[NDArray[Any], NDArray[Any]])
assert_type(Dataset.from_tensor_slices({"image": images, "label": labels}), di.data.Dataset[dict[str, Any]])
assert_type(Dataset.from_tensor_slices((images, labels, [1, 2, 3, 4])), di.data.Dataset[tuple[Any, Any, Any]])
assert_type(Dataset.from_tensor_slices([1, 2, 3]), di.data.Dataset[Any])
assert_type(Dataset.from_tensor_slices((({"a": images}, labels), labels)), di.data.Dataset[Any])

# A program that knows more says so.
known: di.data.Dataset[tuple[NDArray[np.float32], np.int64]] = Dataset.from_tensor_slices((images, labels))
assert_type(known.map(lambda image, label: (image / 255, label)).batch(2).take(1).skip(0).element_spec, Any)
assert_type(known.batch(2), di.data.Dataset[tuple[NDArray[np.float32], NDArray[np.int64]]])

assert_type(Dataset.from_tensors(images), di.data.Dataset[NDArray[np.float32]])
assert_type(Dataset.from_tensors((images, np.int64(3))), di.data.Dataset[tuple[NDArray[np.float32], np.int64]])
assert_type(Dataset.from_tensors({"a": images}), di.data.Dataset[dict[str, NDArray[np.float32]]])
assert_type(Dataset.from_tensors([1, 2]), di.data.Dataset[Any])


def generate(count: int) -> Iterator[tuple[int, str]]:
    for number in range(count):
        yield number, "word"


signature = (di.TensorSpec([], "int64"), di.TensorSpec([], "string"))
generated: di.data.Dataset[tuple[np.int64, bytes]] = Dataset.from_generator(
    generate, args=(3,), output_signature=signature
)
for number, word in generated:
    assert_type(number, np.int64)
    assert_type(word, bytes)

# Files.
with di.io.TFRecordWriter("a.tfrecord") as writer:
    writer.write(di.io.encode_example({"x": [1], "name": [b"one"]}))
records = di.data.TFRecordDataset("a.tfrecord", compression_type=None, num_parallel_reads=di.data.AUTOTUNE)
assert_type(next(iter(records)), bytes)
assert_type(records.take(1), di.data.Dataset[bytes])
assert_type(records.batch(2), di.data.Dataset[NDArray[np.object_]])
parsed = records.parse_example({"x": di.io.FixedLenFeature([], "int64"), "name": di.io.FixedLenFeature([], "string")})
assert_type(parsed, di.data.Dataset[dict[str, Any]])
assert_type(parsed.batch(2), di.data.Dataset[dict[str, NDArray[Any]]])
assert_type(parsed.map(lambda row: (row["x"], row["name"])), di.data.Dataset[tuple[Any, Any]])
assert_type(Dataset.list_files("*.tfrecord", shuffle=False), di.data.Dataset[bytes])
names = Dataset.list_files("*.tfrecord")
assert_type(names.interleave(di.data.TFRecordDataset, cycle_length=2), di.data.Dataset[bytes])
assert_type(names.flat_map(lambda name: di.data.TFRecordDataset(name.decode())), di.data.Dataset[bytes])

di.io.write_parquet("a.parquet", {"x": np.arange(3), "y": np.ones(3)})
rows = di.data.ParquetDataset("a.parquet", columns=["x"])
for row in rows.batch(2):
    assert_type(row, dict[str, NDArray[Any]])
