# SPDX-License-Identifier: Apache-2.0
"""Auto-sharding: which part of a pipeline one of several workers reads.

The rules are those of tensorflow/core/grappler/optimizers/data/auto_shard.cc; trees are changed on a copy, so a policy that
fails half way leaves nothing behind.
"""

from dataclasses import dataclass
from functools import cached_property

from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.ops.batch import Batch
from distinput.ops.cache import Cache
from distinput.ops.concatenate import Concatenate
from distinput.ops.filter import Filter
from distinput.ops.function import made_up_results
from distinput.ops.generator import Generator
from distinput.ops.identity import AssertCardinality, WithOptions
from distinput.ops.interleave import FlatMap, Interleave
from distinput.ops.map import Map
from distinput.ops.map_rows import MapRows
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.prefetch import Prefetch
from distinput.ops.range import Range
from distinput.ops.reader import Reader
from distinput.ops.rebatch import LegacyRebatch, Rebatch
from distinput.ops.repeat import Repeat
from distinput.ops.shard import Shard
from distinput.ops.shuffle import Shuffle
from distinput.ops.slices import Slices
from distinput.ops.take import Skip, Take
from distinput.ops.unbatch import Unbatch
from distinput.ops.window import Window
from distinput.ops.zip import Zip
from distinput.plan.node import Node, walk
from distinput.plan.options import AutoShardPolicy, Options
from distinput.rewrite.batches import FrameworkLegacyRebatch, FrameworkRebatch

__all__ = ["auto_shard", "policy_of"]

_SOURCES = (Generator, Range, Slices)
_PASSED_THROUGH = (
    Batch, Cache, Filter, LegacyRebatch, Map, MapRows, PaddedBatch, Prefetch, Rebatch, Repeat, Shard, Shuffle, Skip, Take,
    Unbatch, Window, WithOptions,
)  # fmt: skip


def policy_of(node: Node) -> AutoShardPolicy:
    """The policy in the options of a tree."""
    policy: AutoShardPolicy = _options(node).experimental_distribute.auto_shard_policy
    return policy


def _options(node: Node) -> Options:
    merged = Options()
    for source in node.inputs:
        merged = merged.merge(_options(source))
    return merged.merge(node.options) if isinstance(node, WithOptions) else merged


def auto_shard(node: Node, num_workers: int, index: int, num_replicas: int | None = None) -> Node:
    """The tree that worker `index` of `num_workers` runs.

    Args:
      node: the pipeline, its global batches cut for the replicas.
      num_workers: W.
      index: from 0.
      num_replicas: replicas of all workers.

    Raises:
      NotFoundError: policy FILE, and a source is no file.
    """
    policy = policy_of(node)
    if policy == AutoShardPolicy.OFF:
        return node
    if policy == AutoShardPolicy.HINT:
        return _by_hint(node, num_workers, index)
    if policy == AutoShardPolicy.DATA:
        return _by_data(node, num_workers, index, num_replicas)
    if policy == AutoShardPolicy.FILE and num_workers == 1:
        return node
    try:
        return _by_file(node, num_workers, index)
    except NotFoundError:
        if policy == AutoShardPolicy.FILE:
            raise
    return _by_data(node, num_workers, index, num_replicas)


@dataclass(frozen=True, eq=False)
class RequiredShard(Shard):
    """A `shard` that auto-sharding put there: fewer elements than workers is an error for a worker that has one."""

    @property
    def op(self) -> str:
        return "shard"

    def stream(self, state: State, run: Run) -> Stream:
        held: list[object] = []
        for block, after in super().stream(state, run):
            if not held and self.num_shards > 1:
                self._check(run)
            held.append(True)
            yield block, after

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    def _check(self, run: Run) -> None:
        """There must be an element for every worker."""
        found = 0
        stream = self.input.open(self.input.start(0), run)
        for block, _ in stream:
            found += block.size
            if found >= self.num_shards:
                stream.close()  # type: ignore[attr-defined]
                return
        raise InvalidArgumentError(
            f"Could not apply FILE based sharding: the dataset only has {found} file(s), which is not enough for the required "
            f"{self.num_shards} shards/workers. If you are using datasets with distribution strategy, consider setting the "
            "auto sharding policy to either DATA or OFF using the "
            "`experimental_distribute.auto_shard_policy` option of `tf.data.Options()`."
        )


def _by_data(node: Node, num_workers: int, index: int, num_replicas: int | None) -> Node:
    """Every n-th element, below trailing prefetches; the cut of global batches becomes the cut of each batch alone."""
    if isinstance(node, Prefetch | WithOptions):
        return node.with_inputs((_by_data(node.inputs[0], num_workers, index, num_replicas),))
    if isinstance(node, FrameworkRebatch) and num_replicas:
        node = FrameworkLegacyRebatch(node.input, num_replicas, origin=node.origin)
    return RequiredShard(node, num_workers, index, origin=node.origin)


def _by_hint(node: Node, num_workers: int, index: int) -> Node:
    inputs = tuple([_by_hint(source, num_workers, index) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs)
    if isinstance(node, Shard) and node.is_hint:
        return RequiredShard(node.input, num_workers, index, origin=node.origin)
    return node


def _by_file(node: Node, num_workers: int, index: int) -> Node:
    """The tree with a shard on the file names.

    Raises:
      NotFoundError: a source is no file, or an op stands in the way.
    """

    def here(source: Node) -> Node:
        return _sharded_names(source, num_workers, index)

    if isinstance(node, AssertCardinality):
        return _by_file(node.input, num_workers, index)
    if isinstance(node, _SOURCES):
        raise NotFoundError(f"Found an unshardable source dataset: {node.op}")
    if isinstance(node, Zip | Concatenate):
        return node.with_inputs(tuple([_by_file(source, num_workers, index) for source in node.inputs]))
    if isinstance(node, Reader):
        return node.with_inputs((here(node.input),))
    if isinstance(node, FlatMap | Interleave):
        dealt = _after_inner(node.input, num_workers, index)
        if dealt is not None:
            return node.with_inputs((dealt,))
    if isinstance(node, FlatMap | Interleave | Map) and _makes_reader(node):
        return node.with_inputs((here(node.input),))
    if isinstance(node, FlatMap | Interleave):
        raise NotFoundError(f"Did not find a shardable source, walked to a node which is not a dataset: {node.op}")
    if isinstance(node, _PASSED_THROUGH):
        return node.with_inputs((_by_file(node.inputs[0], num_workers, index),))
    raise NotFoundError(f"Did not find a shardable source, walked to a node which is not a dataset: {node.op}")


def _after_inner(node: Node, num_workers: int, index: int) -> Node | None:
    """Below a flat_map: the tree with a shard right after the flat_map or reader over listed names that feeds it.

    TensorFlow means "slices of data sets" by this; for a reader over a list it deals out records, not files.
    """
    if isinstance(node, FlatMap | Interleave | Reader) and isinstance(node.input, Slices):
        return RequiredShard(node, num_workers, index, origin=node.origin)
    if isinstance(node, _PASSED_THROUGH):
        below = _after_inner(node.inputs[0], num_workers, index)
        return None if below is None else node.with_inputs((below,))
    return None


def _makes_reader(node: FlatMap | Interleave | Map) -> bool:
    """True when the function makes a data set that reads files, found by calling it on a made-up element."""
    for result in made_up_results(node.call, node.input):
        root = getattr(result, "node", result)
        if isinstance(root, Node) and any(_reads(step) for step in walk(root)):
            return True
    return False


def _reads(step: Node) -> bool:
    return isinstance(step, Reader) or (isinstance(step, FlatMap | Interleave) and _makes_reader(step))


def _sharded_names(names: Node, num_workers: int, index: int) -> Node:
    """The names of one worker; a shuffle of the names is moved behind the shard, so that all workers agree on the split."""
    shuffles: list[Shuffle] = []
    bare = _without_shuffles(names, shuffles)
    sharded: Node = RequiredShard(bare, num_workers, index, origin=names.origin)
    return shuffles[0].with_inputs((sharded,)) if shuffles else sharded


def _without_shuffles(node: Node, found: list[Shuffle]) -> Node:
    if isinstance(node, Shuffle):
        found.append(node)
        return _without_shuffles(node.input, found)
    inputs = tuple([_without_shuffles(source, found) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        return node.with_inputs(inputs)
    return node
