# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX: what they have beside the rules of all libraries, which `test_arrays` has."""

from typing import Any

import numpy as np
import pytest

from distinput.distribute.core.array_arithmetic import ReduceOp, gather_parts, reduce_parts, reduce_rows

jax = pytest.importorskip("jax")
jnp = jax.numpy
from distinput.distribute.devices.jax import JAX  # noqa: E402 - needs JAX


def on_devices(*parts: Any) -> list[Any]:
    return [jax.device_put(part, jax.devices()[i]) for i, part in enumerate(parts)]


def test_nothing_is_taken_to_the_host_unasked() -> None:
    """Only a count is put on the device, and JAX is told so."""
    parts = on_devices(np.ones((3, 2), np.float32), np.ones((1, 2), np.float32), np.zeros((0, 2), np.float32))
    with jax.transfer_guard_host_to_device("disallow"), jax.transfer_guard_device_to_host("disallow_explicit"):
        for op in ReduceOp:
            reduce_rows(op, parts, 0, JAX)
            reduce_parts(op, on_devices(parts[0], parts[0]), JAX)
        gather_parts(parts, 0, JAX)
        JAX.take(parts[0], np.array([2, 0]))


def test_the_result_is_where_the_first_part_is() -> None:
    parts = on_devices(np.zeros(2), np.zeros(2), np.zeros(2))[1:]
    for made in (reduce_parts(ReduceOp.MEAN, parts, JAX), gather_parts(parts, 0, JAX)):
        assert made.devices() == {jax.devices()[1]}


def test_a_sum_is_computed_where_its_array_is() -> None:
    with jax.default_device(jax.devices()[2]):
        array = jnp.ones((4, 2))  # of which JAX thinks that it may be anywhere
    assert JAX.sum(array, (0,), array.dtype).devices() == {jax.devices()[2]}


def test_without_64_bits_means_of_integers_are_float32_and_do_not_wrap() -> None:
    parts = on_devices(np.full(3, 2**31 - 1, np.int32), np.full(2, 2**31 - 1, np.int32))
    mean = reduce_rows(ReduceOp.MEAN, parts, 0, JAX)
    assert mean.dtype == np.float32
    assert float(mean) == 2.0**31
    assert reduce_rows(ReduceOp.SUM, parts, 0, JAX).dtype == np.int32


def test_bfloat16_is_a_number() -> None:
    parts = on_devices(jnp.full(2, 1.5, jnp.bfloat16), jnp.full(2, 2.5, jnp.bfloat16))
    mean = reduce_parts(ReduceOp.MEAN, parts, JAX)
    assert mean.dtype == jnp.bfloat16
    assert mean.tolist() == [2, 2]


def test_traced_arrays_are_not_owned() -> None:
    seen = []
    jax.jit(lambda x: seen.append(JAX.owns(x)) or x)(jnp.ones(1))
    assert seen == [False]
