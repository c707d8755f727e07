# SPDX-License-Identifier: Apache-2.0
"""Large elements that are copied one by one as they are handed out, so each copy is in the cache when it is used."""

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, final

from distinput.core.block import Block, ColumnBlock

__all__ = ["CopyingBlock"]

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

    def copied(self) -> ColumnBlock:
        return self.block.copied()

    @property
    def nbytes(self) -> int:
        return self.block.nbytes
