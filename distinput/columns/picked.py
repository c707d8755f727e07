# SPDX-License-Identifier: Apache-2.0
"""Rows by their numbers, copied only when they are asked for, and rows of several blocks put in order."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from math import prod
from typing import Any, Protocol, TypeGuard, final

import numpy as np

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Array, Column, Dense, Ints, LazyColumn
from distinput.columns.regroup import concat_columns
from distinput.kernels.spans import gather_rows, place_rows
from distinput.values.buffers import empty

# ----------------------------------------------------------------------------
# Rows by their numbers, copied only when they are asked for.
#
# A shuffle decides the order of thousands of rows at once, while its consumer wants one batch at a time. So rows travel as
# numbers: stacking, slicing and reordering move numbers only, and each batch is gathered once, when it is handed out, into
# memory that is still in the cache when the consumer looks at it.
# ----------------------------------------------------------------------------


WIDE_BYTES = 64
"""From this size on, copying a row costs more than handling its number does."""

_BYTE, _NUMBER = np.dtype(np.uint8), np.dtype(np.int64)

_FAR_BYTES, _FAR_ROW, _FAR_ROWS = 16 << 20, 512, 64
"""An array of so many bytes leaves the caches, and rows of so many are copied up to a third quicker if they are prefetched.

Batches of fewer rows take NumPy less time: a call of a kernel costs half a microsecond more.
"""

_LARGE_BYTES = 1 << 20
"""From this size on, the memory of an element comes from our pool; smaller memory the allocator recycles itself, and sooner."""


class RowArray(Protocol):
    """Where rows are: an array, or something else with these of its attributes."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows there are, and the shape of a row."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the values."""

    @property
    def take(self) -> Callable[..., Array]:
        """With numbers [...] and 0: the rows with these numbers [..., row], in memory of their own."""


class Memory:
    """Rows of one shape that lie in parts anywhere in memory, numbered one part after the other.

    Args:
      data: the memory, of which only the parts are looked at.
      begins: [p] the byte of `data` where the first row of each part begins.
      ends: [p + 1] from 0 on: the rows before each part, and of all.
      shape: of a row.
      dtype: of its values.
      owners: what the memory belongs to, held as long as this is.
    """

    __slots__ = ("_near", "_shift", "begins", "data", "dtype", "ends", "owners", "shape", "width")

    def __init__(
        self,
        data: Array,
        begins: Ints,
        ends: Ints,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        owners: Sequence[Any] = (),
    ) -> None:
        self.data, self.begins, self.ends, self.dtype, self.owners = data, begins, ends, dtype, owners
        self.width = prod(shape) * dtype.itemsize
        total = int(ends[-1])
        self.shape = (total, *shape)
        self._shift = (total // (2 * max(1, len(begins)))).bit_length()
        self._near = np.searchsorted(ends, np.arange(0, total, 1 << self._shift), "right") - 1

    def take(self, rows: Ints, axis: int = 0, /) -> Array:
        """See `RowArray`."""
        (found,) = self.each(rows[None])
        return found

    def each(self, rows: Ints) -> Iterator[Array]:
        """For each i the rows with the numbers rows[i], in memory of their own."""
        starts = empty((len(rows), prod(rows.shape[1:])), _NUMBER)
        numbers = np.ascontiguousarray(rows).reshape(-1)
        place_rows(self.begins, self.ends, self._near, self._shift, self.width, numbers, starts.reshape(-1))
        yield from _copies(self.data, starts, self.width, (*rows.shape[1:], *self.shape[1:]), self.dtype)


def _copies(data: Array, starts: Ints, width: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[Array]:
    """For each i the rows that begin at the bytes starts[i], in memory of their own; the next ones are prefetched meanwhile."""
    size = starts.shape[1] * width
    memory, gather = np.empty if size < _LARGE_BYTES else empty, gather_rows.function
    for begins in starts:
        out = memory((size,), _BYTE)
        gather(data, begins, width, out)
        yield np.ndarray(shape, dtype, out)


@final
class Picked(LazyColumn):
    """Rows of `source` by their numbers [n, ...], gathered when they are asked for.

    Args:
      source: where the rows are.
      numbers: of rows that are there; an array of them for each row of this column.
    """

    __slots__ = ("_made", "numbers", "source")

    def __init__(self, source: RowArray, numbers: Ints) -> None:
        self.source, self.numbers = source, numbers
        self._made: Array | None = None

    def materialize(self) -> Dense:
        """All rows, gathered into one array; a second call gives the same array."""
        if self._made is None:
            self._made = self._gathered()
        return Dense(self._made)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.source.dtype

    @property
    def inner(self) -> tuple[int, ...]:
        return (*self.numbers.shape[1:], *self.source.shape[1:])

    def __len__(self) -> int:
        return len(self.numbers)

    def row(self, index: int) -> Any:
        return self.source.take(self.numbers[index], 0) if self._made is None else self._made[index]

    @property
    def atomic(self) -> bool:
        return self._made is not None or self.numbers.ndim == 1

    def values(self) -> Iterator[Any]:
        numbers = self.numbers
        if self._made is not None or numbers.ndim == 1:  # one call gathers many small rows
            return self.materialize().values()
        source = self.source
        if isinstance(source, Memory):
            return source.each(numbers)
        shape = (*numbers.shape[1:], *source.shape[1:])
        rows = prod(numbers.shape[1:])
        if rows >= _FAR_ROWS and _is_far(source) and self._is_within():
            width = source.nbytes // len(source)
            starts = numbers.reshape(len(numbers), rows) * width
            return _copies(source.reshape(-1).view(_BYTE), starts, width, shape, source.dtype)
        if self.nbytes < _LARGE_BYTES * len(numbers) or not self._is_within():
            return map(source.take, numbers, repeat(0))
        return map(source.take, numbers, repeat(0), map(empty, repeat(shape), repeat(source.dtype)), repeat("clip"))

    def rows(self, start: int, stop: int, step: int = 1) -> "Dense | Picked":
        if self._made is not None:
            return Dense(self._made[start:stop:step])
        return Picked(self.source, self.numbers[start:stop:step])

    def take(self, indices: Ints) -> "Picked":
        return Picked(self.source, self.numbers.take(indices, 0))

    def grouped(self, size: int) -> "Picked | None":
        if self._made is not None:
            return None
        numbers = self.numbers
        return Picked(self.source, numbers.reshape(len(numbers) // size, size, *numbers.shape[1:]))

    def followed_by(self, others: Sequence[Column]) -> "Picked | None":
        numbers = [self.numbers]
        for other in others:
            if not isinstance(other, Picked) or other.source is not self.source or other._made is not None:
                return None
            numbers.append(other.numbers)
        if self._made is not None or len({each.shape[1:] for each in numbers}) > 1:
            return None
        return Picked(self.source, np.concatenate(numbers))

    def lengths(self) -> int | None:
        return self.inner[0] if self.inner else None

    def unstack(self) -> "Dense | Picked":
        if self._made is not None or self.numbers.ndim == 1:
            return self.materialize().unstack()
        n, b, *rest = self.numbers.shape
        return Picked(self.source, self.numbers.reshape(n * b, *rest))

    def copied(self) -> Dense:
        return Dense(self._gathered())

    def _is_within(self) -> bool:
        """Whether NumPy can write the rows straight into given memory: where it has to check bounds, it copies once more."""
        source = self.source
        return isinstance(source, np.ndarray) and int(self.numbers.view(np.uint64).max(initial=0)) < len(source)

    def _gathered(self) -> Array:
        source, numbers = self.source, self.numbers
        if not self._is_within():
            return source.take(numbers, 0)
        return source.take(numbers, 0, empty((*numbers.shape, *source.shape[1:]), source.dtype), "clip")

    @property
    def nbytes(self) -> int:
        return self.numbers.size * prod(self.source.shape[1:]) * self.dtype.itemsize

    def __reduce__(self) -> tuple[type[Dense], tuple[Array]]:
        return Dense, (self.materialize().array,)  # elsewhere only these rows of the source are needed


def _is_far(source: RowArray) -> TypeGuard[Array]:
    """Whether rows are copied quicker if they are prefetched: wide ones, side by side, of an array that leaves the caches."""
    if not isinstance(source, np.ndarray) or source.nbytes < _FAR_BYTES or source.nbytes < _FAR_ROW * len(source):
        return False
    return source.flags.c_contiguous and not source.dtype.hasobject


def picked(block: Block, numbers: Ints) -> ColumnBlock:
    """The elements with these numbers, in that order; where copying them is slow, they are copied when they are asked for.

    >>> from distinput.values.nest import LEAF
    >>> images = ColumnBlock(LEAF, [Dense(np.arange(6000).reshape(6, 1000))], 6)
    >>> batch, = picked(images, np.array([5, 0])).stack(2).elements()
    >>> batch[:, 0].tolist()
    [5000, 0]
    """
    columns = [
        chosen(column.array, numbers) if isinstance(column, Dense) else column.take(numbers)
        for column in block.columnar().columns
    ]
    return ColumnBlock(block.structure, columns, len(numbers))


def chosen(source: RowArray, numbers: Ints) -> Dense | Picked:
    """The rows with these numbers, copied only when they are asked for if copying is slow."""
    wide = prod(source.shape[1:]) * source.dtype.itemsize >= WIDE_BYTES
    return Picked(source, numbers) if wide else Dense(source.take(numbers, 0))


def in_order(parts: Sequence[Column], places: Sequence[Ints], size: int) -> Picked | None:
    """Rows of several columns as one: row i of parts[k] becomes row places[k][i]; None where that takes copying them.

    Args:
      parts: at least one.
      places: for each part as many as it has rows; together 0, 1, 2, ... in any order.
      size: the number of all rows.
    """
    lazy = [part for part in parts if isinstance(part, Picked) and part.numbers.ndim == 1]
    source = joined([part.source for part in lazy]) if len(lazy) == len(parts) else None
    if source is None:
        return None
    numbers = np.empty(size, np.int64)
    before = 0
    for part, place in zip(lazy, places, strict=True):
        numbers[place] = part.numbers + before
        before += part.source.shape[0]
    return Picked(source, numbers)


def joined(sources: Sequence[RowArray]) -> RowArray | None:
    """The rows of all sources, one after the other, where they are; None if they differ in shape or dtype, or lie scattered."""
    first = sources[0]
    if len(sources) == 1:
        return first
    memories = []
    for source in sources:
        if isinstance(source, np.ndarray) and source.flags.c_contiguous and not source.dtype.hasobject:
            ends = np.array([0, len(source)])
            data = source.reshape(-1).view(np.uint8)
            source = Memory(data, ends[:1], ends, source.shape[1:], source.dtype)
        if not isinstance(source, Memory) or source.shape[1:] != first.shape[1:] or source.dtype != first.dtype:
            return None
        memories.append(source)
    addresses = [memory.data.__array_interface__["data"][0] for memory in memories]
    low = min(addresses)
    high = max(address + memory.data.nbytes for address, memory in zip(addresses, memories, strict=True))
    begins = [memory.begins + (address - low) for address, memory in zip(addresses, memories, strict=True)]
    counts = [np.diff(memory.ends) for memory in memories]
    # There may be unmapped memory between the parts; nothing reads it, since each row lies within a part.
    data = np.asarray(_Span(low, high - low))
    ends = np.cumsum([0, *np.concatenate(counts).tolist()], dtype=np.int64)
    owners = [(memory.data, memory.owners) for memory in memories]
    return Memory(data, np.concatenate(begins), ends, first.shape[1:], first.dtype, owners)


class _Span:
    """A range of memory, given by its address and size, for NumPy to look at."""

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": (size,), "typestr": "|u1", "version": 3}


# ----------------------------------------------------------------------------
# The order of rows: checks of row numbers, and rows of several blocks put in order.
# ----------------------------------------------------------------------------


def check_rows(rows: Ints, count: int) -> None:
    """Refuse row numbers that do not exist.

    Raises:
      IndexError: one is negative, or not less than `count`.
    """
    if len(rows) and int(rows.view(np.uint64).max()) >= count:  # negative ones are huge without their sign
        raise IndexError(f"rows must be from 0 to {count - 1}, got {rows.tolist()!s:.80}")


def places_of_each(numbers: Ints) -> dict[int, Ints]:
    """For each number that occurs, its places in ascending order."""
    if not len(numbers):
        return {}
    small = int(numbers.astype(np.uint64).max()) < 1 << 16  # negative ones are huge without their sign
    order = np.argsort(numbers.astype(np.uint16) if small else numbers, kind="stable")  # numbers of 16 bits are counted
    in_order = numbers[order]
    starts = [0, *(np.flatnonzero(in_order[1:] != in_order[:-1]) + 1).tolist()]
    ends = [*starts[1:], len(order)]
    return {number: order[a:b] for number, a, b in zip(in_order[starts].tolist(), starts, ends, strict=True)}


def put_in_order(blocks: Sequence[Block], places: Sequence[Ints]) -> Block:
    """Elements of several blocks as one: element i of blocks[k] becomes element places[k][i].

    Args:
      blocks: at least one, all of one structure.
      places: for each block as many as it has elements; together 0, 1, 2, ... in any order.

    >>> from distinput.values.nest import LEAF
    >>> blocks = [Block.of_elements(LEAF, [1, 2]), Block.of_elements(LEAF, [3])]
    >>> list(put_in_order(blocks, [np.array([2, 0]), np.array([1])]).elements())
    [np.int32(2), np.int32(3), np.int32(1)]
    """
    if len(blocks) == 1 and (np.diff(places[0]) == 1).all():
        return blocks[0]
    size = sum(block.size for block in blocks)
    columns = [
        columns_in_order(parts, places, size)
        for parts in zip(*[block.columnar().columns for block in blocks], strict=True)
    ]
    return ColumnBlock(blocks[0].structure, columns, size)


def columns_in_order(parts: Sequence[Column], places: Sequence[Ints], size: int) -> Column:
    """Rows of several columns as one: row i of parts[k] becomes row places[k][i]."""
    picked = in_order(parts, places, size)
    if picked is not None:
        return picked
    parts = [part.materialize() for part in parts]
    arrays = [part.array for part in parts if isinstance(part, Dense)]
    if len(arrays) == len(parts) and len({(array.dtype, array.shape[1:]) for array in arrays}) == 1:
        out = empty((size, *arrays[0].shape[1:]), arrays[0].dtype)
        for array, place in zip(arrays, places, strict=True):
            out[place] = array
        return Dense(out)
    back = np.empty(size, np.int64)
    back[np.concatenate(places)] = np.arange(size)
    return concat_columns(parts).take(back)
