# SPDX-License-Identifier: Apache-2.0
"""Which record an element comes from: for notes on errors, and for those who ask for the records of a batch."""

from typing import Any, TypeVar

from distinput.core.state import State
from distinput.plan.tree import Tree

__all__ = ["RecordPlaces", "record_in_words"]

P = TypeVar("P", bound="RecordPlaces[Any]")


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

    def records_at(self, state: State, ahead: int) -> tuple[dict[str, Any], int] | None:
        """The `place_of` the first record that an element is made of, and how many records it is made of; None: not known."""
        if self.transparent:
            return self.inputs[0].records_at(state, ahead)
        at = self.source_of(state, ahead)
        if at is not None:
            return self.input_at(state).records_at(*at)
        place = self.place_of(state, ahead)
        return None if place is None else (place, 1)

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        """Which record an error of this step is about, in words; None: not known; empty: the next one to be read.

        Args:
          error: it may hold the state before the element that a function failed on (`core.calls`).
          state: one of this step.
          ahead: how many elements the one at fault is behind that state.
        """
        mark = getattr(error, "_distinput_mark", None)
        if mark is None:
            return record_in_words(self.records_at(state, ahead))
        return record_in_words(self.input_at(state).records_at(mark["input"], mark["skip"]))


def record_in_words(found: tuple[dict[str, Any], int] | None) -> str | None:
    """Records for a note on an error."""
    if found is None or found[0]["row"] is None:
        return None
    place, count = found
    more = f" and the {count - 1} after it" if count > 1 else ""
    return f"record {place['row']:,} of {place['file']}{more}"
