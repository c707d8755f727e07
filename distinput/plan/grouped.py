# SPDX-License-Identifier: Apache-2.0
"""Steps that put elements of their input into groups that begin at equal distances."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from distinput.core.state import State
from distinput.core.trouble import trouble_of
from distinput.plan.needs import Needs
from distinput.plan.node import Node
from distinput.plan.record_places import Provenance, record_in_words

__all__ = ["Grouped"]

_MOST = 64
"""Elements of a group whose records are looked for one by one, for a note on an error."""


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

    @property
    def members(self) -> range:
        """The elements of a full group, counted from its first one."""
        return range(self.needed)

    def records_at(self, state: State, ahead: int) -> Provenance | None:
        at, first = state["input"], state["skip"] + ahead * self.step
        members = self.members
        records = self.input.records_at(at, first)
        if records is None:
            return None
        if self.input.in_record_order and members.step == 1 and len(records.runs) == 1:
            last = self.input.records_at(at, first + members[-1])
            file, row, count = records.runs[0]
            if last is not None and last.runs[-1][0] == file and sum(last.runs[-1][1:]) == row + count * len(members):
                return Provenance(((file, row, count * len(members)),))
        for number in members[1:_MOST]:
            record = self.input.records_at(at, first + number)
            if record is None:  # the group may end here, or nobody knows
                return replace(records, more=True)
            records += record
        return replace(records, more=records.more or len(members) > _MOST)

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        row = trouble_of(error).row
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
