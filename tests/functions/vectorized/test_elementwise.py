# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.functions.vectorized.blocks import IMAGES, LABELS, SCALARS, VECTORS, judged

WHOLE = "whole blocks"
ALONE = "whole blocks are tried"  # the values of this block needed calls for each element


@pytest.mark.parametrize(
    "function, nest",
    [
        (lambda x: x * 2 + 1, SCALARS),
        (lambda x: -abs(x) / 3, SCALARS),
        (lambda x: x // 3 % 4, LABELS),
        (lambda x: x.astype(np.float32) / np.float32(255), IMAGES),
        (lambda x: np.where(x > 0, x, np.float32(0.1) * x), VECTORS),
        (lambda x: np.maximum(x, 0), VECTORS),
        (lambda x: np.clip(x, -1, 1), VECTORS),
        (lambda x: x.clip(10, 20), IMAGES),
        (lambda x: np.round(x, 2), VECTORS),
        (lambda x: x**2 + np.sqrt(np.abs(x)), VECTORS),
        (lambda x: (x > 100) & ~(x < 5), IMAGES),
        (lambda x: np.searchsorted(np.arange(10), x), LABELS),
        (lambda x: np.digitize(x, np.arange(3)), SCALARS),
        (lambda x: (x * 10).astype(np.int8), VECTORS),
        (lambda x: [x == 3, x != 3, x << 2], LABELS),
    ],
)
def test_exact_rules_give_the_same_bits(function: Callable[..., Any], nest: Any) -> None:
    assert judged(function, nest) == WHOLE


FLOATS = st.floats(width=32) | st.sampled_from([0.0, -0.0, float("nan"), float("inf"), 1e-40, 3e38])
FUNCTIONS: list[Callable[..., Any]] = [
    lambda x: np.maximum(x, 0),
    lambda x: np.minimum(0.0, x),
    lambda x: np.clip(x, -1, 0),
    lambda x: np.clip(np.int8(-3), -0.0, x),
    lambda x: np.clip(x, 0.0, -0.0),
    lambda x: np.clip(1, x, x[::-1]),
    lambda x: x * 3 - 1,
    lambda x: x.astype(np.int16),
    lambda x: x / (x - 1),
    lambda x: np.where(x > 1, x, -x),
    lambda x: np.round(x, 1),
    lambda x: x.max(),
    lambda x: np.sqrt(x),
    lambda x: x[0] * 2 + x[1],
    lambda x: np.nan_to_num(x, posinf=7),
    lambda x: np.sort(x),
    lambda x: np.argsort(x),
    lambda x: np.outer(x, x),
]


@given(arrays.arrays(np.float32, (5, 3), elements=FLOATS), st.sampled_from(FUNCTIONS))
def test_no_value_makes_a_difference(values: Any, function: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"):
        assert judged(function, values) in (WHOLE, ALONE)


@given(st.lists(st.integers(0, 9), min_size=3, max_size=9), arrays.arrays(np.int64, (5, 3), elements=st.integers(0, 9)))
def test_a_search_in_values_that_are_not_sorted_is_one_of_its_own(places: list[int], values: Any) -> None:
    among = np.array(places)
    told = judged(lambda x: np.searchsorted(among, x), values)
    assert (told == WHOLE) == (places == sorted(places)), told


@given(arrays.arrays(np.int64, 6), st.sampled_from(["add", "multiply", "subtract"]), st.integers(-5, 5))
def test_integers_of_one_element_overflow_as_alone(values: Any, name: str, other: int) -> None:
    with np.errstate(all="ignore"):
        assert judged(lambda x: {"add": x + other, "multiply": x * other, "subtract": x - other}, values) in (
            WHOLE,
            ALONE,
        )


@pytest.mark.parametrize(
    "function, values",
    [
        (lambda x: x + 1, np.array([1, 2**63 - 1])),  # NumPy warns for numbers, not for arrays
        (lambda x: 1 / x, np.array([1.0, 0.0])),
        (lambda x: np.maximum(x, 0), np.array([1.0, -0.0])),
        (lambda x: np.clip(x, 0.0, -0.0), np.array([1.0, 2.0])),
        (lambda x: np.clip(x, -0.0, 0.0), np.array([1, -2])),
        (lambda x: x.astype(np.uint8), np.array([1.0, 300.0])),
        (lambda x: x.astype(np.int32), np.array([1.0, np.nan])),
    ],
)
def test_values_that_have_no_one_result_are_left_to_single_calls(function: Callable[..., Any], values: Any) -> None:
    assert judged(function, values) == ALONE


@pytest.mark.parametrize("name", ["exp", "tanh", "log1p", "sin"])
def test_functions_that_may_take_another_path_are_measured(name: str) -> None:
    function: Any = getattr(np, name)
    assert judged(lambda x: function(np.abs(x)), VECTORS) == (
        f"element by element, since np.{name} is not exact by construction; vectorize=True measures whether it is here"
    )
    assert judged(lambda x: function(np.abs(x)), VECTORS, measured=True) in (
        WHOLE,
        f"element by element, since np.{name} gives other last digits for a block than for one element",
    )


def test_the_power_of_a_number_is_measured() -> None:
    assert "np.power is not exact" in judged(lambda x: x**2, SCALARS)


def squared(x: Any) -> Any:
    x **= 2
    return x


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "function",
    [lambda x: x**2, lambda x: x**0.5, lambda x: x ** np.float32(-1), lambda x: x**3, lambda x: 2.0**x, squared],
)
def test_powers_of_numbers_are_those_of_the_operator(function: Callable[..., Any], dtype: Any) -> None:
    numbers = np.abs(np.random.default_rng(3).normal(size=9000)) * 3 + 0.1
    judged(function, numbers.astype(dtype), measured=True)


def test_an_array_that_the_function_made_may_be_changed_in_place() -> None:
    def changed(x: Any) -> Any:
        y = x * 2
        y += 1
        y[0] = 5
        y[1:3] = x[:2]
        y[y > 1] = 1
        y[-1] = x[0]
        return y

    assert judged(changed, VECTORS) == WHOLE


def test_the_argument_is_not_changed_in_place() -> None:
    def changed(x: Any) -> Any:
        x += 1
        return x

    assert "it changes its argument" in judged(changed, VECTORS.copy())


def test_options_of_ufuncs_have_no_rules() -> None:
    assert "options or results that have no rule" in judged(lambda x: np.add(x, 1, where=x > 0), VECTORS)
