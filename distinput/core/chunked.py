# SPDX-License-Identifier: Apache-2.0
"""Elements that stand in several blocks, as if one after the other; what crosses a border is copied when it is handed out.

Batches cut from blocks of other sizes are views of a block, but for the few whose rows stand in two. Here all of them travel
together with the blocks that they are to be cut from, and only those few are copied, once.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Any

from distinput.core.block import Block
from distinput.core.column import Array, Column, Dense, Strings, concatenated, joined_columns

__all__ = ["Chunked", "chunked"]

Span = tuple[int, int, int]
"""A block, its first row wanted, and the one after the last."""


class Chunked(Block):
    """Rows of several blocks; so many of them as `shape` has places make one element.

    Args:
      blocks: whose columns have rows of one dtype and shape.
      first: the row, counted through all blocks, with which the first element begins.
      size: the number of elements.
      shape: how rows are laid out in an element; () for one each.
    """

    __slots__ = ("blocks", "first", "shape", "sizes")

    def __init__(self, blocks: Sequence[Block], first: int, size: int, shape: tuple[int, ...] = ()) -> None:
        self.structure, self.size = blocks[0].structure, size
        self.blocks, self.first, self.shape = blocks, first, shape
        self.sizes = tuple([block.size for block in blocks])

    @property
    def columns(self) -> Sequence[Column]:  # type: ignore[override]  # of a block they are there, of this they are made
        """One for each leaf, all rows copied."""
        return [self._laid_out(self._joined(chunks, self._whole())) for chunks in self._chunks()]

    def rows(self, start: int, stop: int, step: int = 1) -> Block:
        if step != 1:
            return Block(self.structure, self.columns, self.size).rows(start, stop, step)
        group = prod(self.shape)
        size = max(0, min(stop, self.size) - start)
        if size == self.size:
            return self
        spans = _cuts(self.sizes, self.first + start * group, size * group, size * group)[0] if size else ()
        if len(spans) < 2:
            columns = [self._laid_out(self._joined(chunks, spans)) for chunks in self._chunks()]
            return Block(self.structure, columns, size)
        return Chunked(self.blocks[spans[0][0] : spans[-1][0] + 1], spans[0][1], size, self.shape)

    def row(self, index: int) -> Any:
        return next(self.rows(index, index + 1).elements())

    def elements(self) -> Iterator[Any]:
        group = prod(self.shape)
        cuts = _cuts(self.sizes, self.first, self.size * group, group)
        parts = zip(*[self._values(chunks, cuts) for chunks in self._chunks()], strict=True)
        if self.structure.is_leaf:
            return chain.from_iterable([part for (part,) in parts])
        tuples = chain.from_iterable([zip(*part, strict=True) for part in parts])
        return tuples if self.structure.is_flat_tuple else map(self.structure.build, tuples)

    def stack(self, size: int) -> Block:
        return Chunked(self.blocks, self.first, self.size // size, (size, *self.shape))

    def unstack(self) -> Block:
        """The rows of each element as elements; an element must have rows."""
        if not self.shape:
            return Block(self.structure, self.columns, self.size).unstack()
        return Chunked(self.blocks, self.first, self.size * self.shape[0], self.shape[1:])

    def copied(self) -> Block:
        columns = [made if isinstance(made, Dense) else made.copied() for made in self.columns]
        return Block(self.structure, columns, self.size)

    def pieces(self) -> list[Block]:
        """The rows of each block, as views, where each is an element."""
        return [self.blocks[block].rows(start, stop) for block, start, stop in self._whole()]

    @property
    def nbytes(self) -> int:
        per_row = sum([block.nbytes for block in self.blocks]) / max(1, sum(self.sizes))
        return int(per_row * self.size * prod(self.shape))

    def _chunks(self) -> "zip[tuple[Column, ...]]":
        """The columns of all blocks, leaf by leaf."""
        return zip(*[block.columns for block in self.blocks], strict=True)

    def _whole(self) -> tuple[Span, ...]:
        """Where all rows stand."""
        count = self.size * prod(self.shape)
        return _cuts(self.sizes, self.first, count, count)[0]

    def _values(self, chunks: Sequence[Column], cuts: Sequence[Sequence[Span]]) -> list[Iterable[Any]]:
        """One leaf of the elements, cut by cut."""
        arrays = _arrays(chunks)
        if arrays is None:
            return [self._laid_out(self._joined(chunks, spans)).values() for spans in cuts]
        shape = (-1, *self.shape, *arrays[0].shape[1:])
        found: list[Iterable[Any]] = []
        for (block, start, stop), *others in cuts:
            rows = arrays[block][start:stop]
            if others:
                rows = concatenated([rows, *[arrays[block][start:stop] for block, start, stop in others]])
            found.append(rows.reshape(shape))
        return found

    def _joined(self, chunks: Sequence[Column], spans: Sequence[Span]) -> Column:
        """Rows of one leaf: a view where they stand in one block."""
        pieces = [chunks[block].rows(start, stop) for block, start, stop in spans]
        return joined_columns(pieces) if len(pieces) > 1 else pieces[0] if pieces else chunks[0].rows(0, 0)

    def _laid_out(self, rows: Column) -> Column:
        """Rows as elements."""
        for size in reversed(self.shape):
            rows = rows.stack(size)
        return rows


@lru_cache(maxsize=1024)
def _cuts(sizes: tuple[int, ...], first: int, count: int, group: int) -> tuple[tuple[Span, ...], ...]:
    """Rows `first` to `first + count` of blocks of these sizes in groups: many in one block together, or one in several.

    >>> _cuts((5, 4), 1, 8, 2)
    (((0, 1, 5),), ((1, 0, 4),))
    >>> _cuts((5, 4), 0, 9, 3)
    (((0, 0, 3),), ((0, 3, 5), (1, 0, 1)), ((1, 1, 4),))
    """
    made: list[tuple[Span, ...]] = []
    crossing: list[Span] = []
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
                made.append(tuple(crossing))
        stop = end - (end - start) % group
        if start < stop:
            made.append(((block, start, stop),))
        if stop < end:
            crossing, missing = [(block, stop, end)], group - (end - stop)
    return tuple(made)


def chunked(blocks: Sequence[Block], first: int, size: int) -> Block | None:
    """Elements `first` to `first + size` of all blocks, one after the other and not copied.

    Returns:
      None where the rows of a column cannot be stacked as they are.

    >>> from distinput.core.nest import LEAF
    >>> import numpy as np
    >>> blocks = [Block(LEAF, [Dense(np.arange(row, row + 3))], 3) for row in (0, 3)]
    >>> [batch.tolist() for batch in chunked(blocks, 1, 4).stack(2).elements()]
    [[1, 2], [3, 4]]
    """
    if any(isinstance(block, Chunked) for block in blocks):
        if any(isinstance(block, Chunked) and block.shape for block in blocks):
            return None
        blocks = [piece for block in blocks for piece in (block.pieces() if isinstance(block, Chunked) else [block])]
    if not blocks[0].columns or not all(map(_alike, zip(*[block.columns for block in blocks], strict=True))):
        return None
    return Chunked(blocks, first, size)


def _arrays(chunks: Sequence[Column]) -> Sequence[Array] | None:
    """The arrays of whose rows views are handed out, if all columns have one."""
    kinds = set(map(type, chunks))
    if kinds == {Dense}:
        return [chunk.array for chunk in chunks]  # type: ignore[attr-defined]
    if kinds == {Strings} and all(chunk.made is not None for chunk in chunks):  # type: ignore[attr-defined]
        return [chunk.made for chunk in chunks]  # type: ignore[attr-defined]
    return None


def _alike(chunks: Sequence[Column]) -> bool:
    """Whether all rows have one dtype and shape."""
    kinds = [(chunk.dtype, chunk.inner) for chunk in chunks if isinstance(chunk, Dense | Strings)]
    return len(kinds) == len(chunks) and kinds.count(kinds[0]) == len(kinds)
