# SPDX-License-Identifier: Apache-2.0
"""Row queues: the rows of a stream, taken in any number, with the state that leads to each; elements that span blocks."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, zip_longest
from math import prod
from operator import is_
from sys import maxsize
from typing import TYPE_CHECKING, Any, final

import numpy as np

from distinput.columns.block import Block, ColumnBlock, Failure, abreast, concat_blocks, side_by_side
from distinput.columns.column import Array, Column, Dense, Strings
from distinput.columns.regroup import as_ragged_tensors, column_of_values, joining, loose_rows
from distinput.columns.state import Mark, State
from distinput.names.lazy import later
from distinput.values.buffers import LARGE_MOST_BYTES, copy_of, counts_are_exact, empty, most_in_caches
from distinput.values.spec import LeafSpec, RaggedTensorSpec, Spec

if TYPE_CHECKING:
    from distinput.kernels import spans as span_kernels
else:
    span_kernels = later("distinput.kernels.spans")  # for batches larger than the caches

# ----------------------------------------------------------------------------
# Elements that span several blocks, seen as one sequence; those that cross a border are copied when they are handed out.
#
# Batches cut from blocks of other sizes are views of a block, except for the few whose rows lie in two. Here all of them
# travel together with the blocks that they are cut from, and only those few are copied, once.
# ----------------------------------------------------------------------------


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

    def _all_arrays(self) -> list[tuple[Array, ...]] | None:
        """For each block the arrays of whose rows views are handed out; None if a column has other rows."""
        leaves = [_arrays(chunks) for chunks in zip(*[block.columns for block in self.blocks], strict=True)]
        arrays = [leaf for leaf in leaves if leaf is not None]
        return list(zip(*arrays, strict=True)) if len(arrays) == len(leaves) else None

    def _handed_out(
        self, arrays: Sequence[Sequence[Array]], seen: Callable[[Array], Iterator[Any]]
    ) -> Iterator[Iterator[Any]]:
        """The elements in each cut, made when it is reached: views of rows in one block, copies of those that cross.

        What crosses comes with the views behind it, since taking up a part costs as much as a few elements.
        """
        structure, each = self.structure, prod(self.shape)
        leaf, simple = structure.is_plain_leaf, structure.is_plain_leaf or structure.is_flat_tuple
        shapes = [(*self.shape, *array.shape[1:]) for array in arrays[0]]
        joins = [joining(array, each) for array in arrays[0]]
        width, scalars = len(joins), not any(shapes)
        cuts = self._cuts(0, self.size, each)
        crossed: Iterator[Any] | None = None
        for spans, after in zip_longest(cuts, cuts[1:], fillvalue=()):
            if len(spans) == 1:
                ((block, start, stop),) = spans
                count = (stop - start) // each  # not -1, which arrays without numbers leave open
                leaves = zip(arrays[block], shapes, strict=True)
                columns = [seen(array[start:stop].reshape(count, *shape)) for array, shape in leaves]
                rows = columns[0] if leaf else abreast(columns, scalars=scalars)
                rows = rows if crossed is None else chain(crossed, rows)
                columns = []
            else:
                parts = [array[start:stop] for block, start, stop in spans for array in arrays[block]]
                copies = [join(parts[place::width]) for place, join in enumerate(joins)]
                parts = []
                if len(self.shape) != 1:
                    copies = [array.reshape(shape) for array, shape in zip(copies, shapes, strict=True)]
                # It is given away: what ended with the iterator could let another thread in; see `abreast`.
                rows = map(list.pop, ([copies[0] if leaf else tuple(copies)],))
                copies = []
                if len(after) == 1:
                    crossed = rows
                    continue
            yield rows if simple else map(structure.build, rows)
            del rows  # with what it refers to, so that the memory can be used for the next one
            crossed = None

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
    pieces: list[ColumnBlock] = []
    some: list[ColumnBlock] = []  # one of those that are known to be alike
    for block in blocks:
        if type(block) is not ChunkedBlock:
            pieces.append(block.columnar())
            some.append(pieces[-1])
        elif block.shape:
            return None
        else:
            pieces += block.pieces()
            some.append(block.blocks[0])
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
    kinds: list[tuple[Any, tuple[int, ...] | None]]
    if set(map(type, chunks)) == {Dense}:  # mostly
        kinds = [((array := chunk.array).dtype, array.shape[1:]) for chunk in chunks]  # type: ignore[attr-defined]
    else:
        kinds = [(chunk.dtype, chunk.inner) for chunk in chunks]
    return kinds[0][1] is not None and kinds.count(kinds[0]) == len(kinds)


# ----------------------------------------------------------------------------
# Rows that become one batch, copied side by side as they are made, whichever blocks they travel in.
# ----------------------------------------------------------------------------


_FEWEST_BYTES, _FEWEST_TOGETHER = 1 << 13, 1 << 20
"""Arrays of fewer bytes, in an element or in a group of them, are as quickly copied when all are there."""

_FEWEST_PAST_CACHES = 1 << 16
"""The bytes of an array that is worth a call of the kernel, where the group is larger than the caches. Memory that no pool
keeps is fresh: its pages were cleared just before, and are in the caches."""


class Together:
    """Memory for the arrays in a group of elements. Each is copied there while it is in the caches, and never again.

    Without it, arrays wait in memory of their own until a block of them is full, and blocks until a batch is.

    Args:
      group: how many elements are wanted together.

    >>> together, elements = Together(200), [np.zeros(1024), np.ones(1024)]
    >>> together.begin(elements[0])
    200
    >>> elements = [together.settle(element) for element in elements]
    >>> together.column(elements).array.base is elements[0].base
    True
    """

    def __init__(self, group: int) -> None:
        self.group = group
        self._rows: dict[Hashable, list[Array]] = {}  # of the array at a place in an element
        self._arrays: dict[Hashable, Array] = {}
        self._past: dict[Hashable, Array] = {}  # the bytes of those to which `_copy` copies, past the caches
        self._size = self._first = self._next = 0
        self._fits = True

    @property
    def holds_all(self) -> bool:
        """Whether all large arrays of this block are here."""
        return bool(self._rows) and self._fits

    def left(self) -> int:
        """How many elements there is room for in a block that is about to begin, as far as that is known."""
        self._size = self._size if self._fits else 0
        if self._next == self._size or not self._fits:
            self._rows, self._arrays, self._past, self._next = {}, {}, {}, 0
        self._first = self._next
        return self._size - self._next or maxsize

    def begin(self, element: Any) -> int:
        """How many elements there is room for in the block that begins with this one; 0: they stay where they are."""
        if not self._rows:
            arrays = {key: item for key, item in _items(element) if type(item) is np.ndarray}
            plain = {key: array for key, array in arrays.items() if _is_plain(array)}
            nbytes = sum([array.nbytes for array in plain.values()])
            few = self.group == 1 or nbytes < _FEWEST_BYTES or nbytes * self.group < _FEWEST_TOGETHER
            others = sum([array.nbytes for array in arrays.values()]) - nbytes
            if few or others >= _FEWEST_BYTES or nbytes * self.group > LARGE_MOST_BYTES or not self._fits:
                self._size = 0
                return 0
            self._size = self.group
            past = counts_are_exact() and most_in_caches() < nbytes * self.group <= LARGE_MOST_BYTES // 4
            for key, array in plain.items():
                self._arrays[key] = empty((self.group, *array.shape), array.dtype)
                self._rows[key] = list(self._arrays[key])
                if past and array.nbytes >= _FEWEST_PAST_CACHES:
                    self._past[key] = self._arrays[key].reshape(-1).view(np.uint8)
                    self._copy = span_kernels.copy_past_caches
        return self._size - self._first

    def settle(self, element: Any) -> Any:
        """The element with rows of this memory for its arrays, if there are some."""
        if not self.holds_all:
            return element
        if type(element) is np.ndarray:
            settled: Any = self._settled(None, element)
        elif type(element) is tuple:
            settled = tuple([self._settled(key, item) for key, item in enumerate(element)])
        elif type(element) is dict:
            settled = {key: self._settled(key, item) for key, item in element.items()}
        else:
            settled = element
        self._next += 1
        return settled

    def _settled(self, key: Hashable, item: Any) -> Any:
        if type(item) is not np.ndarray:
            return item
        rows = self._rows.get(key)
        if rows is None and not _is_plain(item) and item.nbytes < _FEWEST_BYTES:
            return item
        if not rows or self._next >= len(rows) or item.dtype != rows[0].dtype or item.shape != rows[0].shape:
            self._fits = False  # from the next block on
            return item
        row = rows[self._next]
        if key in self._past and item.flags.c_contiguous:
            self._copy(item.reshape(-1).view(np.uint8), self._past[key], self._next * item.nbytes)
        else:
            row[...] = item
        return row

    def column(self, values: Sequence[Any], said: LeafSpec | None = None) -> Column:
        """As `column_of_values`, with no copy where the values are the rows of this block."""
        end = self._first + len(values)
        for key, rows in self._rows.items():
            if values[0] is rows[self._first] and all(map(is_, values, rows[self._first : end])):
                return Dense(self._arrays[key][self._first : end])
        return column_of_values(values, said)


def _items(element: Any) -> Iterable[tuple[Hashable, Any]]:
    if type(element) is tuple:
        return enumerate(element)
    return element.items() if type(element) is dict else [(None, element)]


def _is_plain(item: Any) -> bool:
    """Whether a row of numbers can be copied as it is."""
    return type(item) is np.ndarray and item.dtype.kind in "biufc" and item.ndim > 0


# ----------------------------------------------------------------------------
# Row queues: the rows of a stream, taken in any number, with the state that leads back to the oldest one left.
#
# Every op that regroups rows (batch, rebatch, window, zip, ...) uses a `RowQueue`.
# ----------------------------------------------------------------------------


Stream = Iterator[tuple[Block, State]]

PACE_SECONDS = 0.004
"""An op that calls Python functions sends what it has after this long."""

_MOST_CHUNKS = 16
"""The most blocks whose rows are left in place. With more of them each holds few rows, which are mostly copied anyway."""


class RowQueue:
    """Rows of `stream` waiting to be taken.

    Args:
      stream: (block, state) pairs.
      mark: where the stream begins: the state it was opened with, and how many of its first rows to pass over.

    Attributes:
      failure: the failure that follows the waiting rows, if one does; nothing more is pulled until it has been `passed`.
    """

    __slots__ = ("_after", "_blocks", "_chunks", "_over", "_skip", "_state", "_stream", "ended", "failure", "size")

    def __init__(self, stream: Stream, mark: Mark) -> None:
        self._stream = stream
        self._blocks: deque[tuple[Block, State]] = deque()
        self._state: State = mark["input"]
        self._skip: int = 0
        self._over: int = mark["skip"]
        self._chunks = True  # until an attempt fails
        self.size = 0
        self.ended = False
        self.failure: Failure | None = None
        self._after: State = {}  # the state after the failure

    def pull(self) -> bool:
        """Get the stream's next block; False at its end, and before a failure."""
        if self.ended or self.failure is not None:
            return False
        for block, state in self._stream:
            if type(block) is Failure:
                self.failure, self._after = block, state
                return False
            if self._over >= block.size and not self._blocks:
                self._over -= block.size
                self._state, self._skip = state, 0
                continue
            self._blocks.append((block, state))
            if self._over and len(self._blocks) == 1:
                self._skip, self._over = self._over, 0
            self.size += block.size - (self._skip if len(self._blocks) == 1 else 0)
            return True
        self.ended = True
        return False

    def fill(self, size: int) -> bool:
        """Pull until `size` rows wait; False when the stream ended before, or a failure comes first."""
        while self.size < size:
            if not self.pull():
                return False
            if len(self._blocks) == 2 and not self._skip:
                (before, _), (block, state) = self._blocks
                both = side_by_side(before, block)
                if both is not None:
                    self._blocks = deque([(both, state)])
        return True

    def whole(self, size: int) -> Block | None:
        """The stream's next block, if no rows wait and it holds a multiple of `size`; None: use `fill` and `take`."""
        if self.size or self._over or self.ended or self.failure is not None:
            return None
        item = next(self._stream, None)
        if item is None:
            self.ended = True
            return None
        block, state = item
        if type(block) is Failure:
            self.failure, self._after = block, state
            return None
        if self._blocks:
            self._drop_spent()
        if block.size and not block.size % size:
            self._state, self._skip = state, 0
            return block
        self._blocks.append(item)
        self.size = block.size
        return None

    @property
    def front(self) -> int:
        """Rows that can be taken without a copy: what is left of the oldest block."""
        self._drop_spent()
        return self._blocks[0][0].size - self._skip if self._blocks else 0

    def take(self, size: int) -> Block:
        """The next `size` rows, which must be waiting; a view if they stand in one block."""
        block, _ = self._blocks[0]
        end = self._skip + size
        if end < block.size:  # mostly
            self.size -= size
            first, self._skip = self._skip, end
            return block.rows(first, end)
        return concat_blocks(self.take_parts(size))

    def take_groups(self, size: int, *, lazily: bool) -> Block:
        """As many groups of `size` rows as can be had without a copy, at least one; one group must be waiting.

        Args:
          size: at least 1.
          lazily: whether what crosses from block to block may be copied later, by whoever asks for it.
        """
        whole = self.front // size * size
        every = self.size // size * size
        if whole == every or not (lazily and self._chunks) or len(self._blocks) > _MOST_CHUNKS:
            return self.take(whole or size)
        made = chunked([block for block, _ in self._blocks], self._skip, every)
        if made is None:
            self._chunks = False
            return self.take(whole or size)
        self.skip(every)
        return made

    def take_parts(self, size: int) -> list[Block]:
        """The next `size` rows, which must be waiting, as views of the blocks they stand in."""
        parts: list[Block] = []
        self.size -= size
        while True:
            block, state = self._blocks[0]
            left = block.size - self._skip
            if left > size:
                parts.append(block.rows(self._skip, self._skip + size))
                self._skip += size
                break
            parts.append(block.rows(self._skip, block.size))
            self._blocks.popleft()
            self._state, self._skip = state, 0
            size -= left
            if not size:
                break
        return parts

    def peek(self, size: int) -> Block:
        """The next `size` rows, which must be waiting, without taking them."""
        parts, begin = [], self._skip
        for block, _ in self._blocks:
            parts.append(block.rows(begin, begin + size))
            size -= parts[-1].size
            begin = 0
            if not size:
                break
        return concat_blocks(parts)

    def skip(self, size: int) -> None:
        """Pass over the next `size` rows, which must be waiting."""
        self.size -= size
        while size:
            block, state = self._blocks[0]
            left = block.size - self._skip
            if left > size:
                self._skip += size
                return
            self._blocks.popleft()
            self._state, self._skip = state, 0
            size -= left

    def passed(self) -> Failure:
        """Take the failure that comes next; rows waiting before it are dropped."""
        failure = self.failure
        assert failure is not None
        self._blocks.clear()
        self._state, self._skip, self._over, self.size, self.failure = self._after, 0, 0, 0, None
        return failure

    def mark(self) -> Mark:
        """Where the oldest row not yet taken stands."""
        if self._blocks:
            self._drop_spent()
        return {"input": self._state, "skip": self._skip + self._over}

    def _drop_spent(self) -> None:
        while self._blocks and self._blocks[0][0].size == self._skip:
            self._state = self._blocks.popleft()[1]
            self._skip = 0


def stackable(stream: Stream, spec: Spec | None) -> Stream:
    """The stream, with what the spec calls rows of ragged tensors marked as such, so that their batches are ragged."""
    if spec is None or not any(isinstance(leaf, RaggedTensorSpec) for leaf in spec.leaves):
        return stream
    return ((block if type(block) is Failure else loosened(block, spec), state) for block, state in stream)


def loosened(block: Block, spec: Spec) -> Block:
    """The same elements, with what the spec calls rows of ragged tensors marked as such, so that their batches are ragged.

    Raises:
      InvalidArgumentError: rows differ in another dimension too.
    """
    columns: list[Column] = [
        _of_spec(column, leaf) if isinstance(leaf, RaggedTensorSpec) else column
        for column, leaf in zip(block.columnar().columns, spec.leaves, strict=True)
    ]
    return ColumnBlock(block.structure, columns, block.size)


def _of_spec(column: Column, leaf: RaggedTensorSpec) -> Column:
    return as_ragged_tensors(column, leaf.ragged_rank) if leaf.ragged_rank else loose_rows(column)


def passing_over(stream: Stream, mark: Mark) -> Iterator[tuple[Block, Callable[[int], Mark]]]:
    """Blocks from a mark on, which have rows, and what gives the mark after so many of these.

    Failures come as they are, with the mark after them.
    """
    over, before = mark["skip"], mark["input"]
    for block, after in stream:
        if type(block) is Failure:
            yield block, partial(same, {"input": after, "skip": 0})
            over, before = 0, after
            continue
        if over >= block.size:
            over -= block.size
            before = after
            continue
        rows = block.rows(over, block.size) if over else block

        def at(
            done: int, size: int = rows.size, before: State = before, over: int = over, after: State = after
        ) -> Mark:
            return {"input": after, "skip": 0} if done == size else {"input": before, "skip": over + done}

        yield rows, at
        over, before = 0, after


def same(mark: Mark, _: int) -> Mark:
    """The mark, whatever the number: of a failure, which has no rows."""
    return mark
