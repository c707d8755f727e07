# SPDX-License-Identifier: Apache-2.0
"""Where reading stands, one file after the other: the notes on errors tell it, and a tolerant run goes on behind it."""

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

And the mark "behind" the file, where reading goes on after an "error" that came before its first record, or when the file is
"lost" because of a later one.
"""

PlacedPortion = tuple[Mark, Place, Portion | Failure]
"""A portion, or the error in its stead, with the mark of its file and where reading then stands."""


def places(
    queue: RowQueue, state: State, run: Run, opened: Callable[[Any, Any], Place]
) -> Iterator[tuple[Mark, Place]]:
    """Where to begin in each file, with the mark of its element.

    Args:
      queue: an element for each file.
      state: holds the position in the first of them.
      run: whether the next file follows one that cannot be read.
      opened: (element, position) -> the place there.
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
    """The records of files; in a tolerant run, the next file follows an error, which is a failure.

    Args:
      files: from `places`.
      read: the records from a place on, with the position behind each block.
      run: whether it is tolerant.
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
