# SPDX-License-Identifier: Apache-2.0
import threading
from typing import Any

import numpy as np
import pytest

from distinput.distribute import (
    MirroredStrategy,
    OneDeviceStrategy,
    PerReplica,
    Strategy,
    ValueContext,
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)

CROSS = "Method requires being in cross-replica context, use get_replica_context"
MIXING = r"Mixing different tf\.distribute.Strategy objects"


def facts(strategy: Strategy) -> tuple[bool, bool, bool, bool]:
    return has_strategy(), get_strategy() is strategy, in_cross_replica_context(), get_replica_context() is None


OUTSIDE = (False, False, False, False)
CROSS_REPLICA = (True, True, True, True)


@pytest.fixture
def strategy() -> MirroredStrategy:
    return MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture
def other() -> MirroredStrategy:
    return MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])


def test_where_the_code_stands(strategy: MirroredStrategy) -> None:
    assert facts(strategy) == OUTSIDE
    with strategy.scope() as entered:
        assert entered is strategy
        assert facts(strategy) == CROSS_REPLICA
        assert strategy.run(lambda: facts(strategy)) == (True, True, False, False)
        assert facts(strategy) == CROSS_REPLICA
    assert strategy.run(lambda: get_replica_context().merge_call(lambda s: facts(s))) == CROSS_REPLICA  # type: ignore[union-attr]
    assert facts(strategy) == OUTSIDE


def test_the_default_context() -> None:
    context = get_replica_context()
    assert context is not None
    assert (context.replica_id_in_sync_group, context.num_replicas_in_sync) == (0, 1)
    assert context.merge_call(lambda s, x: (in_cross_replica_context(), x), args=(3,)) == (True, 3)
    value = np.ones(1)
    assert context.all_reduce("SUM", value) is value
    assert context.all_gather(value, axis=0) is value


def test_scopes_of_one_strategy_nest(strategy: MirroredStrategy) -> None:
    scope = strategy.scope()
    with scope, scope, strategy.scope():
        assert facts(strategy) == CROSS_REPLICA
    assert facts(strategy) == OUTSIDE


def test_strategies_do_not_mix(strategy: MirroredStrategy, other: MirroredStrategy) -> None:
    value = PerReplica([1, 2])
    with other.scope():
        for use in (
            lambda: strategy.scope().__enter__(),
            lambda: strategy.run(lambda: None),
            lambda: strategy.reduce("SUM", value, axis=None),
            lambda: strategy.gather(value, axis=0),
        ):
            with pytest.raises(RuntimeError, match=MIXING):
                use()
        with pytest.raises(RuntimeError, match=r"Must not nest tf\.distribute\.Strategy scopes"):
            default().scope().__enter__()
    assert facts(strategy) == OUTSIDE


def default() -> Strategy:
    found: list[Strategy] = []
    thread = threading.Thread(target=lambda: found.append(get_strategy()))
    thread.start()
    thread.join()
    return found[0]


def test_a_scope_belongs_to_its_thread(strategy: MirroredStrategy) -> None:
    with strategy.scope():
        assert default() is not strategy
        assert default().num_replicas_in_sync == 1


def test_the_default_scope_is_no_strategy() -> None:
    with get_strategy().scope():
        assert not has_strategy()
        assert not in_cross_replica_context()


def test_cross_replica_methods_in_a_replica(strategy: MirroredStrategy) -> None:
    value = PerReplica([np.ones(1), np.ones(1)])
    for use in (
        lambda: strategy.run(lambda: None),
        lambda: strategy.scope().__enter__(),
        lambda: strategy.reduce("SUM", value, axis=None),
    ):
        with pytest.raises(RuntimeError, match=CROSS):
            strategy.run(use)
    with pytest.raises(RuntimeError, match=r"requires cross-replica context, use get_replica_context\(\).all_gather"):
        strategy.run(lambda: strategy.gather(value, axis=0))
    assert facts(strategy) == OUTSIDE


def test_contexts_of_others(strategy: MirroredStrategy) -> None:
    outside = get_replica_context()
    assert outside is not None
    with pytest.raises(RuntimeError, match=r"Mismatching tf\.distribute\.Strategy"):
        strategy.run(lambda: outside.merge_call(lambda s: None))
    with strategy.scope(), pytest.raises(RuntimeError, match="Need to be inside replica context"):
        outside.merge_call(lambda s: None)
    kept: list[Any] = []
    strategy.run(lambda: kept.append(get_replica_context()))
    with pytest.raises(RuntimeError, match="Mismatching ReplicaContext"):
        strategy.run(lambda: kept[0].all_reduce("SUM", 1))


def test_setting_a_strategy(strategy: MirroredStrategy, other: MirroredStrategy) -> None:
    experimental_set_strategy(strategy)
    try:
        assert facts(strategy) == CROSS_REPLICA
        with pytest.raises(RuntimeError, match=MIXING), other.scope():
            pass
        experimental_set_strategy(other)
        assert facts(other) == CROSS_REPLICA
        with (
            other.scope(),
            pytest.raises(RuntimeError, match=r"Must not be called inside a `tf\.distribute\.Strategy` scope"),
        ):
            experimental_set_strategy(strategy)
        assert facts(other) == CROSS_REPLICA
    finally:
        experimental_set_strategy(None)
    assert facts(other) == OUTSIDE


def test_values_from_a_function(strategy: MirroredStrategy) -> None:
    made = strategy.experimental_distribute_values_from_function(
        lambda c: {"id": c.replica_id_in_sync_group, "n": c.num_replicas_in_sync}
    )
    assert (made["id"].values, made["n"].values) == ((0, 1), (2, 2))
    one = OneDeviceStrategy("CPU:0")
    assert one.experimental_distribute_values_from_function(lambda c: c.num_replicas_in_sync) == 1
    assert repr(ValueContext(1, 2)) == "ValueContext(replica id 1, total: 2)"


def test_local_results(strategy: MirroredStrategy) -> None:
    value = PerReplica([1, 2])
    local = strategy.experimental_local_results
    assert local(value) == (1, 2)
    assert local({"a": value, "b": 3}) == ({"a": 1, "b": 3}, {"a": 2, "b": 3})
    assert local((1, 2)) == ((1, 2), (1, 2))
    assert local(5) == (5,)
    assert local(None) == (None,)
    assert OneDeviceStrategy("CPU:0").experimental_local_results((1, 2)) == ((1, 2),)


def test_reduce_and_gather_map_nests(strategy: MirroredStrategy) -> None:
    value = {"a": PerReplica([np.array([1]), np.array([2])]), "b": (PerReplica([np.array([3]), np.array([4])]),)}
    assert strategy.reduce("SUM", value, axis=None) == {"a": [3], "b": ([7],)}
    gathered = strategy.gather({**value, "c": 5}, axis=0)
    assert (gathered["a"].tolist(), gathered["b"][0].tolist(), gathered["c"]) == ([1, 2], [3, 4], 5)


def test_reduce_maps_nests_with_an_axis_too(strategy: MirroredStrategy) -> None:
    value = {
        "a": PerReplica([np.array([1, 2, 3]), np.array([4])]),
        "b": (PerReplica([np.ones((1, 2)), np.ones((2, 2))]),),
    }
    total, mean = strategy.reduce("SUM", value, axis=0), strategy.reduce("MEAN", value, axis=0)
    assert (total["a"], total["b"][0].tolist()) == (10, [3.0, 3.0])
    assert (mean["a"], mean["b"][0].tolist()) == (2.5, [1.0, 1.0])
    both = strategy.reduce("SUM", {"x": PerReplica([np.ones((2, 3))] * 2), "plain": np.ones((1, 5))}, axis=(0, 1))
    assert both == {"x": 12.0, "plain": 10.0}
    with pytest.raises(ValueError, match="Invalid reduction dimension 1 for a value of rank 1"):
        strategy.reduce("SUM", value, axis=1)


def test_all_gather_maps_nests(strategy: MirroredStrategy) -> None:
    def step() -> Any:
        context = get_replica_context()
        me = context.replica_id_in_sync_group
        return context.all_gather({"a": np.full(me + 1, me), "b": (np.full((1, me + 1), me),)[:1]}, axis=-1)

    for made in strategy.experimental_local_results(strategy.run(step)):
        assert made["a"].tolist() == [0, 1, 1]
        assert made["b"][0].tolist() == [[0, 1, 1]]


def test_a_plain_value_counts_once_per_replica(strategy: MirroredStrategy) -> None:
    assert strategy.reduce("SUM", np.array([1.0, 2.0]), axis=0) == 6
    assert strategy.reduce("MEAN", np.array([1.0, 2.0]), axis=0) == 1.5
    one = OneDeviceStrategy("CPU:0")
    assert one.reduce("SUM", 3, axis=None) == 3
    assert one.reduce("MEAN", np.array([1, 2]), axis=0) == 1.5
    with pytest.raises(ValueError, match="is not a valid ReduceOp"):
        one.reduce("MAX", 3, axis=None)
    with pytest.raises(TypeError, match="Expected `reduce_op`"):
        strategy.reduce(None, 3, axis=None)
