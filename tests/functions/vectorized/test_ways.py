# SPDX-License-Identifier: Apache-2.0
"""Functions that go several ways, by the values of an element: each way is taken by all of its elements together."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from distinput.functions.vectorized.answers import Refused
from distinput.functions.vectorized.whole_block import Vectorizer, WholeBlock
from tests.functions.vectorized.blocks import EYE, LABELS, SCALARS, VECTORS, block_of, judged

WHOLE = "whole blocks"
ALONE = "whole blocks are tried"  # the values of this block needed calls for each element


def graded(x: Any) -> Any:
    if x < -1:
        return {"grade": 0, "x": x}
    if not x:
        return {"grade": 1, "x": -x}
    if 1 < x <= 4 or x == -0.5:
        return {"grade": 2, "x": x * 3}
    return {"grade": 3, "x": x / 7}


def halved(x: Any) -> Any:
    steps = 0
    while abs(x) > 4 and steps < 3:
        x = x / 2
        steps += 1
    return x, steps


def filled(x: Any) -> Any:
    made = np.zeros_like(x)
    made[0] = 1 if x.max() > 1 else -1
    if (x < 0).any():
        made[1:] = x[:-1]
    return made


def named(x: Any) -> Any:
    sign = "+" if x > 0 else "-"
    return x if sign == "+" else (x, x)[1] - 1


def many(values: Any) -> Any:
    """The same elements again and again, so that each way has enough of them."""
    return np.concatenate([values] * (2048 // len(values) + 1))


NUMBERS: list[Callable[..., Any]] = [
    graded,
    halved,
    named,
    lambda x: x if x > 0 else -x,
    lambda x: max(x, 0.5) + min(x, x * 2, x * 3),
    lambda x: (x > 1 and x) or x - 1,
    lambda x: x if x in (1, 2, 3) else x * 0,
    lambda x: (
        x.T in (x, 7),
        x.astype(x.dtype, copy=False) in (x, 7),
        x[()] in (x, 7),
        x * 1 in (x * 1, 7),
        (x,) == (x,),
    ),
    lambda x: sum([1 for bound in (-1, 0, 1) if x > bound]),
    lambda x: all(x > bound for bound in (-1, 0)),
    lambda x: x.astype(np.int32) if -9 < x < 9 else np.int32(9),
    lambda x: 1 / x if x > 0 else x,
]
FLOATS = st.floats(width=32) | st.integers(-3, 9) | st.sampled_from([0.0, -0.0, float("nan"), float("inf"), 1e-40])


@given(arrays.arrays(st.sampled_from([np.float32, np.float64]), 9, elements=FLOATS), st.sampled_from(NUMBERS))
def test_no_value_of_a_number_makes_a_difference(values: Any, function: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"):
        told = judged(function, many(values))
    assert told in (WHOLE, ALONE) or "go more than 8 ways" in told or "has another structure" in told, told


@given(arrays.arrays(np.float32, (7, 3), elements=FLOATS), st.booleans())
def test_no_value_of_an_array_makes_a_difference(values: Any, reverse: bool) -> None:
    with np.errstate(all="ignore"):
        assert judged(filled, many(values)[::-1, ::-1] if reverse else many(values)) in (WHOLE, ALONE)


@pytest.mark.parametrize("function", NUMBERS)
def test_a_few_ways_are_taken_together(function: Callable[..., Any]) -> None:
    assert judged(function, many(np.append(SCALARS.astype(np.float64), np.nan))) in (WHOLE, ALONE)


def test_elements_keep_their_order_and_their_ways() -> None:
    assert judged(lambda y: y * 2 if y % 2 == 0 else y + 1, many(LABELS)) == WHOLE
    assert judged(lambda x, y: x[::-1] if y > 4 else x * x[0], (many(VECTORS), many(LABELS))) == WHOLE
    assert judged(lambda x: x if x.sum() > 0 else -x, many(VECTORS * 100).astype(np.int32)) == WHOLE


@pytest.mark.parametrize(
    "function, reason",
    [
        (lambda y: y if y > 4 else y / 2, "another structure, shape or dtype"),
        (lambda y: (y, y) if y > 4 else y, "another structure, shape or dtype"),
        (lambda y: y if y > 4 else np.arange(3), "another structure, shape or dtype"),
        (lambda y: y if y > 4 else int(y), "depends on a value"),
        (lambda y: sum([n for n in range(9) if y == n]), "go more than 8 ways"),
    ],
)
def test_other_ways_keep_single_calls(function: Callable[..., Any], reason: str) -> None:
    assert reason in judged(function, many(LABELS))


def test_an_error_on_one_way_is_that_of_its_element() -> None:
    def looked_up(x: Any) -> Any:
        return EYE[x] if x > 4 else EYE[0, x] * EYE[x]

    assert judged(looked_up, many(LABELS)) == WHOLE
    made = Vectorizer([looked_up], looked_up, measured=False).made(block_of(np.append(many(LABELS), 10)))
    assert made is None  # so that the call for that element raises its own error


def test_an_element_on_each_way_is_compared() -> None:
    rows = block_of(np.append(many(LABELS), 99))
    whole = WholeBlock([lambda y: y if y < 99 else -y], measured=False)
    for _ in range(3):
        with pytest.raises(Refused, match="differed"):
            whole.compared(rows, *whole(rows), lambda y: y)


def test_few_elements_on_several_ways_are_called_alone() -> None:
    def parity(y: Any) -> Any:
        return y * 2 if y % 2 == 0 else y + 1

    verdict = Vectorizer([parity], parity, measured=False)
    for _ in range(8):
        assert verdict.reason is None
        assert verdict.made(block_of(LABELS)) is None
    assert "led few elements several ways" in str(verdict)
    assert judged(parity, LABELS[LABELS % 2 == 0]) == WHOLE


def test_an_endless_way_ends_where_its_elements_differ() -> None:
    def collatz(x: Any) -> Any:
        steps = 0
        while x > 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            steps += 1
        return steps

    assert "go more than 8 ways" in judged(collatz, many(LABELS))
