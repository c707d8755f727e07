# SPDX-License-Identifier: Apache-2.0
import jax
import jax.numpy as jnp
import numpy as np

from distinput.distribute.tpu.padding_rules import flattened, is_literal


def names(function: object, keep: str = "") -> list[str]:
    return [step.primitive.name for step in flattened(jax.make_jaxpr(function)(jnp.ones(3)), keep).eqns]


def test_functions_are_opened_and_loops_are_not() -> None:
    inner = jax.jit(lambda x: jnp.sin(x) + 1)
    assert names(lambda x: inner(inner(x)) * 2) == ["sin", "add", "sin", "add", "mul"]
    assert names(lambda x: jax.nn.relu(x)) == ["max"]
    assert names(lambda x: jax.lax.fori_loop(0, 3, lambda i, v: inner(v), x)) == ["scan"]


def test_one_function_may_stay() -> None:
    def kept(x: jax.Array) -> jax.Array:
        return jnp.cos(x)

    assert names(lambda x: jax.jit(kept)(x) + 1, keep="kept") == ["jit", "add"]


def test_each_call_makes_values_of_its_own() -> None:
    inner = jax.jit(lambda x: x * x)
    program = flattened(jax.make_jaxpr(lambda x: (inner(x), inner(x + 1), x, 2.0))(1.0), "")
    assert len({id(x) for x in program.outvars}) == 4
    assert program.outvars[2] is program.invars[0]
    assert is_literal(program.outvars[3])


def test_constants_are_kept() -> None:
    table = np.arange(3.0)
    program = flattened(jax.make_jaxpr(lambda x: jax.jit(lambda y: y + table)(x))(jnp.ones(3)), "")
    assert any(np.array_equal(np.asarray(value), table) for value in program.consts)
