# SPDX-License-Identifier: Apache-2.0
"""Neighbouring steps run as one."""

from distinput.core.nest import LEAF
from distinput.ops import map as maps
from distinput.ops import map_rows
from distinput.ops.concatenate import Concatenate
from distinput.ops.map import FusedMap, Map
from distinput.ops.map_rows import FusedMapRows, MapRows
from distinput.ops.slices import Slices
from distinput.ops.slices_in_turn import SlicesInTurn
from distinput.ops.zip import Zip
from distinput.plan.node import Node


def map_of_map(node: Node) -> Node | None:
    """Each element passes through both functions before the next one starts, with no block in between."""
    match node:
        case Map(Map() | FusedMap() as first):
            return maps.fused(first, node)
    return None


def map_rows_of_map_rows(node: Node) -> Node | None:
    """Each block passes through both functions before the next one is made."""
    match node:
        case MapRows(MapRows() | FusedMapRows() as first):
            return map_rows.fused(first, node)
    return None


def zip_of_zip(node: Node) -> Node | None:
    """A zip of zips is one zip; `enumerate` is a zip, too."""
    match node:
        case Zip(nest, sources) if any(isinstance(source, Zip) for source in sources):
            inner = [(x.nest, x.sources) if isinstance(x, Zip) else (LEAF, (x,)) for x in sources]
            flat = tuple([x for _, members in inner for x in members])
            return Zip(nest.graft([shape for shape, _ in inner]), flat, origin=node.origin)
    return None


def concatenate_of_slices(node: Node) -> Node | None:
    """Any number of arrays, one after the other, in one step."""
    match node:
        case Concatenate(Slices() | SlicesInTurn() as a, Slices() | SlicesInTurn() as b):
            sources = [part for x in (a, b) for part in (x.sources if isinstance(x, SlicesInTurn) else (x,))]
            return SlicesInTurn(tuple(sources), node.spec, origin=node.origin)
    return None
