# SPDX-License-Identifier: Apache-2.0
"""A chain of functions called by several threads or worker processes, with the results in the order of the elements.

Work is handed out in parts of a few milliseconds, however long one call takes: a part costs some microseconds on a thread
and some tens of them in a process, and the first element waits for its part.
"""

import pickle
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from math import inf
from threading import Event
from typing import Any

from distinput.core.block import Block
from distinput.core.calls import element_text, stopped
from distinput.core.column import Column, Datasets, Dense, Ragged, Strings
from distinput.core.nest import Structure, structure_of
from distinput.core.processes import Workforce
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Counter, Run
from distinput.core.segments import Closed
from distinput.core.state import Mark, State
from distinput.ops.chain import Chain
from distinput.ops.compiled import Compiled

__all__ = ["Note", "Task", "block_of", "called_as_measured", "called_in_processes", "called_in_threads"]

Calls = Chain | Compiled

Note = Callable[[Exception, int, str], None]
"""Told of an error: which function of the chain raised it, and on which element."""

Results = Iterator[tuple[Block, Mark]]

_PART_SECONDS, _MOST_ROWS = 0.005, 4096
_LEAST_CALL, _BEFORE_TRIAL, _TRIAL_PARTS, _GAIN = 10e-6, 0.02, 16, 1.2
"""AUTOTUNE tries threads for calls of at least so many seconds, after so many seconds of them, for so many parts, and keeps
them where results then come so many times faster."""

_AGAIN = 0.5
"""Seconds after which threads that were given up are tried again; twice as many after each."""


def block_of(results: list[Any], structure: Structure | None = None) -> Block:
    """Elements that a function returned, as a block; a list is a tuple."""
    if list in set(map(type, results)):
        results = [tuple(result) if type(result) is list else result for result in results]
    return Block.of_elements(structure or structure_of(results[0]), results)


class _Parts:
    """The elements of a stream in parts, and where each ends; an error of the stream comes after what came before it."""

    def __init__(self, upstream: Stream, state: State) -> None:
        self._blocks = passing_over(upstream, state)
        self._rows: Block | None = None
        self._at: Callable[[int], Mark] = lambda _: {}
        self._first = 0
        self._failure: Exception | None = None
        self.size = 1
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
        first, at = self._first, self._at
        part = self._rows.rows(first, first + self.size)
        self._first += part.size
        return part, lambda done: at(first + done)

    def took(self, rows: int, seconds: float) -> None:
        """Choose the size of the next parts by how long one took."""
        if rows:
            self.size = int(max(1, min(_PART_SECONDS * rows / max(seconds, 1e-9), 4 * self.size, _MOST_ROWS)))

    def close(self) -> None:
        """Raise the error that ended the stream, if one did."""
        if self._failure is not None:
            raise self._failure


@dataclass
class _Done:
    """What came of a part: results, and the error that ended it early, with whose it was and on which element."""

    block: Block | None
    failure: Exception | None
    index: int
    element: str
    seconds: float

    def delivered(self, at: Callable[[int], Mark], note: Note) -> Results:
        """The results, then the error."""
        if self.block is not None:
            yield self.block, at(self.block.size)
        if self.failure is not None:
            note(self.failure, self.index, self.element)
            raise self.failure


def _work(chain: Calls, part: Block, over: Callable[[], bool] | None) -> _Done:
    stride = 1 if over is not None else part.size
    results: list[Any] = []
    failure: Exception | None = None
    index, text = 0, ""
    block = None
    begin = Run.clock()
    try:
        calls = chain.results(part)
        while len(results) < part.size and (over is None or not over()):
            wanted = len(results) + stride
            results.extend(islice(calls, stride))
            if len(results) < wanted:
                raise stopped()
    except Exception as error:  # noqa: BLE001 - raised again in its turn
        index, given = chain.place(error, part.row(len(results)))
        failure, text = error, element_text(given)
    seconds = Run.clock() - begin
    if results:
        try:
            block = block_of(results)
        except Exception as error:  # noqa: BLE001 - raised again in its turn
            failure, index, text = error, len(chain.functions) - 1, ""
    return _Done(block, failure, index, text, seconds)


def called_in_threads(
    upstream: Stream, state: State, chain: Calls, threads: int, run: Run, counter: Counter, note: Note
) -> Results:
    """Blocks of the results of `chain`, called on threads."""
    parts = _Parts(upstream, state)
    yield from _on_threads(parts, chain, threads, run, counter, note, lambda: False)
    parts.close()


def _on_threads(
    parts: _Parts, chain: Calls, threads: int, run: Run, counter: Counter, note: Note, enough: Callable[[], bool]
) -> Results:
    """Until the parts have ended or are `enough`."""
    over = Event()
    waiting: deque[tuple[Future[_Done], Callable[[int], Mark]]] = deque()
    counter.workers = threads
    with run.pool(threads) as pool:
        try:
            while True:
                full = len(waiting) >= 2 * threads or parts.ended or enough()
                if waiting and (full or waiting[0][0].done()):
                    future, at = waiting.popleft()
                    done = counter.waits(future.result)
                    counter.worked += done.seconds
                    parts.took(0 if done.block is None else done.block.size, done.seconds)
                    yield from done.delivered(at, note)
                elif full:
                    return
                else:
                    part = parts.next()
                    if part is not None:
                        task = pool.submit(_work, chain, part[0], lambda: over.is_set() or run.cancelled.is_set())
                        waiting.append((task, part[1]))
        finally:
            over.set()  # before the pool waits for what is under way


def called_as_measured(
    upstream: Stream, state: State, chain: Calls, threads: int, run: Run, counter: Counter, note: Note
) -> Results:
    """Blocks of the results of `chain`, called here or on threads: AUTOTUNE.

    Threads are tried when a call takes long enough for them to pay, and kept when results come faster with them, which they
    do where the functions release the interpreter's lock.
    """
    parts = _Parts(upstream, state)
    counter.choice = "inline"
    lasts, not_before = _AGAIN, 0.0 if threads > 1 else inf
    while (alone := (yield from _inline(parts, chain, run, note, not_before))) is not None:
        yield from _on_trial(parts, chain, threads, run, counter, note, alone)
        not_before, lasts = Run.clock() + lasts, min(2 * lasts, 60.0)
    parts.close()


def _on_trial(
    parts: _Parts, chain: Calls, threads: int, run: Run, counter: Counter, note: Note, alone: float
) -> Results:
    """On threads, until the parts have ended, or for a few if results do not come faster than in `alone` seconds each."""
    counter.choice = f"{threads} threads, on trial"
    keep: bool | None = None
    tried, rows, seconds = 0, 0, 0.0

    def given_up() -> bool:
        return keep is False

    begin = Run.clock()
    for block, mark in _on_threads(parts, chain, threads, run, counter, note, given_up):
        tried, rows, seconds = tried + 1, rows + block.size, seconds + Run.clock() - begin
        if keep is None and tried >= _TRIAL_PARTS:
            keep = seconds * _GAIN < alone * rows
            counter.choice = f"{threads} threads" if keep else "inline, since threads were not faster"
        yield block, mark
        begin = Run.clock()
    if keep is False:
        counter.workers = 0


def _inline(
    parts: _Parts, chain: Calls, run: Run, note: Note, not_before: float
) -> Generator[tuple[Block, Mark], None, float | None]:
    """Until the parts have ended, or until threads may pay; then the seconds of a call."""
    rows, seconds, warm = 0, 0.0, False
    while (part := parts.next()) is not None:
        done = _work(chain, part[0], run.cancelled.is_set)
        parts.took(part[0].size, done.seconds)
        yield from done.delivered(part[1], note)
        if warm:
            rows, seconds = rows + part[0].size, seconds + done.seconds
        warm = True
        if seconds > max(_BEFORE_TRIAL, _LEAST_CALL * rows) and Run.clock() >= not_before:
            return seconds / rows
    return None


class Task:
    """What a worker process does with a part of the elements.

    Args:
      chain: the functions.
    """

    def __init__(self, chain: Calls) -> None:
        self.chain = chain

    def __repr__(self) -> str:
        return ", ".join(getattr(f, "__qualname__", None) or repr(f) for f in self.chain.functions)

    def __call__(self, part: Block) -> tuple[_Done, str]:
        done = _work(self.chain, part, None)
        trace = ""
        if done.failure is not None:
            trace = "".join(traceback.format_exception(done.failure)).rstrip()
            done.failure = _sendable(done.failure)
        if done.block is not None:
            done.block = _packed(done.block)
        return done, trace


def called_in_processes(
    upstream: Stream, state: State, workforce: Workforce, run: Run, counter: Counter, note: Note
) -> Results:
    """Blocks of the results of a `Task`, done by worker processes."""
    parts = _Parts(upstream, state)
    waiting: deque[tuple[int, Callable[[int], Mark]]] = deque()
    sent = 0

    def going_on() -> bool:
        return not run.cancelled.is_set()

    try:
        with workforce.lent() as workers:
            workers.drain(going_on)
            counter.workers = len(workers)
            while waiting or not parts.ended:
                full = len(waiting) >= 2 * len(workers) or parts.ended
                if waiting and (full or workers.ready(waiting[0][0])):
                    worker, at = waiting.popleft()
                    done, trace = counter.waits(workers.receive, worker, going_on)
                    counter.worked += done.seconds
                    parts.took(0 if done.block is None else done.block.size, done.seconds)
                    if trace:
                        done.failure.add_note(f"in worker process {workers.pids[worker]}:\n{trace}")
                    yield from done.delivered(at, note)
                else:
                    part = parts.next()
                    if part is not None:
                        worker = sent % len(workers)
                        workers.send(worker, _packed(part[0]))
                        waiting.append((worker, part[1]))
                        sent += 1
    except Closed:
        return  # the run was closed while a worker was waited for
    parts.close()


def _sendable(error: Exception) -> Exception:
    """`error`, or one that says the same and can be pickled."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - any class may be wrong about pickling itself
        copy = None
    if type(copy) is type(error) and str(copy) == str(error):
        return error.with_traceback(None)
    return RuntimeError(f"{type(error).__qualname__}: {error}")


def _packed(block: Block) -> Block:
    """The same elements in memory that holds nothing else, so that little is sent."""
    return Block(block.structure, [_packed_column(column) for column in block.columns], block.size)


def _packed_column(column: Column) -> Column:
    if isinstance(column, Dense):
        array = column.array
        return column if array.flags.c_contiguous else Dense(array.copy())
    if isinstance(column, Strings):
        return column.used()
    if isinstance(column, Ragged):
        sizes = column.sizes
        flat = _packed_column(column.unstack())
        assert isinstance(flat, Dense | Strings)
        return Ragged(flat, sizes.cumsum() - sizes, sizes)
    if isinstance(column, Datasets):
        raise TypeError(
            "map: elements that hold data sets cannot be sent to worker processes; leave out processes=True"
        )
    return column
