# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments say which method, which argument, what must hold and what was given."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.plan.check import AUTOTUNE, at_least, callable_argument, integer, parallel_calls

LARGEST = np.iinfo(np.int64).max


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_integers_of_python_and_numpy_are_taken(value: Any) -> None:
    assert integer("take", "count", value) == 3
    assert type(integer("take", "count", value)) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, np.float32(3), "3", None, [3], np.array([3])])
def test_anything_else_is_no_integer(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^take: count must be an integer, got "):
        integer("take", "count", value)


def test_a_bound_is_said_in_tensorflows_words() -> None:
    assert at_least("batch", "batch_size", 1, 1) == 1
    with pytest.raises(InvalidArgumentError, match=r"^batch: batch_size must be greater than zero, got 0$"):
        at_least("batch", "batch_size", 0, 1)
    with pytest.raises(InvalidArgumentError, match=r"^iter_pass: number must be at least 0, got -1$"):
        at_least("iter_pass", "number", -1, 0)


def test_no_number_is_larger_than_an_int64() -> None:
    assert at_least("take", "count", LARGEST, 0) == LARGEST
    with pytest.raises(InvalidArgumentError, match=f"^take: count must be at most {LARGEST}, got {LARGEST + 1}$"):
        at_least("take", "count", LARGEST + 1, 0)


def test_what_cannot_be_called_is_no_function() -> None:
    callable_argument("map", "map_func", len)
    with pytest.raises(TypeError, match=r"^map: map_func must be a function, got 3$"):
        callable_argument("map", "map_func", 3)


@pytest.mark.parametrize("value", [None, AUTOTUNE, 1, 16, np.int64(2)])
def test_calls_in_parallel(value: Any) -> None:
    parallel_calls("map", value)


@pytest.mark.parametrize("value", [0, -2])
def test_no_calls_in_parallel(value: int) -> None:
    with pytest.raises(
        InvalidArgumentError, match=f"^map: num_parallel_calls must be at least 1, or AUTOTUNE, got {value}$"
    ):
        parallel_calls("map", value)


async def doubled(x: int) -> int:
    return 2 * x


async def counted() -> AsyncIterator[int]:
    yield 1


class Doubles:
    async def __call__(self, x: int) -> int:
        return 2 * x


@pytest.mark.parametrize("function", [doubled, counted, partial(doubled, 1), Doubles()])
def test_a_function_that_only_promises_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match=r"^map: map_func must not be an async function, got .*; give a plain one"):
        callable_argument("map", "map_func", function)


def test_every_step_that_takes_a_function_asks() -> None:
    numbers = di.data.Dataset.range(3)
    for method in ("map", "filter", "flat_map", "interleave", "take_while", "apply"):
        with pytest.raises(TypeError, match=f"^{method}: .* must not be an async function"):
            getattr(numbers, method)(doubled)
    with pytest.raises(TypeError, match=r"^from_generator: generator must not be an async function"):
        di.data.Dataset.from_generator(counted, output_signature=di.TensorSpec((), np.int64))
