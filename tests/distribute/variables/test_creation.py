# SPDX-License-Identifier: Apache-2.0
"""How variables are created: outside, in a scope, and inside of run."""

from typing import Any

import numpy as np
import pytest

import distinput as di

STRATEGIES = {
    "default": (di.distribute.get_strategy, "ResourceVariable"),
    "one_device": (lambda: di.distribute.OneDeviceStrategy("CPU:0"), "ResourceVariable"),
    "central, 1": (lambda: di.distribute.CentralStorageStrategy(["CPU:0"]), "ResourceVariable"),
    "central, 2": (lambda: di.distribute.CentralStorageStrategy(["CPU:0", "CPU:1"]), "AggregatingVariable"),
    "mirrored, 1": (lambda: di.distribute.MirroredStrategy(["CPU:0"]), "MirroredVariable"),
    "mirrored, 3": (lambda: di.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"]), "MirroredVariable"),
    "workers": (di.distribute.MultiWorkerMirroredStrategy, "MirroredVariable"),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_strategy_chooses_the_class(name: str) -> None:
    make, kind = STRATEGIES[name]
    strategy = make()
    with strategy.scope():
        v = di.Variable(1.0)
    assert type(v).__name__ == kind
    assert isinstance(v, di.Variable)
    assert strategy.extended.variable_created_in_scope(v) is (name != "default" or v._strategy is strategy)


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_a_variable_created_inside_of_run_is_one(replicas: int) -> None:
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
    evaluated: list[int] = []
    seen: list[Any] = []

    def initial() -> float:
        evaluated.append(di.distribute.get_replica_context().replica_id_in_sync_group)
        return 2.0

    def step() -> None:
        a, b = di.Variable(initial, name="a"), di.Variable([1, 2], name="b")
        seen.append((id(a), id(b), a.name, b.name))

    strategy.run(step)
    assert evaluated == [0]
    assert len(seen) == replicas
    assert len(set(seen)) == 1


class Layer:
    """Creates its variable in the first call, as layers do."""

    def __init__(self) -> None:
        self.v: Any = None

    def __call__(self) -> Any:
        if self.v is None:
            self.v = di.Variable(0.0, aggregation=di.VariableAggregation.SUM)
        return self.v


@pytest.mark.parametrize("attempt", range(20))
def test_layers_that_create_in_their_first_call(attempt: int) -> None:
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])
    layers = [Layer() for _ in range(5)]
    slots: list[Any] = [None] * 5

    def step() -> list[int]:
        for i in range(5):
            if slots[i] is None:
                slots[i] = di.Variable(float(i))
        return [id(layer()) for layer in layers] + [id(slot) for slot in slots]

    first, again = [strategy.experimental_local_results(strategy.run(step)) for _ in range(2)]
    assert first == again
    assert len({tuple(ids) for ids in first}) == 1
    assert len({id(layer.v) for layer in layers}) == 5
    assert [float(slot) for slot in slots] == [0, 1, 2, 3, 4]


def test_replica_0_must_create_it_too() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def step() -> None:
        if di.distribute.get_replica_context().replica_id_in_sync_group:
            di.Variable(1.0, name="w")

    with pytest.raises(RuntimeError, match=r"Tried to create variable w with mismatching name on replica 1"):
        strategy.run(step)


@pytest.mark.parametrize("name", ["foo_{}", "layer_{}/w", "layer_{}/w_{}"])
def test_the_name_may_end_with_the_number_of_the_replica(name: str) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])

    def step() -> Any:
        number = di.distribute.get_replica_context().replica_id_in_sync_group
        made = [di.Variable(float(i), name=name.format(number, number)) for i in range(2)]
        di.distribute.get_replica_context().merge_call(lambda strategy: None)
        return made

    first, second = strategy.run(step)
    assert (first.name, first.numpy(), second.numpy()) == (f"{name.format(0, 0)}:0", 0, 1)


def test_replica_0_waits_in_a_merge_call_while_another_creates() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def step() -> None:
        context = di.distribute.get_replica_context()
        if context.replica_id_in_sync_group:
            di.Variable(1.0, name="w")
        context.merge_call(lambda strategy: None)

    with pytest.raises(RuntimeError, match=r"Tried to create variable w"):
        strategy.run(step)


def test_an_initial_value_that_fails_fails_the_run() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def initial() -> Any:
        raise KeyError("boom")

    with pytest.raises(KeyError, match=r"boom"):
        strategy.run(lambda: di.Variable(initial))


def test_what_is_wrong_with_the_arguments() -> None:
    with pytest.raises(ValueError, match=r"`initial_value` arg to `tf.Variable` must be specified"):
        di.Variable()
    with pytest.raises(ValueError, match=r"variable_def is for graphs"):
        di.Variable(1.0, variable_def=1)
    with pytest.raises(ValueError, match=r"initial value's shape \(\(2,\)\) is not compatible"):
        di.Variable([1, 2], shape=[3])
    with pytest.raises(TypeError, match=r"Cannot convert 1.5"):
        di.Variable(1.5, dtype=np.int32)
