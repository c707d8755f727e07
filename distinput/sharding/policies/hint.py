# SPDX-License-Identifier: Apache-2.0
"""Policy HINT: elements are divided where the pipeline says `shard(SHARD_HINT, SHARD_HINT)`."""

from distinput.ops.shard import Shard
from distinput.plan.node import Node
from distinput.plan.options import Policy, Share

__all__ = ["POLICY"]


def _at_hints(node: Node, share: Share) -> Node:
    inputs = tuple([_at_hints(source, share) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    if isinstance(node, Shard) and node.is_hint:
        return Shard(node.input, share.num_workers, share.index, origin=node.origin)
    return node


POLICY = Policy("HINT", "elements, where the pipeline says shard(SHARD_HINT, SHARD_HINT)", _at_hints)
