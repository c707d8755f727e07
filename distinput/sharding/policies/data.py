# SPDX-License-Identifier: Apache-2.0
"""Policies that divide elements, wherever they come from: DATA, HINT and OFF."""

from distinput.ops.shard import Shard
from distinput.plan.node import Node
from distinput.plan.options import Policy, Share
from distinput.sharding.own_rows import FrameworkLegacyRebatch, FrameworkRebatch, own_rows

__all__ = ["DATA", "HINT", "OFF"]


# ----------------------------------------------------------------------------
# DATA: every n-th element; of batches that are cut for replicas, every n-th piece.
# ----------------------------------------------------------------------------


def _by_data(node: Node, share: Share) -> Node:
    """A shard below trailing steps without states of their own; each global batch is cut by itself."""
    if node.transparent:
        return node.with_inputs((_by_data(node.inputs[0], share),))
    if isinstance(node, FrameworkRebatch) and share.num_replicas:
        node = FrameworkLegacyRebatch(node.input, share.num_replicas, origin=node.origin)
    shard = Shard(node, share.num_workers, share.index, origin=node.origin)
    return own_rows(shard) or shard


DATA = Policy(
    "DATA",
    "pieces of each global batch, piece i to worker i modulo the number of workers",
    _by_data,
    reads_everything=True,
)


# ----------------------------------------------------------------------------
# HINT: elements are divided where the pipeline says `shard(SHARD_HINT, SHARD_HINT)`.
# ----------------------------------------------------------------------------


def _at_hints(node: Node, share: Share) -> Node:
    inputs = tuple([_at_hints(source, share) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    if isinstance(node, Shard) and node.is_hint:
        return Shard(node.input, share.num_workers, share.index, origin=node.origin)
    return node


HINT = Policy("HINT", "elements, where the pipeline says shard(SHARD_HINT, SHARD_HINT)", _at_hints)


# ----------------------------------------------------------------------------
# OFF: every worker reads everything.
# ----------------------------------------------------------------------------


def _everything(node: Node, _: Share) -> Node:
    return node


OFF = Policy("OFF", "every worker reads and delivers everything", _everything, divides=False, reads_everything=True)
