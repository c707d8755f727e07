# SPDX-License-Identifier: Apache-2.0
"""Each rule for one step alone; `test_padding.py` and `test_padding_laws.py` try whole functions."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from distinput.distribute.tpu.padding_rules import (
    CLEAN,
    ROWS,
    UNKNOWN,
    ZERO,
    ZEROED,
    PairedStep,
    ValueKind,
    kinds_of,
    rows_axis,
)

SIZES = (8, 5)


def step_of(fn: Callable[..., Any], kinds: tuple[ValueKind, ...], *inner: tuple[Any, ...]) -> PairedStep:
    """The last step of a function of arrays whose shapes are given with "n" for the number of rows."""

    def equation(rows: int) -> Any:
        arrays = [jnp.ones([rows if d == "n" else d for d in shape], jnp.float32) for shape in inner]
        return jax.make_jaxpr(fn)(*arrays).eqns[-1]

    small, large = equation(SIZES[0]), equation(SIZES[1])
    return PairedStep(small.primitive.name, small, large, kinds, SIZES)


@pytest.mark.parametrize(
    "fn, kinds, shapes, want",
    [
        (jnp.sin, (ROWS,), [("n",)], ROWS),
        (jnp.sin, (ZEROED,), [("n",)], ZEROED),
        (jnp.cos, (ZEROED,), [("n",)], ROWS),
        (jnp.sin, (UNKNOWN,), [("n",)], UNKNOWN),
        (jnp.sin, (CLEAN,), [(3,)], CLEAN),
        (jnp.sin, (ZERO,), [(3,)], ZERO),
        (lambda x, y: x * y, (ROWS, ZEROED), [("n", 2), ("n", 2)], ZEROED),
        (lambda x, y: x + y, (ROWS, ZEROED), [("n", 2), ("n", 2)], ROWS),
        (lambda x, y: x + y, (ZEROED, ZEROED), [("n", 2), ("n", 2)], ZEROED),
        (lambda x: jax.lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None), (ZEROED,), [("n", 2)], CLEAN),
        (lambda x: jax.lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None), (ROWS,), [("n", 2)], UNKNOWN),
        (lambda x: jax.lax.reduce_sum_p.bind(x, axes=(1,), out_sharding=None), (ROWS,), [("n", 2)], ROWS),
        (lambda x: jax.lax.cumsum(x, axis=1), (ROWS,), [("n", 2)], ROWS),
        (lambda x: jax.lax.cumsum(x, axis=0), (ROWS,), [("n", 2)], UNKNOWN),
        (lambda x, w: x @ w, (ROWS, CLEAN), [("n", 2), (2, 3)], ROWS),
        (lambda x, y: x.T @ y, (ROWS, ZEROED), [("n", 2), ("n", 3)], CLEAN),  # a sum over rows: added ones give zeros
        (lambda x, y: x.T @ y, (ROWS, ROWS), [("n", 2), ("n", 3)], UNKNOWN),
        (lambda x: x.T, (ZEROED,), [("n", 2)], ZEROED),
        (lambda x: jax.lax.rev(x, (0,)), (ROWS,), [("n", 2)], UNKNOWN),
        (lambda x: jax.lax.rev(x, (1,)), (ROWS,), [("n", 2)], ROWS),
        (lambda x: jax.lax.slice(x, (0, 0), (x.shape[0], 1)), (ROWS,), [("n", 2)], ROWS),
        (lambda x: jax.lax.slice(x, (0, 0), (x.shape[0] - 1, 2)), (ROWS,), [("n", 2)], UNKNOWN),
        (lambda x, y: jnp.concatenate([x, y], 1), (ZEROED, ZEROED), [("n", 2), ("n", 1)], ZEROED),
        (lambda x: jax.lax.pad(x, 0.0, [(0, 1, 0), (0, 0, 0)]), (ROWS, ZERO), [("n", 2)], UNKNOWN),
        (lambda x: jax.lax.pad(x, 0.0, [(0, 0, 0), (1, 0, 0)]), (ZEROED, ZERO), [("n", 2)], ZEROED),
        (lambda x: jax.lax.sort(x, dimension=1), (ROWS,), [("n", 2)], ROWS),
        (lambda x: jax.lax.sort(x, dimension=0), (ROWS,), [("n", 2)], UNKNOWN),
        (lambda x: jax.lax.rng_uniform(0.0, 1.0, x.shape), (CLEAN, CLEAN), [("n", 2)], UNKNOWN),
    ],
)
def test_one_step(fn: Callable[..., Any], kinds: tuple[ValueKind, ...], shapes: list[Any], want: ValueKind) -> None:
    assert kinds_of(step_of(fn, kinds, *shapes)) == [want]


@pytest.mark.parametrize(
    "small, large, axis",
    [((8, 2), (5, 2), 0), ((2, 8), (2, 5), 1), ((8, 8), (5, 5), None), ((8, 2), (4, 2), None), ((8,), (5, 1), None)],
)
def test_the_dimension_of_rows_is_the_only_one_that_differs(
    small: tuple[int, ...], large: tuple[int, ...], axis: int | None
) -> None:
    assert rows_axis(small, large, SIZES) == axis
