# SPDX-License-Identifier: Apache-2.0
"""Functions for `apply` under older names: they are the methods."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import FailedPreconditionError, UnimplementedError

X = di.data.experimental
RANGE = di.data.Dataset.range


@pytest.mark.parametrize(
    "step, expected",
    [
        (X.enumerate_dataset(4), [(4, 0), (5, 1), (6, 2)]),
        (X.scan(np.int64(0), lambda s, x: (s + x, s + x)), [0, 1, 3]),
        (X.take_while(lambda x: x < 2), [0, 1]),
        (X.unique(), [0, 1, 2]),
        (X.copy_to_device("/cpu:0"), [0, 1, 2]),
        (X.copy_to_device("/job:localhost/replica:0/device:CPU:0", "CPU:0"), [0, 1, 2]),
        (X.prefetch_to_device("/device:CPU:0"), [0, 1, 2]),
        (X.prefetch_to_device("cpu", 2), [0, 1, 2]),
        (X.parallel_interleave(lambda x: RANGE(x), cycle_length=2), [0, 0, 1]),
        (X.assert_cardinality(3), [0, 1, 2]),
    ],
)
def test_a_step_is_the_method(step: Any, expected: list[Any]) -> None:
    assert RANGE(3).apply(step).to_list() == expected


def test_shuffle_and_repeat() -> None:
    made = RANGE(5).apply(X.shuffle_and_repeat(3, 2, seed=1))
    assert made.to_list() == RANGE(5).shuffle(3, seed=1).repeat(2).to_list()
    assert RANGE(5).apply(X.shuffle_and_repeat(3)).cardinality() == X.INFINITE_CARDINALITY
    for count in (0, -2):  # `repeat` takes both; TensorFlow's op does not
        with pytest.raises(
            di.errors.InvalidArgumentError, match="shuffle_and_repeat: count must be greater than zero, got"
        ):
            X.shuffle_and_repeat(3, count)


def test_errors_are_dropped_and_counts_asserted() -> None:
    texts = di.data.Dataset.from_tensor_slices(["1", "two", "3"]).map(int)
    assert texts.apply(X.ignore_errors()).to_list() == [1, 3]
    with pytest.raises(FailedPreconditionError):
        RANGE(3).apply(X.assert_cardinality(2)).to_list()


def test_examples_are_parsed() -> None:
    ds = di.data.Dataset.from_tensors(di.io.encode_example({"x": [7]}))
    assert ds.apply(X.parse_example_dataset({"x": di.io.FixedLenFeature([], "int64")})).to_list() == [{"x": 7}]


@pytest.mark.parametrize("make", [X.prefetch_to_device, X.copy_to_device])
def test_other_devices_are_for_strategies(make: Any) -> None:
    with pytest.raises(
        UnimplementedError, match=r"device must be a CPU, got '/gpu:0'.*experimental_distribute_dataset"
    ):
        make("/gpu:0")
    with pytest.raises(TypeError, match="device must be the name of a device, such as '/cpu:0', got 0"):
        make(0)
