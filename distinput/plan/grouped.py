# SPDX-License-Identifier: Apache-2.0
"""Steps that put elements of their input into groups that begin at equal distances."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from distinput.core.state import State
from distinput.plan.needs import Needs
from distinput.plan.node import Node
from distinput.plan.record_places import record_in_words

__all__ = ["Grouped"]


@dataclass(frozen=True, eq=False)
class Grouped(Node):
    """A step whose element i is made of up to `needed` elements of the input, from number i * `step` on.

    State: the position of the next group's first element in the input.
    """

    needs: ClassVar[Needs] = Needs.PART
    input: Node

    @property
    @abstractmethod
    def step(self) -> int:
        """Elements from the start of one group to the start of the next."""

    @property
    def needed(self) -> int:
        """Elements from the first to the last of a full group."""
        return self.step

    def groups(self, *, full: bool) -> int:
        """How many groups there are, or how many full ones."""
        n = self.input.cardinality
        if n < 0:
            return n
        return max(0, (n - self.needed) // self.step + 1) if full else -(-n // self.step)

    def records_at(self, state: State, ahead: int) -> tuple[dict[str, Any], int] | None:
        found = self.input.records_at(state["input"], state["skip"] + ahead * self.step)
        return None if found is None else (found[0], found[1] * self.needed)

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        row = getattr(error, "_distinput_row", None)
        if row is None:
            return super().told_record(error, state, ahead)
        return record_in_words(self.input.records_at(state["input"], state["skip"] + ahead * self.step + row))

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        n = self.input.cardinality
        first = row * self.step
        at = self.input.start_at(first if n < 0 else min(n, first), epoch)
        return None if at is None else {"input": at, "skip": 0}
