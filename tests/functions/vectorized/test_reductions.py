# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.functions.vectorized.blocks import IMAGES, RNG, SCALARS, VECTORS, judged

WEIGHTS = RNG.normal(size=(6, 4)).astype(np.float32)


@pytest.mark.parametrize(
    "function, nest",
    [
        (lambda x: x.sum(), IMAGES),
        (lambda x: np.sum(x, axis=(0, 1)), IMAGES),
        (lambda x: x.mean(), IMAGES),
        (lambda x: np.mean(x, axis=-1, keepdims=True), IMAGES),
        (lambda x: (x.max(), x.min(), x.argmax(), np.argmin(x, axis=1), x.prod()), IMAGES),
        (lambda x: x.max(0), VECTORS),
        (lambda x: (x > 0).any() & (x > -9).all(), VECTORS),
        (lambda x: np.cumsum(x), VECTORS),
        (lambda x: np.add.reduce(x), IMAGES.reshape(40, -1)),
        (lambda x: x.max(axis=None, keepdims=True), IMAGES),
        (lambda x: (np.sort(x), np.argsort(x)[-3:], np.sort(x, None)[::-1]), VECTORS),
        (lambda x: [np.sort(x, axis=1, kind="stable"), np.argsort(x, -3)], IMAGES),
        (lambda x: (np.outer(x, x), np.outer(WEIGHTS, x)), VECTORS),
        (lambda x: np.outer(x, [1, 2]), SCALARS),
        (lambda x: (np.median(x), np.median(x, axis=1, keepdims=True), np.median(x, axis=(0, -1))), IMAGES),
        (lambda x: np.median(x), SCALARS),
    ],
)
def test_what_does_not_depend_on_the_order_is_exact(function: Callable[..., Any], nest: Any) -> None:
    assert judged(function, nest) == "whole blocks"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(),
        lambda x: (x - x.mean()) / (x.std() + np.float32(1e-6)),
        lambda x: x / np.linalg.norm(x),
        lambda x: x @ WEIGHTS,
        lambda x: WEIGHTS.T @ x,
        lambda x: np.dot(x, x),
        lambda x: np.matmul(x[None], x[:, None]),
        lambda x: np.reshape(x, (1, 2, 3)) @ WEIGHTS[0, :3],
    ],
)
def test_sums_of_floats_are_measured(function: Callable[..., Any]) -> None:
    assert "not exact by construction" in judged(function, VECTORS)
    told = judged(function, VECTORS, measured=True)
    assert told == "whole blocks" or "other last digits" in told


VALUES = st.floats(width=16) | st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("-inf"), 6e4])


@given(
    arrays.arrays(
        st.sampled_from([np.float16, np.float32, np.float64]),
        st.tuples(st.just(6), st.integers(0, 5), st.integers(1, 4)),
        elements=VALUES,
    ),
    st.sampled_from([None, 0, -1, (0, 1)]),
    st.booleans(),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore:(Mean of empty|invalid value)")
def test_a_median_is_that_of_the_element(values: Any, axis: Any, keepdims: bool, reverse: bool) -> None:
    block = values.transpose(0, 2, 1)[:, ::-1] if reverse else values
    with np.errstate(all="ignore"):
        told = judged(lambda x: np.median(x, axis=axis, keepdims=keepdims), block)
    assert told in ("whole blocks", "whole blocks are tried") or not block.size


@given(
    arrays.arrays(st.sampled_from([np.int8, np.uint64, np.int64, np.bool_]), st.tuples(st.just(6), st.integers(1, 6)))
)
def test_a_median_of_integers_is_one_of_float64(values: Any) -> None:
    assert judged(lambda x: np.median(x), values) == "whole blocks"


def test_the_sign_of_a_zero_that_is_the_largest_depends_on_the_order() -> None:
    for function in (lambda x: x.max(), lambda x: np.median(x)):
        assert judged(function, np.array([[0.0, -0.0, -1.0], [1.0, 2.0, 3.0]])) == "whole blocks are tried"


@pytest.mark.parametrize(
    "function, nest, reason",
    [
        (lambda x: np.sum([x, x]), SCALARS, "has no rule"),
        (lambda x: np.partition(x, 1), VECTORS, ".partition"),
        (lambda x: np.percentile(x, 3), VECTORS, ".percentile"),
        (lambda x: np.linalg.norm(x, 1), VECTORS, "no rule"),
        (lambda x: x.sum(where=x > 0), VECTORS, "no rule"),
        (lambda x: np.matmul(x, x), IMAGES, "more than two dimensions"),
    ],
)
def test_other_ways_are_refused(function: Callable[..., Any], nest: Any, reason: str) -> None:
    assert reason in judged(function, nest, measured=True)
