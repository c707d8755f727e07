# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from distinput.distribute.tpu.padding_rules import equal_arrays, equal_literals, equal_parameters


def program(fn: Callable[[Any], Any], size: int = 3) -> Any:
    return jax.make_jaxpr(fn)(jnp.ones(size))


def test_programs_are_equal_to_the_last_number() -> None:
    def two(x: Any) -> Any:
        return jnp.sin(x) * 2.0

    assert equal_parameters(program(two), program(two))
    assert not equal_parameters(program(two), program(lambda x: jnp.sin(x) * 3.0))
    assert not equal_parameters(program(two), program(lambda x: jnp.cos(x) * 2.0))
    assert not equal_parameters(program(two), program(two, size=4))


def test_the_same_steps_of_other_values_differ() -> None:
    def a(x: Any) -> Any:
        return jnp.sin(x) - jnp.cos(x)

    def b(x: Any) -> Any:
        first, second = jnp.sin(x), jnp.cos(x)
        return second - first

    assert not equal_parameters(program(a), program(b))


def test_constants_of_programs_are_compared() -> None:
    one, other = np.arange(3.0), np.arange(3.0)[::-1].copy()
    assert equal_parameters(program(lambda x: x + one), program(lambda x: x + one.copy()))
    assert not equal_parameters(program(lambda x: x + one), program(lambda x: x + other))


def test_arrays_with_nan_are_equal() -> None:
    array = np.array([1.0, np.nan])
    assert equal_arrays(array, array.copy())
    assert not equal_arrays(array, array.astype(np.float32))
    assert not equal_arrays(array, array[:1])


@pytest.mark.parametrize("a, b, same", [(1.0, 1.0, True), (1, 1.0, False), (0.0, -0.0, False), (np.nan, np.nan, True)])
def test_literals_have_a_type(a: Any, b: Any, same: bool) -> None:
    assert equal_literals(a, b) is same


def test_parameters_of_any_kind() -> None:
    class Incomparable:
        def __eq__(self, other: object) -> bool:
            raise TypeError

        __hash__ = None  # type: ignore[assignment]

    assert equal_parameters((1, ["a", None]), (1, ["a", None]))
    assert not equal_parameters((1, 2), (1,))
    assert not equal_parameters(Incomparable(), Incomparable())
    assert not equal_parameters(np.ones(2), [1.0, 1.0])
