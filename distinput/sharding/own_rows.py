# SPDX-License-Identifier: Apache-2.0
"""The rows that one of several workers reads: the cut of global batches, and its own rows alone."""

import dataclasses
import sys
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.names.lazy import later
from distinput.ops.batch import Batch
from distinput.ops.prefetch import Prefetch
from distinput.ops.rebatch import LegacyRebatch, Rebatch
from distinput.ops.shard import Shard
from distinput.plan.batch_sizes import Assignment, RowRanges
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node, walk
from distinput.values.nest import component
from distinput.values.spec import SparseTensorSpec, TensorSpec

if TYPE_CHECKING:
    from distinput.ops import map as maps
    from distinput.ops import reader as file_readers
    from distinput.ops import shard_batches
    from distinput.ops import shuffle as shuffles
else:
    file_readers = later("distinput.ops.reader")  # rows are chosen where they are read for one of several workers alone
    shard_batches = later("distinput.ops.shard_batches")  # the same
    maps, shuffles = later("distinput.ops.map"), later("distinput.ops.shuffle")  # few pipelines have both


def in_use(op: str) -> bool:
    """Whether an op of this file of `ops/` may be in a tree: one that was never loaded is in none."""
    return f"distinput.ops.{op}" in sys.modules


# ----------------------------------------------------------------------------
# The same order on all workers: no step depends on the machine that it runs on.
# ----------------------------------------------------------------------------


def with_common_order(node: Node) -> Node:
    """The same tree, in which no step depends on its machine, as an `interleave` without a `cycle_length` does on the cores.

    Workers with more cores than others would put the elements in another order, and what policy DATA gives to each would be
    neither disjoint nor complete. The pipeline is the same to a state, which says how many datasets were open.
    """
    return node.with_changed_inputs(with_common_order).same_as(node).alike_everywhere()


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


def full_batch_rows(who: str, node: Node, given: int | None) -> int:
    """The rows of a full batch: those that are known, or those that the user states.

    Raises:
      InvalidArgumentError: the user states others than are known.
      ValueError: they are neither known nor stated.
    """
    known = batch_size_of(node)
    if known is not None and given not in (None, known):
        raise InvalidArgumentError(f"{who}: batch_size is {given}, but the batches have {known} rows")
    if known is None and given is None:
        raise ValueError(
            f"{who}: the batch size is not known, as a function over whole batches may change it; pass batch_size=, or call "
            "the function on single elements, before batch"
        )
    return known or given or 0


def has_batches(node: Node) -> bool:
    """Whether the first axis of all parts of the elements is one of rows, so that elements can be cut for replicas."""
    return all(isinstance(leaf, TensorSpec) and leaf.shape != () for leaf in node.spec.leaves)


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


def leaves_out_steps(tree: Node, replicas: int, *, assumed: bool = False) -> bool:
    """Whether a step of this worker's replicas may be without any row, which only all workers together can find out.

    Args:
      tree: what the worker reads.
      replicas: how many of its elements are one step.
      assumed: take it that functions over whole batches keep the number of rows.
    """
    for step in walk(tree):
        if isinstance(step, FrameworkRebatch):
            return 0 in step.sizes
        if isinstance(step, FrameworkLegacyRebatch):
            below = step.input
            while assumed and below.batch_sizes() is None and below.needs == Needs.ONE and len(below.inputs) == 1:
                below = below.inputs[0]
            sizes = below.batch_sizes()
            # The pieces of a batch come largest first, and all those of a step are of one batch.
            return sizes is None or any(
                (run == 0).any() for run, _ in sizes.cut(step.num_replicas).every(replicas, 0).runs
            )
    return False


# ----------------------------------------------------------------------------
# Policy DATA without its cost: a worker reads only its own rows, where rows can be reached by position.
#
# `shard(W, w)` over the cut of global batches gives the same records in the same steps, but every worker reads, maps and
# batches everything. Here rows are chosen at the source, before the ops that treat each row alone.
#
# Who gets which rows is an `Assignment`; `own_pieces(node, assignment)` is the one way to the tree that reads them, for
# strategies and for arrays of JAX. `own_rows` (policy DATA), `own_steps` (PyTorch's loader workers) and `own_shares`
# (`shard_batches`) only say which assignment is theirs.
# ----------------------------------------------------------------------------


_WORTH = 0.9
"""If a worker would read more than this fraction of the data, reading all of it in order is better."""


def own_rows(shard: Shard) -> Node | None:
    """A tree that delivers the same as `shard` but reads only those rows; None if there is none."""
    if shard.num_shards == 1:
        return None
    cut = shard.input
    below, pieces = (cut.input, cut.num_replicas) if isinstance(cut, LegacyRebatch) else (cut, 1)
    made = own_pieces(below, Assignment(pieces, shard.index, shard.num_shards))
    return None if made is None or made.spec != shard.spec else made


def own_steps(node: Node, index: int, count: int) -> Node | None:
    """Elements `index`, `index + count`, ... of `node`; only their rows are read. None if they cannot be reached by position.

    Where `node` is a `shard_batches`, only its own rows of these batches are read.
    """
    if node.start_at(0, 0) is None:
        return None
    if isinstance(node, shard_batches.ShardBatches):
        parts, below = node.num_shards, node.input
        assignment = Assignment(parts, index * parts + node.index, period=count * parts, balanced=True)
    else:
        below, assignment = node, Assignment(1, index, period=count)
    own = own_pieces(below, assignment)
    return None if own is None or own.start_at(0, 0) is None else own


def own_pieces(node: Node, assignment: Assignment) -> Node | None:
    """One worker's pieces of the global batches that `node` gives; only their rows are read.

    None if that is impossible: an op needs to see all rows, or the rows of a source cannot be reached by position.
    """
    if any(step.keeps or (isinstance(step, Shard) and step.is_hint) for step in walk(node)):
        return None  # a cache keeps a whole pass, so its input is read in order, when its first row is needed
    if isinstance(node, Batch):
        return _batched(node, assignment)
    if assignment.pieces == 1:
        return _single(node, assignment)
    each = assignment.each
    if len(node.inputs) != 1 or (each is None and not (node.needs == Needs.ONE and node.keeps_batches)):
        return None
    inner = own_pieces(node.inputs[0], assignment)
    return None if inner is None else node.over_pieces(inner, each or 0)


def unstated(node: Node) -> str:
    """What to state so that the rows of batches can be read alone; empty where that would change nothing."""
    if all(step.input.spec.is_static for step in walk(node) if isinstance(step, Batch)):
        return ""
    return (
        "; nothing says that the rows of a batch have one shape: state it, with output_signature= of the last map before the "
        "batch"
    )


def _single(node: Node, assignment: Assignment) -> Node | None:
    """Every W-th element, if elements are not batched."""
    found = _apart(node)
    if found is None:
        return None
    base, again = found
    pieces = RowRanges(_rows(base), 1, False, assignment)
    return again(shard_batches.OwnRows(base, pieces, origin=node.origin)) if _pays(base, pieces) else None


def _batched(batch: Batch, assignment: Assignment) -> Node | None:
    found = _apart(batch.input)
    # Rows of different shapes in one batch are an error, which every worker must see.
    if found is None or not batch.input.spec.is_static:
        return None
    base, again = found
    pieces = RowRanges(_rows(base), int(batch.batch_size), batch.drop_remainder, assignment)
    if not _pays(base, pieces):
        return None
    cut = batch if assignment.pieces == 1 else LegacyRebatch(batch, assignment.pieces)
    rows = again(shard_batches.OwnRows(base, pieces, origin=batch.origin))
    return shard_batches.OwnPieces(rows, pieces, cut.spec.tensors("batch"), origin=batch.origin)


def _rows(base: Node) -> int | None:
    return None if base.cardinality == INFINITE else base.cardinality


def _apart(node: Node) -> tuple[Node, Callable[[Node], Node]] | None:
    """A tree split into a base whose rows can be fetched, and the ops on single rows that come after it."""
    if isinstance(node, file_readers.Reader):
        if not node.format.fetches or not node.counts:
            return None
        step: Node = shard_batches.RowReader(node.input, node.format, node.table, name=node.name, origin=node.origin)
        return step, _as_it_is
    again: Callable[[Node], Node] = _as_it_is
    step = node
    keys = in_use("map") and isinstance(node, maps.RandomKeys)
    if node.needs == Needs.ONE or node.by_position or keys:
        apart = _apart(node.inputs[0])
        if apart is None:
            return None
        base, again = apart
        if node.needs == Needs.ONE:
            return base, lambda rows: node.with_inputs((again(rows),))
        if keys:  # the keys of rows that are fetched follow from their positions in the whole
            base, again = again(base), _as_it_is
        step = node.with_inputs((base,))
        if in_use("shuffle") and isinstance(step, shuffles.Shuffle):
            step = shard_batches.ShuffledRows(**{f.name: getattr(step, f.name) for f in dataclasses.fields(step)})
    return (step, again) if step.random_access and step.cardinality != UNKNOWN else None


def _as_it_is(node: Node) -> Node:
    return node


def _pays(base: Node, pieces: RowRanges) -> bool:
    """False if fetching single rows reads so much around them that reading everything once costs less."""
    readers = [step for step in walk(base) if isinstance(step, shard_batches.RowReader) and step.reads_fragments]
    if not readers:
        return True
    reader = readers[0]
    # In another order: each row would cost its whole fragment.
    if reader is not base or pieces.count is None or reader.counts is None:
        return False
    sizes = [fragment.rows or 0 for path in reader.counts[0] for fragment in reader.format.fragments(path)]
    ends = np.cumsum(sizes)
    starts, stops = pieces.bounds(0, pieces.count)
    starts, stops = starts[stops > starts], stops[stops > starts]
    first, last = np.searchsorted(ends, starts, "right"), np.searchsorted(ends, stops - 1, "right")
    before = ends - sizes
    return float((ends[last] - before[first]).sum()) < _WORTH * float(ends[-1]) if len(starts) else True
