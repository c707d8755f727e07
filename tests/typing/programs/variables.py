# SPDX-License-Identifier: Apache-2.0
"""Variables in a scope, as a training program has them."""

import tempfile

import numpy as np

import distinput as tf

strategy = tf.distribute.MirroredStrategy(devices=["GPU:0", "GPU:1"])
with strategy.scope():
    weights = tf.Variable([1.0, 2.0], name="weights")
    seen = tf.Variable(
        0,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )


def step() -> float:
    seen.assign_add(1)
    return float(np.sum(weights * 2 - 1 + (1 - weights)))


strategy.run(step)
weights.assign(weights * 2)
weights[0].assign(5.0)
weights.scatter_add(tf.IndexedSlices(values=[1.0], indices=[1]))
assert int(seen) == 2
assert weights.numpy().tolist() == [5.0, 5.0]
assert weights.shape.as_list() == [2]
assert isinstance(weights, tf.distribute.DistributedVariable)
assert [copy.name for copy in weights.values] == ["weights:0", "weights/replica_1:0"]


def saved(manager: tf.train.CheckpointManager) -> str | None:
    return manager.latest_checkpoint


with tempfile.TemporaryDirectory() as folder:
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=np.array(0)), folder, max_to_keep=2)
    assert isinstance(manager, tf.train.CheckpointManager)
    assert saved(manager) is None
    checkpoint: tf.train.Checkpoint = manager.checkpoint
    assert checkpoint.save_counter.numpy() == 0
