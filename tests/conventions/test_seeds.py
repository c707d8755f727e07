# SPDX-License-Identifier: Apache-2.0
"""The names of `tf.distribute` and what they promise; docs/conventions.md lists the lines, tests/seeds the pages themselves."""

import json
from typing import Any

import numpy as np
import pytest

import distinput as tf

d = tf.distribute
PerReplica = d.PerReplica


@pytest.fixture
def strategy() -> d.MirroredStrategy:
    return d.MirroredStrategy(["CPU:0", "CPU:1"])


def values(step: Any) -> list[Any]:
    return [part.tolist() for part in step.values]


def test_experimental_distribute_dataset(strategy: d.MirroredStrategy) -> None:
    """It cuts global batches, shards, prefetches as many as replicas are in sync, and can only be iterated."""
    batches = tf.data.Dataset.range(6).batch(4)
    distributed = strategy.experimental_distribute_dataset(batches)
    assert [values(step) for step in distributed] == [[[0, 1], [2, 3]], [[4], [5]]]
    leaf = tf.TensorSpec([None], "int64")
    assert distributed.element_spec == d.PerReplicaSpec(leaf, leaf)
    assert "prefetch" in distributed.explain()
    with pytest.raises(AttributeError, match="transform the dataset before you distribute it"):
        distributed.map(lambda x: x)


def test_distribute_datasets_from_function(strategy: d.MirroredStrategy) -> None:
    """The function gets an InputContext; what it returns is neither cut nor sharded."""
    seen: list[d.InputContext] = []

    def dataset_fn(context: d.InputContext) -> tf.data.Dataset:
        seen.append(context)
        return tf.data.Dataset.range(4).batch(context.get_per_replica_batch_size(4))

    made = strategy.distribute_datasets_from_function(dataset_fn)
    assert [values(step) for step in made] == [[[0, 1], [2, 3]]]
    (context,) = seen
    assert (context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync) == (1, 0, 2)
    with pytest.raises(ValueError, match="divisible"):
        context.get_per_replica_batch_size(3)


def test_experimental_distribute_values_from_function(strategy: d.MirroredStrategy) -> None:
    def value_fn(context: d.experimental.ValueContext) -> tuple[int, int]:
        return context.replica_id_in_sync_group, context.num_replicas_in_sync

    mine, total = strategy.experimental_distribute_values_from_function(value_fn)
    assert (mine.values, total.values) == ((0, 1), (2, 2))


def test_experimental_local_results(strategy: d.MirroredStrategy) -> None:
    assert strategy.experimental_local_results(PerReplica([1, 2])) == (1, 2)
    assert strategy.experimental_local_results(3) == (3,)


def test_run(strategy: d.MirroredStrategy) -> None:
    made = strategy.run(lambda x, y=0: x + y, args=(PerReplica([1, 2]),), kwargs={"y": PerReplica([10, 20])})
    assert made.values == (11, 22)


def test_reduce_divides_by_the_true_number_of_rows(strategy: d.MirroredStrategy) -> None:
    uneven = PerReplica([np.array([1.0, 2.0, 3.0]), np.array([6.0])])
    assert strategy.reduce("MEAN", uneven, axis=0) == 3.0
    assert strategy.reduce(d.ReduceOp.SUM, uneven, axis=0) == 12.0
    assert strategy.reduce("MEAN", PerReplica([1.0, 4.0]), axis=None) == 2.5


def test_gather(strategy: d.MirroredStrategy) -> None:
    assert strategy.gather(PerReplica([np.array([[1], [2]]), np.array([[3]])]), axis=0).tolist() == [[1], [2], [3]]


def test_scope_without_extended(strategy: d.MirroredStrategy) -> None:
    """Everything that a training loop needs is on the strategy itself; `extended` is there for libraries."""
    with strategy.scope():
        variable = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
    batches = tf.data.Dataset.range(4).batch(2)

    def step(x: Any) -> None:
        variable.assign_add(np.float32(x.sum()))

    for batch in strategy.experimental_distribute_dataset(batches):
        strategy.run(step, args=(batch,))
    assert float(variable.numpy()) == 1.0 + 0.5 + 2.5


def test_the_cluster_is_that_of_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"worker": ["a:1", "b:1"], "ps": ["c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "ps", "index": 0}}))
    resolver = d.cluster_resolver.TFConfigClusterResolver()
    assert resolver.cluster_spec().as_dict() == cluster
    assert (resolver.task_type, resolver.task_id) == ("ps", 0)


def test_get_next_as_optional(strategy: d.MirroredStrategy) -> None:
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(1).batch(2)))
    first, end = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    assert first.has_value()
    assert values(first.get_value()) == [[0], []]
    assert not end.has_value()
