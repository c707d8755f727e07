# SPDX-License-Identifier: Apache-2.0
"""Steps that give one element for each element of their input, in the same order."""

from dataclasses import dataclass
from typing import ClassVar

from distinput.core.state import State
from distinput.plan.needs import Needs
from distinput.plan.node import Node

__all__ = ["OneForOne"]


@dataclass(frozen=True, eq=False)
class OneForOne(Node):
    """A step whose element i depends on element i of the input alone.

    State: the position of the next element in the input; a step that has the states of its input says so with
    `passes_states`. A step that cannot fetch single elements overrides `random_access`.
    """

    needs: ClassVar[Needs] = Needs.ONE
    input: Node

    @property
    def in_record_order(self) -> bool:
        return self.input.in_record_order

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        at = self.input.start_at(row, epoch)
        return None if at is None else {"input": at, "skip": 0}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return (state, ahead) if self.passes_states else (state["input"], ahead + state["skip"])

    @property
    def random_access(self) -> bool:
        return self.input.random_access
