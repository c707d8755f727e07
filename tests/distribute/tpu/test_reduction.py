# SPDX-License-Identifier: Apache-2.0
"""What is reduced on devices is what NumPy makes of it."""

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import distinput as di
from distinput.distribute.tpu.engine import DeviceReducer, gather_on_devices, reduce_on_devices
from distinput.errors import InvalidArgumentError, UnimplementedError
from tests.distribute.tpu.programs import REPLICAS, same

STRATEGY = di.distribute.TPUStrategy()
MIRRORED = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(REPLICAS)])


def values(dtype: Any, shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(3)
    return di.distribute.PerReplica([rng.integers(0, 100, shape).astype(dtype) for _ in range(REPLICAS)])


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)], ids=str)
@pytest.mark.parametrize("op", ["SUM", "MEAN"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "float32", "complex64"])
def test_sums_and_means(dtype: str, op: str, axis: Any) -> None:
    given = values(dtype, (3, 2))
    found = STRATEGY.reduce(op, STRATEGY.run(lambda x: x * 1, (given,)), axis)
    expected = MIRRORED.reduce(op, given, axis)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    same(np.asarray(found), np.asarray(expected))


def test_scalars_and_nests() -> None:
    made = STRATEGY.run(lambda x: {"a": x.sum(), "b": (x, 3)}, (values("float32", (2,)),))
    plain = MIRRORED.run(lambda x: {"a": x.sum(), "b": (x, 3)}, (values("float32", (2,)),))
    same(jax.tree.map(np.asarray, STRATEGY.reduce("MEAN", made, None)), MIRRORED.reduce("MEAN", plain, None))


def test_the_devices_do_what_they_can() -> None:
    made = STRATEGY.run(lambda x: x * 1, (values("float32", (3, 2)),))
    mesh, op = STRATEGY._engine.mesh, di.distribute.ReduceOp
    assert isinstance(reduce_on_devices(mesh, op.SUM, made, 0), jax.Array)
    assert gather_on_devices(mesh, made, 0) is made.whole
    assert gather_on_devices(mesh, made, 1) is None
    whole = STRATEGY.run(lambda x: x * 1, (values("int32", (3, 2)),))
    assert reduce_on_devices(mesh, op.MEAN, whole, 0) is None
    assert reduce_on_devices(mesh, op.SUM, values("int32", (3,)), 0) is None


def test_numbers_that_numpy_does_not_know() -> None:
    made = STRATEGY.run(lambda x: x, (values(ml_dtypes.bfloat16, (3, 2)),))
    assert STRATEGY.reduce("SUM", made, axis=0).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_gathering(axis: int) -> None:
    given = values("int32", (3, 2))
    made = STRATEGY.run(lambda x: (x, x + 1), (given,))
    found, expected = STRATEGY.gather(made, axis), MIRRORED.gather(MIRRORED.run(lambda x: (x, x + 1), (given,)), axis)
    same(jax.tree.map(np.asarray, found), expected)


def test_what_cannot_be_reduced_is_refused_as_elsewhere() -> None:
    flags = STRATEGY.run(lambda x: x > 3, (values("int32", (3,)),))
    with pytest.raises(InvalidArgumentError, match="needs numbers, got bool"):
        STRATEGY.reduce("SUM", flags, None)
    with pytest.raises(ValueError, match="Invalid reduction dimension 1"):
        STRATEGY.reduce("SUM", STRATEGY.run(lambda x: x, (values("int32", (3,)),)), 1)
    with pytest.raises(InvalidArgumentError, match="Can't concatenate scalars"):
        STRATEGY.gather(STRATEGY.run(lambda x: x.sum(), (values("int32", (3,)),)), 0)


def test_parts_of_this_process_alone_are_not_taken_for_all() -> None:
    arithmetic = DeviceReducer(alone=False)
    with pytest.raises(UnimplementedError, match=r"reduce: .* replicas in other processes.*all_reduce"):
        arithmetic.reduce(di.distribute.ReduceOp.SUM, [np.ones(2)], None)
    with pytest.raises(UnimplementedError, match=r"gather: .* replicas in other processes.*all_gather"):
        arithmetic.gather([np.ones(2)], 0)


def test_a_mean_of_small_floats_counts_beyond_what_they_hold() -> None:
    strategy = di.distribute.TPUStrategy(devices=jax.devices()[:2])
    given = di.distribute.PerReplica([np.full(40_000, 3, np.float16)] * 2)

    def inside(x: Any) -> Any:
        merge = lambda strategy, y: strategy.reduce("MEAN", y, axis=0)  # noqa: E731
        return di.distribute.get_replica_context().merge_call(merge, args=(x,))

    assert float(strategy.reduce("MEAN", strategy.run(lambda x: x * 1, args=(given,)), axis=0)) == 3
    assert float(strategy.run(inside, args=(given,))) == 3
