# SPDX-License-Identifier: Apache-2.0
"""Auto-sharding: which part of a pipeline one of several workers reads."""

from distinput.plan.node import Node
from distinput.plan.options import AutoShardPolicy
from distinput.plan.policy import Decision, Policy, Share
from distinput.plan.seeds import with_seed
from distinput.sharding.common_order import with_common_order
from distinput.sharding.decision import decide

__all__ = ["auto_shard"]


def auto_shard(
    node: Node,
    num_workers: int,
    index: int,
    num_replicas: int | None = None,
    seed: int | None = None,
    policy: AutoShardPolicy | Policy | None = None,
    decision: Decision | None = None,
) -> Node:
    """The tree that worker `index` of `num_workers` runs.

    Args:
      node: the pipeline, its global batches cut for the replicas.
      num_workers: W.
      index: from 0.
      num_replicas: replicas of all workers.
      seed: what ops that were given no seed take theirs from; the same number on all workers. None: each draws its own, and
        workers that shuffle differently disagree on who has which row.
      policy: None: the one in the options of the tree.
      decision: what `decide` said of this tree, or of one with the same sources; None: it is asked now.

    Raises:
      NotFoundError: policy FILE, and a source is no file; or policy BALANCED, and an op needs to see all elements.
      TooFewFilesError: policy FILE, and there are fewer files than workers.
    """
    if seed is not None:
        node = with_seed(node, seed)
    if decision is None:
        decision = decide(node, num_workers, policy)
    applied = decision.applied
    if num_workers > 1 and applied.divides:
        node = with_common_order(node)
    return applied.shard(node, Share(num_workers, index, num_replicas))
