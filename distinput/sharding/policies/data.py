# SPDX-License-Identifier: Apache-2.0
"""Policy DATA: every n-th element; of batches that are cut for replicas, every n-th piece."""

from distinput.ops.shard import Shard
from distinput.plan.node import Node
from distinput.plan.options import Policy, Share
from distinput.sharding.batches import FrameworkLegacyRebatch, FrameworkRebatch
from distinput.sharding.own_rows import own_rows

__all__ = ["POLICY"]


def _by_data(node: Node, share: Share) -> Node:
    """A shard below trailing steps without states of their own; each global batch is cut by itself."""
    if node.transparent:
        return node.with_inputs((_by_data(node.inputs[0], share),))
    if isinstance(node, FrameworkRebatch) and share.num_replicas:
        node = FrameworkLegacyRebatch(node.input, share.num_replicas, origin=node.origin)
    shard = Shard(node, share.num_workers, share.index, origin=node.origin)
    return own_rows(shard) or shard


POLICY = Policy(
    "DATA",
    "pieces of each global batch, piece i to worker i modulo the number of workers",
    _by_data,
    reads_everything=True,
)
