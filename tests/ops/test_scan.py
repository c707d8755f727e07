# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.ops.iterating import until_error

RANGE = di.data.Dataset.range


def test_a_value_is_carried() -> None:
    assert RANGE(5).scan(np.int64(0), lambda s, x: (s + x, s)).to_list() == [0, 0, 1, 3, 6]


def test_a_tuple_element_is_one_argument() -> None:
    assert RANGE(3).enumerate().scan(np.int64(5), lambda s, pair: (s + 1, (s, pair[1]))).to_list() == [
        (5, 0),
        (6, 1),
        (7, 2),
    ]


def test_the_carried_value_may_be_any_nest() -> None:
    made = RANGE(3).scan({"a": np.int64(0), "b": (b"",)}, lambda s, x: ({"a": x, "b": (s["b"][0] + b".",)}, s["b"][0]))
    assert made.to_list() == [b"", b".", b".."]


def test_the_cardinality_is_kept() -> None:
    assert len(RANGE(3).scan(np.int64(0), lambda s, x: (s, x))) == 3


@pytest.mark.parametrize(
    "function, message",
    [
        (
            lambda s, x: (np.float32(s), x),
            "scan: the carried value must keep its dtype int64, got float32; give the initial",
        ),
        (lambda s, x: ((s, s), x), "scan: the carried value must keep its structure ., got (., .)"),
        (lambda s, x: s, "scan: scan_func must return (state, output), got"),
    ],
)
def test_what_the_function_returns_is_checked(function: Any, message: str) -> None:
    before, error = until_error(RANGE(3).scan(np.int64(0), lambda s, x: (s, x) if x < 1 else function(s, x)))
    assert before == [0]
    assert isinstance(error, TypeError)
    assert message in str(error)


def test_the_argument_must_be_a_function() -> None:
    with pytest.raises(TypeError, match="scan: scan_func must be a function, got 1"):
        RANGE(3).scan(0, 1)


@pytest.mark.parametrize("begin", [np.int64(0), *[np.timedelta64(0, unit) for unit in ("D", "ms", "ns", "Y")]])
def test_the_carried_value_is_in_the_state(begin: Any) -> None:
    dataset = RANGE(5).scan(begin, lambda s, x: (s + x, s))
    it = iter(dataset)
    for _ in range(3):
        next(it)
    assert list(dataset.restore(it.state())) == [begin + 3, begin + 6]
