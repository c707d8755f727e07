# SPDX-License-Identifier: Apache-2.0
"""Which record an element comes from: for notes on errors, and for those who ask for the records of a batch."""

from dataclasses import dataclass
from typing import Any, TypeVar

from distinput.core.state import State
from distinput.core.trouble import trouble_of
from distinput.plan.tree import Tree

__all__ = ["Provenance", "RecordPlaces", "record_in_words"]

_TOLD = 8
"""Records that are named one by one."""

P = TypeVar("P", bound="RecordPlaces[Any]")


@dataclass(frozen=True)
class Provenance:
    """The records that an element is made of, in order.

    Args:
      runs: records that follow each other in a file: its name, the first one, and how many.
      more: whether there may be others.
    """

    runs: tuple[tuple[str, int, int], ...]
    more: bool = False

    def __add__(self, other: "Provenance") -> "Provenance":
        runs = list(self.runs)
        for file, row, count in other.runs:
            if runs and runs[-1][0] == file and sum(runs[-1][1:]) == row:
                runs[-1] = file, runs[-1][1], runs[-1][2] + count
            else:
                runs.append((file, row, count))
        return Provenance(tuple(runs), self.more or other.more)


class RecordPlaces(Tree[P]):
    """A step that can say where its elements come from, by a state of its own.

    An op whose elements are made of one element of its input each says which one (`source_of`); one that reads records says
    which those are (`place_of`). An op that says nothing has elements that come from nowhere.
    """

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        """Which element of its input an element is, or is made of alone: as state and distance; None: not known.

        Args:
          state: one of this step.
          ahead: as for `place_of`.
        """
        return None

    def place_of(self, state: State, ahead: int) -> dict[str, Any] | None:
        """The "file" and "row" of the record that an element comes from, where element i comes from record i; None: not known.

        Args:
          state: one of this step.
          ahead: how many elements the element is behind that state: 0 for the next one, -1 for the last one.
        """
        if self.transparent:
            return self.inputs[0].place_of(state, ahead)
        at = self.source_of(state, ahead)
        return None if at is None else self.input_at(state).place_of(*at)

    def input_at(self, state: State) -> P:
        """The node that `state["input"]` is a state of, for a state of this step."""
        return self.inputs[0]

    @property
    def in_record_order(self) -> bool:
        """Whether elements come from records that follow each other, as long as they are in one file."""
        return self.transparent and self.inputs[0].in_record_order

    def records_at(self, state: State, ahead: int) -> Provenance | None:
        """The records that an element is made of; None: not known."""
        if self.transparent:
            return self.inputs[0].records_at(state, ahead)
        at = self.source_of(state, ahead)
        if at is not None:
            return self.input_at(state).records_at(*at)
        place = self.place_of(state, ahead)
        return None if place is None or place["row"] is None else Provenance(((place["file"], place["row"], 1),))

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        """Which record an error of this step is about, in words; None: not known; empty: the next one to be read.

        Args:
          error: its trouble may hold the mark of the element that a function failed on.
          state: one of this step.
          ahead: how many elements the one at fault is behind that state.
        """
        mark = trouble_of(error).mark
        if mark is None:
            return record_in_words(self.records_at(state, ahead))
        return record_in_words(self.input_at(state).records_at(mark["input"], mark["skip"]))


def record_in_words(found: Provenance | None) -> str | None:
    """Records for a note on an error."""
    if found is None or not found.runs:
        return None
    file, row, count = found.runs[0]
    others = " and perhaps others" if found.more else ""
    if len(found.runs) == 1:
        return f"record {row:,} of {file}" + (f" and the {count - 1} after it" if count > 1 else "") + others
    parts = [_rows_in_words(name, found) for name in dict.fromkeys([run[0] for run in found.runs])]
    return "; ".join(parts[:_TOLD]) + (others if len(parts) <= _TOLD else "; and of other files")


def _rows_in_words(file: str, found: Provenance) -> str:
    rows = [row for name, first, count in found.runs if name == file for row in range(first, first + count)]
    told = len(rows) if len(rows) <= _TOLD + 1 else _TOLD
    shown = [f"{row:,}" for row in rows[:told]]
    last = f" and {len(rows) - told} others" if len(rows) > told else f" and {shown.pop()}" if len(shown) > 1 else ""
    return f"record{'s' if len(rows) > 1 else ''} {', '.join(shown)}{last} of {file}"
