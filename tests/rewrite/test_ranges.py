# SPDX-License-Identifier: Apache-2.0
"""Parts of a range are ranges."""

from typing import Any

import pytest

import distinput as di
from distinput.ops.range import Range
from distinput.rewrite.rules import rewrite
from tests.rewrite.running import fires, ops_after

RANGE = di.data.Dataset.range


@pytest.mark.parametrize(
    "dataset, numbers",
    [
        (RANGE(9).take(3), [0, 1, 2]),
        (RANGE(9).take(20), list(range(9))),
        (RANGE(9).take(0), []),
        (RANGE(9).skip(7), [7, 8]),
        (RANGE(9).skip(20), []),
        (RANGE(2, 20, 5).take(2), [2, 7]),
        (RANGE(20, 2, -5).skip(1).take(2), [15, 10]),
    ],
)
def test_a_part_of_a_range_is_a_range(dataset: Any, numbers: list[int]) -> None:
    assert set(ops_after(dataset, "part_of_range")) == {"range"}
    running, _ = rewrite(dataset.node)
    assert isinstance(running, Range)
    assert dataset.to_list() == numbers


@pytest.mark.parametrize("dataset", [RANGE(9).take(-1), RANGE(9).skip(-1), RANGE(9).repeat().take(3)])
def test_others_are_not(dataset: Any) -> None:
    assert not fires(dataset, "part_of_range")


def test_the_dtype_stays() -> None:
    dataset = RANGE(9, output_type="int32").take(3)
    assert [number.dtype for number in dataset.as_numpy_iterator()] == ["int32"] * 3
