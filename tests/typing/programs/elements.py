# SPDX-License-Identifier: Apache-2.0
"""The type of the elements follows the pipeline."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import distinput as di

Dataset = di.data.Dataset

numbers = Dataset.range(10)
assert_type(numbers, di.data.Dataset[np.int64])
assert_type(Dataset.range(3, output_type=di.int32), di.data.Dataset[np.int32])

for number in numbers:
    assert_type(number, np.int64)
for number in numbers.as_numpy_iterator():
    assert_type(number, np.int64)
with iter(numbers) as iterator:
    assert_type(next(iterator), np.int64)
    assert_type(iterator.get_next(), np.int64)
    assert_type(iterator.get_next_as_optional().get_value(), np.int64)

# Steps that keep the elements.
assert_type(numbers.take(5).skip(1).shuffle(10, seed=1).repeat(2).prefetch(di.data.AUTOTUNE), di.data.Dataset[np.int64])
assert_type(numbers.cache().shard(2, 0).unique().concatenate(Dataset.range(3)), di.data.Dataset[np.int64])
assert_type(numbers.filter(lambda x: x > 3).take_while(lambda x: x < 6), di.data.Dataset[np.int64])
assert_type(numbers.with_options(di.data.Options()).global_shuffle(seed=2).ignore_errors(), di.data.Dataset[np.int64])

# Steps that change them.
assert_type(numbers.batch(4), di.data.Dataset[NDArray[np.int64]])
assert_type(numbers.batch(4).batch(2, drop_remainder=True), di.data.Dataset[NDArray[np.int64]])
assert_type(numbers.enumerate(), di.data.Dataset[tuple[np.int64, np.int64]])
assert_type(numbers.map(lambda x: x * 2), di.data.Dataset[np.int64])
assert_type(numbers.map(lambda x: np.zeros(3, np.float32)).batch(2), di.data.Dataset[NDArray[np.float32]])
assert_type(numbers.map(lambda x: {"x": x}), di.data.Dataset[dict[str, np.int64]])
assert_type(numbers.map(lambda x: {"x": x}).batch(2), di.data.Dataset[dict[str, NDArray[np.int64]]])
assert_type(numbers.map(lambda x: (x, {"x": x})), di.data.Dataset[tuple[np.int64, dict[str, np.int64]]])
assert_type(numbers.window(3), di.data.Dataset[di.data.Dataset[np.int64]])
assert_type(numbers.window(3).flat_map(lambda window: window.batch(3)), di.data.Dataset[NDArray[np.int64]])
assert_type(numbers.interleave(lambda x: Dataset.range(x), cycle_length=2), di.data.Dataset[np.int64])
assert_type(
    numbers.group_by_window(lambda x: x % 2, lambda key, group: group.batch(5), window_size=5),
    di.data.Dataset[NDArray[np.int64]],
)
assert_type(numbers.scan(np.int64(0), lambda total, x: (total + x, x)), di.data.Dataset[np.int64])
assert_type(numbers.reduce(np.int64(0), lambda total, x: total + x), np.int64)

# What Python calls a number becomes NumPy's, which a type checker does not know.
assert_type(numbers.map(lambda x: 1), di.data.Dataset[Any])
assert_type(numbers.map(int), di.data.Dataset[Any])
assert_type(numbers.map(str), di.data.Dataset[Any])

# Tuples are an argument for each member.
pairs = Dataset.zip(numbers, numbers.batch(1))
assert_type(pairs, di.data.Dataset[tuple[np.int64, NDArray[np.int64]]])
assert_type(pairs.map(lambda a, b: (b, a)), di.data.Dataset[tuple[NDArray[np.int64], np.int64]])
assert_type(pairs.filter(lambda a, b: a > 3), di.data.Dataset[tuple[np.int64, NDArray[np.int64]]])
assert_type(pairs.batch(2), di.data.Dataset[tuple[NDArray[np.int64], NDArray[np.int64]]])
assert_type(pairs.batch(2).unbatch(), di.data.Dataset[tuple[Any, Any]])
for first, second in pairs:
    assert_type(first, np.int64)
    assert_type(second, NDArray[np.int64])
assert_type(Dataset.zip((numbers, numbers)), di.data.Dataset[tuple[np.int64, np.int64]])
assert_type(Dataset.zip({"a": numbers, "b": numbers}), di.data.Dataset[dict[str, np.int64]])
assert_type(Dataset.zip(numbers, numbers, pairs).map(lambda a, b, pair: pair[1]), di.data.Dataset[NDArray[np.int64]])

# Several datasets.
assert_type(Dataset.choose_from_datasets([numbers, numbers], Dataset.range(2)), di.data.Dataset[np.int64])
assert_type(Dataset.sample_from_datasets([numbers, numbers], [0.5, 0.5], seed=1), di.data.Dataset[np.int64])
