# SPDX-License-Identifier: Apache-2.0
"""Elements that span several blocks, seen as one sequence; those that cross a border are copied when they are handed out.

Batches cut from blocks of other sizes are views of a block, except for the few whose rows lie in two. Here all of them travel
together with the blocks that they are cut from, and only those few are copied, once.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from math import prod
from typing import Any, final

from distinput.columns.block import Block, ColumnBlock, concat_blocks
from distinput.columns.column import Array, Column
from distinput.columns.dense import Dense
from distinput.columns.regroup import concatenated
from distinput.columns.strings import Strings
from distinput.values.buffers import copy_of

__all__ = ["ChunkedBlock", "chunked"]

BlockSpan = tuple[int, int, int]
"""A block, the first row wanted of it, and the row after the last one wanted."""


@final
class ChunkedBlock(Block):
    """Rows of several blocks; prod(shape) of them make one element.

    Args:
      blocks: whose columns have rows of one dtype and shape.
      first: the row, counted through all blocks, with which the first element begins.
      size: the number of elements.
      shape: how rows are laid out in an element; () for one each.
    """

    __slots__ = ("blocks", "first", "shape")

    def __init__(self, blocks: Sequence[ColumnBlock], first: int, size: int, shape: tuple[int, ...] = ()) -> None:
        self.structure, self.size = blocks[0].structure, size
        self.blocks, self.first, self.shape = blocks, first, shape

    def columnar(self) -> ColumnBlock:
        """All rows, copied now if they stand in several blocks."""
        return self._part(self._spans(0, self.size))

    def rows(self, start: int, stop: int, step: int = 1) -> Block:
        if step != 1:
            return self.columnar().rows(start, stop, step)
        size = max(0, min(stop, self.size) - start)
        if size == self.size:
            return self
        spans = self._spans(start, size)
        if len(spans) < 2:
            return self._part(spans)
        return ChunkedBlock(self.blocks[spans[0][0] : spans[-1][0] + 1], spans[0][1], size, self.shape)

    def row(self, index: int) -> Any:
        return next(self.rows(index, index + 1).elements())

    def elements(self) -> Iterator[Any]:
        return self._elements(iter)

    def copies(self) -> Iterator[Any]:
        return self._elements(partial(map, copy_of))  # what crosses is a copy already

    def shared_parts(self) -> Iterator[Iterator[Any]] | None:
        arrays = self._all_arrays()
        return None if arrays is None else self._handed_out(arrays, iter)

    def _elements(self, seen: Callable[[Array], Iterator[Any]]) -> Iterator[Any]:
        """As users see them; those that stand in one block as `seen` gives them out of all that do."""
        arrays = self._all_arrays()
        if arrays is not None:
            return chain.from_iterable(self._handed_out(arrays, seen))
        blocks = [self._part(spans) for spans in self._cuts(0, self.size, prod(self.shape))]
        return chain.from_iterable([block.elements() if seen is iter else block.copies() for block in blocks])

    def _all_arrays(self) -> list[list[Array]] | None:
        """For each column the arrays of whose rows views are handed out; None if one has other rows."""
        leaves = [_arrays(chunks) for chunks in zip(*[block.columns for block in self.blocks], strict=True)]
        arrays = [leaf for leaf in leaves if leaf is not None]
        return arrays if len(arrays) == len(leaves) else None

    def _handed_out(
        self, arrays: Sequence[Sequence[Array]], seen: Callable[[Array], Iterator[Any]]
    ) -> Iterator[Iterator[Any]]:
        """The elements in each cut, made when it is reached: views of rows in one block, copies of those that cross."""
        structure, each = self.structure, prod(self.shape)
        leaf, simple = structure.is_leaf, structure.is_leaf or structure.is_flat_tuple
        shapes = [(*self.shape, *parts[0].shape[1:]) for parts in arrays]
        for spans in self._cuts(0, self.size, each):
            if len(spans) == 1:
                ((block, start, stop),) = spans
                count = (stop - start) // each  # not -1, which arrays without numbers leave open
                views = [
                    parts[block][start:stop].reshape(count, *shape) for parts, shape in zip(arrays, shapes, strict=True)
                ]
                found = seen(views[0]) if leaf else zip(*map(seen, views), strict=True)
                views = []
            else:
                made = [concatenated([parts[block][start:stop] for block, start, stop in spans]) for parts in arrays]
                if len(self.shape) != 1:
                    made = [array.reshape(shape) for array, shape in zip(made, shapes, strict=True)]
                found = iter(made if leaf else (tuple(made),))
                made = []
            yield found if simple else map(structure.build, found)
            found = iter(())  # drops the references, so that the memory can be used for the next one

    def stack(self, size: int) -> "ChunkedBlock":
        return ChunkedBlock(self.blocks, self.first, self.size // size, (size, *self.shape))

    def unstack(self) -> "ChunkedBlock":
        if not self.shape:
            parts = [piece.unstack() for piece in self.pieces() or [self.blocks[0].rows(0, 0)]]
            return ChunkedBlock(parts, 0, sum([part.size for part in parts]))
        return ChunkedBlock(self.blocks, self.first, self.size * self.shape[0], self.shape[1:])

    def copied(self) -> ColumnBlock:
        crosses = len(self._spans(0, self.size)) > 1
        columns = [
            made if crosses and isinstance(made, Dense) else made.copied()  # what was joined is a copy already
            for made in self.columnar().columns
        ]
        return ColumnBlock(self.structure, columns, self.size)

    def pieces(self) -> list[ColumnBlock]:
        """The rows of each block, as views, where each is an element."""
        return [self.blocks[block].rows(start, stop) for block, start, stop in self._spans(0, self.size)]

    @property
    def nbytes(self) -> int:
        per_row = sum([block.nbytes for block in self.blocks]) / max(1, sum([block.size for block in self.blocks]))
        return int(per_row * self.size * prod(self.shape))

    def _spans(self, start: int, size: int) -> tuple[BlockSpan, ...]:
        """Where the rows of some elements stand."""
        return self._cuts(start, size, size * prod(self.shape))[0] if size else ()

    def _cuts(self, start: int, size: int, group: int) -> tuple[tuple[BlockSpan, ...], ...]:
        """Where they stand, in groups of so many rows."""
        each = prod(self.shape)
        return _cuts(tuple([block.size for block in self.blocks]), self.first + start * each, size * each, group)

    def _part(self, spans: Sequence[BlockSpan]) -> ColumnBlock:
        """The elements that some rows make: views where they stand in one block."""
        parts = [self.blocks[block].rows(start, stop) for block, start, stop in spans]
        made = concat_blocks(parts or [self.blocks[0].rows(0, 0)]).columnar()
        for size in reversed(self.shape):
            made = made.stack(size)
        return made


@lru_cache(maxsize=256)
def _cuts(sizes: tuple[int, ...], first: int, count: int, group: int) -> tuple[tuple[BlockSpan, ...], ...]:
    """Rows `first` to `first + count` of blocks of these sizes in groups: many in one block together, or one in several.

    >>> _cuts((5, 4), 1, 8, 2)
    (((0, 1, 5),), ((1, 0, 4),))
    >>> _cuts((5, 4), 0, 9, 3)
    (((0, 0, 3),), ((0, 3, 5), (1, 0, 1)), ((1, 1, 4),))
    """
    cuts: list[tuple[BlockSpan, ...]] = []
    crossing: list[BlockSpan] = []
    missing = 0  # rows of the group that crosses into the next block
    for block, size in enumerate(sizes):
        start, end = min(first, size), min(first + count, size)
        first, count = first - start, count - (end - start)
        if missing and start < end:
            stop = min(start + missing, end)
            crossing.append((block, start, stop))
            missing -= stop - start
            start = stop
            if not missing:
                cuts.append(tuple(crossing))
        stop = end - (end - start) % group
        if start < stop:
            cuts.append(((block, start, stop),))
        if stop < end:
            crossing, missing = [(block, stop, end)], group - (end - stop)
    return tuple(cuts)


def chunked(blocks: Sequence[Block], first: int, size: int) -> ChunkedBlock | None:
    """Elements `first` to `first + size` of all blocks, one after the other and not copied.

    Returns:
      None where the rows of a column cannot be stacked as they are.

    >>> from distinput.values.nest import LEAF
    >>> import numpy as np
    >>> blocks = [ColumnBlock(LEAF, [Dense(np.arange(row, row + 3))], 3) for row in (0, 3)]
    >>> [batch.tolist() for batch in chunked(blocks, 1, 4).stack(2).elements()]
    [[1, 2], [3, 4]]
    """
    if any(isinstance(block, ChunkedBlock) and block.shape for block in blocks):
        return None
    pieces: list[ColumnBlock] = []
    some: list[ColumnBlock] = []  # one of those that are known to be alike
    for block in blocks:
        pieces += block.pieces() if isinstance(block, ChunkedBlock) else [block.columnar()]
        some.append(block.blocks[0] if isinstance(block, ChunkedBlock) else pieces[-1])
    if not some[0].columns or some[0].structure.sparse:
        return None
    if not all(map(_alike, zip(*[piece.columns for piece in some], strict=True))):
        return None
    return ChunkedBlock(pieces, first, size)


def _arrays(chunks: Sequence[Column]) -> list[Array] | None:
    """The arrays of whose rows views are handed out, if all columns have one."""
    kinds = set(map(type, chunks))
    if kinds == {Dense}:
        return [chunk.array for chunk in chunks]  # type: ignore[attr-defined]
    if kinds == {Strings} and all(chunk.made is not None for chunk in chunks):  # type: ignore[attr-defined]
        return [chunk.made for chunk in chunks]  # type: ignore[attr-defined]
    return None


def _alike(chunks: Sequence[Column]) -> bool:
    """Whether all rows have one dtype and shape."""
    if set(map(type, chunks)) == {Dense}:
        arrays = [chunk.array for chunk in chunks]  # type: ignore[attr-defined]
        dtype, inner = arrays[0].dtype, arrays[0].shape[1:]
        return all(array.dtype == dtype and array.shape[1:] == inner for array in arrays)
    kinds = [(chunk.dtype, chunk.inner) for chunk in chunks]
    return kinds[0][1] is not None and kinds.count(kinds[0]) == len(kinds)
