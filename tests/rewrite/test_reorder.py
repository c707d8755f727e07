# SPDX-License-Identifier: Apache-2.0
"""Skips go before takes, where neither counts something else then."""

from typing import Any

import pytest

import distinput as di
from tests.rewrite.running import fires, ops_after

TWICE = di.data.Dataset.range(5).repeat(2)


@pytest.mark.parametrize(
    "dataset, numbers",
    [
        (TWICE.take(7).skip(3), [3, 4, 0, 1]),
        (TWICE.take(3).skip(3), []),
        (TWICE.take(3).skip(5), []),
        (TWICE.take(20).skip(8), [3, 4]),
        (TWICE.take(9).skip(1).take(6).skip(2), [3, 4, 0, 1]),
    ],
)
def test_a_skip_goes_before_a_take(dataset: Any, numbers: list[int]) -> None:
    ops = ops_after(dataset, "skip_before_take")
    assert "take" not in ops[: ops.index("skip")]
    assert dataset.to_list() == numbers


@pytest.mark.parametrize(
    "dataset",
    [TWICE.take(-1).skip(3), TWICE.take(7).skip(-1), TWICE.take(7).skip(0), TWICE.skip(3).take(7)],
)
def test_it_stays_where_it_is(dataset: Any) -> None:
    assert not fires(dataset, "skip_before_take")


def test_errors_are_counted_as_before() -> None:
    def quotient(x: int) -> float:
        if x == 1:
            raise ZeroDivisionError
        return float(x)

    dataset = di.data.Dataset.range(6).filter(lambda x: x >= 0).map(quotient).take(4).skip(2)
    assert not fires(dataset, "skip_before_take")
    assert dataset.ignore_errors().to_list() == [2.0, 3.0, 4.0]
