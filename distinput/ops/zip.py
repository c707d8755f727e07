# SPDX-License-Identifier: Apache-2.0
"""`zip`: elements of several datasets side by side."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from distinput.columns.block import Block, ColumnBlock, Failure
from distinput.columns.column import Column, Ints
from distinput.columns.rows import RowQueue, Stream
from distinput.columns.state import State
from distinput.names.lazy import dataclass
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node, Provenance
from distinput.run.run import Run
from distinput.values.nest import Structure
from distinput.values.spec import Spec


@dataclass(frozen=True, eq=False)
class Zip(Node):
    """Elements nested as the datasets are; ends with the shortest.

    Shapes: unchanged. State: where the next row of each input stands.

    Args:
      nest: the structure whose leaves are the datasets.
      sources: the datasets in flattening order.

    Source: `tf.data.Dataset.zip`.
    """

    tolerant = harmless = keeps_batches = True
    needs: ClassVar[Needs] = Needs.PLACES
    nest: Structure
    sources: tuple[Node, ...]

    @cached_property
    def spec(self) -> Spec:
        structure = self.nest.graft([source.spec.structure for source in self.sources])
        return Spec(structure, tuple([leaf for source in self.sources for leaf in source.spec.leaves]))

    @property
    def cardinality(self) -> int:
        sizes = [source.cardinality for source in self.sources]
        finite = [n for n in sizes if n != INFINITE]
        if not finite:
            return INFINITE
        return UNKNOWN if UNKNOWN in finite else min(finite)

    def arguments(self) -> dict[str, Any]:
        return {"structure": str(self.nest)}

    def start(self, epoch: int) -> State:
        return {"inputs": [{"input": source.start(epoch), "skip": 0} for source in self.sources]}

    def start_at(self, row: int, epoch: int) -> State | None:
        starts = [source.start_at(row, epoch) for source in self.sources]
        return None if None in starts else {"inputs": [{"input": at, "skip": 0} for at in starts]}

    def place_of(self, state: State, ahead: int) -> dict[str, Any] | None:
        return _only([node.place_of(*at) for node, at in self._sources_of(state, ahead)])

    def records_at(self, state: State, ahead: int) -> Provenance | None:
        return _only([node.records_at(*at) for node, at in self._sources_of(state, ahead)])

    def _sources_of(self, state: State, ahead: int) -> list[tuple[Node, tuple[State, int]]]:
        marks = [(mark["input"], mark["skip"] + ahead) for mark in state["inputs"]]
        return list(zip(self.sources, marks, strict=True))

    def stream(self, state: State, run: Run) -> Stream:
        sharing = run.sharing(len(self.sources))
        queues = [
            RowQueue(source.open(mark["input"], sharing), mark)
            for source, mark in zip(self.sources, state["inputs"], strict=True)
        ]
        structure: Structure | None = None
        while True:
            if all(queue.fill(1) for queue in queues):
                size = min(queue.front for queue in queues)
                blocks = [queue.take(size) for queue in queues]
                structure = structure or self.nest.graft([block.structure for block in blocks])
                made = _beside(structure, blocks)
            else:
                failure = _lost(queues)
                if failure is None:
                    self._ask_once_more(queues)
                    return
                made = failure
            yield made, {"inputs": [queue.mark() for queue in queues]}

    def _ask_once_more(self, queues: Sequence[RowQueue]) -> None:
        """Let caches see their own end where another input has ended, so that they become whole, as in TensorFlow."""
        for source, queue in zip(self.sources, queues, strict=True):
            if any(step.keeps for step in source.lasting):
                with suppress(Exception):
                    queue.fill(1)

    @property
    def random_access(self) -> bool:
        return all(source.random_access for source in self.sources)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        blocks = [source.fetch(rows, epoch) for source in self.sources]
        return _beside(self.nest.graft([block.structure for block in blocks]), blocks)


T = TypeVar("T")


def _only(found: Sequence[T | None]) -> T | None:
    """The only one that is known: with several records beside each other, none is that of the element."""
    known = [one for one in found if one is not None]
    return known[0] if len(known) == 1 else None


def _lost(queues: Sequence[RowQueue]) -> Failure | None:
    """The first of the next failures; the elements beside it are lost with it. None if an earlier input has ended."""
    found: Failure | None = None
    for queue in queues:
        if queue.fill(1):
            queue.skip(1)
        elif queue.failure is not None:
            failure = queue.passed()
            found = found or failure
        else:
            break  # as in TensorFlow, which does not look at the inputs after one that has ended
    return found


def _beside(structure: Structure, blocks: Sequence[Block]) -> Block:
    columns: list[Column] = [column for block in blocks for column in block.columnar().columns]
    return ColumnBlock(structure, columns, blocks[0].size)
