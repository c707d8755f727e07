# SPDX-License-Identifier: Apache-2.0
"""Which policy divides a pipeline, and the part of it that one of several workers reads."""

from distinput.plan.node import Node
from distinput.plan.options import AutoShardPolicy, Decision, Policy, Share, options_of
from distinput.plan.seeds import with_seed
from distinput.sharding.batches import with_common_order
from distinput.sharding.policies import policy_named

__all__ = ["auto_shard", "decide", "policy_of"]


# ----------------------------------------------------------------------------
# Which policy divides a pipeline: decided here, once, for all who need to know.
# ----------------------------------------------------------------------------


def policy_of(node: Node) -> Policy:
    """The policy in the options of a tree."""
    return _policy(options_of(node).experimental_distribute.auto_shard_policy)


def decide(node: Node, num_workers: int, asked: AutoShardPolicy | Policy | None = None) -> Decision:
    """Which policy is applied to a tree, and why: AUTO is FILE where that works, else DATA.

    Args:
      node: the pipeline; the same on all workers, who so decide alike.
      num_workers: W.
      asked: the policy to ask about; None: the one in the options of the tree.

    Raises:
      NotFoundError: policy FILE, and a source is no file.
      TooFewFilesError: policy FILE, and there are fewer files than workers.
    """
    policy = policy_of(node) if asked is None else _policy(asked)
    return (
        Decision(policy, policy, "asked", policy.sentence)
        if policy.decide is None
        else policy.decide(node, num_workers)
    )


def _policy(asked: AutoShardPolicy | Policy) -> Policy:
    return asked if isinstance(asked, Policy) else policy_named(AutoShardPolicy(asked).name)


# ----------------------------------------------------------------------------
# Auto-sharding: the part of a pipeline that one of several workers reads.
# ----------------------------------------------------------------------------


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
      seed: ops without a seed take theirs from this number, which must be the same on all workers. None: each worker draws
        its own, so workers shuffle differently and disagree on which rows are whose.
      policy: None: the one in the options of the tree.
      decision: what `decide` returned for this tree, or for one with the same sources; None: it is called now.

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
