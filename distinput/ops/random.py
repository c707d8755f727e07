# SPDX-License-Identifier: Apache-2.0
"""`random`: random integers without an end."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Ints
from distinput.columns.dense import Dense
from distinput.columns.rows import Stream
from distinput.columns.sizes import block_rows
from distinput.columns.state import State
from distinput.plan.families import Seeded
from distinput.plan.node import INFINITE
from distinput.run.run import Run
from distinput.values.nest import LEAF
from distinput.values.random import words_of
from distinput.values.spec import Spec

__all__ = ["Random"]


@dataclass(frozen=True, eq=False)
class Random(Seeded):
    """Random integers from 0 to 2 ** 32 - 1, each equally likely, without an end.

    Each number is a function of the seed, the pass and its position. They are not the numbers of TensorFlow.

    Shapes: int64 scalars. State: the seed, the pass and the next row.

    Args:
      seed: any integer; None draws one, which a saved state remembers, and gives other numbers in each pass.
      rerandomize_each_iteration: True: other numbers in each pass, with a seed too.

    Raises:
      TypeError: `seed` is no integer.

    Source: `tf.data.Dataset.random`.
    """

    harmless: ClassVar[bool] = True
    seed: int | None = None
    rerandomize_each_iteration: bool | None = None

    def __post_init__(self) -> None:
        self.check_seed("random")

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), np.int64)

    @property
    def cardinality(self) -> int:
        return INFINITE

    @property
    def reshuffles(self) -> bool:
        return self.seed is None or bool(self.rerandomize_each_iteration)

    def start(self, epoch: int) -> State:
        return self.seeded(epoch)

    def start_at(self, row: int, epoch: int) -> State:
        return self.seeded(epoch, row)

    def stream(self, state: State, run: Run) -> Stream:
        row, most = state["row"], block_rows(8)
        while True:
            yield self._block(np.arange(row, row + most), state), {**state, "row": row + most}
            row += most

    @property
    def random_access(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._block(rows, self.start(epoch))

    def _block(self, rows: Ints, state: State) -> Block:
        """The numbers of these rows: [n] -> [n]."""
        words = words_of(self.key_of_pass(state), rows)
        return ColumnBlock(LEAF, [Dense((words >> np.uint64(32)).astype(np.int64))], len(rows))
