# SPDX-License-Identifier: Apache-2.0
"""`copied`: elements in memory of their own."""

from collections.abc import Callable, Iterator
from functools import cached_property
from time import perf_counter
from typing import Any, ClassVar, final

from distinput.columns.block import Block, ColumnBlock, Failure
from distinput.columns.column import Ints
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import State
from distinput.plan.families import OneForOne
from distinput.run.run import Run
from distinput.values.spec import Spec

# ----------------------------------------------------------------------------
# Large elements that are copied one by one as they are handed out, so each copy is in the cache when it is used.
# ----------------------------------------------------------------------------


_END = object()


@final
class CopyingBlock(Block):
    """The elements of a block in memory that nobody else refers to.

    Args:
      block: whose elements are copied.
      late: called with the seconds that each copy takes (`Run.late`).
    """

    __slots__ = ("block", "late")

    def __init__(self, block: Block, late: Callable[[float], None]) -> None:
        self.structure, self.size = block.structure, block.size
        self.block, self.late = block, late

    def columnar(self) -> ColumnBlock:
        """All elements copied now."""
        return self.block.copied()

    def rows(self, start: int, stop: int, step: int = 1) -> "CopyingBlock":
        return CopyingBlock(self.block.rows(start, stop, step), self.late)

    def row(self, index: int) -> Any:
        return next(self.rows(index, index + 1).elements())

    def elements(self) -> Iterator[Any]:
        copies = self.block.copies()
        while True:
            begin = perf_counter()
            element = next(copies, _END)
            if element is _END:
                return
            self.late(perf_counter() - begin)
            yield element
            del element  # so that its memory can be used for the next one

    copied = columnar

    @property
    def nbytes(self) -> int:
        return self.block.nbytes


_PIECE_BYTES = 1 << 19
"""Bytes of elements that are copied together: few enough to stay in a core's cache until they are used."""

_LARGE_BYTES = 1 << 15
"""Elements larger than this are copied one by one when they are handed out, which is cheaper than a trip through the caches."""


class Copied(OneForOne):
    """Elements that share no memory with the input, and may be written to.

    `batch`, `rebatch`, `take` and the cut for replicas deliver views of what they read, which costs nothing; but a view keeps
    its whole source alive, and writing to it writes to the source. This op copies every element once. The memory of elements
    that the consumer has dropped is used again for later ones.

    Shapes and order: unchanged. State: where the next element stands in the input.

    >>> import distinput as di
    >>> import numpy as np
    >>> source = np.zeros(4)
    >>> for batch in di.data.Dataset.from_tensor_slices(source).batch(2).copied():
    ...     batch += 1
    >>> source
    array([0., 0., 0., 0.])

    Source: distinput's own; TensorFlow always delivers copies.
    """

    by_element = tolerant = harmless = keeps_batches = True
    view_only: ClassVar[bool] = True  # a copy is best made in the cache of the core that uses it, by its own thread

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    def stream(self, state: State, run: Run) -> Stream:
        late = run.late(self)
        for block, at in passing_over(self.input.open(state["input"], run), state):
            if type(block) is Failure:
                yield block, at(0)
                continue
            if run.by_element and block.nbytes > _LARGE_BYTES * block.size:
                yield CopyingBlock(block, late), at(block.size)
                continue
            most = max(1, _PIECE_BYTES * block.size // max(1, block.nbytes))
            for first in range(0, block.size, most):
                end = min(first + most, block.size)
                yield block.rows(first, end).copied(), at(end)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows, epoch).copied()
