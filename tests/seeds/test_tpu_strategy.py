# SPDX-License-Identifier: Apache-2.0
"""The page on `tf.compat.v1.distribute.experimental.TPUStrategy`, and what other pages do with a TPUStrategy."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is an extra")

import distinput as tf

REPLICAS = 8  # the virtual devices of the tests


def test_the_signature_of_the_page() -> None:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.compat.v1.distribute.experimental.TPUStrategy(
        tpu_cluster_resolver=resolver, steps_per_run=None, device_assignment=None
    )
    assert strategy.cluster_resolver is resolver
    assert strategy.num_replicas_in_sync == REPLICAS
    assert isinstance(strategy.extended, tf.distribute.StrategyExtended)
    assert strategy.steps_per_run == strategy.extended.steps_per_run == 1


def test_a_device_assignment_specifies_the_placement_of_replicas() -> None:
    """ "Optional `tf.tpu.experimental.DeviceAssignment` to specify the placement of replicas on the TPU cluster"."""
    topology = tf.tpu.experimental.initialize_tpu_system()
    assignment = tf.tpu.experimental.DeviceAssignment.build(topology, num_replicas=3)
    strategy = tf.compat.v1.distribute.experimental.TPUStrategy(device_assignment=assignment)
    made = strategy.run(lambda x: 10 * x, args=(tf.distribute.PerReplica(list(np.float32([1, 2, 3]))),))
    assert [float(part) for part in strategy.experimental_local_results(made)] == [10.0, 20.0, 30.0]


def test_values_from_function_4_placed_on_devices() -> None:
    strategy = tf.distribute.TPUStrategy()
    worker_devices = strategy.extended.worker_devices
    multiple_values = []
    for i in range(strategy.num_replicas_in_sync):
        with tf.device(worker_devices[i]):
            multiple_values.append(tf.constant(1.0))

    def value_fn(ctx):
        return multiple_values[ctx.replica_id_in_sync_group]

    distributed_values = strategy.experimental_distribute_values_from_function(value_fn)
    assert strategy.experimental_local_results(distributed_values) == (1.0,) * REPLICAS
    doubled = strategy.run(lambda x: 2 * x, args=(distributed_values,))
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, doubled, axis=None) == 2.0 * REPLICAS


def test_variables_are_replicated_on_each_replica() -> None:
    """The pages on `scope`: "Sync strategies like MirroredStrategy, TPUStrategy [...] create variables replicated"."""
    strategy = tf.distribute.TPUStrategy()
    with strategy.scope():
        variable = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)
    assert isinstance(variable, tf.distribute.DistributedValues)

    @tf.function
    def step(x):
        variable.assign_add(x)

    strategy.run(step, args=(tf.constant(1.0),))
    assert [float(copy.numpy()) for copy in strategy.experimental_local_results(variable)] == [9.0] * REPLICAS


def test_it_reduces_and_gathers() -> None:
    """Listed on the page on DistributedValues: `tf.distribute.TPUStrategy.reduce`."""
    strategy = tf.distribute.TPUStrategy()
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(20).batch(16))
    steps = [strategy.run(lambda x: x + 1, args=(x,)) for x in dataset]
    assert [int(strategy.reduce("SUM", x, axis=0)) for x in steps] == [136, 74]
    assert [int(x) for step in steps for x in strategy.gather(step, axis=0)] == list(range(1, 21))


def test_a_value_is_assigned_to_a_logical_device() -> None:
    """Listed there too: `tf.distribute.TPUStrategy.experimental_assign_to_logical_device`."""
    topology = tf.tpu.experimental.initialize_tpu_system()
    assignment = tf.tpu.experimental.DeviceAssignment.build(topology, computation_shape=[1, 1, 1, 2], num_replicas=4)
    strategy = tf.distribute.TPUStrategy(experimental_device_assignment=assignment)

    @tf.function
    def step(x):
        return strategy.experimental_assign_to_logical_device(x + 1, 1)

    made = strategy.run(step, args=(tf.distribute.PerReplica(list(np.arange(4, dtype=np.float32))),))
    assert [float(part) for part in strategy.experimental_local_results(made)] == [1.0, 2.0, 3.0, 4.0]
