# SPDX-License-Identifier: Apache-2.0
"""Auto-sharding: which part of a pipeline one of several workers reads.

The rules are those of tensorflow/core/grappler/optimizers/data/auto_shard.cc; trees are changed on a copy, so a policy that
fails half way leaves nothing behind.
"""

from distinput.core.run import Run
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.functions.inference import results_of
from distinput.ops.batch import Batch
from distinput.ops.cache import Cache
from distinput.ops.concatenate import Concatenate
from distinput.ops.copied import Copied
from distinput.ops.filter import Filter
from distinput.ops.generator import Generator
from distinput.ops.identity import AssertCardinality, WithOptions
from distinput.ops.interleave import FlatMap, Interleave
from distinput.ops.map import Map
from distinput.ops.map_rows import MapRows
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.parse_example import ParseExample
from distinput.ops.prefetch import Prefetch
from distinput.ops.reader import Reader
from distinput.ops.rebatch import LegacyRebatch, Rebatch
from distinput.ops.repeat import Repeat
from distinput.ops.shard import Shard
from distinput.ops.shuffle import Shuffle
from distinput.ops.take import Skip, Take
from distinput.ops.unbatch import Unbatch
from distinput.ops.window import Window
from distinput.ops.zip import Zip
from distinput.plan.in_memory import InMemory, Rows
from distinput.plan.node import Node, walk
from distinput.plan.options import AutoShardPolicy, options_of
from distinput.plan.seeds import with_seed
from distinput.sharding.balance import by_balance
from distinput.sharding.batches import FrameworkLegacyRebatch, FrameworkRebatch
from distinput.sharding.common_cycle import with_common_cycle
from distinput.sharding.own_rows import own_rows

__all__ = ["TooFewFilesError", "auto_shard", "by_file", "effective_policy", "policy_of"]


class TooFewFilesError(InvalidArgumentError):
    """Policy FILE needs at least one file per worker."""


_SOURCES = (Generator, InMemory)
_PASSED_THROUGH = (
    Batch, Cache, Copied, Filter, LegacyRebatch, Map, MapRows, PaddedBatch, ParseExample, Prefetch, Rebatch, Repeat, Shard,
    Shuffle, Skip, Take, Unbatch, Window, WithOptions,
)  # fmt: skip


def policy_of(node: Node) -> AutoShardPolicy:
    """The policy in the options of a tree."""
    policy: AutoShardPolicy = options_of(node).experimental_distribute.auto_shard_policy
    return policy


def effective_policy(node: Node, num_workers: int) -> AutoShardPolicy:
    """The policy that `auto_shard` applies: AUTO is FILE where that works, else DATA."""
    policy = policy_of(node)
    if policy != AutoShardPolicy.AUTO:
        return policy
    try:
        by_file(node, num_workers, 0)
    except (NotFoundError, TooFewFilesError):
        return AutoShardPolicy.DATA
    return AutoShardPolicy.FILE


def auto_shard(
    node: Node,
    num_workers: int,
    index: int,
    num_replicas: int | None = None,
    seed: int | None = None,
    policy: AutoShardPolicy | None = None,
) -> Node:
    """The tree that worker `index` of `num_workers` runs.

    Args:
      node: the pipeline, its global batches cut for the replicas.
      num_workers: W.
      index: from 0.
      num_replicas: replicas of all workers.
      seed: what ops that were given no seed take theirs from; the same number on all workers. None: each draws its own, and
        workers that shuffle differently disagree on who has which row.
      policy: None: the one in the options of the tree.

    Raises:
      NotFoundError: policy FILE, and a source is no file; or policy BALANCED, and an op needs to see all elements.
      TooFewFilesError: policy FILE, and there are fewer files than workers.
    """
    if seed is not None:
        node = with_seed(node, seed)
    if policy is None:
        policy = policy_of(node)
    if policy == AutoShardPolicy.OFF:
        return node
    if num_workers > 1:
        node = with_common_cycle(node)
    if policy == AutoShardPolicy.HINT:
        return _by_hint(node, num_workers, index)
    if policy == AutoShardPolicy.BALANCED:
        return by_balance(node, num_workers, index)
    if policy == AutoShardPolicy.DATA:
        return _by_data(node, num_workers, index, num_replicas)
    if policy == AutoShardPolicy.FILE and num_workers == 1:
        return node
    try:
        return by_file(node, num_workers, index)
    except (NotFoundError, TooFewFilesError):
        if policy == AutoShardPolicy.FILE:
            raise
    return _by_data(node, num_workers, index, num_replicas)


def _by_data(node: Node, num_workers: int, index: int, num_replicas: int | None) -> Node:
    """Every n-th element, below trailing prefetches; the cut of global batches becomes the cut of each batch alone."""
    if isinstance(node, Prefetch | WithOptions):
        return node.with_inputs((_by_data(node.inputs[0], num_workers, index, num_replicas),))
    if isinstance(node, FrameworkRebatch) and num_replicas:
        node = FrameworkLegacyRebatch(node.input, num_replicas, origin=node.origin)
    shard = Shard(node, num_workers, index, origin=node.origin)
    return own_rows(shard) or shard


def _by_hint(node: Node, num_workers: int, index: int) -> Node:
    inputs = tuple([_by_hint(source, num_workers, index) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    if isinstance(node, Shard) and node.is_hint:
        return Shard(node.input, num_workers, index, origin=node.origin)
    return node


def by_file(node: Node, num_workers: int, index: int) -> Node:
    """The tree with a shard on the file names.

    Raises:
      NotFoundError: a source is no file, or an op stands in the way.
    """

    def here(source: Node) -> Node:
        return _sharded_names(source, num_workers, index)

    if isinstance(node, AssertCardinality):
        return by_file(node.input, num_workers, index)
    if isinstance(node, _SOURCES):
        raise NotFoundError(f"Found an unshardable source dataset: {node.op}")
    if isinstance(node, Zip | Concatenate):
        return node.with_inputs(tuple([by_file(source, num_workers, index) for source in node.inputs]))
    if isinstance(node, Reader):
        return node.with_inputs((here(node.input),))
    if isinstance(node, FlatMap | Interleave):
        dealt = _after_inner(node.input, num_workers, index)
        if dealt is not None:
            return node.with_inputs((dealt,))
    if isinstance(node, FlatMap | Interleave | Map) and _makes_reader(node):
        return node.with_inputs((here(node.input),))
    if isinstance(node, (*_PASSED_THROUGH, FlatMap, Interleave)):
        return node.with_inputs((by_file(node.inputs[0], num_workers, index),))
    raise NotFoundError(f"Did not find a shardable source, walked to a node which is not a dataset: {node.op}")


def _after_inner(node: Node, num_workers: int, index: int) -> Node | None:
    """Below a flat_map: the tree with a shard right after the flat_map or reader over listed names that feeds it.

    TensorFlow means "slices of datasets" by this; for a reader over a list it deals out records, not files. A generator is
    a flat_map over a tensor to it, so the generator's elements are dealt out too.
    """
    if isinstance(node, Generator) or (
        isinstance(node, FlatMap | Interleave | Reader) and isinstance(node.input, Rows)
    ):
        return Shard(node, num_workers, index, origin=node.origin)
    if isinstance(node, _PASSED_THROUGH):
        below = _after_inner(node.inputs[0], num_workers, index)
        return None if below is None else node.with_inputs((below,))
    return None


def _makes_reader(node: FlatMap | Interleave | Map) -> bool:
    """True when the function makes a dataset that reads files, found by calling it on a made-up element."""
    for result in results_of(node.call, node.input):
        root = getattr(result, "node", result)
        if isinstance(root, Node) and any(_reads(step) for step in walk(root)):
            return True
    return False


def _reads(step: Node) -> bool:
    return isinstance(step, Reader) or (isinstance(step, FlatMap | Interleave) and _makes_reader(step))


def _sharded_names(names: Node, num_workers: int, index: int) -> Node:
    """The names of one worker; a shuffle of the names is moved behind the shard, so that all workers agree on the split.

    Raises:
      TooFewFilesError: there are fewer names than workers; every worker finds that out alike, before anything is read.
    """
    shuffles: list[Shuffle] = []
    bare = _without_shuffles(names, shuffles)
    found = _count_up_to(bare, num_workers)
    if 0 < found < num_workers:
        raise TooFewFilesError(
            f"Could not apply FILE based sharding: the dataset only has {found} file(s), which is not enough for the required "
            f"{num_workers} shards/workers; use policy DATA, or write more files"
        )
    sharded: Node = Shard(bare, num_workers, index, origin=names.origin)
    return shuffles[0].with_inputs((sharded,)) if shuffles else sharded


def _count_up_to(names: Node, most: int) -> int:
    """How many names there are, or `most` if there are at least that many."""
    if names.cardinality >= 0:
        return min(most, names.cardinality)
    found = 0
    with Run() as run:
        stream = names.open(names.start(0), run)
        for block, _ in stream:
            found += block.size
            if found >= most:
                break
        stream.close()  # type: ignore[attr-defined]
    return min(most, found)


def _without_shuffles(node: Node, found: list[Shuffle]) -> Node:
    if isinstance(node, Shuffle):
        found.append(node)
        return _without_shuffles(node.input, found)
    inputs = tuple([_without_shuffles(source, found) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        return node.with_inputs(inputs)
    return node
