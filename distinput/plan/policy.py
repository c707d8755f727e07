# SPDX-License-Identifier: Apache-2.0
"""Policies: how a pipeline is divided among workers, and the decision which policy is applied."""

from collections.abc import Callable
from dataclasses import dataclass, field

from distinput.plan.node import Node

__all__ = ["Decision", "Policy", "Share"]


@dataclass(frozen=True)
class Share:
    """Which worker's share of a pipeline is meant.

    Args:
      num_workers: W.
      index: the worker, from 0.
      num_replicas: replicas of all workers; None if batches are not cut for replicas.
    """

    num_workers: int
    index: int
    num_replicas: int | None = None


@dataclass(frozen=True)
class Policy:
    """A way to divide a pipeline among workers.

    Args:
      name: in capital letters, as in `AutoShardPolicy`.
      sentence: what each worker reads, for `ShardPlan`.
      shard: (tree, share) -> the tree of that worker. A pure function, the same on all workers. It may raise NotFoundError, or
        InvalidArgumentError, for a pipeline that it cannot divide.
      decide: (tree, workers) -> the decision, for a policy that must look at a pipeline to know whether it can divide it, or
        that leaves it to another policy. It raises what `shard` would raise; `shard` is called after it and need not check
        again. None: this policy is applied.
      divides: False if every worker reads all of its own data, which may differ from that of the others.
      reads_everything: True if workers may read what they do not deliver.
    """

    name: str
    sentence: str
    shard: Callable[[Node, Share], Node] = field(repr=False)
    decide: "Callable[[Node, int], Decision] | None" = field(default=None, repr=False)
    divides: bool = True
    reads_everything: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Decision:
    """Which policy divides a pipeline among so many workers, and why.

    Args:
      asked: the policy in the options, or the one that was asked about.
      applied: the policy that divides the pipeline.
      reason: a code: "asked", or why another policy is applied.
      sentence: the same in words.
    """

    asked: Policy
    applied: Policy
    reason: str
    sentence: str
