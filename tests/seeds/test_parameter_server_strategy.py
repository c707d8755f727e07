# SPDX-License-Identifier: Apache-2.0
"""The page on `ParameterServerStrategy.experimental_distribute_dataset`, under the strategy that it is named after."""

import pytest

import distinput as tf


def test_a_distributed_dataset_is_iterated_by_workers() -> None:
    """The text of the page: a DistributedDataset "can only be iterated, and examined"; here on each worker."""
    spec = tf.distribute.cluster_resolver.ClusterSpec({"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        spec, task_type="chief", task_id=0, rpc_layer="grpc"
    )
    for make in (tf.distribute.ParameterServerStrategy, tf.distribute.experimental.ParameterServerStrategy):
        strategy = make(resolver, engine="threads")
        dist_dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
        with pytest.raises(ValueError, match=r"ClusterCoordinator\.create_per_worker_dataset"):
            iter(dist_dataset)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

        with strategy.scope():
            variable = tf.Variable(0)

        @tf.function
        def replica_fn(iterator, variable=variable):
            value = next(iterator) * 2
            variable.assign_add(int(value.sum()))
            return value

        iterator = iter(coordinator.create_per_worker_dataset(dist_dataset))
        made = coordinator.schedule(replica_fn, args=(iterator,))
        coordinator.join()
        assert made.fetch().tolist() == [0, 2]
        assert variable.read_value() == 2
