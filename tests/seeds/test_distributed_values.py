# SPDX-License-Identifier: Apache-2.0
"""The examples of the page on `tf.distribute.DistributedValues`."""

import distinput as tf
from tests.seeds.printed import lines_of, shown


def test_created_from_a_distributed_dataset() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    dataset = tf.data.Dataset.from_tensor_slices([5.0, 6.0, 7.0, 8.0]).batch(2)
    dataset_iterator = iter(strategy.experimental_distribute_dataset(dataset))
    distributed_values = next(dataset_iterator)
    assert isinstance(distributed_values, tf.distribute.DistributedValues)


def test_returned_by_run() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])

    @tf.function
    def run():
        ctx = tf.distribute.get_replica_context()
        return ctx.replica_id_in_sync_group

    distributed_values = strategy.run(run)
    assert isinstance(distributed_values, tf.distribute.DistributedValues)
    assert distributed_values.values == (0, 1)


def test_as_input_into_run() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    dataset = tf.data.Dataset.from_tensor_slices([5.0, 6.0, 7.0, 8.0]).batch(2)
    dataset_iterator = iter(strategy.experimental_distribute_dataset(dataset))
    distributed_values = next(dataset_iterator)

    @tf.function
    def run(input):
        return input + 1.0

    updated_value = strategy.run(run, args=(distributed_values,))
    assert lines_of(strategy.experimental_local_results(updated_value)) == shown(
        """(<tf.Tensor: shape=(1,), dtype=float32, numpy=array([6.], dtype=float32)>,
 <tf.Tensor: shape=(1,), dtype=float32, numpy=array([7.], dtype=float32)>)"""
    )


def test_reduced() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    dataset = tf.data.Dataset.from_tensor_slices([5.0, 6.0, 7.0, 8.0]).batch(2)
    dataset_iterator = iter(strategy.experimental_distribute_dataset(dataset))
    distributed_values = next(dataset_iterator)
    reduced_value = strategy.reduce(tf.distribute.ReduceOp.SUM, distributed_values, axis=0)
    assert lines_of(reduced_value) == shown("<tf.Tensor: shape=(), dtype=float32, numpy=11.0>")


def test_inspected_by_local_results() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    dataset = tf.data.Dataset.from_tensor_slices([5.0, 6.0, 7.0, 8.0]).batch(2)
    dataset_iterator = iter(strategy.experimental_distribute_dataset(dataset))
    per_replica_values = strategy.experimental_local_results(next(dataset_iterator))
    assert lines_of(per_replica_values) == shown(
        """(<tf.Tensor:shape=(1,), dtype=float32, numpy=array([5.], dtype=float32)>,
 <tf.Tensor:shape=(1,), dtype=float32, numpy=array([6.], dtype=float32)>)"""
    )
