# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow's pages on distribution state, statement by statement, run with `import distinput as tf`."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

import distinput as tf
from tests.patience import wait_until

d = tf.distribute
TWO = ["GPU:0", "GPU:1"]


def mirrored(replicas: int = 2) -> d.MirroredStrategy:
    return d.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])


# ---- Strategy.scope


def test_scope_makes_the_strategy_current_and_enters_cross_replica_context() -> None:
    strategy = mirrored()
    with strategy.scope():
        assert d.get_strategy() is strategy
        assert d.in_cross_replica_context()
        assert d.has_strategy()
    assert not d.has_strategy()
    assert d.get_strategy().num_replicas_in_sync == 1


def test_variables_made_in_the_scope_are_mirrored_and_others_are_not() -> None:
    with mirrored().scope():
        inside = tf.Variable(1.0)
    outside = tf.Variable(1.0)
    assert type(inside).__name__ == "MirroredVariable"
    assert isinstance(inside, d.DistributedValues)
    assert not isinstance(outside, d.DistributedValues)


def test_variable_creator_scope_is_declined() -> None:
    with pytest.raises(
        AttributeError, match="'variable_creator_scope': call a function of your own that makes the var"
    ):
        tf.variable_creator_scope  # noqa: B018 - that it is missing is what is tested


def test_run_and_reduce_enter_the_scope_by_themselves() -> None:
    strategy = mirrored()
    assert strategy.run(d.get_strategy) is strategy

    def step():
        return tf.Variable(2.0, name="made_in_run").read_value()

    assert strategy.reduce("SUM", strategy.run(step), axis=None) == 4.0


def test_variables_work_outside_the_scope_without_entering_it() -> None:
    strategy = mirrored()
    with strategy.scope():
        variable = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
    variable.assign_add(1.0)
    strategy.run(lambda: variable.assign_add(float(d.get_replica_context().replica_id_in_sync_group)))
    assert variable.read_value() == 2.5


def test_a_multi_worker_strategy_of_one_worker_has_a_scope() -> None:
    with d.experimental.MultiWorkerMirroredStrategy() as strategy, strategy.scope():
        assert strategy.num_replicas_in_sync == 1
        assert tf.Variable(1.0).read_value() == 1.0


def test_models_of_keras_are_declined_by_name() -> None:
    """A scope does for objects of any library what it does for variables: those made in it belong to the strategy."""
    with pytest.raises(AttributeError, match="'keras': it has input pipelines and distribution, not models"):
        tf.keras  # noqa: B018 - as above

    class Model:
        def __init__(self) -> None:
            self.weight, self.strategy = tf.Variable(3.0), d.get_strategy()

    strategy = mirrored()
    with strategy.scope():
        model = Model()
    with model.strategy.scope():  # as `fit` does with the scope that a model has captured
        assert strategy.reduce("MEAN", strategy.run(lambda: model.weight * 2), axis=None) == 6.0


def test_a_checkpoint_of_variables_is_saved_and_restored_inside_or_outside_of_the_scope(tmp_path: Path) -> None:
    strategy = mirrored()
    with strategy.scope():
        variable = tf.Variable([1.0, 2.0], name="w")
        saved = tf.train.Checkpoint(w=variable).save(str(tmp_path / "inside"))
    variable.assign([5.0, 6.0])
    tf.train.Checkpoint(w=variable).restore(saved)
    assert [copy.numpy().tolist() for copy in strategy.experimental_local_results(variable)] == [[1.0, 2.0]] * 2


def test_a_function_defines_the_training_step() -> None:
    strategy = mirrored()

    @tf.function
    def train_step(value):
        return value + 1

    with strategy.scope():
        made = strategy.run(train_step, args=(d.PerReplica([1, 2]),))
        assert strategy.reduce("SUM", made, axis=None) == 5


# ---- CentralStorageStrategy


def test_central_storage_distributes_and_runs() -> None:
    strategy = d.experimental.CentralStorageStrategy()
    steps = strategy.experimental_distribute_dataset(tf.data.Dataset.range(5).batch(2))
    made = [strategy.run(lambda v: v + 1, args=(x,)).tolist() for x in steps]
    assert made == [[1, 2], [3, 4], [5]]


def test_central_storage_is_in_both_modules() -> None:
    assert d.CentralStorageStrategy is d.experimental.CentralStorageStrategy


def test_variables_are_assigned_to_local_cpu_or_the_only_gpu() -> None:
    assert d.experimental.CentralStorageStrategy(["GPU:0"]).extended.parameter_devices == ("GPU:0",)
    strategy = d.experimental.CentralStorageStrategy(compute_devices=["CPU:0", "GPU:0"], parameter_device="CPU:0")
    assert strategy.extended.parameter_devices == ("CPU:0",)
    with strategy.scope():
        assert tf.Variable(1.0).device == "CPU:0"


def test_a_variable_of_central_storage_has_one_copy_that_aggregates() -> None:
    strategy = d.experimental.CentralStorageStrategy(["CPU:0", "GPU:0"])
    with strategy.scope():
        variable = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)
    assert type(variable).__name__ == "AggregatingVariable"
    strategy.run(lambda: variable.assign_add(np.float32(2.0)))
    assert variable.read_value() == 5.0


# ---- properties of strategies


def test_strategies_of_one_worker_have_no_cluster_resolver() -> None:
    for strategy in (d.experimental.CentralStorageStrategy(), mirrored(), d.OneDeviceStrategy("CPU:0")):
        assert strategy.cluster_resolver is None


def test_tf_config_says_which_task_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"worker": ["localhost:12345", "localhost:23456"], "ps": ["localhost:34567"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    resolver = d.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 0)
    assert resolver.cluster_spec().as_dict() == cluster


def test_extended_has_devices_and_runs_on_each_replica() -> None:
    strategy = mirrored()
    assert strategy.extended.worker_devices == ("GPU:0", "GPU:1")
    made = strategy.extended.call_for_each_replica(lambda: d.get_replica_context().replica_id_in_sync_group)
    assert made.values == (0, 1)


def test_the_number_of_replicas() -> None:
    assert mirrored(3).num_replicas_in_sync == 3


# ---- input


def test_datasets_from_a_function() -> None:
    strategy = mirrored()

    def dataset_fn(context):
        batch = context.get_per_replica_batch_size(4)
        return tf.data.Dataset.range(8).batch(batch).shard(context.num_input_pipelines, context.input_pipeline_id)

    steps = strategy.distribute_datasets_from_function(dataset_fn, d.InputOptions())
    assert [x.values[1].tolist() for x in steps] == [[2, 3], [6, 7]]


def test_infinite_datasets_that_differ_in_their_seed_alone() -> None:
    strategy = mirrored()
    made = strategy.distribute_datasets_from_function(
        lambda c: tf.data.Dataset.range(8).shuffle(8, seed=c.input_pipeline_id).repeat().batch(2)
    )
    iterator = iter(made)
    rows = np.concatenate([part for _ in range(2) for part in next(iterator).values])
    assert sorted(rows.tolist()) == list(range(8))


def test_the_element_spec_is_an_input_signature() -> None:
    strategy = mirrored()
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
    assert type(dataset.element_spec).__name__ == "PerReplicaSpec"

    @tf.function(input_signature=[dataset.element_spec])
    def step(x):
        return strategy.reduce("SUM", x, axis=0)

    assert [int(step(x)) for x in dataset] == [6, 22]


def test_elements_are_prefetched_to_the_devices_of_the_worker() -> None:
    options = d.InputOptions(experimental_fetch_to_device=True, experimental_per_replica_buffer_size=2)
    dataset = mirrored().experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4), options)
    assert [x.values[0].tolist() for x in dataset] == [[0, 1], [4, 5]]


def test_values_from_a_function_examples_1_to_3() -> None:
    strategy = mirrored()
    array = np.array([3.0, 2.0, 1.0])
    makers = (lambda _: tf.constant(1.0), lambda c: array[c.replica_id_in_sync_group], lambda c: c.num_replicas_in_sync)
    made = [strategy.experimental_distribute_values_from_function(maker) for maker in makers]
    assert [strategy.experimental_local_results(value) for value in made] == [(1.0, 1.0), (3.0, 2.0), (2, 2)]


def test_values_are_placed_on_devices_example_4() -> None:
    strategy = mirrored()
    multiple_values = []
    for i in range(strategy.num_replicas_in_sync):
        with tf.device(strategy.extended.worker_devices[i]):
            multiple_values.append(tf.constant(1.0 + i))
    made = strategy.experimental_distribute_values_from_function(
        lambda ctx: multiple_values[ctx.replica_id_in_sync_group]
    )
    assert strategy.experimental_local_results(made) == (1.0, 2.0)


def test_the_local_results_of_a_single_value() -> None:
    assert d.OneDeviceStrategy("CPU:0").experimental_local_results(5) == (5,)


# ---- gather and reduce


def test_gather_along_each_axis() -> None:
    strategy, four = mirrored(), mirrored(4)
    pairs = strategy.experimental_distribute_values_from_function(lambda _: tf.constant([[1], [2]]))
    assert strategy.gather(pairs, axis=0).tolist() == [[1], [2], [1], [2]]
    blocks = four.experimental_distribute_values_from_function(lambda _: tf.reshape(tf.range(6), (1, 2, 3)))
    assert [four.gather(blocks, axis=i).shape for i in range(3)] == [(4, 2, 3), (1, 8, 3), (1, 2, 12)]


def test_gather_takes_dense_values_with_an_axis() -> None:
    strategy = mirrored()
    scalars = strategy.experimental_distribute_values_from_function(lambda _: tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Can't concatenate scalars"):
        strategy.gather(scalars, axis=0)


def test_replicas_gather_reduce_and_merge() -> None:
    strategy = mirrored()

    def step():
        context = d.get_replica_context()
        mine = np.float32(context.replica_id_in_sync_group)
        merged = context.merge_call(lambda _, x: strategy.reduce("SUM", x, axis=None), (mine,))
        return context.all_gather(np.ones(2), 0), context.all_reduce("SUM", np.float32(1)), merged

    gathered, total, merged = strategy.run(step)
    assert [part.shape for part in gathered.values] == [(4,), (4,)]
    assert total.values == (2.0, 2.0)
    assert merged == 1.0


def test_reduce_weighs_the_rows_of_a_partial_batch_equally() -> None:
    strategy = mirrored()
    value = d.PerReplica([np.arange(4.0), np.arange(4.0, 6)])
    assert strategy.reduce("SUM", value, axis=0) == 15
    assert strategy.reduce(d.ReduceOp.MEAN, value, axis=0) == 2.5


# ---- run


def test_run_takes_arguments_and_options() -> None:
    made = mirrored().run(lambda x, y: x + y, args=(1,), kwargs={"y": 2}, options=d.RunOptions())
    assert made == 3


def test_the_result_of_run_is_a_nest() -> None:
    made = mirrored().run(lambda: {"a": (1, d.get_replica_context().replica_id_in_sync_group)})
    assert made["a"][0] == 1
    assert isinstance(made["a"][1], d.PerReplica)


# ---- DistributedValues


def test_distributed_values_is_the_base_class() -> None:
    assert issubclass(d.PerReplica, d.DistributedValues)
    assert issubclass(d.Mirrored, d.DistributedValues)
    with pytest.raises(ValueError, match="needs the value of at least one replica"):
        d.DistributedValues([])


def test_a_value_from_a_dataset_goes_through_run_and_reduce() -> None:
    strategy = mirrored()
    dataset = tf.data.Dataset.from_tensor_slices([5.0, 6.0, 7.0, 8.0]).batch(2)
    value = next(iter(strategy.experimental_distribute_dataset(dataset)))
    made = strategy.run(lambda x: x + 1.0, args=(value,))
    assert strategy.reduce(d.ReduceOp.SUM, value, axis=0) == 11
    assert strategy.experimental_local_results(value)[1] == np.float32([6])
    assert strategy.experimental_local_results(made)[1] == np.float32([7])


def test_iterators_give_the_next_step_or_none() -> None:
    iterator = iter(mirrored().experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4)))
    assert iterator.get_next().values[1].tolist() == [2, 3]
    assert not iterator.get_next_as_optional().has_value()
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()


LISTED = (
    "OneDeviceStrategy.experimental_distribute_values_from_function",
    "OneDeviceStrategy.experimental_distribute_dataset",
    "OneDeviceStrategy.gather",
    "MultiWorkerMirroredStrategy.gather",
    "MultiWorkerMirroredStrategy.experimental_distribute_dataset",
    "MirroredStrategy.reduce",
    "Strategy.scope",
    "experimental_set_strategy",
    "cluster_resolver.TFConfigClusterResolver",
    "NcclAllReduce",
    "ParameterServerStrategy.experimental_distribute_dataset",
    "TPUStrategy",
    "TPUStrategy.experimental_assign_to_logical_device",
    "TPUStrategy.reduce",
    "experimental.TPUStrategy",
    "experimental.rpc.Server.create",
)


@pytest.mark.parametrize("name", LISTED)
def test_what_the_pages_list_beside_their_own_subject(name: str) -> None:
    value = d
    for part in name.split("."):
        value = getattr(value, part)
    assert callable(value)


def test_one_device_distributes_gathers_and_makes_values() -> None:
    strategy = d.OneDeviceStrategy("GPU:0")
    assert strategy.experimental_distribute_values_from_function(lambda c: c.num_replicas_in_sync) == 1
    assert [x.tolist() for x in strategy.experimental_distribute_dataset(tf.data.Dataset.range(3).batch(2))] == [
        [0, 1],
        [2],
    ]
    assert strategy.gather(np.arange(2), axis=0).tolist() == [0, 1]


def test_a_strategy_is_set_for_a_notebook() -> None:
    strategy = mirrored()
    d.experimental_set_strategy(strategy)
    try:
        assert d.get_strategy() is strategy
        assert type(tf.Variable(1.0)).__name__ == "MirroredVariable"
    finally:
        d.experimental_set_strategy(None)


def test_nccl_all_reduce_adds_for_a_mirrored_strategy() -> None:
    strategy = d.MirroredStrategy(TWO, cross_device_ops=d.NcclAllReduce(num_packs=2))
    assert strategy.reduce("MEAN", d.PerReplica([np.arange(3), np.arange(3) + 1]), axis=None).tolist() == [
        0.5,
        1.5,
        2.5,
    ]


# ---- experimental_distribute_dataset


def test_a_global_batch_is_cut_and_its_parts_come_back() -> None:
    strategy = mirrored()
    steps = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
    made = [strategy.run(lambda x: x * 2, args=(x,)) for x in steps]
    assert [[part.tolist() for part in value.values] for value in made] == [[[0], [2]], [[4], [6]]]


def test_a_distributed_dataset_cannot_be_transformed() -> None:
    made = mirrored().experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
    assert not hasattr(made, "map")


def test_auto_shard_policies_are_options() -> None:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    assert {"AUTO", "FILE", "DATA", "OFF", "HINT"} <= {policy.name for policy in tf.data.experimental.AutoShardPolicy}


def test_datasets_of_readers(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a\nb\n")
    with tf.io.TFRecordWriter(str(tmp_path / "records")) as writer:
        writer.write(b"c")
    strategy = mirrored()
    for dataset, rows in (
        (tf.data.TextLineDataset(str(tmp_path / "lines.txt")), [b"a", b"b"]),
        (tf.data.TFRecordDataset(str(tmp_path / "records")), [b"c"]),
    ):
        (step,) = strategy.experimental_distribute_dataset(dataset.batch(2))
        assert strategy.gather(step, axis=0).tolist() == rows


def test_steps_are_read_ahead() -> None:
    """The page: as many steps as there are replicas are prefetched; here, steps that take time to produce."""
    made = []

    def slow(x):
        time.sleep(0.01)
        made.append(x)
        return x

    iterator = iter(mirrored().experimental_distribute_dataset(tf.data.Dataset.range(40).map(slow).batch(2)))
    next(iterator)
    next(iterator)
    wait_until(lambda: len(made) > 2 * 2)  # more than these two steps have; they may be there already


def test_outputs_are_sorted_by_an_index_in_every_element() -> None:
    """The page says that TPUs do not keep the order; here it is kept, and the recipe works."""
    strategy = mirrored()
    dataset = tf.data.Dataset.from_tensor_slices([10, 11, 12, 13]).enumerate().batch(2)
    found = []
    for index, x in strategy.experimental_distribute_dataset(dataset):
        rows = strategy.gather(index, axis=0), strategy.gather(x, axis=0)
        found += list(zip(*map(np.ndarray.tolist, rows), strict=True))
    assert found == sorted(found) == [(0, 10), (1, 11), (2, 12), (3, 13)]


def test_random_transformations_draw_from_the_position_of_an_element() -> None:
    """The page: state of random functions is ignored. A seed that travels with the element is the same on every worker."""
    draws = tf.data.Dataset.range(4).map(lambda i: np.random.default_rng([7, int(i)]).integers(100))
    once, again = (list(draws.as_numpy_iterator()) for _ in range(2))
    assert once == again
    strategy = mirrored()
    steps = strategy.experimental_distribute_dataset(draws.batch(2))
    assert [row for x in steps for row in strategy.gather(x, axis=0).tolist()] == once
