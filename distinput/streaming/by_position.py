# SPDX-License-Identifier: Apache-2.0
"""Reaching elements by their positions: `dataset[3]`, its keys, and what other libraries call random access."""

from operator import index
from typing import Any, ClassVar, SupportsIndex

import numpy as np

from distinput.columns.block import Block, ColumnBlock, concat_blocks
from distinput.columns.column import Column, Ints, Strings
from distinput.columns.ragged import Ragged
from distinput.columns.regroup import joined_columns
from distinput.columns.state import State
from distinput.names.lazy import dataclass
from distinput.names.words import shown
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.families import placed
from distinput.plan.node import INFINITE, UNKNOWN, Counted, Node
from distinput.run.run import Run

# ----------------------------------------------------------------------------
# The keys of `dataset[key]` as positions.
# ----------------------------------------------------------------------------


_LARGEST = np.iinfo(np.int64).max


def is_integer(key: Any) -> bool:
    """Whether a key stands for one element: an integer of any kind, or an array [] of one.

    >>> is_integer(3), is_integer(np.array(3)), is_integer(True), is_integer([3])
    (True, True, False, False)
    """
    if type(key) is int:
        return True
    return hasattr(type(key), "__index__") and getattr(key, "ndim", 0) == 0 and not isinstance(key, bool | np.bool_)


def row_of(key: SupportsIndex, size: int) -> int:
    """The position that an integer stands for, from 0 on.

    Args:
      key: the integer.
      size: how many elements there are, or INFINITE.

    Raises:
      IndexError: there is no such element.
      TypeError: it is not an integer, or counts from the end of an infinite dataset.
    """
    row = index(key)
    if size == INFINITE:
        _refuse_end(row < 0)
        if row > _LARGEST:
            raise IndexError(f"dataset[key]: there is no element {row}, since positions fit into int64")
    elif not -size <= row < size:
        raise IndexError(f"dataset[key]: there is no element {row} in a dataset of {size}")
    return row + size if row < 0 else row


def rows_of(key: Any, size: int) -> Ints:
    """The positions that a key stands for, from 0 on.

    Args:
      key: a slice, or a sequence of integers.
      size: how many elements there are, or INFINITE.

    Raises:
      IndexError: there is no such element.
      TypeError: it is something else, or counts from the end of an infinite dataset.

    >>> rows_of(slice(-2, None), 5), rows_of([4, -5], 5)
    (array([3, 4]), array([4, 0]))
    """
    if isinstance(key, slice):
        return _sliced(key, size)
    rows = np.asarray(key) if isinstance(key, np.ndarray | list | tuple | range) else None
    if rows is None or (rows.dtype.kind not in "iu" and rows.size) or rows.ndim != 1:
        raise TypeError(
            f"dataset[key]: the key must be an integer, a slice, or a list or array [n] of integers, got {shown(key)}; use "
            "select([name]) for a component, np.flatnonzero for a mask"
        )
    behind = rows[rows > _LARGEST] if rows.dtype == np.uint64 else rows[:0]
    if len(behind):  # as signed numbers they would count from the end
        raise IndexError(f"dataset[key]: there is no element {behind[0]}, since positions fit into int64")
    rows = rows.astype(np.int64)
    if size == INFINITE:
        _refuse_end(bool((rows < 0).any()))
        return rows
    wrong = np.flatnonzero((rows < -size) | (rows >= size))
    if len(wrong):
        raise IndexError(f"dataset[key]: there is no element {rows[wrong[0]]} in a dataset of {size}")
    return np.where(rows < 0, rows + size, rows)


def _sliced(key: slice, size: int) -> Ints:
    if size != INFINITE:
        return np.arange(*key.indices(size))
    first, stop, step = [None if part is None else index(part) for part in (key.start, key.stop, key.step)]
    _refuse_end(stop is None or stop < 0 or (first or 0) < 0 or (step or 1) < 0)
    return np.arange(*key.indices(stop or 0))  # which refuses a step of 0


def _refuse_end(counts_from_it: bool) -> None:
    if counts_from_it:
        raise TypeError("dataset[key]: the dataset is infinite and has no end to count from; use positions from 0 on")


# ----------------------------------------------------------------------------
# Reaching elements by their positions: `dataset[3]`, and what other libraries call `__getitems__`.
#
# An op says itself whether it can fetch elements by position (`Node.fetches`). Where it could if only its inputs could, an
# input that can be reached in another way stands in: by a stream from the state before an element (`Node.start_at`), or
# because it is kept after a first pass (`cache`).
# ----------------------------------------------------------------------------


_CURE = (
    "iterate over the dataset, or put cache() after that step, or begin with from_source, arrays, or files whose records are "
    "indexed, and with steps that give one element for each"
)


@dataclass(frozen=True)
class Positions:
    """The elements of a tree by their positions in its first pass.

    Args:
      node: a tree whose elements can be fetched.
      size: how many there are, or INFINITE.
    """

    node: "_Reached"
    size: int

    def fetch(self, rows: Ints) -> Block:
        """The elements at positions that are there, in this order; what several of them need is read once."""
        return self.node.fetch(rows, 0)


def positions_of(node: Node) -> Positions:
    """The elements of a tree by their positions.

    Raises:
      TypeError: they cannot be reached; the message names the step.
    """
    return positions_in(placed(node))


def positions_in(node: Node) -> Positions:
    """As `positions_of`, for a tree whose random steps have their places already (`placed`).

    Raises:
      TypeError: as for `positions_of`.
    """
    found = _reached(node)
    if found is None:
        at = _culprit(node)
        raise TypeError(
            f"elements cannot be reached by position: {at.op} can only be iterated, and so can what follows it ({at}, made at "
            f"{at.origin}); {_CURE}"
        )
    return Positions(found, found.number)


@dataclass(frozen=True, eq=False)
class _Reached(Counted):
    """The elements of the input, reached in whatever way is possible.

    Args:
      number: how many there are.
      streams: whether they are read from the state before each one.
    """

    random_access: ClassVar[bool] = True
    streams: bool = False

    def batch_sizes(self) -> BatchSizes | None:
        return self.input.batch_sizes()

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, epoch)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        if not len(rows):
            return Block.of(self.spec.structure, [])
        if not self.streams:
            return self.input.fetch(rows, epoch)
        with Run(run_ahead=0) as run:
            return streamed(self.input, rows, epoch, run)


def _reached(node: Node) -> _Reached | None:
    """A tree with the same elements whose elements can be fetched; None if there is none."""
    if node.fetches:
        return _counted(node, node)
    below = [_reached(source) for source in node.inputs]
    if below and None not in below:
        made = node.with_inputs(tuple([source for source in below if source is not None]))
        if made.fetches:
            return _counted(made, node)
    if node.start_at(0, 0) is not None:
        return _counted(node, node, streams=True)
    return None


def _counted(reached: Node, node: Node, *, streams: bool = False) -> _Reached | None:
    number = reached.count_elements()
    if number == UNKNOWN and node.keeps:
        reached.fetch(np.empty(0, np.int64), 0)  # makes what is kept
        block: Block | None = node.store.block  # type: ignore[attr-defined]
        number = 0 if block is None else block.size
    return None if number == UNKNOWN else _Reached(reached, number, streams, origin=node.origin)


def _culprit(node: Node) -> Node:
    """The first step whose elements cannot be reached, though those of its inputs can."""
    for source in node.inputs:
        if _reached(source) is None:
            return _culprit(source)
    return node


def streamed(node: Node, rows: Ints, epoch: int, run: Run, *, begins: bool = True) -> Block:
    """The elements at `rows`, in that order, from streams that are read as long as each of their blocks holds one of them.

    Args:
      node: gives the elements.
      rows: at least one.
      epoch: the pass.
      run: in which it is read.
      begins: whether streams can begin at any row; else there is one, from the first row on.

    Raises:
      IndexError: there is no such element.
    """
    positions, back = np.unique(rows, return_inverse=True)
    parts: list[Block] = []
    start = 0
    while start < len(positions):
        here = int(positions[start]) if begins else 0
        state = node.start_at(here, epoch) if begins else node.start(epoch)
        assert state is not None
        stream: Any = node.open(state, run)
        try:
            for block, _ in stream:
                end = int(np.searchsorted(positions, here + block.size))
                if end > start:
                    parts.append(_alone(block.take(positions[start:end] - here)))
                start, here = end, here + block.size
                if start == len(positions) or (begins and positions[start] > here):
                    break
            else:
                raise IndexError(f"{node.op}: there is no element {positions[-1]} among {here}")
        finally:
            stream.close()
    return concat_blocks(parts).take(back)


def _alone(rows: Block) -> Block:
    """The same rows in memory of their own: spans would keep the whole block alive from which they were taken."""
    return ColumnBlock(rows.structure, [_column_alone(column) for column in rows.columnar().columns], rows.size)


def _column_alone(column: Column) -> Column:
    if isinstance(column, Strings):
        return column.compact()
    return joined_columns([column]) if isinstance(column, Ragged) and len(column) else column
