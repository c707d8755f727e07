# SPDX-License-Identifier: Apache-2.0
"""Steps that cost less in another order."""

from distinput.ops.map import Map
from distinput.ops.take import Take
from distinput.plan.node import Node


def take_before_map(node: Node) -> Node | None:
    """Elements that nobody takes are not mapped."""
    match node:
        case Take(Map(x) as mapped, count):
            return mapped.with_inputs((Take(x, count, origin=node.origin),))
    return None
