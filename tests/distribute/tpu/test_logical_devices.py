# SPDX-License-Identifier: Apache-2.0
"""The cores of a replica as logical devices: TensorFlow's checks, and what the compiler makes of the annotations."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec

import distinput as di
from distinput.distribute.tpu.engine import Engine
from distinput.distribute.tpu.mesh import REPLICA, ReplicaMesh


class Cores(Engine):
    def __init__(self, cores: int, *, spmd: bool = False) -> None:
        count = len(jax.devices()) // cores * cores
        super().__init__(None, ReplicaMesh.of(jax.devices()[:count], cores), compile=False, spmd=spmd)


def traced(cores: Cores, function: Any, array: Any) -> Any:
    """The function as a program of one replica, over all of them."""
    mesh = cores.mesh
    jaxpr = jax.make_jaxpr(function, axis_env=[(REPLICA, mesh.replicas)])(
        jax.ShapeDtypeStruct(array.shape, array.dtype)
    )
    program = jax.shard_map(
        lambda x: jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, x)[0],
        mesh=mesh.mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec(REPLICA), axis_names={REPLICA}, check_vma=False,
    )  # fmt: skip
    return jax.jit(program)(array)


def parts_of(cores: Cores, parts: Sequence[int], shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes of what each device holds of an array that is split."""
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    made = traced(cores, lambda x: cores.experimental_split_to_logical_devices(x, parts) * 2, array)
    replicas = cores.mesh.replicas
    np.testing.assert_array_equal(np.asarray(made), np.concatenate([2 * array] * replicas))
    return [shard.data.shape for shard in made.addressable_shards]


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_an_array_is_split_among_the_cores(count: int) -> None:
    cores = Cores(count)
    assert parts_of(cores, [1, count], (2, 16)) == [(2, 16 // count)] * 8
    assert parts_of(cores, [count, 1], (8, 3)) == [(8 // count, 3)] * 8


def test_several_dimensions_are_split() -> None:
    assert parts_of(Cores(8), [1, 2, 4, 1], (2, 4, 8, 3)) == [(2, 2, 2, 3)] * 8
    assert parts_of(Cores(6), [3, 2], (9, 4)) == [(3, 2)] * 6
    assert parts_of(Cores(6), [2, 3], (4, 9)) == [(2, 3)] * 6


def test_an_array_that_is_replicated_is_held_by_every_core() -> None:
    cores = Cores(4)

    def step(x: Any) -> Any:
        half = cores.experimental_split_to_logical_devices(x, [2, 2])
        return cores.experimental_replicate_to_logical_devices({"x": half})["x"]

    assert {shard.data.shape for shard in traced(cores, step, np.zeros((4, 4), np.float32)).addressable_shards} == {
        (4, 4)
    }


def test_annotations_are_seen_through_gradients_and_loops() -> None:
    cores = Cores(2)

    def step(x: Any) -> Any:
        def loss(x: Any) -> Any:
            return (cores.experimental_split_to_logical_devices(x, [2, 1]) ** 2).sum()

        return jax.lax.scan(lambda x, _: (x - jax.grad(loss)(x) / 2, None), x, None, length=2)[0]

    assert np.asarray(traced(cores, step, np.ones((2, 2), np.float32))).max() == 0


@given(st.integers(1, 8), st.lists(st.integers(1, 8), min_size=0, max_size=4), st.data())
def test_a_split_is_right_or_refused(count: int, parts: list[int], data: st.DataObject) -> None:
    cores = Cores(count)
    shape = tuple([data.draw(st.integers(1, 12)) for _ in parts])
    wrong = any(size % part for size, part in zip(shape, parts, strict=True)) or np.prod(parts) != count
    array = np.zeros(shape, np.float32)
    if wrong:
        with pytest.raises(ValueError, match=r"must be divisible|should be the same as the number of logical devices"):
            cores.experimental_split_to_logical_devices(array, parts)
    else:
        assert cores.experimental_split_to_logical_devices(array, parts) is array


def test_a_split_names_what_is_wrong() -> None:
    cores, array = Cores(4), jnp.zeros((4, 6))
    with pytest.raises(
        ValueError, match=r"must equal to the rank of `tensor.shape` \(2\). Received len\(partition_dimensions\)=1"
    ):
        cores.experimental_split_to_logical_devices(array, [4])
    with pytest.raises(ValueError, match=r"at `partition_dimensions\[1\]` must be divisible by .* \(4\). Received: 6"):
        cores.experimental_split_to_logical_devices(array, [1, 4])
    with pytest.raises(
        ValueError, match=r"number of logical devices \(=4\). Received .*=\[2, 1\],and their product is 2"
    ):
        cores.experimental_split_to_logical_devices(array, [2, 1])
    with pytest.raises(ValueError, match=r"`partition_dimensions\[0\]` must be at least 1. Received: 0"):
        cores.experimental_split_to_logical_devices(array, [0, 1])
    with pytest.raises(TypeError, match="needs the array of one replica, got a PerReplica"):
        cores.experimental_split_to_logical_devices(di.distribute.PerReplica([array, array]), [4, 1])


def test_a_core_must_exist() -> None:
    cores, array = Cores(2), np.zeros(2)
    assert cores.experimental_assign_to_logical_device(array, 1) is array
    for core in (-1, 2):
        with pytest.raises(
            ValueError, match=f"Received logical device id {core} but there are only total of 2 logical"
        ):
            cores.experimental_assign_to_logical_device(array, core)
    with pytest.raises(ValueError, match="Cannot assign a tensor to a logical device in SPMD mode"):
        Cores(2, spmd=True).experimental_assign_to_logical_device(array, 0)
    made = traced(cores, lambda x: cores.experimental_assign_to_logical_device(x, 1) + 1, np.zeros(2, np.float32))
    assert np.asarray(made).tolist() == [1] * 8
