# SPDX-License-Identifier: Apache-2.0
"""The shuffle buffer: rows in numbered slots, which a shuffle sends while others take their places."""

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.buffers import empty
from distinput.core.column import Array, Column, Ints
from distinput.core.dense import Dense
from distinput.core.leaves import STRING
from distinput.core.regroup import concat_columns
from distinput.core.spec import LeafSpec, Spec, TensorSpec
from distinput.core.strings import Strings
from distinput.kernels.shuffle import drain_rows, drain_steps, exchange_rows, shuffle_steps

__all__ = ["ShuffleBuffer"]

_FIRST_BYTES = 1 << 26
"""Memory reserved at first; users may ask for buffers larger than any memory that are never filled."""

_FEWEST, _LEAST_BYTES = 4096, 1 << 24
"""Rows, and bytes, that may have come in before those that wait are brought together again."""


class ShuffleBuffer:
    """Rows by slot. First rows are added until all slots are full, then they are exchanged, and finally they are drained.

    Columns of plain numbers stay where they are, and only rows are moved: the memory is that of the rows. Others are kept as
    they came, and brought together whenever half as many rows have come in as there are slots, or as many bytes as wait.

    Args:
      spec: of the rows.
      size: the number of slots.
    """

    def __init__(self, spec: Spec, size: int) -> None:
        self.structure = spec.structure
        self.size = size
        self.count = 0
        self._columns = [_column_slots(leaf, size) for leaf in spec.leaves]

    def add(self, rows: Block) -> None:
        """Fill the next free slots."""
        for slots, column in zip(self._columns, rows.columnar().columns, strict=True):
            slots.add(self.count, column)
        self.count += rows.size

    def exchange(self, key: int, position: int, rows: Block) -> Block:
        """For each of `rows`: send the row in the slot of that step, and put this one there; see `shuffle_steps`."""
        columns = [
            slots.exchange(key, position, column)
            for slots, column in zip(self._columns, rows.columnar().columns, strict=True)
        ]
        return ColumnBlock(self.structure, columns, rows.size)

    def drain(self, key: int, position: int, count: int) -> Block:
        """Send so many of the rows left, with none to put in their places; see `drain_steps`."""
        columns = [slots.drain(key, position, self.count, count) for slots in self._columns]
        self.count -= count
        return ColumnBlock(self.structure, columns, count)


class _DenseSlots:
    """A column of plain numbers, all rows of one shape."""

    def __init__(self, leaf: TensorSpec, size: int) -> None:
        self._size = size
        first = max(1, _FIRST_BYTES // max(1, (leaf.size or 0) * leaf.dtype.itemsize))
        self._array: Array = np.empty((min(size, first), *(leaf.shape or ())), leaf.dtype)

    def add(self, count: int, column: Column) -> None:
        end = count + len(column)
        if end > len(self._array):
            larger = np.empty(
                (min(self._size, max(end, 2 * len(self._array))), *self._array.shape[1:]), self._array.dtype
            )
            larger[:count] = self._array[:count]
            self._array = larger
        self._array[count:end] = _array_of(column)

    def exchange(self, key: int, position: int, column: Column) -> Dense:
        incoming = np.ascontiguousarray(_array_of(column))
        out = empty(incoming.shape, incoming.dtype)
        if incoming.size:
            exchange_rows(_raw(self._array), key, position, incoming.nbytes // len(incoming), _raw(incoming), _raw(out))
        return Dense(out)

    def drain(self, key: int, position: int, left: int, count: int) -> Dense:
        out = empty((count, *self._array.shape[1:]), self._array.dtype)
        if out.size:
            drain_rows(_raw(self._array), key, position, left, out.nbytes // count, _raw(out))
        return Dense(out)


class _AnySlots:
    """Any other column: `parts` as they came, and which of their rows is in which slot."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._parts: list[Column] = []
        self._ends: list[int] = [0]
        self._slots: Ints | None = None
        self._nbytes = self._kept = 0  # of the parts, and of those that were there when they were brought together

    def add(self, count: int, column: Column) -> None:
        self._append(column)

    def exchange(self, key: int, position: int, column: Column) -> Column:
        if self._slots is None:
            self._slots = np.arange(self._size)
            self._kept = self._nbytes
        elif (
            self._ends[-1] >= self._size + max(_FEWEST, self._size // 2)
            or self._nbytes >= 2 * self._kept + _LEAST_BYTES
        ):
            self._bring_together()
        begin = self._ends[-1]
        self._append(column)
        out = np.empty(len(column), np.int64)
        shuffle_steps(self._slots, key, position, np.arange(begin, self._ends[-1]), out)
        return self._taken(out)

    def drain(self, key: int, position: int, left: int, count: int) -> Column:
        if self._slots is None:
            self._slots = np.arange(left)
        out = np.empty(count, np.int64)
        drain_steps(self._slots, key, position, left, out)
        return self._taken(out)

    def _append(self, column: Column) -> None:
        self._parts.append(column)
        self._nbytes += column.nbytes
        self._ends.append(self._ends[-1] + len(column))

    def _bring_together(self) -> None:
        assert self._slots is not None
        kept = self._taken(self._slots)
        # Strings and ragged rows refer to whole buffers, of which most rows may be gone.
        self._parts = [kept.compact() if isinstance(kept, Strings) else concat_columns([kept])]
        self._ends = [0, len(kept)]
        self._slots = np.arange(self._size)
        self._kept = self._nbytes = kept.nbytes

    def _taken(self, rows: Ints) -> Column:
        """Rows of the parts, in this order."""
        part_of = np.searchsorted(self._ends, rows, "right") - 1
        order = np.argsort(part_of, kind="stable")
        bounds = np.searchsorted(part_of[order], np.arange(len(self._parts) + 1))
        found = []
        for part, first, begin, end in zip(self._parts, self._ends, bounds, bounds[1:], strict=False):
            if end > begin:
                found.append(part.take(rows[order[begin:end]] - first))
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return concat_columns(found).take(back)


def _column_slots(leaf: LeafSpec, size: int) -> _DenseSlots | _AnySlots:
    plain = isinstance(leaf, TensorSpec) and leaf.dtype != STRING and leaf.size is not None
    return _DenseSlots(leaf, size) if plain else _AnySlots(size)  # type: ignore[arg-type]


def _raw(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _array_of(column: Column) -> Array:
    column = column.materialize()
    return column.array if isinstance(column, Dense) else np.array(list(column.values()), column.dtype)
