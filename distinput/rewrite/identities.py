# SPDX-License-Identifier: Apache-2.0
"""Steps that do nothing, alone or together, are left out."""

from distinput.ops.batch import Batch
from distinput.ops.prefetch import Prefetch
from distinput.ops.shard import Shard
from distinput.ops.shuffle import Shuffle
from distinput.ops.take import Skip, Take
from distinput.ops.unbatch import Unbatch
from distinput.plan.check import AUTOTUNE
from distinput.plan.node import Node, walk


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
    """Rows that are stacked and taken apart again; only if no batch can be an error, be it for the shapes of its rows."""
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
