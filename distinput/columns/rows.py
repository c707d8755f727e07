# SPDX-License-Identifier: Apache-2.0
"""Row queues: the rows of a stream, taken in any number, with the state that leads back to the oldest one left.

Every op that regroups rows (batch, rebatch, window, zip, ...) uses a `RowQueue`.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from distinput.columns.block import Block, ColumnBlock, concat_blocks
from distinput.columns.chunked import chunked
from distinput.columns.column import Column
from distinput.columns.failure import Failure
from distinput.columns.regroup import as_ragged_tensors, loose_rows
from distinput.columns.state import Mark, State
from distinput.values.spec import RaggedTensorSpec, Spec

__all__ = ["PACE_SECONDS", "RowQueue", "Stream", "loosened", "passing_over", "stackable"]

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


def passing_over(stream: Stream, mark: Mark) -> Iterator[tuple[Block, State, Mark, Callable[[int], Mark]]]:
    """Blocks from a mark on: (rows, state after them, mark of the first row, mark after so many of the rows).

    Failures come as they are, with the mark after them for both.
    """
    over, before = mark["skip"], mark["input"]
    for block, after in stream:
        if type(block) is Failure:
            behind = {"input": after, "skip": 0}
            yield block, after, behind, partial(_same, behind)
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

        yield rows, after, at(0), at
        over, before = 0, after


def _same(mark: Mark, _: int) -> Mark:
    return mark
