# SPDX-License-Identifier: Apache-2.0
"""Variables with one value for several replicas."""

import copy
from typing import Any

import numpy as np
import pytest

import distinput as di


def central(replicas: int = 2) -> Any:
    return di.distribute.CentralStorageStrategy([f"CPU:{i}" for i in range(replicas)], "CPU:0")


def made(strategy: Any, *args: Any, **named: Any) -> Any:
    with strategy.scope():
        return di.Variable(*args, **named)


def replica() -> int:
    return di.distribute.get_replica_context().replica_id_in_sync_group


@pytest.mark.parametrize("aggregation, want", [("SUM", 6), ("MEAN", 2), ("ONLY_FIRST_REPLICA", 1)])
def test_what_replicas_write_is_applied_once(aggregation: str, want: float) -> None:
    strategy = central(3)
    v = made(strategy, 0.0, aggregation=aggregation)
    seen = strategy.run(lambda: float(v.assign_add(np.float32(replica() + 1))))
    assert (seen, v.numpy(), v.device) == (want, want, "CPU:0")


def test_replicas_need_an_aggregation() -> None:
    strategy = central()
    v = made(strategy, 1.0)
    with pytest.raises(ValueError, match="You must specify an aggregation method to update a AggregatingVariable"):
        strategy.run(lambda: v.assign_add(1.0))
    v.assign(5.0)
    with strategy.scope():
        v.assign_add(1.0)
    assert v.numpy() == 6


def test_another_strategy_may_not_use_it() -> None:
    v, other = made(central(), 1.0), central(3)
    with other.scope(), pytest.raises(RuntimeError, match=r"Mixing different tf.distribute.Strategy objects"):
        v.assign(2.0)
    with pytest.raises(RuntimeError, match=r"Mixing different tf.distribute.Strategy objects"):
        other.run(lambda: v.value())


def test_update_gets_the_value_once() -> None:
    strategy = central()
    v = made(strategy, 1.0)
    assert strategy.extended.update(v, lambda part, x: float(part.assign_add(x)), args=(2.0,)) == 3
    assert strategy.extended.update(v, lambda part: float(part), group=False) == (3,)
    assert strategy.experimental_local_results(v) == (v,)


def test_values_that_differ_are_not_written_without_aggregation() -> None:
    strategy = central()
    v = made(strategy, 1.0, aggregation="SUM")
    both = di.distribute.PerReplica([1.0, 2.0])
    with pytest.raises(ValueError, match="It looks like you are using a PerReplica object"):
        v.assign(both)
    with pytest.raises(ValueError, match="It looks like you are using a PerReplica object"):
        strategy.extended.update(v, lambda part, x: part.assign_add(x), args=(both,))
    total = strategy.extended.update(v, lambda part, x: strategy.reduce("SUM", x, axis=None), args=(both,))
    assert (total, v.numpy()) == (3, 1)


def test_rows_are_aggregated() -> None:
    strategy = central()
    v = made(strategy, [0.0, 0.0], aggregation="SUM")
    strategy.run(lambda: v.scatter_add(di.IndexedSlices(np.ones(1, np.float32), [replica()])))
    assert v.numpy().tolist() == [1, 1]


def test_means_of_integers_do_not_fit() -> None:
    strategy = central()
    v = made(strategy, 1, aggregation="MEAN")
    with pytest.raises(ValueError, match="conversion requested dtype int32 for Tensor with dtype float64"):
        strategy.run(lambda: v.assign(np.int32(replica())))


def test_a_deep_copy_is_separate() -> None:
    v = made(central(), 1.0)
    other = copy.deepcopy(v)
    other.assign(2.0)
    assert (v.numpy(), other.numpy(), type(other)) == (1, 2, type(v))
