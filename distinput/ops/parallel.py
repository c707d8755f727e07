# SPDX-License-Identifier: Apache-2.0
"""A chain of functions called by several threads, with the results in the order of the elements.

Work is handed out in parts of a few milliseconds, however long one call takes: a part costs some microseconds on a thread
and some tens of them in a process, and the first element waits for its part.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from threading import Event
from typing import Any

from distinput.core.block import Block
from distinput.core.calls import element_text, stopped
from distinput.core.failure import Failure
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Counter, Run
from distinput.core.sizes import MOST_BYTES, rows_within
from distinput.core.state import Mark, State
from distinput.ops.autotune import Trial
from distinput.ops.chain import Chain, Kinds
from distinput.ops.claim import Made, behind, formed
from distinput.ops.compiled import Compiled

__all__ = [
    "Calls",
    "Done",
    "Note",
    "Parts",
    "Results",
    "Trouble",
    "called_as_measured",
    "called_in_threads",
    "trial",
    "work",
]

Calls = Chain | Compiled

Note = Callable[[Exception, int, str], None]
"""Told of an error: which function of the chain raised it, and on which element."""

Results = Iterator[Made]

_PART_SECONDS, _MOST_ROWS = 0.005, 4096
_LEAST_CALL, _BEFORE_TRIAL, _TRIAL_PARTS, _GAIN = 10e-6, 0.02, 16, 5 / 6
"""AUTOTUNE tries threads for calls of at least so many seconds, after so many seconds of them, for so many parts, and keeps
them where an element then takes less than this part of its time without."""

_NOT_FASTER = "inline, since threads were not faster"


class Parts:
    """The elements of a stream in parts, and where each ends; an error of the stream comes after what came before it.

    A failure of the stream is a part of its own.
    """

    def __init__(self, upstream: Stream, state: State, most: int | None = None) -> None:
        self._most = most or _MOST_ROWS
        self._blocks = passing_over(upstream, state)
        self._rows: Block | None = None
        self._at: Callable[[int], Mark] = lambda _: {}
        self._first = 0
        self._failure: Exception | None = None
        self.size = 1
        self.large = False
        self.ended = False

    def next(self) -> tuple[Block, Callable[[int], Mark]] | None:
        """The next elements, `size` at most, and the mark after so many of them; None when there are no more."""
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
        """Choose the size of the next parts by how long one took, and by the bytes of what came of it."""
        if rows := done.rows:
            nbytes = sum([part.nbytes for part in done.parts if isinstance(part, Block)])
            most = min(4 * self.size, rows_within(rows, nbytes, self._most))
            self.size = int(max(1, min(_PART_SECONDS * rows / max(done.seconds, 1e-9), most)))
            self.large = nbytes > MOST_BYTES * rows

    def waiting(self, workers: int) -> int:
        """How many parts may be under way: one more for each worker, so that none waits, unless they take much memory."""
        return workers if self.large else 2 * workers

    def close(self) -> None:
        """Raise the error that ended the stream, if one did."""
        if self._failure is not None:
            raise self._failure


@dataclass
class Trouble:
    """An error of a call, with whose it was, on which element, and the traceback of another process."""

    error: Exception
    index: int
    element: str
    trace: str = ""


@dataclass
class Done:
    """What came of a part: blocks of results, and an error in the place of each result that there is none of.

    From another process, also what functions between others returned first.
    """

    parts: list[Block | Trouble]
    seconds: float = 0.0
    kinds: Kinds = ()

    @property
    def rows(self) -> int:
        """How many results there are."""
        return sum([part.size for part in self.parts if isinstance(part, Block)])

    def delivered(self, given: Block, at: Callable[[int], Mark], note: Note, *, tolerant: bool) -> Results:
        """The results of the elements `given`, and errors as failures; unless `tolerant`, the first one is raised."""
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


def work(chain: Calls, part: Block, over: Callable[[], bool] | None, *, tolerant: bool) -> Done:
    """Call the functions on the elements of a part, until `over` says that this was long enough, or there is an error."""
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
        except Exception as error:  # noqa: BLE001 - raised again in its turn
            index, given = chain.place(error, part.row(first + len(results)))
            trouble = Trouble(error, index, element_text(given))
        for made, place, _ in formed(results) if results else ():
            if isinstance(made, Block):
                parts.append(made)
            else:
                parts.append(Trouble(made, len(chain.functions) - 1, element_text(part.row(first + place))))
        if trouble is None:
            break
        parts.append(trouble)
        if not tolerant:
            break
        first += len(results) + 1
    return Done(parts, Run.clock() - begin)


def called_in_threads(
    upstream: Stream, state: State, chain: Calls, threads: int, run: Run, counter: Counter, note: Note
) -> Results:
    """Blocks of the results of `chain`, called on threads."""
    parts = Parts(upstream, state, None if run.run_ahead is None else 1)
    yield from _on_threads(parts, chain, threads, run, counter, note, lambda: False)
    parts.close()


def _on_threads(
    parts: Parts, chain: Calls, threads: int, run: Run, counter: Counter, note: Note, enough: Callable[[], bool]
) -> Results:
    """Until the parts have ended or are `enough`."""
    over = Event()
    waiting: deque[tuple[Future[Done], Block, Callable[[int], Mark]]] = deque()
    counter.workers = threads

    def given_up() -> bool:
        return over.is_set() or run.cancelled.is_set()

    with run.pool(threads) as pool:
        try:
            while True:
                most = run.at_once(parts.waiting(threads)) if chain.settled else 1
                full = len(waiting) >= most or parts.ended or enough()
                if waiting and (full or waiting[0][0].done()):
                    future, given, at = waiting.popleft()
                    done = counter.waits(future.result)
                    counter.worked += done.seconds
                    parts.took(done)
                    yield from done.delivered(given, at, note, tolerant=run.tolerant)
                elif full:
                    return
                else:
                    part = parts.next()
                    if part is not None:
                        rows, at = part
                        if type(rows) is Failure:
                            task: Future[Done] = Future()
                            task.set_result(Done([rows]))
                        else:
                            task = pool.submit(work, chain, rows, given_up, tolerant=run.tolerant)
                        waiting.append((task, rows, at))
        finally:
            over.set()  # what is under way ends early


def trial() -> Trial:
    """Of threads that call functions, for `called_as_measured`."""
    return Trial(_TRIAL_PARTS, _GAIN)


def called_as_measured(
    upstream: Stream,
    state: State,
    chain: Calls,
    threads: int,
    run: Run,
    counter: Counter,
    note: Note,
    found: Trial,
) -> Results:
    """Blocks of the results of `chain`, called here or on threads: AUTOTUNE.

    Threads are tried when a call takes long enough for them to pay, and kept when results come faster with them, which they
    do where the functions release the interpreter's lock. The next pass begins with what was `found`.
    """
    parts = Parts(upstream, state)
    fresh = found.begin()
    while not parts.ended:
        if fresh or (yield from _inline(parts, chain, threads, run, counter, note, found)):
            yield from _on_trial(parts, chain, threads, run, counter, note, found, fresh)
            fresh = False
    parts.close()


def _on_trial(
    parts: Parts, chain: Calls, threads: int, run: Run, counter: Counter, note: Note, found: Trial, fresh: bool
) -> Results:
    """On threads, until the parts have ended, or that is to be measured again; for a few if results do not come faster.

    The first part of a `fresh` pass is not looked at: it waits for files to be opened and buffers to be filled.
    """
    counter.choice = f"{threads} threads" + ("" if found.faster else ", on trial")
    faster: bool | None = None
    over = False

    def given_up() -> bool:
        return over

    begin = Run.clock()
    for made in _on_threads(parts, chain, threads, run, counter, note, given_up):
        if faster is None and not fresh:
            faster = found.counted(made[0].size, Run.clock() - begin)
            if faster is not None:
                counter.choice = f"{threads} threads" if faster else _NOT_FASTER
        over = over or faster is False or (faster is True and found.again())
        yield made
        begin, fresh = Run.clock(), False
    if over:
        counter.workers = 0


def _inline(
    parts: Parts, chain: Calls, threads: int, run: Run, counter: Counter, note: Note, found: Trial
) -> Generator[Made, None, bool]:
    """Until the parts have ended, or until threads may pay; then True."""
    counter.choice = _NOT_FASTER if found.alone else "inline"
    rows, seconds, warm = 0, 0.0, False
    while (part := parts.next()) is not None:
        if type(part[0]) is Failure:
            yield part[0], part[1], part[0]
            continue
        done = work(chain, part[0], run.cancelled.is_set, tolerant=run.tolerant)
        parts.took(done)
        yield from done.delivered(*part, note, tolerant=run.tolerant)
        if warm:
            rows, seconds = rows + part[0].size, seconds + done.seconds
        warm = True
        if threads > 1 and seconds > max(_BEFORE_TRIAL, _LEAST_CALL * rows) and Run.clock() >= found.not_before:
            found.alone = seconds / rows
            return True
    return False
