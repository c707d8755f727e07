# SPDX-License-Identifier: Apache-2.0
"""What both type checkers must refuse: the lines that say so, and no others."""

import numpy as np

import distinput as di

Dataset = di.data.Dataset
numbers = Dataset.range(10)
pairs = Dataset.zip(numbers, numbers)
lines = di.data.TextLineDataset("a.txt")

numbers.batch()  # refused
numbers.batch("2")  # refused
numbers.batch(2, drop_last=True)  # refused
numbers.batch(2, 3)  # refused
numbers.shuffle(10, origin=None)  # refused
numbers.shuffle(10, drawn_seed=3)  # refused
numbers.cache("", "name", 3)  # refused
numbers.shard(2)  # refused
numbers.take(2.5)  # refused
numbers.mapp(lambda x: x)  # refused
numbers.concatenate(5)  # refused
numbers.concatenate([numbers])  # refused
numbers.concatenate(lines)  # refused
numbers.map(3)  # refused
numbers.map(lambda x, y: x)  # refused
pairs.map(lambda a, b, c: a)  # refused
pairs.filter(lambda a: a > 1)  # refused
numbers.filter("x > 3")  # refused
numbers.filter(lambda x: (x, x))  # refused
numbers.map(lambda x: x.decode())  # refused
numbers.flat_map(lambda x: x)  # refused
numbers.interleave(lambda x: [x], cycle_length=2)  # refused
numbers.prefetch()  # refused
numbers.with_options({"deterministic": True})  # refused
Dataset.zip(numbers, 5)  # refused
Dataset.zip([numbers, numbers])  # refused
Dataset.range("10")  # refused
Dataset.from_generator(3)  # refused
Dataset.choose_from_datasets(numbers, numbers)  # refused
Dataset([1, 2])  # refused
numbers.parse_example({"x": di.io.FixedLenFeature([], "int64")})  # refused
di.data.TFRecordDataset()  # refused
di.data.TFRecordDataset("a", compression=None)  # refused
di.cast(3, "int32")  # refused

for number in numbers:
    number.append(3)  # refused
for line in lines:
    line.astype(np.int64)  # refused
for batch in pairs.batch(2):
    print(batch.shape)  # refused
first: bytes = next(iter(numbers))  # refused
state: int = numbers.reduce(np.zeros(3), lambda a, b: a)  # refused
