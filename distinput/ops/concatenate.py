# SPDX-License-Identifier: Apache-2.0
"""`concatenate`: one dataset after another."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block
from distinput.columns.column import Ints
from distinput.columns.picked import put_in_order
from distinput.columns.ragged import Datasets
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.names.lazy import dataclass
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.families import common_spec, in_one_order
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node
from distinput.run.run import Run
from distinput.values.spec import Spec


@dataclass(frozen=True, eq=False)
class Concatenate(Node):
    """The elements of `input`, then those of `dataset`.

    Shapes: where the two differ, the common shape with unknown dimensions. State: which of the two, and its state.

    Args:
      dataset: the dataset that follows; same structure and dtypes.

    Raises:
      TypeError: structures or dtypes differ.

    >>> import distinput as di
    >>> di.data.Dataset.range(2).concatenate(di.data.Dataset.range(5, 7)).to_list()
    [0, 1, 5, 6]

    Source: `tf.data.Dataset.concatenate`.
    """

    tolerant = harmless = keeps_batches = True
    needs: ClassVar[Needs] = Needs.PART
    input: Node
    dataset: Node

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, Node):
            raise TypeError(f"concatenate: dataset must be a dataset, got {self.dataset!r}")
        if self.input.known_spec is not None and self.dataset.known_spec is not None:
            self.spec  # noqa: B018 - what differs is refused now

    @cached_property
    def spec(self) -> Spec:
        return common_spec("concatenate", (self.input, self.dataset))

    @property
    def cardinality(self) -> int:
        a, b = self.input.cardinality, self.dataset.cardinality
        if INFINITE in (a, b):
            return INFINITE
        return UNKNOWN if UNKNOWN in (a, b) else a + b

    def batch_sizes(self) -> BatchSizes | None:
        first, second = self.input.batch_sizes(), self.dataset.batch_sizes()
        return None if first is None or second is None else first.then(second)

    def start(self, epoch: int) -> State:
        return {"part": 0, "epoch": epoch, "input": self.input.start(epoch)}

    def state_misfit(self, state: State) -> str | None:
        return None if state["part"] <= 1 else "concatenate: 'part' must be 0 or 1"

    def input_at(self, state: State) -> Node:
        return self.inputs[state["part"]]

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return state["input"], ahead

    def start_at(self, row: int, epoch: int) -> State | None:
        n = self.input.cardinality
        if n == UNKNOWN:
            return None
        part = 0 if n == INFINITE or row < n else 1
        at = self.inputs[part].start_at(row - n * part, epoch)
        return None if at is None else {"part": part, "epoch": epoch, "input": at}

    def stream(self, state: State, run: Run) -> Stream:
        epoch, upstream = state["epoch"], state["input"]
        kinds: list[list[Any]] = []  # of the first element of each part that had one
        for part in range(state["part"], 2):
            source, seen = self.inputs[part], len(kinds)
            opened = source.open(source.start(epoch) if upstream is None else upstream, run)
            for block, after in in_one_order(opened, lambda: self.spec) if part else opened:
                if len(kinds) == seen and block.size:
                    kinds.append(_kind_of(block))
                    if seen and kinds[0] != kinds[1]:
                        self.spec  # noqa: B018 - the error that could not be told without calling functions
                yield block, {"part": part, "epoch": epoch, "input": after}
            upstream = None

    @property
    def random_access(self) -> bool:
        return self.input.random_access and self.dataset.random_access and self.input.cardinality >= 0

    def fetch(self, rows: Ints, epoch: int) -> Block:
        n = self.input.cardinality
        first = rows < n
        if first.all():
            return self.input.fetch(rows, epoch)
        if not first.any():
            return self.dataset.fetch(rows - n, epoch).built_as(self.spec.structure)
        parts = [self.input.fetch(rows[first], epoch), self.dataset.fetch(rows[~first] - n, epoch)]
        return put_in_order(parts, [np.flatnonzero(first), np.flatnonzero(~first)])


def _kind_of(block: Block) -> list[Any]:
    """What elements of both datasets must have alike: structure and dtypes, but for datasets as components."""
    return [block.structure, *(None if isinstance(c, Datasets) else c.dtype for c in block.columnar().columns)]
