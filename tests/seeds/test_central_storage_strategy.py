# SPDX-License-Identifier: Apache-2.0
"""The examples of the page on `tf.distribute.experimental.CentralStorageStrategy`."""

import numpy as np
import pytest

import distinput as tf
from distinput.errors import InvalidArgumentError
from tests.seeds.printed import lines_of, shown


def test_the_example_of_the_class() -> None:
    strategy = tf.distribute.experimental.CentralStorageStrategy()
    # Create a dataset
    ds = tf.data.Dataset.range(5).batch(2)
    # Distribute that dataset
    dist_dataset = strategy.experimental_distribute_dataset(ds)

    seen = []
    with strategy.scope():

        @tf.function
        def train_step(val):
            return val + 1

        # Iterate over the distributed dataset
        for x in dist_dataset:
            # process dataset elements
            seen.append(strategy.run(train_step, args=(x,)))  # noqa: PERF401 - as the page writes it
    assert [step.tolist() for step in seen] == [[1, 2], [3, 4], [5]]


def test_a_strategy_of_one_worker_has_no_cluster_resolver() -> None:
    """Property `cluster_resolver`: "Single-worker strategies usually do not have a ClusterResolver"."""
    assert tf.distribute.experimental.CentralStorageStrategy().cluster_resolver is None
    assert tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"]).cluster_resolver is None
    assert tf.distribute.OneDeviceStrategy("CPU:0").cluster_resolver is None


def test_distribute_datasets_from_function_deals_a_batch_to_each_replica() -> None:
    """ "If a worker has two replicas, two batches will be dequeued from the Dataset every step"."""
    strategy = tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "GPU:0"], "CPU:0")
    asked = []

    def dataset_fn(context):
        asked.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
        return tf.data.Dataset.range(8).batch(context.get_per_replica_batch_size(4))

    dist_dataset = strategy.distribute_datasets_from_function(dataset_fn)
    assert asked == [(1, 0, 2)]
    steps = [[part.tolist() for part in strategy.experimental_local_results(x)] for x in dist_dataset]
    assert steps == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_the_example_of_experimental_distribute_dataset(capsys) -> None:
    strategy = tf.distribute.CentralStorageStrategy()
    dataset = tf.data.Dataset.range(10).batch(2)
    dist_dataset = strategy.experimental_distribute_dataset(dataset)
    for x in dist_dataset:
        print(x)  # Prints PerReplica values [0, 1], [2, 3],...
    assert capsys.readouterr().out == "[0 1]\n[2 3]\n[4 5]\n[6 7]\n[8 9]\n"


def test_the_example_of_experimental_distribute_dataset_on_one_cpu_and_one_gpu(capsys) -> None:
    """With two devices the pairs that the page speaks of are cut: TensorFlow gives each replica one number a step too."""
    strategy = tf.distribute.CentralStorageStrategy(["CPU:0", "GPU:0"])  # with 1 CPU and 1 GPU
    dataset = tf.data.Dataset.range(10).batch(2)
    for x in strategy.experimental_distribute_dataset(dataset):
        print(x)
    first = "PerReplica:{\n  0: array([0]),\n  1: array([1])\n}\n"
    printed = capsys.readouterr().out
    assert printed.startswith(first)
    assert printed.count("PerReplica") == 5


def test_values_from_function_1_the_same_for_each_replica() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])

    def value_fn(ctx):
        return tf.constant(1.0)

    distributed_values = strategy.experimental_distribute_values_from_function(value_fn)
    local_result = strategy.experimental_local_results(distributed_values)
    assert lines_of(local_result) == shown(
        """(<tf.Tensor: shape=(), dtype=float32, numpy=1.0>,
 <tf.Tensor: shape=(), dtype=float32, numpy=1.0>)"""
    )


def test_values_from_function_2_by_replica() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    array_value = np.array([3.0, 2.0, 1.0])

    def value_fn(ctx):
        return array_value[ctx.replica_id_in_sync_group]

    distributed_values = strategy.experimental_distribute_values_from_function(value_fn)
    local_result = strategy.experimental_local_results(distributed_values)
    assert local_result == (3.0, 2.0)


def test_values_from_function_3_by_the_number_of_replicas() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])

    def value_fn(ctx):
        return ctx.num_replicas_in_sync

    distributed_values = strategy.experimental_distribute_values_from_function(value_fn)
    local_result = strategy.experimental_local_results(distributed_values)
    assert repr(local_result) == "(2, 2)"


def test_local_results_of_a_single_value() -> None:
    """ "If `value` represents a single value, this returns `(value,)`"."""
    strategy = tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "GPU:0"])
    assert strategy.experimental_local_results(3) == (3,)


def test_the_first_example_of_gather() -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    # A DistributedValues with component tensor of shape (2, 1) on each replica
    distributed_values = strategy.experimental_distribute_values_from_function(
        lambda _: tf.identity(tf.constant([[1], [2]]))
    )

    @tf.function
    def run():
        return strategy.gather(distributed_values, axis=0)

    assert lines_of(run()) == shown(
        """<tf.Tensor: shape=(4, 1), dtype=int32, numpy=
array([[1],
       [2],
       [1],
       [2]], dtype=int32)>"""
    )


GATHERED = {
    0: """<tf.Tensor: shape=(4, 2, 3), dtype=int32, numpy=
array([[[0, 1, 2],
        [3, 4, 5]],
       [[0, 1, 2],
        [3, 4, 5]],
       [[0, 1, 2],
        [3, 4, 5]],
       [[0, 1, 2],
        [3, 4, 5]]], dtype=int32)>""",
    1: """<tf.Tensor: shape=(1, 8, 3), dtype=int32, numpy=
array([[[0, 1, 2],
        [3, 4, 5],
        [0, 1, 2],
        [3, 4, 5],
        [0, 1, 2],
        [3, 4, 5],
        [0, 1, 2],
        [3, 4, 5]]], dtype=int32)>""",
    2: """<tf.Tensor: shape=(1, 2, 12), dtype=int32, numpy=
array([[[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2],
        [3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5]]], dtype=int32)>""",
}


@pytest.mark.parametrize("axis", GATHERED)
def test_the_second_example_of_gather(axis: int) -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1", "GPU:2", "GPU:3"])
    single_tensor = tf.reshape(tf.range(6), shape=(1, 2, 3))
    distributed_values = strategy.experimental_distribute_values_from_function(lambda _: tf.identity(single_tensor))

    @tf.function
    def run(axis):
        return strategy.gather(distributed_values, axis=axis)

    assert lines_of(run(axis)) == shown(GATHERED[axis])


def test_the_example_of_reduce_as_written_is_refused() -> None:
    """Its dataset has no batches to cut. TensorFlow fails there as well, with a bare IndexError."""
    strategy = tf.distribute.experimental.CentralStorageStrategy(
        compute_devices=["CPU:0", "GPU:0"], parameter_device="CPU:0"
    )
    ds = tf.data.Dataset.range(10)
    # Distribute that dataset
    with pytest.raises(ValueError, match=r"has no batch axis .* call \.batch\(global_batch_size\)"):
        strategy.experimental_distribute_dataset(ds)


def test_the_example_of_reduce_with_the_batch_that_its_results_are_of() -> None:
    strategy = tf.distribute.experimental.CentralStorageStrategy(
        compute_devices=["CPU:0", "GPU:0"], parameter_device="CPU:0"
    )
    ds = tf.data.Dataset.range(8).batch(8)  # the page has range(10), and says results of a global batch of 8
    # Distribute that dataset
    dist_dataset = strategy.experimental_distribute_dataset(ds)

    with strategy.scope():

        @tf.function
        def train_step(val):
            # pass through
            return val

        # Iterate over the distributed dataset
        for x in dist_dataset:
            per_replica = strategy.run(train_step, args=(x,))

    # Values are NumPy's own, so the `.numpy()` of the page is left out.
    result = strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)
    assert repr(result) == "array([ 4,  6,  8, 10])"
    # The page reduces `result` again; what comes to 28 is the value that `run` returned.
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=0) == 28
    # A value that is not distributed counts once for each replica, as in TensorFlow.
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, result, axis=0) == 2 * 28


def test_the_text_of_reduce_on_a_last_partial_batch() -> None:
    """ "If the last batch has size 6 and it is divided into [0, 1, 2, 3] and [4, 5]"."""
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    rows = [np.array([0.0, 1.0, 2.0, 3.0]), np.array([4.0, 5.0])]
    value = strategy.experimental_distribute_values_from_function(lambda ctx: rows[ctx.replica_id_in_sync_group])
    # The page: "you would get a shape mismatch unless you specify axis=0".
    with pytest.raises(InvalidArgumentError, match="must have the same size and shape"):
        strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=0) == 15.0
    # The page: "MEAN, using axis=0 will use the correct denominator of 6".
    assert strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=0) == 15.0 / 6
    # The page: "Contrast this with computing reduce_mean to get a scalar value on each replica".
    means = strategy.run(np.mean, args=(value,))
    assert strategy.reduce(tf.distribute.ReduceOp.MEAN, means, axis=None) == (1.5 + 4.5) / 2
