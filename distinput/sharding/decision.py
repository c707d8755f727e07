# SPDX-License-Identifier: Apache-2.0
"""Which policy divides a pipeline: decided here, once, for all who need to know."""

from distinput.plan.node import Node
from distinput.plan.options import AutoShardPolicy, options_of
from distinput.plan.policy import Decision, Policy
from distinput.sharding.policies import policy_named

__all__ = ["decide", "policy_of"]


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
