# SPDX-License-Identifier: Apache-2.0
"""Random functions of rows: where a proof is found, added rows change nothing."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.tpu.arguments import RunArguments
from distinput.distribute.tpu.row_padding import padded_results
from tests.depth import cases
from tests.distribute.tpu.programs import context

DEVICES = jax.devices()[:2]
ROWS = 5

Step = Callable[[list[Any]], Any]

UNARY: list[Callable[[Any], Any]] = [
    lambda a: jnp.tanh(a),
    lambda a: jnp.abs(a) + 1,
    lambda a: -a,
    lambda a: a * a,
    lambda a: jnp.exp(-jnp.abs(a)),
    lambda a: a.sum(0),
    lambda a: a.sum(-1),
    lambda a: a.sum(),
    lambda a: a.mean(0),
    lambda a: a.max(-1),
    lambda a: a.max(0),
    lambda a: a.T,
    lambda a: a[::-1],
    lambda a: a[..., ::-1],
    lambda a: a[:2],
    lambda a: a[1:],
    lambda a: a[..., :1],
    lambda a: a.reshape(-1),
    lambda a: a.reshape(a.shape[0], -1),
    lambda a: a[:, None],
    lambda a: jnp.cumsum(a, 0),
    lambda a: jnp.cumsum(a, -1),
    lambda a: jnp.sort(a, 0),
    lambda a: jnp.sort(a, -1),
    lambda a: jnp.argmax(a, -1).astype(jnp.float32),
    lambda a: jnp.flip(a, 0),
    lambda a: jnp.roll(a, 1, 0),
    lambda a: jnp.concatenate([a, a], 0),
    lambda a: jnp.concatenate([a, a], -1),
    lambda a: jnp.pad(a, [(0, 1)] * a.ndim),
    lambda a: jax.nn.softmax(a, -1),
    lambda a: jax.nn.softmax(a, 0),
    lambda a: jnp.where(a > 0, a, 0),
    lambda a: a * a.shape[0],
    lambda a: a + jnp.arange(a.shape[0], dtype=jnp.float32).reshape(-1, *[1] * (a.ndim - 1)),
    lambda a: jnp.ones_like(a),
    lambda a: jnp.zeros_like(a) + 2,
    lambda a: a[jnp.argsort(a[..., 0] if a.ndim > 1 else a)],
    lambda a: jnp.take_along_axis(a, jnp.argmax(a, -1)[..., None], -1),
    lambda a: jax.lax.scan(lambda c, r: (c + r.sum(), c), 0.0, a)[1],
    lambda a: jax.grad(lambda b: (jnp.tanh(b) ** 2).sum())(a),
    lambda a: a.at[0].set(7.0),
    lambda a: jnp.linspace(0, 1, a.shape[0]),
    lambda a: jnp.full(3, float(a.size)),
    lambda a: jax.vmap(lambda r: (r * r).sum())(a),
    lambda a: jnp.median(a, 0),
    lambda a: jnp.var(a, -1),
    lambda a: jax.lax.cond(a.sum() > 0, lambda: a, lambda: -a),
]
MASKED: list[Callable[[Any, Any], Any]] = [
    lambda a, m: a * m.reshape(-1, *[1] * (a.ndim - 1)),
    lambda a, m: jnp.where(m.reshape(-1, *[1] * (a.ndim - 1)), a, 0),
    lambda a, m: jnp.where(m.reshape(-1, *[1] * (a.ndim - 1)), 0, a),
    lambda a, m: jnp.where(m.reshape(-1, *[1] * (a.ndim - 1)), a, 1),
    lambda a, m: a / jnp.maximum(m.sum(), 1),
    lambda a, m: a * (1 - m).reshape(-1, *[1] * (a.ndim - 1)),
    lambda a, m: jnp.mean(a, 0, where=m.reshape(-1, *[1] * (a.ndim - 1))),
    lambda a, m: a * m[::-1].reshape(-1, *[1] * (a.ndim - 1)),
    lambda a, m: m.astype(jnp.float32) @ a,
]
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: jnp.maximum(a, b),
    lambda a, b: a @ b,
    lambda a, b: a.T @ b,
    lambda a, b: a @ b.T,
    lambda a, b: jnp.where(a > b, a, b),
    lambda a, b: jnp.concatenate([a, b], -1),
    lambda a, b: jnp.outer(a, b),
    lambda a, b: jnp.einsum("ij,ik->jk", a, b),
    lambda a, b: a[jnp.clip(b.astype(jnp.int32), 0, 1)],
]
TABLE = np.arange(12, dtype=np.float32).reshape(3, 4) / 7


@st.composite
def functions(draw: Any) -> Callable[[Any, Any], Any]:
    """A function that computes up to five values, each from those before, and returns the last ones."""
    chosen: list[tuple[int, int, int, int]] = [
        (draw(st.integers(0, 2)), draw(st.integers(0, 59)), draw(st.integers(0, 9)), draw(st.integers(0, 9)))
        for _ in range(draw(st.integers(1, 5)))
    ]

    def function(x: Any, y: Any) -> Any:
        mask, values = context().row_mask, [x, y, jnp.asarray(TABLE)]
        for kind, which, i, j in chosen:
            a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
            try:
                if kind == 0:
                    values.append(UNARY[which % len(UNARY)](a))
                elif kind == 1:
                    values.append(MASKED[which % len(MASKED)](a, mask))
                else:
                    values.append(BINARY[which % len(BINARY)](a, b))
            except (TypeError, ValueError, IndexError, ZeroDivisionError):
                values.append(a)  # these shapes do not go together
        return values[-1]

    return function


def parts(rows: list[int]) -> tuple[Any, Any]:
    rng = np.random.default_rng(11)
    x = [rng.normal(size=(n, 3)).astype(np.float32) for n in rows]
    y = [rng.normal(size=n).astype(np.float32) for n in rows]
    return di.distribute.PerReplica(x), di.distribute.PerReplica(y)


COMPILED = di.distribute.TPUStrategy(devices=DEVICES)
EAGER = di.distribute.TPUStrategy(devices=DEVICES, compile=False)
numbers = itertools.count()


@pytest.mark.filterwarnings("ignore:run. step has been compiled 16 times:UserWarning")
@settings(max_examples=cases(15, 1000))
@given(functions(), st.integers(0, ROWS - 1))
def test_a_proof_is_right(function: Callable[[Any, Any], Any], fewer: int) -> None:
    given_rows = parts([ROWS, fewer])
    arguments = RunArguments.of(given_rows, {}, COMPILED._engine.mesh)
    if padded_results(COMPILED, COMPILED._engine.mesh, function, arguments, ROWS, fewer, None) is None:
        return
    number = next(numbers)  # so that each function has programs of its own

    def step(x: Any, y: Any) -> Any:
        return function(x, y), number

    COMPILED.run(step, parts([ROWS, ROWS]))
    before = COMPILED.run_counts.padded
    found = COMPILED.run(step, given_rows)[0]
    assert COMPILED.run_counts.padded == before + 1
    expected = EAGER.run(step, given_rows)[0]
    for a, b in zip(
        COMPILED.experimental_local_results(found), EAGER.experimental_local_results(expected), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
