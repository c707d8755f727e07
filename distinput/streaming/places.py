# SPDX-License-Identifier: Apache-2.0
"""Reading one file after the other, and where it stands: for notes on errors, and to go on after a file that fails."""

from collections.abc import Callable, Iterator
from typing import Any

from distinput.core.block import Block
from distinput.core.failure import Failure, is_defect
from distinput.core.rows import RowQueue, Stream
from distinput.core.run import Run
from distinput.core.state import Mark, State
from distinput.core.trouble import trouble_of
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files.source import stamp_of
from distinput.formats.portion import Portion

__all__ = ["DAMAGE", "Past", "PlacedPortion", "ReadingPlace", "blocks_in", "failure_at", "places", "portions_in"]

ReadingPlace = dict[str, Any]
"""Where reading stands, for notes on errors: the "path" of a file, and the "position" in it.

Also the mark "behind" the file, where reading resumes after an "error" before its first record, or once the file is "lost"
because of a later error; and "stated_rows", which tells how many records a file says it has.
"""

PlacedPortion = tuple[Mark, ReadingPlace, Portion | Failure]
"""A portion, or the error in its place, with the mark of its file and where reading stands."""


def places(
    queue: RowQueue, state: State, run: Run, opened: Callable[[Any, Any], ReadingPlace]
) -> Iterator[tuple[Mark, ReadingPlace]]:
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
        place: ReadingPlace
        name: Any = None
        try:
            if queue.size:
                name = queue.take(1).row(0)
                place = opened(name, position)
            else:
                place = {"error": queue.passed().error}
        except Exception as error:
            if not run.tolerant or is_defect(error):
                raise
            place = {"error": error}
            if isinstance(name, bytes):
                place |= {"path": name.decode(errors="replace"), "position": position}
        place["behind"] = {**queue.mark(), "position": None}
        yield mark, place
        position = None


DAMAGE = (DataLossError, InvalidArgumentError)
"""Errors of a record, behind which there may be others."""


ReadFrom = Callable[[ReadingPlace], Iterator[tuple[Block, Any]]]

Past = Callable[[str, Any], Any]
"""(path, position of a damaged record) -> the position of the next one that can be read; None: there is none."""


def blocks_in(
    files: Iterator[tuple[Mark, ReadingPlace]],
    read: ReadFrom,
    run: Run,
    past: Past | None = None,
    *,
    one_version: bool = False,
) -> Stream:
    """The records of files; in a tolerant run an error is delivered as a failure, and reading goes on with the next file.

    Args:
      files: from `places`.
      read: gives the records from a place on, with the position after each block.
      run: says whether it is tolerant.
      past: finds where to go on behind one; None: with the next file.
      one_version: in a tolerant run the rest of a file is lost once it has changed, be it for going on behind a damaged record.
    """
    for mark, place in files:
        if "error" in place:
            yield failure_at(place["error"], place), place["behind"]
            continue
        try:
            yield from _read(place, read, mark, run, past, one_version)
        except Exception as error:
            if not run.tolerant or is_defect(error):
                raise
            yield failure_at(error, place), place["behind"]


def _read(place: ReadingPlace, read: ReadFrom, mark: Mark, run: Run, past: Past | None, one_version: bool) -> Stream:
    """The records of a file from a place on; where reading can go on behind damage, with a failure in its place."""
    stamp = stamp_of(place["path"]) if one_version and run.tolerant else None
    unsure = False  # whether the file was opened again
    while True:
        try:
            for block, after in read(place):
                if unsure:
                    _check_same(place, stamp)
                unsure = False
                place["position"] = after
                yield block, {**mark, "position": after}
            return
        except DAMAGE as error:
            if stamp is not None:
                _check_same(place, stamp, error)
            behind = None if past is None else past(place["path"], place["position"])
            if behind is None or not run.tolerant:
                raise
            failure = failure_at(error, place, behind)
            place["position"], unsure = behind, stamp is not None
            yield failure, {**mark, "position": behind}


def _check_same(place: ReadingPlace, stamp: str | None, error: Exception | None = None) -> None:
    """Reject what a file holds that has changed since this stamp: it does not belong to what was read before.

    Raises:
      DataLossError: it has changed.
    """
    try:
        if stamp_of(place["path"]) == stamp:
            return
    except NotFoundError:
        pass
    place.pop("stated_rows", None)  # of which of its versions?
    raise DataLossError(
        f"{place['path']}: changed while it was read, and nothing is read of its other version; write another file under "
        f"another name instead{'' if error is None else f'; noticed at: {error}'}"
    ) from error


def failure_at(error: Exception, place: ReadingPlace, behind: Any = None) -> Failure:
    """A failure of reading, which says in which file it was, from which record on, and how much is lost with it.

    Args:
      error: what was raised.
      place: where.
      behind: the position in the file from which on it is read; None: the rest of the file, or fragment, is lost.
    """
    if "path" in place:
        position = place["position"]
        if "fragment" in place and "row" not in place["fragment"].start:  # rows are counted from its beginning
            position = {**(position or {}), "row": None}
        trouble = trouble_of(error)
        trouble.place = place["path"], position
        if "error" not in place:
            trouble.lost = _lost(place, position, behind), behind is None
    return Failure(error)


def _lost(place: ReadingPlace, position: Any, behind: Any) -> int | None:
    """The records from a position to the one where reading goes on, or to the end; None: nobody knows."""
    fragment = place.get("fragment")
    end = behind if behind is not None or fragment is None else fragment.stop
    first, stop = [at.get("row") if isinstance(at, dict) else None for at in (position or {"row": 0}, end)]
    if end is None and "stated_rows" in place:
        try:
            stop = place["stated_rows"](place["path"])
        except Exception:  # noqa: BLE001 - the file is damaged: it need not be able to tell
            stop = None
    return None if first is None or stop is None or stop < first else int(stop - first)


def portions_in(
    files: Iterator[tuple[Mark, ReadingPlace]], read: Callable[[ReadingPlace], Iterator[Portion]], run: Run
) -> Iterator[PlacedPortion]:
    """As `blocks_in`, for `portions_ahead`."""
    for mark, place in files:
        if "error" in place:
            yield mark, place, failure_at(place["error"], place)
            continue
        try:
            for portion in read(place):
                if "lost" in place:
                    break
                yield mark, place, portion
        except Exception as error:
            if not run.tolerant or is_defect(error):
                raise
            yield mark, place, failure_at(error, place)
