# SPDX-License-Identifier: Apache-2.0
"""Indexed slices of replicas: reduced by putting their rows one after the other."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.distribute.workers import on_workers

TWO = ["CPU:0", "CPU:1"]
STRATEGIES: dict[str, Callable[[], Any]] = {
    "central": lambda: di.distribute.CentralStorageStrategy(TWO),
    "hierarchical": lambda: di.distribute.MirroredStrategy(
        TWO, cross_device_ops=di.distribute.HierarchicalCopyAllReduce()
    ),
    "mirrored": lambda: di.distribute.MirroredStrategy(TWO),
    "nccl": lambda: di.distribute.MirroredStrategy(TWO, cross_device_ops=di.distribute.NcclAllReduce()),
    "one device": lambda: di.distribute.MirroredStrategy(
        TWO, cross_device_ops=di.distribute.ReductionToOneDevice(accumulation_fn=max)
    ),
    "on torch": lambda: di.distribute.MirroredStrategy(TWO, backend="torch"),
    "tpu": lambda: di.distribute.TPUStrategy(compile=False, devices=_devices()),
}


def _devices() -> Any:
    return pytest.importorskip("jax").devices()[:2]


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> Any:
    if request.param == "on torch":
        pytest.importorskip("torch")
    return STRATEGIES[request.param]()


def context() -> Any:
    return di.distribute.get_replica_context()


def slices(replica: int, shape: Any = (5, 2)) -> Any:
    """`replica + 1` rows of `replica + 1`, from place `replica` on."""
    rows = np.full((replica + 1, 2), replica + 1, np.float32)
    return di.IndexedSlices(rows, np.arange(replica, 2 * replica + 1), shape)


def both() -> Any:
    return di.distribute.PerReplica([slices(0), slices(1)])


def told(value: Any) -> Any:
    assert isinstance(value, di.IndexedSlices)
    values, indices = np.asarray(value.values), np.asarray(value.indices)
    return values.tolist(), values.dtype.name, indices.tolist(), value.dense_shape


WANT = {
    "SUM": ([[1, 1], [2, 2], [2, 2]], "float32", [0, 1, 2], (5, 2)),
    "MEAN": ([[0.5, 0.5], [1, 1], [1, 1]], "float32", [0, 1, 2], (5, 2)),
}


@pytest.mark.parametrize("op", ["SUM", "MEAN"])
def test_reduce_puts_the_rows_of_all_replicas_one_after_the_other(strategy: Any, op: str) -> None:
    assert told(strategy.reduce(op, both(), axis=None)) == WANT[op]
    nested = strategy.reduce(op, {"a": (both(), di.distribute.PerReplica([1.0, 3.0]))}, axis=None)["a"]
    assert told(nested[0]) == WANT[op]
    pairs = strategy.extended.batch_reduce_to(op, [(both(), both()), (both(), both())])
    assert [told(each) for each in pairs] == [WANT[op]] * 2


@pytest.mark.parametrize("op", ["SUM", "MEAN"])
def test_all_reduce_gives_each_replica_its_own(strategy: Any, op: str) -> None:
    own = lambda: slices(int(context().replica_id_in_sync_group))  # noqa: E731
    made = strategy.run(lambda: context().all_reduce(op, {"x": own(), "y": np.float32(2)}))
    parts = strategy.experimental_local_results(made["x"])
    assert [told(part) for part in parts] == [WANT[op]] * 2
    assert parts[0].values is not parts[1].values
    if getattr(strategy._reducer, "ops", None) is None:
        assert [float(y) for y in strategy.experimental_local_results(made["y"])] == [4 if op == "SUM" else 2] * 2


def test_with_an_axis_they_count_as_the_array_that_they_stand_for(strategy: Any) -> None:
    if strategy.num_replicas_in_sync == 2 and getattr(strategy._reducer, "ops", None) is None:
        assert np.asarray(strategy.reduce("SUM", both(), axis=0)).tolist() == [5, 5]
        assert np.asarray(strategy.reduce("MEAN", both(), axis=0)).tolist() == [0.5, 0.5]
        mixed = di.distribute.PerReplica([np.ones((5, 2), np.float32), slices(0)])
        assert np.asarray(strategy.reduce("SUM", mixed, axis=None)).tolist() == [[2, 2]] + [[1, 1]] * 4


def test_they_cannot_be_gathered(strategy: Any) -> None:
    for value in (both(), slices(0), {"a": [both()]}):
        with pytest.raises(NotImplementedError, match=r"gather.* does not support IndexedSlices"):
            strategy.gather(value, axis=0)
    with pytest.raises(NotImplementedError, match="all_gather does not support IndexedSlices"):
        strategy.run(lambda: context().all_gather(slices(0), axis=0))


def test_shapes_and_dtypes() -> None:
    strategy = STRATEGIES["mirrored"]()

    def reduced(op: str, *parts: Any) -> Any:
        return told(strategy.reduce(op, di.distribute.PerReplica(parts), axis=None))

    whole = di.IndexedSlices(np.array([[3]]), np.array([0], np.int32), (5, 1))
    assert reduced("MEAN", whole, whole) == ([[1.5], [1.5]], "float64", [0, 0], (5, 1))
    assert reduced("SUM", whole, whole)[1] == "int64"
    assert reduced("SUM", slices(0, None), slices(0))[3] == (5, 2)
    assert reduced("SUM", slices(0, None), slices(0, None))[3] is None
    with pytest.raises(
        InvalidArgumentError, match=r"same dtype and shape on every replica, got int64\[1\] on replica 0 and"
    ):
        reduced("SUM", whole, slices(0))
    with pytest.raises(ValueError, match="without dense_shape cannot become an array"):
        strategy.reduce("SUM", di.distribute.PerReplica([slices(0, None)] * 2), axis=0)


def test_one_value_for_all_replicas_follows_the_rule_of_plain_values() -> None:
    strategy = STRATEGIES["mirrored"]()
    value = slices(1)
    assert strategy.reduce("MEAN", value, axis=None) is value
    with pytest.raises(ValueError, match="cannot be reduced with the given reduce op SUM"):
        strategy.reduce("SUM", value, axis=None)
    for one in (di.distribute.OneDeviceStrategy("CPU:0"), di.distribute.MirroredStrategy(TWO[:1])):
        assert told(one.reduce("SUM", value, axis=None)) == told(value)
        assert told(one.run(lambda: context().all_reduce("MEAN", value))) == told(value)


def test_cross_device_ops_put_them_together() -> None:
    for ops in (di.distribute.ReductionToOneDevice(), di.distribute.HierarchicalCopyAllReduce()):
        assert told(ops.reduce("SUM", both(), TWO).values[1]) == WANT["SUM"]
        sliced, plain = ops.batch_reduce("MEAN", [(both(), "CPU:0"), (di.distribute.PerReplica([1.0, 3.0]), "CPU:0")])
        assert (told(sliced.values[0]), plain.values[0]) == (WANT["MEAN"], 2)


def test_workers_put_the_rows_of_all_workers_together() -> None:
    def body(strategy: Any, worker: int) -> Any:
        mine = di.distribute.PerReplica([slices(2 * worker), slices(2 * worker + 1)])
        again = strategy.run(lambda x: context().all_reduce("MEAN", x), args=(mine,))
        return told(strategy.reduce("SUM", mine, axis=None)), told(again.values[1])

    for total, mean in on_workers([2, 2], body):
        assert total[2] == [0, 1, 2, 2, 3, 4, 3, 4, 5, 6]
        assert total[0] == [[n] * 2 for n in (1, 2, 2, 3, 3, 3, 4, 4, 4, 4)]
        assert mean[0] == [[n / 4] * 2 for n in (1, 2, 2, 3, 3, 3, 4, 4, 4, 4)]


def test_in_a_compiled_program() -> None:
    jax = pytest.importorskip("jax")
    strategy = di.distribute.TPUStrategy(devices=_devices())

    def step(x: Any) -> Any:
        place = jax.numpy.atleast_1d(context().replica_id_in_sync_group)
        made = context().all_reduce("MEAN", di.IndexedSlices(x, place, (5, 2)))
        return made.values, made.indices

    values, places = strategy.run(step, args=(di.distribute.PerReplica([np.ones((1, 2)), np.full((1, 2), 3.0)]),))
    assert [part.tolist() for part in values.values] == [[[0.5, 0.5], [1.5, 1.5]]] * 2
    assert [part.tolist() for part in places.values] == [[0, 1]] * 2
    with pytest.raises(TypeError, match="returns arrays, not IndexedSlices"):
        strategy.run(lambda x: di.IndexedSlices(x, jax.numpy.arange(1)), args=(values,))
