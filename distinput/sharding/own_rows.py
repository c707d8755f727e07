# SPDX-License-Identifier: Apache-2.0
"""Policy DATA without its cost: a worker reads only its own rows, where rows can be reached by position.

`shard(W, w)` over the cut of global batches gives the same records in the same steps, but every worker reads, maps and batches
everything. Here rows are chosen at the source, before the ops that treat each row alone.

Who gets which rows is an `Assignment`; `own_pieces(node, assignment)` is the one way to the tree that reads them, for
strategies and for arrays of JAX. `own_rows` (policy DATA), `own_steps` (PyTorch's loader workers) and `own_shares`
(`shard_batches`) only say which assignment is theirs.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from distinput.ops.batch import Batch
from distinput.ops.random_keys import RandomKeys
from distinput.ops.reader import Reader
from distinput.ops.rebatch import LegacyRebatch
from distinput.ops.shard import Shard
from distinput.ops.shard_batches import OwnPieces, OwnRows, OwnShares, RowReader, ShardBatches, ShuffledRows
from distinput.ops.shuffle import Shuffle
from distinput.plan.assignment import Assignment, RowRanges
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node, walk

__all__ = ["own_pieces", "own_rows", "own_shares", "own_steps"]

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


def own_shares(node: Node) -> Node | None:
    """`shard_batches` reads only its own rows, where rows can be reached by position."""
    if not isinstance(node, ShardBatches) or node.num_shards == 1:
        return None
    own = own_steps(node, 0, 1)
    return None if own is None else OwnShares(node, own, origin=node.origin)


def own_steps(node: Node, index: int, count: int) -> Node | None:
    """Elements `index`, `index + count`, ... of `node`; only their rows are read. None if they cannot be reached by position.

    Where `node` is a `shard_batches`, only its own rows of these batches are read.
    """
    if node.start_at(0, 0) is None:
        return None
    if isinstance(node, ShardBatches):
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


def _single(node: Node, assignment: Assignment) -> Node | None:
    """Every W-th element, if elements are not batched."""
    found = _apart(node)
    if found is None:
        return None
    base, again = found
    pieces = RowRanges(_rows(base), 1, False, assignment)
    return again(OwnRows(base, pieces, origin=node.origin)) if _pays(base, pieces) else None


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
    rows = again(OwnRows(base, pieces, origin=batch.origin))
    return OwnPieces(rows, pieces, cut.spec.tensors("batch"), origin=batch.origin)


def _rows(base: Node) -> int | None:
    return None if base.cardinality == INFINITE else base.cardinality


def _apart(node: Node) -> tuple[Node, Callable[[Node], Node]] | None:
    """A tree split into a base whose rows can be fetched, and the ops on single rows that come after it."""
    if node.needs == Needs.ONE:
        apart = _apart(node.inputs[0])
        if apart is None:
            return None
        base, again = apart
        return base, lambda rows: node.with_inputs((again(rows),))
    if isinstance(node, Reader):
        if not node.format.fetches or not node.counts:
            return None
        return RowReader(node.input, node.format, node.table, name=node.name, origin=node.origin), _as_it_is
    if node.by_position:
        apart = _apart(node.inputs[0])
        if apart is None:
            return None
        base, again = apart
        made = node.with_inputs((base,))
        if isinstance(made, Shuffle):
            made = ShuffledRows(**{f.name: getattr(made, f.name) for f in dataclasses.fields(made)})
        return (made, again) if made.random_access and made.cardinality != UNKNOWN else None
    if isinstance(node, RandomKeys):  # the keys of rows that are fetched follow from their positions in the whole
        apart = _apart(node.input)
        if apart is None:
            return None
        base, again = apart
        node = node.with_inputs((again(base),))
    return (node, _as_it_is) if node.random_access and node.cardinality != UNKNOWN else None


def _as_it_is(node: Node) -> Node:
    return node


def _pays(base: Node, pieces: RowRanges) -> bool:
    """False if fetching single rows reads so much around them that reading everything once costs less."""
    readers = [
        step for step in walk(base) if isinstance(step, RowReader) and step.format.lists_fragments and not step.gathers
    ]
    if not readers:
        return True
    reader = readers[0]
    if (
        reader is not base or pieces.count is None or reader.counts is None
    ):  # in another order: each row would cost its whole fragment
        return False
    sizes = [fragment.rows or 0 for path in reader.counts[0] for fragment in reader.format.fragments(path)]
    ends = np.cumsum(sizes)
    starts, stops = pieces.bounds(0, pieces.count)
    starts, stops = starts[stops > starts], stops[stops > starts]
    first, last = np.searchsorted(ends, starts, "right"), np.searchsorted(ends, stops - 1, "right")
    before = ends - sizes
    return float((ends[last] - before[first]).sum()) < _WORTH * float(ends[-1]) if len(starts) else True
