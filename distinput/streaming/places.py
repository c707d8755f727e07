# SPDX-License-Identifier: Apache-2.0
"""Reading one file after the other, and where it stands: for notes on errors, and to go on after a file that fails."""

from collections.abc import Callable, Iterator
from typing import Any

from distinput.core.block import Block
from distinput.core.failure import Failure
from distinput.core.rows import RowQueue, Stream
from distinput.core.run import Run
from distinput.core.state import Mark, State
from distinput.formats.portion import Portion

__all__ = ["Place", "PlacedPortion", "blocks_in", "places", "portions_in"]

Place = dict[str, Any]
"""Where reading stands, for notes on errors: the "path" of a file, and the "position" in it.

Also the mark "behind" the file, where reading resumes after an "error" before its first record, or once the file is "lost"
because of a later error.
"""

PlacedPortion = tuple[Mark, Place, Portion | Failure]
"""A portion, or the error in its place, with the mark of its file and where reading stands."""


def places(
    queue: RowQueue, state: State, run: Run, opened: Callable[[Any, Any], Place]
) -> Iterator[tuple[Mark, Place]]:
    """Where to begin in each file, with the mark of its element.

    Args:
      queue: one element for each file.
      state: holds the position in the first file.
      run: says whether reading goes on after a file that cannot be opened.
      opened: (element, position) -> the place at which to begin.
    """
    position = state["position"]
    while queue.fill(1) or queue.failure is not None:
        mark = queue.mark()
        place: Place
        try:
            place = opened(queue.take(1).row(0), position) if queue.size else {"error": queue.passed().error}
        except Exception as error:
            if not run.tolerant:
                raise
            place = {"error": error}
        place["behind"] = {**queue.mark(), "position": None}
        yield mark, place
        position = None


def blocks_in(
    files: Iterator[tuple[Mark, Place]], read: Callable[[Place], Iterator[tuple[Block, Any]]], run: Run
) -> Stream:
    """The records of files; in a tolerant run an error is delivered as a failure, and reading goes on with the next file.

    Args:
      files: from `places`.
      read: gives the records from a place on, with the position after each block.
      run: says whether it is tolerant.
    """
    for mark, place in files:
        try:
            if "error" in place:
                raise place["error"]
            for block, after in read(place):
                place["position"] = after
                yield block, {**mark, "position": after}
        except Exception as error:
            if not run.tolerant:
                raise
            yield Failure(error), place["behind"]


def portions_in(
    files: Iterator[tuple[Mark, Place]], read: Callable[[Place], Iterator[Portion]], run: Run
) -> Iterator[PlacedPortion]:
    """As `blocks_in`, for `portions_ahead`."""
    for mark, place in files:
        try:
            if "error" in place:
                raise place["error"]
            for portion in read(place):
                if "lost" in place:
                    break
                yield mark, place, portion
        except Exception as error:
            if not run.tolerant:
                raise
            yield mark, place, Failure(error)
