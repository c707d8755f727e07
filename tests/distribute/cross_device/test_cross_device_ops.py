# SPDX-License-Identifier: Apache-2.0
"""A class of the user's own adds the values of replicas wherever TensorFlow would call it."""

from copy import deepcopy

import numpy as np
import pytest

import distinput as di
from distinput.distribute import CrossDeviceOps, Mirrored, PerReplica, ReduceOp

DEVICES = ["CPU:0", "CPU:1"]


class Recorded(CrossDeviceOps):
    """Adds 100 to every sum, and records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
        self.calls.append((reduce_op, len(per_replica_value.values), options))
        return Mirrored([sum(map(np.asarray, per_replica_value.values)) + 100] * len(destinations.values))


def test_reduce_without_an_axis_asks_it() -> None:
    ops = Recorded()
    strategy = di.distribute.MirroredStrategy(DEVICES, ops)
    assert strategy.reduce("sum", PerReplica([1, 2]), axis=None) == 103
    assert ops.calls == [(ReduceOp.SUM, 2, di.distribute.experimental.CommunicationOptions())]


def test_reduce_with_an_axis_gives_it_the_sums_of_the_rows() -> None:
    strategy = di.distribute.MirroredStrategy(DEVICES, Recorded())
    value = PerReplica([np.array([1.0, 2.0, 3.0]), np.array([4.0])])
    assert strategy.reduce("SUM", value, axis=0) == 110
    assert strategy.reduce("MEAN", value, axis=0) == 110 / 4


def test_placeholders_without_data_are_left_out() -> None:
    ops = Recorded()
    strategy = di.distribute.MirroredStrategy(DEVICES, ops)
    step = list(strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(2)))[-1]
    assert strategy.reduce("SUM", step, axis=0) in (2, 102)


def test_all_reduce_gives_it_all_leaves_at_once() -> None:
    class Batched(Recorded):
        def batch_reduce_implementation(self, reduce_op, value_destination_pairs, options):
            self.calls.append(("batch", len(value_destination_pairs), options.timeout_seconds))
            return super().batch_reduce_implementation(reduce_op, value_destination_pairs, options)

    ops = Batched()
    strategy = di.distribute.MirroredStrategy(DEVICES, ops)
    options = di.distribute.experimental.CommunicationOptions(timeout_seconds=3.0)

    def step():
        context = di.distribute.get_replica_context()
        return context.all_reduce("SUM", {"a": np.arange(2), "b": context.replica_id_in_sync_group}, options)

    made = strategy.run(step)
    assert [part.tolist() for part in made["a"].values] == [[100, 102], [100, 102]]
    assert [int(part) for part in strategy.experimental_local_results(made["b"])] == [101, 101]
    assert ops.calls[0] == ("batch", 2, 3.0)
    assert [call[:2] for call in ops.calls[1:]] == [(ReduceOp.SUM, 2)] * 2


@pytest.mark.parametrize("aggregation, expected", [("SUM", 104.0), ("MEAN", 102.5), ("ONLY_FIRST_REPLICA", 2.0)])
def test_writes_of_variables_are_aggregated_by_it(aggregation: str, expected: float) -> None:
    class Halving(Recorded):
        """Adds 100 to every sum, and to every mean."""

        def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
            made = super().reduce_implementation(reduce_op, per_replica_value, destinations, options).values[0]
            return Mirrored([made if reduce_op is ReduceOp.SUM else (made - 100) / 2 + 100] * 2)

    ops = Halving()
    strategy = di.distribute.MirroredStrategy(DEVICES, ops)
    with strategy.scope():
        variable = di.Variable(1.0, aggregation=di.VariableAggregation[aggregation])

    def step():
        variable.assign_add(np.float32(1 + di.distribute.get_replica_context().replica_id_in_sync_group))

    strategy.run(step)
    assert [float(copy.numpy()) for copy in strategy.experimental_local_results(variable)] == [expected] * 2
    assert len(ops.calls) == (aggregation != "ONLY_FIRST_REPLICA")


def test_a_variable_that_is_summed_when_it_is_read_is_summed_by_it() -> None:
    strategy = di.distribute.MirroredStrategy(DEVICES, Recorded())
    with strategy.scope():
        variable = di.Variable(
            1.0, synchronization=di.VariableSynchronization.ON_READ, aggregation=di.VariableAggregation.SUM
        )
    assert variable.read_value() == 102.0


def test_a_bare_result_will_do() -> None:
    class Bare(CrossDeviceOps):
        def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
            return np.float32(5)

    assert di.distribute.MirroredStrategy(DEVICES, Bare()).reduce("MEAN", PerReplica([1, 2]), axis=None) == 5


def test_one_value_is_not_reduced() -> None:
    ops = Recorded()
    assert ops.reduce("MEAN", PerReplica([np.arange(2)]), "CPU:0").values[0].tolist() == [0, 1]
    made = ops.batch_reduce("SUM", [(7, ["CPU:0", "CPU:1"]), (PerReplica([8]), "CPU:0")])
    assert [value.values for value in made] == [(7, 7), (8,)]
    assert ops.calls == []


def test_broadcast_copies_to_every_destination() -> None:
    given = np.arange(2)
    made = CrossDeviceOps().broadcast(given, PerReplica([0, 0, 0]))
    given[0] = 9
    assert [part.tolist() for part in made.values] == [[0, 1]] * 3


def test_a_class_without_an_implementation_is_told_what_to_define() -> None:
    with pytest.raises(NotImplementedError, match=r"CrossDeviceOps: define reduce_implementation\(reduce_op, "):
        CrossDeviceOps().reduce("SUM", PerReplica([1, 2]), "CPU:0")


@pytest.mark.parametrize("destinations", [None, "", [], ()])
def test_there_must_be_a_destination(destinations) -> None:
    ops = Recorded()
    with pytest.raises(ValueError, match="destinations can not be empty: name a device, or give the distributed value"):
        ops.reduce("SUM", PerReplica([1, 2]), destinations)
    with pytest.raises(ValueError, match="destinations can not be empty"):
        ops.batch_reduce("SUM", [(PerReplica([1, 2]), destinations)])
    with pytest.raises(ValueError, match="destinations can not be empty"):
        ops.broadcast(1, destinations)


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a valid ReduceOp"):
        Recorded().reduce("MAX", PerReplica([1, 2]), "CPU:0")


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match=r"cross_device_ops must be a CrossDeviceOps, such as ReductionToOneDevice\(\)"):
        di.distribute.MirroredStrategy(DEVICES, "nccl")


def test_a_copy_of_the_strategy_keeps_it() -> None:
    copied = deepcopy(di.distribute.MirroredStrategy(DEVICES, Recorded()))
    assert copied.reduce("SUM", PerReplica([1, 2]), axis=None) == 103
