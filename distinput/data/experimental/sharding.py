# SPDX-License-Identifier: Apache-2.0
"""What each worker of a job reads: explained, and done without a strategy."""

from distinput.data.dataset import Dataset
from distinput.partition.shard_plan import ShardPlan
from distinput.plan.options import AutoShardPolicy
from distinput.plan.policy import Policy
from distinput.sharding.autoshard import auto_shard
from distinput.sharding.batches import rebatch_for
from distinput.sharding.planning import shard_plan as _shard_plan

__all__ = ["auto_shard_dataset", "rebatch_for_worker", "shard_plan"]


def auto_shard_dataset(dataset: Dataset, num_workers: int, index: int, num_replicas: int | None = None) -> Dataset:
    """The part of `dataset` that one worker reads, by the policy in its options.

    Args:
      dataset: any pipeline, cut by `rebatch_for_worker` or not.
      num_workers: W.
      index: which worker, from 0.
      num_replicas: replicas of all workers; needed where DATA replaces the cut of a global batch.

    Raises:
      NotFoundError: policy FILE, and a source does not read files.
      InvalidArgumentError: fewer files than workers.

    >>> import distinput as di
    >>> di.data.experimental.auto_shard_dataset(di.data.Dataset.range(5), 2, 1).to_list()
    [1, 3]

    Source: `auto_shard_dataset` of tensorflow/python/distribute/input_ops.py.
    """
    return Dataset(auto_shard(dataset.node, num_workers, index, num_replicas))


def rebatch_for_worker(dataset: Dataset, num_workers: int, replicas_per_worker: int, worker: int) -> Dataset:
    """The global batches of `dataset` cut into per-replica batches, for the replicas of one worker.

    Args:
      dataset: batches of the global batch size.
      num_workers: W.
      replicas_per_worker: R; nothing is cut when W * R is 1.
      worker: which worker, from 0.

    Raises:
      InvalidArgumentError: elements have no batch axis.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(7).batch(7)
    >>> di.data.experimental.rebatch_for_worker(ds, 1, 3, 0).to_list()
    [[0, 1, 2], [3, 4], [5, 6]]

    Source: `_make_rebatch_fn` of tensorflow/python/distribute/input_lib.py.
    """
    return Dataset(rebatch_for(dataset.node, num_workers, replicas_per_worker, worker))


def shard_plan(
    dataset: Dataset, num_workers: int, replicas_per_worker: int = 1, policy: AutoShardPolicy | Policy | None = None
) -> ShardPlan:
    """Explain which worker would read what of `dataset`, and why, from file names, sizes and footers if possible.

    Args:
      dataset: batches of the global batch size.
      num_workers: W.
      replicas_per_worker: R.
      policy: the policy to explain; None for the one in the options of `dataset`.

    Raises:
      InvalidArgumentError: fewer than one worker or replica; with policy FILE, fewer files than workers.
      NotFoundError: a file does not exist, or the policy does not work for this pipeline.

    >>> import distinput as di
    >>> print(di.data.experimental.shard_plan(di.data.Dataset.range(10).batch(4), num_workers=2))
    shards: 2 workers of 1 replicas, policy DATA
      why:   not_files: pieces of each global batch, piece i to worker i modulo the number of workers; not FILE: Found an
        unshardable source dataset: range
      steps: 3 on every worker, known beforehand
      tail:  each batch is cut on its own into equal pieces, rounded up; of a short one, the last replicas may get no rows
      worker  files  rows  bytes  steps  reads
           0      0     5      0      3
           1      0     5      0      3
    """
    return _shard_plan(dataset.node, num_workers, replicas_per_worker, policy)
