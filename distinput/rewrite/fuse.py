# SPDX-License-Identifier: Apache-2.0
"""Neighbouring steps run as one."""

from distinput.core.nest import LEAF
from distinput.ops.map import FusedMap, Map, fused
from distinput.ops.zip import Zip
from distinput.plan.node import Node


def map_of_map(node: Node) -> Node | None:
    """Each element goes through both functions before the next one begins, without a block between them."""
    match node:
        case Map(Map() | FusedMap() as first):
            return fused(first, node)
    return None


def zip_of_zip(node: Node) -> Node | None:
    """Rows that stand side by side twice over are put there once; `enumerate` is such a zip."""
    match node:
        case Zip(nest, sources) if any(isinstance(source, Zip) for source in sources):
            inner = [(x.nest, x.sources) if isinstance(x, Zip) else (LEAF, (x,)) for x in sources]
            flat = tuple([x for _, members in inner for x in members])
            return Zip(nest.graft([shape for shape, _ in inner]), flat, origin=node.origin)
    return None
