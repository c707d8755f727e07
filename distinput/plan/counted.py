# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for inputs of which only the number of elements matters."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.plan.node import UNKNOWN, Node

__all__ = ["Counted", "over_counts"]


@dataclass(frozen=True, eq=False)
class Counted(Node):
    """The elements of the input, whose number was found out by looking further than `cardinality` does."""

    input: Node
    number: int

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        return self.number

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State:
        return {}

    def stream(self, state: State, run: Run) -> Stream:
        return self.input.open(state, run)


def over_counts(node: Node, counts: Sequence[int]) -> Node:
    """The same step over inputs of so many elements, each a number, `INFINITE` or `UNKNOWN`."""
    known = [
        source if n in (UNKNOWN, source.cardinality) else Counted(source, n)
        for source, n in zip(node.inputs, counts, strict=True)
    ]
    same = all(new is old for new, old in zip(known, node.inputs, strict=True))
    return node if same else node.with_inputs(tuple(known))
