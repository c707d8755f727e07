# SPDX-License-Identifier: Apache-2.0
"""Keys for the random numbers of elements: what is below a `map` with `rng=True`."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, Failure
from distinput.columns.column import Dense, Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.plan.families import Seeded
from distinput.plan.node import Node, walk
from distinput.run.run import Run
from distinput.values.nest import structure_of
from distinput.values.randomness import key_of
from distinput.values.spec import Spec, TensorSpec

_PAIR = structure_of((0, 1))


@dataclass(frozen=True, eq=False)
class RandomKeys(Seeded):
    """Each element behind a key, from which its random numbers follow: (key, element).

    A key is two words: one of the seed, the pass and the step, and the position of the element in the whole. So an element
    has the same key however many threads, processes and workers there are, and after a restart.

    Shapes: uint64 [2] beside those of the input. State: the seed, the pass, and the position of the next element.

    Args:
      seed: any integer; None draws one, which a saved state remembers.
      step: which of the steps with random numbers it is, from the source on; None: one more than there are in the input.

    Raises:
      TypeError: `seed` is no integer.
    """

    by_element: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    chooses: ClassVar[bool] = False  # it says what an element's numbers are, and the input which element comes
    differs_by_place: ClassVar[bool] = True
    input: Node
    seed: int | None = None
    step: int | None = None

    def __post_init__(self) -> None:
        self.check_seed("map")
        if self.step is None:  # kept, since rewrites may move other steps
            steps = sum(isinstance(below, RandomKeys) for below in walk(self.input))
            object.__setattr__(self, "step", steps)

    @cached_property
    def spec(self) -> Spec:
        given = self.input.spec
        return Spec(_PAIR.graft([_KEY.structure, given.structure]), (*_KEY.leaves, *given.leaves))

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), **self.seeded(epoch)}

    def start_at(self, row: int, epoch: int) -> State | None:
        at = self.input.start_at(row, epoch)
        return None if at is None else {"input": at, **self.seeded(epoch, row)}

    def stream(self, state: State, run: Run) -> Stream:
        row = state["row"]
        for block, after in self.input.open(state["input"], run):
            if type(block) is Failure:  # it has no position
                yield block, {**state, "input": after, "row": row}
                continue
            row += block.size
            made = self._beside(block, np.arange(row - block.size, row), state)
            yield made, {**state, "input": after, "row": row}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return state["input"], ahead

    @property
    def random_access(self) -> bool:
        return self.input.random_access

    @property
    def fetches(self) -> bool:
        return self.input.fetches

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._beside(self.input.fetch(rows, epoch), rows, self.start(epoch))

    def _beside(self, block: Block, rows: Ints, state: State) -> Block:
        """Elements at these positions, behind their keys."""
        keys = np.empty((len(rows), 2), np.uint64)
        keys[:, 0] = key_of(state["seed"], state["epoch"], self.step or 0)
        keys[:, 1] = rows
        structure = _PAIR.graft([_KEY.structure, block.structure])
        return ColumnBlock(structure, [Dense(keys), *block.columnar().columns], block.size)


_KEY = Spec.of(TensorSpec([2], np.uint64))
