# SPDX-License-Identifier: Apache-2.0
"""`counter`: the numbers of TensorFlow 2.21, which the laws repeat for others."""

from typing import Any

import numpy as np
import pytest

import distinput as di

COUNTER = di.data.Dataset.counter


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ((), [0, 1, 2]),
        ((5, -2), [5, 3, 1]),
        ((126, 1, "int8"), [126, 127, -128]),
        ((300, 1, "int8"), [44, 45, 46]),
        ((0.5, 0.25, "float32"), [0.5, 0.75, 1.0]),
    ],
)
def test_it_counts_as_tensorflow(arguments: tuple[Any, ...], expected: list[Any]) -> None:
    assert COUNTER(*arguments).take(3).to_list() == expected
    assert COUNTER(*arguments).cardinality() == di.data.INFINITE_CARDINALITY


def test_far_positions_are_reached_at_once() -> None:
    assert COUNTER(7, 3)[10**15] == 7 + 3 * 10**15
    assert COUNTER(0, 1).skip(10**15).take(1).to_list() == [10**15]


def test_errors_of_rounding_do_not_add_up() -> None:
    # Adding one to a float32 again and again stops at 2 ** 24, as TensorFlow's counter does.
    assert COUNTER(0, 1, np.float32)[2**24 + 2] == 2**24 + 2


def test_dtype_decides_what_numbers_may_be() -> None:
    with pytest.raises(TypeError, match=r"counter: start must be an integer, got 2\.5"):
        COUNTER(2.5)
    with pytest.raises(TypeError, match="counter: step must be a number, got 'b'"):
        COUNTER(0, "b", np.float32)
    with pytest.raises(TypeError, match="counter: dtype must be one of numbers, got bool"):
        COUNTER(dtype=bool)
