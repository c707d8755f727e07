# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distinput.functions.vectorized.answers import Parted, Refused, Rules, StandIn, lifted, rank


def stand_in(*shape: int) -> StandIn:
    return StandIn(np.zeros((4, *shape)), Rules(measured=False))


def test_it_looks_like_one_element() -> None:
    one = stand_in(2, 3)
    assert (one.shape, one.ndim, one.size, len(one), one.dtype, one.T.shape) == ((2, 3), 2, 6, 2, np.float64, (3, 2))
    assert [part.shape for part in one] == [(3,), (3,)]
    assert one.reshape(3, -1).shape == (3, 2)


@pytest.mark.parametrize(
    "use, reason",
    [
        (int, "depends on a value"),
        (float, "depends on a value"),
        (lambda x: x.item(), "depends on a value"),
        (lambda x: 3 in x, "depends on a value"),
        (range, "depends on a value"),
        (str, "makes text"),
        (lambda x: f"{x}", "makes text"),
        (hash, "looks something up"),
        (np.asarray, "code that has no rule"),
        (iter, "iterates over a number"),
        (lambda x: x.nbytes, r"\.nbytes"),
    ],
)
def test_what_needs_one_value_is_refused(use: Callable[[Any], Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        use(stand_in())


def test_an_array_has_no_truth() -> None:
    with pytest.raises(Refused, match="depends on a value"):
        bool(stand_in(1))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float64])
def test_a_number_is_true_as_its_values_are_or_says_which_ones_are(dtype: Any) -> None:
    values = np.array([0, 1, -0.0, 2, np.nan if np.dtype(dtype).kind == "f" else 3], dtype)
    with pytest.raises(Parted) as parted, np.errstate(all="raise"):
        bool(StandIn(values, Rules(measured=False)))
    assert parted.value.truth.tolist() == [bool(value) for value in values]
    assert [bool(StandIn(values[i : i + 1], Rules(measured=False))) for i in range(5)] == parted.value.truth.tolist()


def test_text_and_complex_numbers_have_no_stand_in() -> None:
    for dtype in (np.complex128, object, np.longdouble, ">f4"):
        with pytest.raises(Refused, match="only booleans, integers and floats"):
            StandIn(np.zeros(3, dtype), Rules(measured=False))


def test_elements_broadcast_from_the_right() -> None:
    assert lifted(stand_in(3), 2).shape == (4, 1, 3)
    assert (rank(stand_in(3)), rank(np.zeros((1, 2))), rank(5)) == (1, 2, 0)


def test_a_view_and_what_it_is_of_are_not_changed_in_place() -> None:
    own = stand_in(3).copy()
    view = own[1:]
    for one in (own, view):
        with pytest.raises(Refused, match="in place"):
            one[0] = 1
