# SPDX-License-Identifier: Apache-2.0
"""The batch size of a pipeline, and the cut of its global batches into per-replica batches."""

import dataclasses
from functools import cached_property
from typing import ClassVar

from distinput.core.nest import component
from distinput.core.spec import TensorSpec
from distinput.errors import InvalidArgumentError
from distinput.ops.batch import Batch
from distinput.ops.cache import Cache
from distinput.ops.concatenate import Concatenate
from distinput.ops.copied import Copied
from distinput.ops.filter import Filter
from distinput.ops.global_shuffle import GlobalShuffle
from distinput.ops.identity import AssertCardinality, WithOptions
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.parse_example import ParseExample
from distinput.ops.prefetch import Prefetch
from distinput.ops.rebatch import LegacyRebatch, Rebatch
from distinput.ops.repeat import Repeat
from distinput.ops.shard import Shard
from distinput.ops.shuffle import Shuffle
from distinput.ops.take import Skip, Take
from distinput.ops.zip import Zip
from distinput.plan.node import Node

__all__ = [
    "FrameworkLegacyRebatch",
    "FrameworkRebatch",
    "batch_size_of",
    "rebatch_for",
    "sizes_for_worker",
    "with_full_batches",
]

_PASSED_THROUGH = (
    AssertCardinality, Cache, Copied, Filter, GlobalShuffle, ParseExample, Prefetch, Repeat, Shard, Shuffle, Skip, Take,
    WithOptions,
)  # fmt: skip


class FrameworkRebatch(Rebatch):
    """A `Rebatch` that distribution put there, not the user; policy DATA may replace only this one."""

    keeps_inner_shape: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Nothing to look at: `sizes_for_worker` made the sizes, one for each of perhaps many thousand replicas."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.batch_size) if isinstance(self.batch_size, list) else super().sizes

    @property
    def op(self) -> str:
        return "rebatch"


class FrameworkLegacyRebatch(LegacyRebatch):
    """A `LegacyRebatch` that distribution put there."""

    @property
    def op(self) -> str:
        return "legacy_rebatch"


def batch_size_of(node: Node) -> int | None:
    """The global batch size, None when it is not known.

    The spec tells where all leaves have the same known first dimension; otherwise the last `batch` of the tree that is
    reached through ops that keep batches as they are.

    Raises:
      InvalidArgumentError: a leaf is a scalar.

    Source: `compute_batch_size` of tensorflow/python/data/experimental/ops/distribute.py.
    """
    leaves = node.spec.leaves
    firsts = []
    for leaf, path in zip(leaves, node.spec.structure.paths, strict=True):
        if not isinstance(leaf, TensorSpec):
            raise InvalidArgumentError(f"distribute: {component(path)} is a dataset; flat_map it first")
        if leaf.shape == ():
            raise InvalidArgumentError(
                f"distribute: {component(path)} must have a batch axis to be divided over replicas, got a "
                "scalar; call .batch(global_batch_size) before distributing"
            )
        firsts.append(None if leaf.shape is None else leaf.shape[0])
    if None not in firsts and firsts:
        return firsts[0] or None if len(set(firsts)) == 1 else None  # batches of no rows have no sizes to be cut to
    return _batch_size_of_tree(node)


def _batch_size_of_tree(node: Node) -> int | None:
    if isinstance(node, Batch):
        # A parallel batch is another op to TensorFlow, at which its walk stops.
        return int(node.batch_size) if node.num_parallel_calls is None else None
    if isinstance(node, PaddedBatch):
        return int(node.batch_size)
    if isinstance(node, Zip | Concatenate):
        sizes = {_batch_size_of_tree(source) for source in node.inputs}
        return sizes.pop() if len(sizes) == 1 else None
    if isinstance(node, _PASSED_THROUGH):
        return _batch_size_of_tree(node.inputs[0])
    return None


def with_full_batches(node: Node) -> Node:
    """The same batches without those that are not full: every `batch` that gives them drops its remainder."""
    if isinstance(node, Batch | PaddedBatch):
        return dataclasses.replace(node, drop_remainder=True)
    if isinstance(node, (Zip, Concatenate, *_PASSED_THROUGH)):
        return node.with_inputs(tuple([with_full_batches(source) for source in node.inputs]))
    return node


def sizes_for_worker(global_batch: int, num_workers: int, replicas_per_worker: int, worker: int) -> list[int]:
    """Rows of each replica's batch on one worker, one after the other.

    They differ by at most one, and over all workers and one round they sum to the global batch.

    >>> sizes_for_worker(7, 2, 2, 0), sizes_for_worker(7, 2, 2, 1)
    ([2, 2, 2, 1], [2, 1, 2, 2])

    Source: `batch_sizes_for_worker` of tensorflow/python/data/experimental/ops/distribute.py.
    """
    replicas = num_workers * replicas_per_worker
    low, more = divmod(global_batch, replicas)
    sizes = [low + 1] * more + [low] * (replicas - more)
    shift = worker * replicas_per_worker
    return sizes[shift:] + sizes[:shift]


def rebatch_for(node: Node, num_workers: int, replicas_per_worker: int, worker: int) -> Node:
    """`node` with its global batches cut for the replicas of one worker, followed by a prefetch of their number.

    Source: `DistributedDataset._make_rebatch_fn` of tensorflow/python/distribute/input_lib.py.
    """
    replicas = num_workers * replicas_per_worker
    if replicas == 1:
        return node
    size = batch_size_of(node)
    if size is None:
        cut: Node = FrameworkLegacyRebatch(node, replicas, origin=node.origin)
    else:
        cut = FrameworkRebatch(
            node, sizes_for_worker(size, num_workers, replicas_per_worker, worker), origin=node.origin
        )
    return Prefetch(cut, replicas_per_worker, origin=node.origin)
