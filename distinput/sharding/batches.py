# SPDX-License-Identifier: Apache-2.0
"""The batch size of a pipeline, the cut of its global batches, and the same order on all workers."""

from functools import cached_property
from typing import ClassVar

from distinput.errors import InvalidArgumentError
from distinput.ops.prefetch import Prefetch
from distinput.ops.rebatch import LegacyRebatch, Rebatch
from distinput.plan.node import Node
from distinput.values.nest import component
from distinput.values.spec import SparseTensorSpec, TensorSpec

__all__ = [
    "FrameworkLegacyRebatch",
    "FrameworkRebatch",
    "batch_size_of",
    "rebatch_for",
    "sizes_for_worker",
    "with_common_order",
]


# ----------------------------------------------------------------------------
# The same order on all workers: no step depends on the machine that it runs on.
# ----------------------------------------------------------------------------


def with_common_order(node: Node) -> Node:
    """The same tree, in which no step depends on its machine, as an `interleave` without a `cycle_length` does on the cores.

    Workers with more cores than others would put the elements in another order, and what policy DATA gives to each would be
    neither disjoint nor complete. The pipeline is the same to a state, which says how many datasets were open.
    """
    inputs = tuple([with_common_order(source) for source in node.inputs])
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(inputs).same_as(node)
    return node.alike_everywhere()


# ----------------------------------------------------------------------------
# The batch size of a pipeline, and the cut of its global batches into per-replica batches.
# ----------------------------------------------------------------------------


class FrameworkRebatch(Rebatch):
    """A `Rebatch` added by distribution, not by the user; policy DATA may replace only this one."""

    keeps_inner_shape: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """No checks: the sizes come from `sizes_for_worker`, and there may be one for each of thousands of replicas."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.batch_size) if isinstance(self.batch_size, list) else super().sizes

    @property
    def op(self) -> str:
        return "rebatch"


class FrameworkLegacyRebatch(LegacyRebatch):
    """A `LegacyRebatch` added by distribution."""

    @property
    def op(self) -> str:
        return "legacy_rebatch"


def batch_size_of(node: Node) -> int | None:
    """The global batch size; None if it is not known.

    It is the first dimension in the spec, if all leaves have the same known one; otherwise the size of the last `batch` that is
    reached through ops that keep batches.

    Raises:
      InvalidArgumentError: a leaf is a scalar, or a sparse tensor of rank 1.

    Source: `compute_batch_size` of tensorflow/python/data/experimental/ops/distribute.py.
    """
    spec = node.spec.folded
    firsts = []
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        if not isinstance(leaf, TensorSpec):
            raise InvalidArgumentError(f"distribute: {component(path)} is {leaf.called}; {leaf.cure}")
        if leaf.shape == ():
            raise InvalidArgumentError(
                f"distribute: {component(path)} must have a batch axis to be divided over replicas, got a "
                "scalar; call .batch(global_batch_size) before distributing"
            )
        if isinstance(leaf, SparseTensorSpec) and leaf.shape is not None and len(leaf.shape) == 1:
            raise InvalidArgumentError(
                f"distribute: a SparseTensor must have rank 2 or more to be divided over replicas, got rank 1 in "
                f"{component(path)}; call .batch(global_batch_size) before distributing"
            )
        firsts.append(None if leaf.shape is None else leaf.shape[0])
    if None not in firsts and firsts:
        return firsts[0] or None if len(set(firsts)) == 1 else None  # batches of no rows have no sizes to be cut to
    return node.rows_per_batch


def sizes_for_worker(global_batch: int, num_workers: int, replicas_per_worker: int, worker: int) -> list[int]:
    """Rows in the batches of one worker's replicas, as a cycle.

    They differ by at most one, and one round sums to the global batch.

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
    """`node` with its global batches cut for the replicas of one worker, then a prefetch of one batch for each replica.

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
