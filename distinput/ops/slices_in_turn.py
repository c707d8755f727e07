# SPDX-License-Identifier: Apache-2.0
"""Several sources in memory as one step; a rewrite makes it of `concatenate`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block
from distinput.core.chunked import chunked
from distinput.core.column import Ints
from distinput.core.row_order import put_in_order
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.sizes import MOST_ROWS
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.ops.slices import Slices
from distinput.plan.in_memory import rows_from
from distinput.plan.node import Node

__all__ = ["SlicesInTurn"]

_TOGETHER = 16
"""How many small sources are sent in one block."""


@dataclass(frozen=True, eq=False)
class SlicesInTurn(Node):
    """The elements of several sources in memory, one source after the other; a `concatenate` of them becomes this.

    State: the row.

    Args:
      sources: at least two.
      common: the spec that all elements fit.
    """

    in_memory: ClassVar[bool] = True
    view_only: ClassVar[bool] = True
    by_element: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    sources: tuple[Slices, ...]
    common: Spec

    @cached_property
    def spec(self) -> Spec:
        return self.common

    def arguments(self) -> dict[str, Any]:
        return {"sources": len(self.sources)}

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @cached_property
    def ends(self) -> Ints:
        """[sources + 1] the number of rows before each source, and of all rows."""
        return np.cumsum([0, *[source.cardinality for source in self.sources]], dtype=np.int64)

    @property
    def cardinality(self) -> int:
        return int(self.ends[-1])

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def start_at(self, row: int, epoch: int) -> State:
        return {"row": row}

    def stream(self, state: State, run: Run) -> Stream:
        parts = self._parts(state["row"])
        for block, end in _together(parts) if run.by_element else parts:
            yield block, {"row": end}

    def _parts(self, row: int) -> Iterator[tuple[Block, int]]:
        """Blocks of the rows from `row` on, of one source each, and where each block ends."""
        first = int(np.searchsorted(self.ends, row, "right")) - 1
        for source, begin in zip(self.sources[first:], self.ends[first:].tolist(), strict=False):
            source.check()
            for block, end in rows_from(source.block.built_as(self.common.structure), max(0, row - begin)):
                yield block, begin + end

    @property
    def random_access(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        which = np.searchsorted(self.ends, rows, "right") - 1
        used = np.unique(which).tolist() or [0]
        places = [np.flatnonzero(which == number) for number in used]
        parts = [
            self.sources[number].fetch(rows[place] - self.ends[number], epoch)
            for number, place in zip(used, places, strict=True)
        ]
        return put_in_order(parts, places).built_as(self.common.structure)


def _together(parts: Iterator[tuple[Block, int]]) -> Iterator[tuple[Block, int]]:
    """The same rows, with several small sources in one block, not copied: a block costs too much for a few rows."""
    while some := list(islice(parts, _TOGETHER)):
        blocks = [block for block, _ in some]
        rows = sum([block.size for block in blocks])
        joined = chunked(blocks, 0, rows) if len(blocks) > 1 and rows <= MOST_ROWS else None
        yield from some if joined is None else [(joined, some[-1][1])]
