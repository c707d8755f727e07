# SPDX-License-Identifier: Apache-2.0
"""What is known of an error on its way from where it was raised to the user: which step, which record, and what is lost."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from distinput.core.state import Mark, State

__all__ = ["Step", "Trouble", "trouble_of"]


class Step(Protocol):
    """What a run needs to know about a node."""

    @property
    def op(self) -> str:
        """Its name."""

    @property
    def origin(self) -> Hashable:
        """The line that made it."""

    def where(self) -> str:
        """Both, for a note on an error."""

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        """Which record an error is about, for a note; None if it is not known, "" if it is the next one to be read."""


@dataclass
class Trouble:
    """What the steps that an error passes know of it; each fills in what it knows, and the innermost knows best.

    Args:
      step: the step that handed the error on as a failure; None: it was raised.
      mark: where the element stands that a function failed on; None: no function failed.
      row: the row at fault in a group of elements; None: not known.
      place: the file that was read, and the position in it; None: it was not raised by reading.
      lost: how many records are lost with it, None if nobody knows; and whether these are all up to the end of the file.
      last: whether nobody goes on after it.
      of_all: whether all rows are at fault together, so that nobody has to look for one.
      keys: of the sample of an archive at fault, or nothing where it is not known which; None: it is about no sample.
      located: whether a note says where it happened.
      told: whether a note says which record it is about.
    """

    step: Step | None = None
    mark: Mark | None = None
    row: int | None = None
    place: tuple[str, Any] | None = None
    lost: tuple[int | None, bool] = (1, False)
    last: bool = False
    of_all: bool = False
    keys: tuple[bytes, ...] | None = None
    located: bool = False
    told: bool = False


def trouble_of(error: BaseException) -> Trouble:
    """What is known of an error, to be read and filled in.

    >>> error = ValueError()
    >>> trouble_of(error).row = 3
    >>> trouble_of(error).row
    3
    """
    known: Trouble | None = getattr(error, "_distinput_trouble", None)
    if known is None:
        known = Trouble()
        error._distinput_trouble = known  # type: ignore[attr-defined]
    return known
