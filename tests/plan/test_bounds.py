# SPDX-License-Identifier: Apache-2.0
"""That bounds are true is a law of all steps (`distinput.testing.check_facts`); here is how close they come."""

from typing import Any

import numpy as np
import pytest

import distinput as di

RANGE = di.data.Dataset.range


def odd(x: Any) -> Any:
    return x % 2 == 1


@pytest.mark.parametrize(
    "dataset, bounds",
    [
        (RANGE(7).batch(2), (4, 4)),
        (RANGE(7).filter(odd), (0, 7)),
        (RANGE(7).filter(odd).take(3), (0, 3)),
        (RANGE(7).filter(odd).skip(3), (0, 4)),
        (RANGE(7).filter(odd).batch(2), (0, 4)),
        (RANGE(7).filter(odd).batch(2, drop_remainder=True), (0, 3)),
        (RANGE(7).filter(odd).repeat(3), (0, 21)),
        (RANGE(7).filter(odd).repeat(), (0, None)),
        (RANGE(7).repeat().filter(odd).take(5), (0, 5)),
        (RANGE(7).concatenate(RANGE(9).filter(odd)), (7, 16)),
        (di.data.Dataset.zip((RANGE(7), RANGE(3).filter(odd))), (0, 3)),
        (RANGE(7).filter(odd).map(np.negative).shuffle(3).prefetch(1).cache(), (0, 7)),
        (RANGE(7).filter(odd).shard(3, 1), (0, 2)),
        (RANGE(7).unique().take_while(odd), (0, 7)),
        (RANGE(7).ignore_errors(), (0, 7)),
        (RANGE(3).flat_map(lambda x: RANGE(x)), (3, 3)),
        (RANGE(7).repeat(), (0, None)),
        (di.data.Dataset.from_generator(lambda: iter([1]), output_signature=di.TensorSpec([], "int64")), (0, None)),
    ],
)
def test_bounds_follow_from_those_of_the_inputs(dataset: Any, bounds: tuple[int, int | None]) -> None:
    assert dataset.cardinality_bounds() == bounds
    if bounds[1] is not None:
        assert bounds[0] <= len(dataset.to_list()) <= bounds[1]


def test_bounds_cost_nothing_however_many_there_are() -> None:
    batches = RANGE(10**12).batch(2).shuffle(10)
    assert batches.rebatch(4).cardinality_bounds() == (10**12 // 4, 10**12 // 4)
    assert batches.unbatch().cardinality_bounds() == (10**12, 10**12)


@pytest.mark.parametrize("fails", ["below", "here"])
def test_errors_of_functions_are_those_of_the_pass(fails: str) -> None:
    def checked(x: Any) -> Any:
        if x == 2:
            raise ValueError(f"element {x}")
        return x

    def made(x: Any) -> Any:
        return RANGE(checked(x))

    below = RANGE(4).map(checked).flat_map(RANGE) if fails == "below" else RANGE(4).flat_map(made)
    assert below.ignore_errors().cardinality_bounds() == (0, None)
    assert list(below.ignore_errors().progress()) == [0, 0, 1, 2]
