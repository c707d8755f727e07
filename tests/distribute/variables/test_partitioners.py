# SPDX-License-Identifier: Apache-2.0
"""How many parts; the expected numbers are those of TensorFlow 2.21."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from distinput.distribute.variables.partitioners import (
    FixedShardsPartitioner,
    MaxSizePartitioner,
    MinSizePartitioner,
    Partitioner,
)


@pytest.mark.parametrize(
    "partitioner, shape, dtype, expected",
    [
        (FixedShardsPartitioner(2), [10, 3], "float32", [2, 1]),
        (FixedShardsPartitioner(20), [10, 3], "float32", [10, 1]),
        (MinSizePartitioner(4, 2), [6, 1], "float32", [2, 1]),
        (MinSizePartitioner(4, 10), [6, 1], "float32", [6, 1]),
        (MinSizePartitioner(5, 10), [6, 1], "float32", [5, 1]),  # 24 / 5, rounded up
        (MinSizePartitioner(max_shards=8), [1000, 1000], "float32", [8, 1]),
        (MinSizePartitioner(max_shards=8), [10], "float32", [1]),
        (MinSizePartitioner(16, 9, bytes_per_string=8), [6], object, [3]),
        (MaxSizePartitioner(4), [6, 1], "float32", [6, 1]),
        (MaxSizePartitioner(4, 2), [6, 1], "float32", [2, 1]),
        (MaxSizePartitioner(1024), [6, 1], "float32", [1, 1]),
        (MaxSizePartitioner(9), [7], "float32", [4]),  # two rows a part
        (MaxSizePartitioner(1), [3, 5], "int64", [3, 1]),  # a row has more bytes than allowed
        (MaxSizePartitioner(32), [5], object, [3]),
    ],
)
def test_the_number_of_parts(
    partitioner: Callable[[Sequence[int], Any], list[int]], shape: list[int], dtype: Any, expected: list[int]
) -> None:
    assert partitioner(shape, np.dtype(dtype)) == expected


def test_another_axis() -> None:
    assert FixedShardsPartitioner(2)([10, 3], "float32", axis=1) == [1, 2]
    assert MaxSizePartitioner(4)([2, 3], "float32", axis=1) == [1, 3]
    with pytest.raises(ValueError, match="Cannot partition variable along axis 2"):
        MinSizePartitioner()([2, 3], "float32", axis=2)


def test_an_empty_variable_is_whole() -> None:
    assert MaxSizePartitioner(4)([0, 3], "float32") == [1, 1]


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda: MinSizePartitioner(min_shard_bytes=0), "min_shard_bytes"),
        (lambda: MinSizePartitioner(max_shards=0), "max_shards"),
        (lambda: MinSizePartitioner(bytes_per_string=0), "bytes_per_string"),
        (lambda: MaxSizePartitioner(0), "max_shard_bytes"),
        (lambda: MaxSizePartitioner(1, max_shards=-1), "max_shards"),
        (lambda: MaxSizePartitioner(1, bytes_per_string=0), "bytes_per_string"),
    ],
)
def test_numbers_must_be_positive(make: Callable[[], Partitioner], name: str) -> None:
    with pytest.raises(ValueError, match=f"Argument `{name}` must be positive"):
        make()


def test_the_base_class_does_nothing() -> None:
    with pytest.raises(NotImplementedError, match="define __call__"):
        Partitioner()([1], "float32")
