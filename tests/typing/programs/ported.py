# SPDX-License-Identifier: Apache-2.0
"""Input code as it was written for TensorFlow, with one import changed."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import distinput as tf

AUTOTUNE = tf.data.AUTOTUNE
BATCH_SIZE = 4


def preprocess(image: NDArray[np.uint8], label: np.int64) -> tuple[NDArray[np.float32], np.int64]:
    return image.astype(np.float32) / np.float32(255), label


def make_dataset(images: NDArray[np.uint8], labels: NDArray[np.int64], training: bool) -> tf.data.Dataset:
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    if training:
        dataset = dataset.shuffle(1000, seed=1, reshuffle_each_iteration=True).repeat(2)
    dataset = dataset.map(preprocess, num_parallel_calls=AUTOTUNE)
    return dataset.batch(BATCH_SIZE, drop_remainder=True).prefetch(AUTOTUNE)


options = tf.data.Options()
options.deterministic = False
options.experimental_deterministic = False
options.experimental_threading.private_threadpool_size = 2
options.threading.max_intra_op_parallelism = 1
options.autotune.enabled = True
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
options.experimental_optimization.map_and_batch_fusion = True

train = make_dataset(np.zeros((8, 2, 2), np.uint8), np.arange(8), training=True).with_options(options)
steps = 0
for images, labels in train:
    assert images.shape == (4, 2, 2)
    assert labels.dtype == np.int64
    steps += 1
assert steps == 4
assert len(train) == 4
print(train.element_spec, train.cardinality().bit_length())

# Every way of giving arguments that TensorFlow has.
numbers = tf.data.Dataset.range(10)
numbers = numbers.shuffle(10, None, True, "shuffled").cache("", "kept")
numbers = numbers.batch(2, True, None, None, "pairs").unbatch()
assert_type(numbers.apply(tf.data.experimental.assert_cardinality(10)), tf.data.Dataset[Any])
table = tf.data.Dataset.range(3).map(lambda x: (x, [x])).padded_batch(2, padded_shapes=([], [None]))
initial: np.int64 = tf.data.Dataset.range(4).reduce(np.int64(0), lambda state, value: state + value)
assert initial == 6


assert_type(numbers.options().deterministic, bool | None)
print(numbers.options().experimental_distribute.auto_shard_policy)
assert_type(numbers.options().threading.private_threadpool_size, int | None)


def total(dataset: tf.data.Dataset) -> tf.data.Dataset:
    return dataset.map(lambda a, b: a + b).filter(lambda x: x > 1).batch(2).map(lambda x: x.sum())


pairs = tf.data.Dataset.zip((tf.data.Dataset.range(4), tf.data.Dataset.range(4)))
print(total(pairs).to_list())
anything: tf.data.Dataset = pairs
assert_type(anything.map(lambda a, b: a), tf.data.Dataset[Any])
assert_type(anything.filter(lambda a, b: a > 1).batch(2), tf.data.Dataset[Any])
