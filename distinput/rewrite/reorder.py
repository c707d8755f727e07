# SPDX-License-Identifier: Apache-2.0
"""Steps that cost less in another order."""

from distinput.ops.map import FusedMap, Map
from distinput.ops.take import Skip, Take
from distinput.plan.node import Node


def skip_before_take(node: Node) -> Node | None:
    """Skips first, so that skips stand beside skips and takes beside takes, where they become one."""
    match node:
        case Skip(Take(x, a) as taken, b) if a >= 0 and b > 0:
            return Take(Skip(x, b, origin=node.origin), max(0, a - b), origin=taken.origin)
    return None


def take_before_map(node: Node) -> Node | None:
    """Elements that nobody takes are not mapped."""
    match node:
        case Take(Map(x) | FusedMap(x) as mapped, count):
            return mapped.with_inputs((Take(x, count, origin=node.origin),))
    return None
