# SPDX-License-Identifier: Apache-2.0
"""Rules about steps that are neighbours: run as one, left out, in another order, or as parts of a range.

Each is a pattern and what stands in its place; the table of `rewrite.rules` says in which order they are tried.
"""

import dataclasses
from collections.abc import Sequence

from distinput.ops import map as maps
from distinput.ops import map_rows
from distinput.ops.batch import Batch
from distinput.ops.concatenate import Concatenate
from distinput.ops.map import FusedMap, Map
from distinput.ops.map_rows import FusedMapRows, MapRows
from distinput.ops.prefetch import Prefetch
from distinput.ops.range import Range
from distinput.ops.shard import Shard
from distinput.ops.shuffle import Shuffle
from distinput.ops.slices import Slices, SlicesInTurn
from distinput.ops.take import Skip, Take
from distinput.ops.unbatch import Unbatch
from distinput.ops.zip import Zip
from distinput.plan.check import AUTOTUNE
from distinput.plan.node import Node, Origin, walk
from distinput.values.nest import LEAF

# ----------------------------------------------------------------------------
# Long chains become flat trees, so that a block passes through few steps.
# ----------------------------------------------------------------------------


_LONGEST = 32
"""Shorter chains stay as they were described."""


def balanced_concatenations(node: Node) -> Node | None:
    """A long chain of concatenations, as a loop makes one, is a tree of the same datasets in the same order."""
    datasets: list[Node] = []
    first = node
    while isinstance(first, Concatenate) and first.name is None:
        datasets.append(first.dataset)
        first = first.input
    if len(datasets) <= _LONGEST:
        return None
    return _tree([first, *reversed(datasets)], node.origin)


def _tree(leaves: Sequence[Node], origin: Origin) -> Node:
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    return Concatenate(_tree(leaves[:middle], origin), _tree(leaves[middle:], origin), origin=origin)


# ----------------------------------------------------------------------------
# Neighbouring steps run as one.
# ----------------------------------------------------------------------------


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


# ----------------------------------------------------------------------------
# Steps that do nothing, alone or together, are left out.
# ----------------------------------------------------------------------------


def take_everything(node: Node) -> Node | None:
    """A take with a negative count takes everything."""
    match node:
        case Take(x, count) if count < 0:
            return x
    return None


def take_of_take(node: Node) -> Node | None:
    """The shorter of two takes."""
    match node:
        case Take(Take(x, a), b) if a >= 0 and b >= 0:
            return Take(x, min(a, b), origin=node.origin)
    return None


def skip_nothing(node: Node) -> Node | None:
    """A skip of no element."""
    match node:
        case Skip(x, 0):
            return x
    return None


def skip_of_skip(node: Node) -> Node | None:
    """Two skips are one, of the sum of their counts."""
    match node:
        case Skip(Skip(x, a), b) if a >= 0 and b >= 0:
            return Skip(x, a + b, origin=node.origin)
    return None


def shard_of_one(node: Node) -> Node | None:
    """The only worker keeps everything."""
    match node:
        case Shard(x, 1, 0):
            return x
    return None


def shuffle_of_one(node: Node) -> Node | None:
    """A buffer of one element keeps the order."""
    match node:
        case Shuffle(x, 1):
            return x
    return None


def batch_then_unbatch(node: Node) -> Node | None:
    """Rows that are stacked and taken apart again; only if no batch can be an error, as by rows that differ in shape."""
    match node:
        case Unbatch(Batch(x, _, False) as batch) if not batch.may_fail:
            return x
    return None


def prefetch_of_views(node: Node) -> Node | None:
    """Views of memory are available at once, and a copy is best made by the thread that uses it, in the cache of its core."""
    match node:
        case Prefetch(x) if all(step.view_only for step in walk(x)):
            return x
    return None


def prefetch_of_prefetch(node: Node) -> Node | None:
    """Two prefetches in a row are one with the larger buffer."""
    match node:
        case Prefetch(Prefetch(x, int(a)), int(b)):
            return Prefetch(x, AUTOTUNE if AUTOTUNE in (a, b) else max(a, b), origin=node.origin)
    return None


# ----------------------------------------------------------------------------
# Parts of a range are ranges.
# ----------------------------------------------------------------------------


def part_of_range(node: Node) -> Node | None:
    """The first numbers of a range, or all but the first, are a range with another end or another start."""
    match node:
        case Take(Range() as numbers, count) if count >= 0:
            return dataclasses.replace(numbers, stop=numbers.first + min(numbers.size, int(count)) * numbers.step)
        case Skip(Range() as numbers, count) if count >= 0:
            return dataclasses.replace(numbers, first=numbers.first + min(numbers.size, int(count)) * numbers.step)
    return None


# ----------------------------------------------------------------------------
# Steps that are cheaper in another order.
# ----------------------------------------------------------------------------


def skip_before_take(node: Node) -> Node | None:
    """Skips go first, so that skips meet skips and takes meet takes, and become one.

    `take` does not count errors but `skip` does, so they stay if there may be errors, unless the skip goes by position.
    """
    match node:
        case Skip(Take(x, a) as taken, b) if a >= 0 and b > 0 and not (x.may_fail and x.start_at(0, 0) is None):
            return Take(Skip(x, b, origin=node.origin), max(0, a - b), origin=taken.origin)
    return None
