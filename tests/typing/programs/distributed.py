# SPDX-License-Identifier: Apache-2.0
"""Batches cut for replicas, as a training program does it."""

import numpy as np
from numpy.typing import NDArray

import distinput as tf

strategy = tf.distribute.MirroredStrategy(devices=["GPU:0", "GPU:1"])
dataset = tf.data.Dataset.range(8).map(lambda x: (x, x * 2)).batch(4)
distributed = strategy.experimental_distribute_dataset(dataset)


def step(x: NDArray[np.int64], y: NDArray[np.int64]) -> np.int64:
    total: np.int64 = np.sum(x + y)
    return total


total = 0.0
with strategy.scope():
    for batch in distributed:
        result = strategy.run(step, args=batch)
        total += float(strategy.reduce(tf.distribute.ReduceOp.SUM, result, axis=None))
        locals_ = strategy.experimental_local_results(result)
        assert len(locals_) == strategy.num_replicas_in_sync
assert total == 84.0


def input_fn(context: tf.distribute.InputContext) -> tf.data.Dataset:
    size = context.get_per_replica_batch_size(4)
    return tf.data.Dataset.range(8).shard(context.num_input_pipelines, context.input_pipeline_id).batch(size)


for value in strategy.distribute_datasets_from_function(input_fn):
    print(strategy.experimental_local_results(value))
