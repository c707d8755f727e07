# SPDX-License-Identifier: Apache-2.0
"""The elements of a stream in parts for threads and processes, and the results of calling functions on a part.

A part takes a few milliseconds, however long one call takes: handing it over costs some microseconds for a thread and some tens
of microseconds for a process, and the first element waits for its whole part.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from distinput.core.block import Block
from distinput.core.calls import stopped
from distinput.core.failure import Failure
from distinput.core.rows import Stream, passing_over
from distinput.core.run import OpCounters, Run
from distinput.core.sizes import MOST_BYTES, rows_within
from distinput.core.state import Mark, State
from distinput.functions.chain import Chain, Kinds
from distinput.functions.claim import MadeBlock, behind, formed
from distinput.functions.compiled import Compiled
from distinput.functions.reads import Reads

__all__ = ["Calling", "Calls", "Done", "Note", "Parts", "Results", "Trouble", "work"]

Calls = Chain | Compiled | Reads

Note = Callable[[Exception, int, str], None]
"""Called with an error, the index of the function that raised it, and the element in words."""

Results = Iterator[MadeBlock]

_PART_SECONDS, _MOST_ROWS = 0.005, 4096


class Parts:
    """The elements of a stream in parts, with the marks after their rows.

    An error of the stream is raised after the elements before it; a failure in the stream is a part of its own. If results have
    `alone_bytes` or more, a part holds one element, so that nobody has to put large arrays side by side.
    """

    def __init__(self, upstream: Stream, state: State, most: int | None = None, alone_bytes: int = MOST_BYTES) -> None:
        self._most, self._alone_bytes = most or _MOST_ROWS, alone_bytes
        self._blocks = passing_over(upstream, state)
        self._rows: Block | None = None
        self._at: Callable[[int], Mark] = lambda _: {}
        self._first = 0
        self._failure: Exception | None = None
        self.size = 1
        self.large = False
        self.ended = False

    def next(self) -> tuple[Block, Callable[[int], Mark]] | None:
        """At most `size` elements, with a function that gives the mark after so many of them; None at the end."""
        if self._rows is None or self._first >= self._rows.size:
            try:
                self._rows, _, _, self._at = next(self._blocks)
            except StopIteration:
                self.ended = True
                return None
            except Exception as error:  # noqa: BLE001 - raised again by `close`
                self.ended, self._failure = True, error
                return None
            self._first = 0
            if type(self._rows) is Failure:
                failure, self._rows = self._rows, None
                return failure, self._at
        first, at = self._first, self._at
        part = self._rows.rows(first, first + self.size)
        self._first += part.size
        return part, lambda done: at(first + done)

    def took(self, done: "Done") -> None:
        """Choose the size of the next parts by the time that one took, and by the bytes of its results."""
        if rows := done.rows:
            nbytes = sum([part.nbytes for part in done.parts if isinstance(part, Block)])
            most = min(4 * self.size, rows_within(rows, nbytes, self._most)) if nbytes < self._alone_bytes * rows else 1
            self.size = int(max(1, min(_PART_SECONDS * rows / max(done.seconds, 1e-9), most)))
            self.large = nbytes > MOST_BYTES * rows

    def waiting(self, workers: int) -> int:
        """How many parts may be in progress: two for each worker, so that none is idle, unless they take much memory."""
        return workers if self.large else 2 * workers

    def close(self) -> None:
        """Raise the error that ended the stream, if one did."""
        if self._failure is not None:
            raise self._failure


@dataclass
class Trouble:
    """An error of a call: the index of the function, the element in words, and the traceback of another process."""

    error: Exception
    index: int
    element: str
    trace: str = ""


@dataclass
class Done:
    """The results of a part in blocks, with an error in the place of each missing result.

    From another process, also the specs of what the functions before the last return.
    """

    parts: list[Block | Trouble]
    seconds: float = 0.0
    kinds: Kinds = ()

    @property
    def rows(self) -> int:
        """How many results there are."""
        return sum([part.size for part in self.parts if isinstance(part, Block)])

    def delivered(self, given: Block, at: Callable[[int], Mark], note: Note, *, tolerant: bool) -> Results:
        """The results for the elements `given`. If `tolerant`, errors are failures; otherwise the first one is raised."""
        done = 0
        for part in self.parts:
            if isinstance(part, Block):
                yield part, behind(at, done), given.rows(done, done + part.size)
                done += part.size
                continue
            note(part.error, part.index, part.element)
            if not tolerant:
                raise part.error
            done += 1
            yield Failure(part.error), behind(at, done), given.rows(done, done)


@dataclass(frozen=True, eq=False)
class Calling:
    """Functions that are called in a pass.

    Args:
      chain: the functions.
      run: the pass.
      counter: the figures of the step in it.
      note: is called with the errors of the functions.
    """

    chain: Calls
    run: Run
    counter: OpCounters
    note: Note

    def parts(self, upstream: Stream, state: State) -> Parts:
        """The elements of a stream in parts; of one element each where nothing may be read ahead."""
        return Parts(upstream, state, None if self.run.run_ahead is None else 1)

    def work(self, rows: Block, over: Callable[[], bool] | None) -> Done:
        """The results for a part; see `work`."""
        return work(self.chain, rows, over, tolerant=self.run.tolerant)

    def delivered(self, done: Done, rows: Block, at: Callable[[int], Mark]) -> Results:
        """The results of a part one after the other; see `Done.delivered`."""
        return done.delivered(rows, at, self.note, tolerant=self.run.tolerant)


def work(chain: Calls, part: Block, over: Callable[[], bool] | None, *, tolerant: bool) -> Done:
    """Call the functions on the elements of a part until `over` returns true or, unless `tolerant`, there is an error."""
    stride = 1 if over is not None else part.size
    parts: list[Block | Trouble] = []
    begin = Run.clock()
    first = 0
    while first < part.size:
        results: list[Any] = []
        trouble: Trouble | None = None
        try:
            calls = chain.results(part.rows(first, part.size))
            while first + len(results) < part.size and (over is None or not over()):
                wanted = min(len(results) + stride, part.size - first)
                results.extend(islice(calls, stride))
                if len(results) < wanted:
                    raise stopped()
        except Exception as error:  # noqa: BLE001 - raised when its turn comes
            index, given = chain.place(error, part.row(first + len(results)))
            trouble = Trouble(error, index, chain.told(given))
        for made, place, _ in formed(results, chain.said) if results else ():
            if isinstance(made, Block):
                parts.append(made)
            else:
                parts.append(Trouble(made, len(chain.functions) - 1, chain.told(part.row(first + place))))
        if trouble is None:
            break
        parts.append(trouble)
        if not tolerant:
            break
        first += len(results) + 1
    return Done(parts, Run.clock() - begin)
