# SPDX-License-Identifier: Apache-2.0
"""Failures: errors that travel in place of the elements that could not be made, and what is known of each."""

import errno
import sys
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from inspect import CO_GENERATOR
from typing import Any, Never, Protocol, final

from distinput.columns.block import Block, stack_prefix
from distinput.columns.column import StackError
from distinput.columns.state import Mark, State
from distinput.values.nest import LEAF

__all__ = [
    "Failure",
    "Step",
    "Trouble",
    "is_defect",
    "is_defect_within",
    "note_open_files",
    "of_all",
    "sound_parts",
    "stacked_parts",
    "trouble_of",
]


# ----------------------------------------------------------------------------
# What is known of an error on its way from where it was raised to the user: which step, which record, and what is lost.
# ----------------------------------------------------------------------------


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


# ----------------------------------------------------------------------------
# Failures: errors that travel in place of the elements that could not be made.
# ----------------------------------------------------------------------------


@final
class Failure(Block):
    """A block without rows that stands where an element would be, had there not been an error.

    Only streams of a tolerant run (`Run.tolerant`) hold failures; an op passes them on, each with the state after it.

    Args:
      error: what was raised.
    """

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.structure, self.size, self.error = LEAF, 0, error
        trace = error.__traceback__
        if trace is not None and trace.tb_frame.f_code.co_flags & CO_GENERATOR:
            # A stream that goes on. `traceback.clear_frames`, which unittest calls, would end it.
            error.__traceback__ = trace.tb_next

    def columnar(self) -> Never:
        raise TypeError("a failure has no columns, and would be lost with them; pass it on as it is")

    def rows(self, start: int, stop: int, step: int = 1) -> "Failure":
        return self

    def row(self, index: int) -> Never:
        raise IndexError("a failure has no rows")

    def elements(self) -> Iterator[Any]:
        return iter(())

    def copied(self) -> Never:
        raise TypeError("a failure has no rows to copy, and would be lost with them; pass it on as it is")

    @property
    def nbytes(self) -> int:
        return 0


def is_defect(error: BaseException) -> bool:
    """Whether an error is one of Python itself, such as an IndexError: a defect of a reader, which says nothing of the data.

    >>> is_defect(IndexError()), is_defect(ValueError())
    (True, True)
    >>> from distinput.errors import DataLossError
    >>> is_defect(DataLossError("a.txt")), is_defect(PermissionError())
    (False, False)
    """
    return type(error).__module__ == "builtins" and not isinstance(error, OSError)


_READERS = ("distinput.decoders.", "distinput.formats.", "distinput.kernels.")
_BENEATH = frozenset(sys.stdlib_module_names) | {"PIL", "numba", "numpy", "pyarrow", "simplejpeg"} - {"__main__"}
"""Modules that readers call."""


def is_defect_within(error: BaseException) -> bool:
    """Whether an error is a defect of a reader or decoder of ours that a function of the user's called.

    Told by the last function of Python that was called, apart from those of packages that readers are made of. Where an error
    is about to lose its traceback, on the way from another process, this is asked before and kept with it.
    """
    if hasattr(error, "_distinput_within"):
        return bool(error._distinput_within)
    found, trace = False, error.__traceback__
    while trace is not None and is_defect(error):
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in _BENEATH:
            found = module.startswith(_READERS)
        trace = trace.tb_next
    error._distinput_within = found  # type: ignore[attr-defined]
    return found


def note_open_files(error: BaseException) -> None:
    """Say with an error that no more files can be opened what the limit is, and how to stay below it."""
    if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
        return
    notes = getattr(error, "__notes__", [])
    if not any(note.startswith(_OPEN_FILES) for note in notes):
        error.add_note(
            f"{_OPEN_FILES}{_limit()}: raise the limit (`ulimit -n 65536` in the shell that starts it, or resource.setrlimit), "
            "or have fewer files open: a smaller cycle_length, fewer num_parallel_reads, shards, or iterators side "
            "by side"
        )


_OPEN_FILES = "this process, or the machine, has as many files and connections open as it may"


def _limit() -> str:
    try:
        import resource

        return f" (the process {resource.getrlimit(resource.RLIMIT_NOFILE)[0]})"
    except (ImportError, OSError):  # no POSIX, or no file for the module can be opened
        return ""


def of_all(error: Exception) -> Exception:
    """Mark an error as one of all rows made together, so that `sound_parts` does not search for the row at fault."""
    trouble_of(error).of_all = True
    return error


def sound_parts(size: int, make: Callable[[int, int], Block], *, tolerant: bool) -> Iterator[tuple[Block, int]]:
    """What `make(first, end)` gives for `size` rows, in as few parts as its errors allow; and the row after each part.

    A part for which it raises is cut in two, until single rows are left: these become failures, or, unless `tolerant`, the
    first of them is raised. So everything before an error is delivered, however many rows are made together.

    >>> from distinput.columns.block import ColumnBlock
    >>> def make(first: int, end: int) -> Block:
    ...     if first <= 2 < end:
    ...         raise ValueError("row 2")
    ...     return ColumnBlock(LEAF, (), end - first)
    >>> [(type(part).__name__, part.size, end) for part, end in sound_parts(5, make, tolerant=True)]
    [('ColumnBlock', 2, 2), ('Failure', 0, 3), ('ColumnBlock', 2, 5)]
    """
    waiting = [(0, size)]
    whole: Exception | None = None
    while waiting:
        first, end = waiting.pop()
        try:
            part = make(first, end)
        except Exception as error:  # noqa: BLE001 - becomes a failure in its place, or is raised there
            whole = whole or error
            if end - first > 1 and not trouble_of(error).of_all:
                middle = (first + end) // 2
                waiting += [(middle, end), (first, middle)]
                continue
            if not tolerant:
                if whole is not error:  # the error of all rows names them, that of the single row says which one it is
                    _take_notes(whole, error)
                raise whole from None
            part = Failure(error)
        yield part, end
    if whole is not None and not tolerant:
        raise whole  # an error of the rows together, though each alone is sound


def _take_notes(error: Exception, other: Exception) -> None:
    notes = getattr(error, "__notes__", [])
    error.__notes__ = [note for note in getattr(other, "__notes__", []) if note not in notes] + notes


def stacked_parts(
    block: Block, size: int, told: Callable[[StackError], Exception], *, tolerant: bool
) -> Iterator[tuple[Block, int]]:
    """`block.stack(size)`, with a failure for each batch whose elements differ in shape; and the row behind each part.

    Args:
      block: whole batches.
      size: elements in a batch.
      told: what to raise for a batch that cannot be stacked.
      tolerant: whether it is a failure, or raised.
    """
    done = 0
    while done < block.size:
        made, error = stack_prefix(block.rows(done, block.size), size)
        done += made.size * size
        if made.size:
            yield made, done
        if error is not None:
            if not tolerant:
                raise told(error)
            done += size
            yield Failure(told(error)), done
