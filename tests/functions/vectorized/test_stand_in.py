# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from distinput.functions.vectorized.answers import FUNCTIONS, Parted, Refused, Rules, StandIn, lifted, rank


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


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "broadcast_to": ((2, 3),),
    "clip": (0, 1),
    "digitize": ([1, 2, 3],),
    "dot": (np.arange(3),),
    "expand_dims": (0,),
    "full_like": (7,),
    "matmul": (np.arange(3),),
    "moveaxis": (0, -1),
    "outer": (2,),
    "pad": (1,),
    "repeat": (2,),
    "reshape": (-1,),
    "roll": (1,),
    "swapaxes": (0, -1),
    "take": (0,),
    "tile": (1,),
}
METHODS = "all any argmax clip copy cumsum flatten max mean ravel round squeeze std sum swapaxes take transpose"


def _call(function: Any, x: Any) -> Any:
    return function(x, *ARGUMENTS.get(function.__name__, ()))


def _call_method(name: str, x: Any) -> Any:
    return getattr(x, name)(*ARGUMENTS.get(name, ()))


CALLS: dict[str, Callable[[Any], Any]] = {
    **{f"np.{f.__name__}": partial(_call, f) for f in FUNCTIONS},
    **{name: partial(_call_method, name) for name in METHODS.split()},
    "T": lambda x: x.T,
    "astype": lambda x: x.astype(x.dtype),
    "astype, copy=False": lambda x: x.astype(x.dtype, copy=False),
    "concatenate": lambda x: np.concatenate([x, x]),
    "diff of nothing": lambda x: np.diff(x, 0),
    "index of an array": lambda x: x[np.array(0)],
    "no index": lambda x: x[()],
    "searchsorted": lambda x: np.searchsorted([1, 2, 3], x),
    "stack": lambda x: np.stack([x, x]),
    "where": lambda x: np.where(x > 1, x, 0),
}


VALUES: list[Any] = [np.float64(2), np.array(2.0), np.array([2.0]), np.arange(3.0), np.arange(3)]


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_a_number_or_new_memory_or_the_same_where_it_is_in_numpy(name: str) -> None:
    for value in VALUES:
        given = StandIn(np.stack([value] * 3), Rules(measured=True), own=True, number=isinstance(value, np.generic))
        try:
            wanted, made = CALLS[name](value), CALLS[name](given)
        except (Refused, TypeError, ValueError, IndexError):
            continue
        assert (made is given) == (wanted is value), value
        if made.own and made is not given:  # what is not its own is never changed in place
            assert made.number == isinstance(wanted, np.generic), value
            assert not np.shares_memory(wanted, value)
