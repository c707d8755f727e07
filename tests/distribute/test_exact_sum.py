# SPDX-License-Identifier: Apache-2.0
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from distinput.distribute.core.array_arithmetic import bands_of, joined, rounded

FLOAT64 = np.dtype(np.float64)
finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


def total(parts: list[list[float]], divisor: int = 1, dtype: Any = FLOAT64) -> Any:
    return rounded(joined([bands_of(np.array(part, dtype), (0,)) for part in parts]), divisor, np.dtype(dtype))


@given(st.lists(finite, min_size=1, max_size=40), st.data())
def test_a_sum_is_rounded_once_however_it_is_divided_and_ordered(values: list[float], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(values))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=3)))
    parts = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    try:
        expected = math.fsum(values)
    except OverflowError:
        return
    assert total(parts) == expected


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@example([float(np.finfo(np.float32).max)])
def test_narrow_floats_are_added_exactly(values: list[float]) -> None:
    exact = sum(map(Fraction, values))
    with np.errstate(over="ignore"):  # beyond the largest float is infinity
        near = np.float32(math.fsum(values))
        around = [np.nextafter(near, np.float32(towards)) for towards in (-np.inf, np.inf)]
    around = [float(each) for each in (near, *around) if np.isfinite(each)]
    made = total([values], dtype=np.float32)
    if np.isfinite(made):
        assert abs(Fraction(float(made)) - exact) == min(abs(Fraction(each) - exact) for each in around)
    else:
        assert made == near


def test_terms_that_cancel_leave_the_smallest_one() -> None:
    assert total([[1e300, 5e-324], [-1e300]]) == 5e-324


def test_a_mean_divides_before_it_is_rounded() -> None:
    assert total([[1.0, 1.0], [1.0]], 3) == 1.0
    assert np.isnan(total([[1.0]], 0))


def test_a_sum_too_large_is_infinite() -> None:
    assert total([[1.7e308], [1.7e308]]) == np.inf
    assert total([[-1.7e308], [-1.7e308]]) == -np.inf


@pytest.mark.parametrize(
    "parts, expected",
    [
        ([[np.inf, 1.0], [2.0]], np.inf),
        ([[-np.inf], [1.0]], -np.inf),
        ([[np.inf], [-np.inf]], np.nan),
        ([[np.nan], []], np.nan),
    ],
)
def test_terms_that_are_not_finite_are_added_as_usual(parts: list[list[float]], expected: float) -> None:
    np.testing.assert_equal(total(parts), expected)


def test_parts_without_rows_count_nothing_and_keep_their_shape() -> None:
    empty = bands_of(np.zeros((0, 2)), (0,))
    full = bands_of(np.array([[1.0, 2.0], [3.0, 4.0]]), (0,))
    assert rounded(joined([empty, full]), 1, FLOAT64).tolist() == [4.0, 6.0]
    assert rounded(joined([empty, empty]), 1, FLOAT64).tolist() == [0.0, 0.0]


def test_a_term_that_is_not_finite_leaves_the_sums_beside_it_alone() -> None:
    parts = [
        bands_of(np.array([[np.inf, 1.0, 1e16], [1.0, 0.25, 1.0]]), (0,)),
        bands_of(np.array([[2.0, 3.0, -1e16]]), (0,)),
    ]
    assert rounded(joined(parts), 1, FLOAT64).tolist() == [np.inf, 4.25, 1.0]
    assert rounded(joined(parts), 2, FLOAT64).tolist() == [np.inf, 2.125, 0.5]
    np.testing.assert_array_equal(rounded(joined(parts[1:]), 0, FLOAT64), [np.nan] * 3)


def test_a_narrow_sum_is_not_rounded_twice() -> None:
    assert total([[1.0, 2.0**-24], [2.0**-60]], dtype=np.float32) == np.float32(1 + 2.0**-23)
    assert total([[1.0, 2.0**-24], [-(2.0**-60)]], dtype=np.float32) == 1
    assert total([[1.0, 2.0**-24]], dtype=np.float32) == 1, "in the middle, the even one"
    assert total([[-65504.0, -16.0], [-(2.0**-24)]], dtype=np.float16) == -np.inf
