# SPDX-License-Identifier: Apache-2.0
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distinput.distribute import Mirrored, PerReplica
from distinput.distribute.core.values import PartialPerReplica

AUGMENTED = {
    operator.iadd: operator.add,
    operator.iand: operator.and_,
    operator.ifloordiv: operator.floordiv,
    operator.ilshift: operator.lshift,
    operator.imod: operator.mod,
    operator.imul: operator.mul,
    operator.ior: operator.or_,
    operator.ipow: operator.pow,
    operator.irshift: operator.rshift,
    operator.isub: operator.sub,
    operator.itruediv: operator.truediv,
    operator.ixor: operator.xor,
}


@pytest.mark.parametrize("augmented, plain", AUGMENTED.items(), ids=lambda f: f.__name__)
def test_augmented_assignment_of_a_mirrored_value_makes_a_plain_one(
    augmented: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]
) -> None:
    parts = [np.array([5, 6]), np.array([5, 6])]
    result = augmented(Mirrored(parts), 2)
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, plain(np.array([5, 6]), 2))
    assert [part.tolist() for part in parts] == [[5, 6], [5, 6]], "the copies stay as they are"


def test_augmented_matrix_product_of_a_mirrored_value() -> None:
    value: Any = Mirrored([np.eye(2), np.eye(2)])
    value @= np.array([1.0, 2.0])
    assert value.tolist() == [1.0, 2.0]


def test_an_array_takes_a_mirrored_value_in_place() -> None:
    array = np.arange(2)
    array += Mirrored([1, 1])
    assert array.tolist() == [1, 2]


def test_a_mirrored_value_cannot_be_written_to() -> None:
    with pytest.raises(TypeError, match=r"numpy.add: out must be an array, got a Mirrored"):
        np.add(1, 2, out=Mirrored([np.zeros(2), np.zeros(2)]))  # type: ignore[call-overload]


def test_a_mirrored_value_is_used_like_the_local_copy() -> None:
    value: Any = Mirrored([np.array([3, 4]), np.array([3, 4])])
    assert (value[1], len(value), list(value)) == (4, 2, [3, 4])
    number: Any = Mirrored([2, 2])
    assert (int(number), float(number), complex(number), range(5)[number]) == (2, 2.0, 2 + 0j, 2)
    assert not Mirrored([0, 0])
    assert Mirrored([1, 1])
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        operator.index(Mirrored([1.5, 1.5]))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x + 1,
        lambda x: 1 + x,
        lambda x: operator.iadd(x, 1),
        lambda x: np.arange(2) * x,
        lambda x: np.float64(2) - x,
        lambda x: x**2,
        lambda x: x @ x,
        lambda x: -x,
        lambda x: abs(x),
        lambda x: x < 3,
        lambda x: 3 >= x,  # noqa: SIM300 - the other side is asked
        lambda x: divmod(x, 2),
    ],
)
@pytest.mark.parametrize("value", [PerReplica([1, 2]), PartialPerReplica([1, 0], [True, False])])
def test_a_value_that_differs_says_where_to_compute(compute: Callable[[Any], Any], value: PerReplica) -> None:
    with pytest.raises(TypeError, match=r"^PerReplica has no single value .*`strategy.run`.*`strategy.reduce`"):
        compute(value)


def test_values_that_differ_are_equal_to_themselves_alone() -> None:
    value = PerReplica([1, 1])
    assert value == value
    assert value != PerReplica([1, 1])
    assert len({value, PerReplica([1, 1])}) == 2


class Traced:
    """Like an array of JAX while a function is compiled: it knows operators, and NumPy cannot read it."""

    __array_priority__ = 100
    at = None

    def __init__(self, text: str) -> None:
        self.text = text

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("there is no value")

    def __mul__(self, other: Any) -> str:
        return f"{self.text} * {_text(other)}"

    def __rmul__(self, other: Any) -> str:
        return f"{_text(other)} * {self.text}"


def _text(value: Any) -> str:
    return value.text if isinstance(value, Traced) else str(value)


def test_arrays_that_numpy_cannot_read_use_their_own_operators() -> None:
    mirrored = Mirrored([Traced("x"), Traced("x")])
    assert mirrored * 2 == "x * 2"
    assert 2 * mirrored == "2 * x"
    assert np.float32(2) * mirrored == "2.0 * x"
    assert np.array([2]) * mirrored == "[2] * x"


@pytest.mark.parametrize("use", [float, int, complex, round, "{:.2f}".format], ids=lambda use: use.__name__)
def test_values_that_differ_become_no_number(use: Callable[[Any], Any]) -> None:
    for value in (PerReplica([1.0, 2.0]), PerReplica([1.0, 1.0]), PartialPerReplica([1.0, 0.0], [True, False])):
        with pytest.raises(TypeError, match=r"PerReplica has no single value to compute with .*`strategy.reduce`"):
            use(value)
    assert f"{PerReplica([1, 2])}" == str(PerReplica([1, 2]))
    assert use(Mirrored([2.5, 2.5])) == use(2.5)
