# SPDX-License-Identifier: Apache-2.0
"""Calls of a chain of functions on threads and in worker processes, with the results in the order of the elements."""

import pickle
import traceback
from collections.abc import Callable, Generator
from typing import Any

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column
from distinput.columns.dense import Dense
from distinput.columns.failure import Failure, is_defect_within
from distinput.columns.objects import Datasets
from distinput.columns.ragged import Ragged
from distinput.columns.rows import Stream
from distinput.columns.sizes import balanced_slices
from distinput.columns.state import State
from distinput.columns.strings import Strings
from distinput.functions.chain import Kinds
from distinput.functions.claim import MadeBlock
from distinput.functions.parts import Calling, Calls, Done, PartFailure, Parts, Results, in_order, work
from distinput.kernels.flag import Flag
from distinput.run.pickled_code import dumps_with_buffers
from distinput.run.processes import Processes, Workforce
from distinput.run.run import Run
from distinput.run.segments import Closed
from distinput.run.threads import Task
from distinput.streaming.buffered import ThreadTrial

__all__ = [
    "WorkerTask",
    "called_as_measured",
    "called_at_once",
    "called_in_processes",
    "called_in_threads",
    "packed",
    "trial",
    "workforce_of",
]


# ----------------------------------------------------------------------------
# Call a chain of functions on several threads, with the results in the order of the elements.
# ----------------------------------------------------------------------------


_LEAST_CALL, _BEFORE_TRIAL, _TRIAL_PARTS, _GAIN = 10e-6, 0.02, 16, 5 / 6
"""AUTOTUNE tries threads if a call takes at least so many seconds, after so many seconds of calls, for so many parts, and keeps
them if an element then takes less than this fraction of its time without them."""

_NOT_FASTER = "inline, since threads were not faster"


def called_in_threads(upstream: Stream, state: State, threads: int, calling: Calling) -> Results:
    """Blocks of the results of functions called on threads."""
    parts = calling.parts(upstream, state)
    yield from _on_threads(parts, threads, calling)
    parts.close()


def _on_threads(parts: Parts, threads: int, calling: Calling, enough: Callable[[], bool] = lambda: False) -> Results:
    """Results until the parts have ended, or `enough` returns true."""
    with calling.run.pool(threads) as pool:
        lanes = _Threads(pool, threads, calling)
        try:
            yield from in_order(parts, calling, lanes, enough=enough)
        finally:
            lanes.over.set()  # calls in progress end early


class _Threads:
    """A pool of threads, and how parts get there."""

    def __init__(self, pool: Any, workers: int, calling: Calling) -> None:
        self._pool, self.workers, self._calling = pool, workers, calling
        self.over = Flag()

    def send(self, rows: Block) -> Task[Done]:
        """Have a thread work on a part."""
        made: Task[Done] = self._pool.submit(self._calling.work, rows, self._given_up)
        return made

    def ready(self, sent: Task[Done]) -> bool:
        """Whether its results are there."""
        return sent.done()

    def receive(self, sent: Task[Done]) -> Done:
        """Its results."""
        return sent.result()

    def _given_up(self) -> bool:
        return self.over.is_set() or self._calling.run.cancelled.is_set()


def trial() -> ThreadTrial:
    """A trial for `called_as_measured`."""
    return ThreadTrial(_TRIAL_PARTS, _GAIN)


def called_as_measured(upstream: Stream, state: State, threads: int, calling: Calling, found: ThreadTrial) -> Results:
    """Blocks of the results of functions called inline or on threads: AUTOTUNE.

    Threads are tried if a call takes long enough for them to pay, and kept if results come faster with them, which they do if
    the functions release the GIL. The next pass begins with what was `found`.
    """
    parts = Parts(upstream, state)
    fresh = found.begin()
    while not parts.ended:
        if fresh or (yield from _inline(parts, threads, calling, found)):
            yield from _on_trial(parts, threads, calling, found, fresh)
            fresh = False
    parts.close()


def _on_trial(parts: Parts, threads: int, calling: Calling, found: ThreadTrial, fresh: bool) -> Results:
    """Results from threads until the parts have ended, or it is time to measure again; only a few if they are not faster.

    The first part of a `fresh` pass is not measured: it waits for files to be opened and buffers to be filled.
    """
    counter = calling.counter
    counter.choice = f"{threads} threads" + ("" if found.faster else ", on trial")
    faster: bool | None = None
    over = False

    def given_up() -> bool:
        return over

    begin = Run.clock()
    for made in _on_threads(parts, threads, calling, given_up):
        if faster is None and not fresh:
            faster = found.counted(made[0].size, Run.clock() - begin)
            if faster is not None:
                counter.choice = f"{threads} threads" if faster else _NOT_FASTER
        over = over or faster is False or (faster is True and found.again())
        yield made
        begin, fresh = Run.clock(), False
    if over:
        counter.workers = 0


def _inline(parts: Parts, threads: int, calling: Calling, found: ThreadTrial) -> Generator[MadeBlock, None, bool]:
    """Results of calls made here, until the parts have ended (returns False) or threads may pay (returns True)."""
    calling.counter.choice = _NOT_FASTER if found.alone else "inline"
    rows, seconds, warm = 0, 0.0, False
    while (part := parts.next()) is not None:
        if type(part[0]) is Failure:
            yield part[0], part[1], part[0]
            continue
        done = calling.work(part[0], calling.run.cancelled.is_set)
        parts.took(done)
        yield from calling.delivered(done, *part)
        if warm:
            rows, seconds = rows + part[0].size, seconds + done.seconds
        warm = True
        if threads > 1 and seconds > max(_BEFORE_TRIAL, _LEAST_CALL * rows) and Run.clock() >= found.not_before:
            found.alone = seconds / rows
            return True
    return False


# ----------------------------------------------------------------------------
# Call a chain of functions in worker processes, with the results in the order of the elements.
# ----------------------------------------------------------------------------


def workforce_of(chain: Calls, count: int, op: str = "map") -> Workforce:
    """`count` workers for the functions of an op, started when they are first needed."""
    task = WorkerTask(chain)
    return Workforce(lambda: Processes(task, count, op))


class WorkerTask:
    """The work of a worker process on a part of the elements.

    Args:
      chain: the functions.
    """

    def __init__(self, chain: Calls) -> None:
        self.chain = chain

    def __repr__(self) -> str:
        return ", ".join(getattr(f, "__qualname__", None) or repr(f) for f in self.chain.functions)

    def __call__(self, given: tuple[Block, Kinds, bool]) -> Done:
        part, kinds, tolerant = given
        self.chain.settle(kinds)
        done = work(self.chain, part, None, tolerant=tolerant)
        done.kinds = self.chain.kinds
        for place, made in enumerate(done.parts):
            if isinstance(made, PartFailure):
                is_defect_within(made.error)  # which its traceback tells
                made.trace = "".join(traceback.format_exception(made.error)).rstrip()
                made.error = _sendable(made.error)
            else:
                done.parts[place] = packed(made)
        return done


def called_in_processes(upstream: Stream, state: State, workforce: Workforce, calling: Calling) -> Results:
    """Blocks of the results of functions called in worker processes."""
    parts = calling.parts(upstream, state)
    try:
        with workforce.lent() as workers:
            lanes = _Processes(workers, calling)
            workers.drain(lanes.going_on)
            yield from in_order(parts, calling, lanes)
    except Closed:
        return  # the run was closed while it waited for a worker
    parts.close()


class _Processes:
    """Worker processes, which get parts in turn."""

    def __init__(self, processes: Processes, calling: Calling) -> None:
        self._processes, self._calling = processes, calling
        self.workers = len(processes)
        self._sent = 0

    def send(self, rows: Block) -> int:
        """Hand a part to the next worker, and return its number."""
        worker = self._sent % self.workers
        calling = self._calling
        self._processes.send(worker, (packed(rows), calling.chain.kinds, calling.run.tolerant))
        self._sent += 1
        return worker

    def ready(self, sent: int) -> bool:
        """Whether the worker has results."""
        return self._processes.ready(sent)

    def receive(self, sent: int) -> Done:
        """The next results of the worker.

        Raises:
          Closed: the run was closed.
        """
        done: Done = self._processes.receive(sent, self.going_on)
        _note_traces(done, self._processes.pids[sent])
        return done

    def going_on(self) -> bool:
        """Whether the results are still wanted."""
        return not self._calling.run.cancelled.is_set()


def called_at_once(workforce: Workforce, chain: Calls, given: Block) -> list[tuple[Block, Done]]:
    """The results for all rows of a block, shared out among the worker processes, in order."""
    with workforce.lent() as workers:
        workers.drain(_patiently)
        parts = [given.rows(part.start, part.stop) for part in balanced_slices(given.size, len(workers))]
        parts = [part for part in parts if part.size]
        for worker, part in enumerate(parts):
            workers.send(worker, (packed(part), chain.kinds, False))
        done = [workers.receive(worker, _patiently) for worker in range(len(parts))]
        for worker, each in enumerate(done):
            _note_traces(each, workers.pids[worker])
    return list(zip(parts, done, strict=True))


def _patiently() -> bool:
    return True


def _note_traces(done: Done, pid: int) -> None:
    for made in done.parts:
        if isinstance(made, PartFailure):
            made.error.add_note(f"in worker process {pid}:\n{made.trace}")


def _sendable(error: Exception) -> Exception:
    """`error`, or an error with the same message that can be pickled."""
    try:
        copy = pickle.loads(dumps_with_buffers(error)[0])
    except Exception:  # noqa: BLE001 - a class may be pickled wrongly in any way
        copy = None
    if type(copy) is type(error) and str(copy) == str(error):
        return error.with_traceback(None)
    return RuntimeError(f"{type(error).__qualname__}: {error}")


def packed(block: Block) -> Block:
    """The same elements in memory that holds nothing else, so that no more than they are sent."""
    return ColumnBlock(block.structure, [_packed_column(column) for column in block.materialize().columns], block.size)


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
        return Ragged(flat, sizes.cumsum() - sizes, sizes, column.loose)
    if column.ragged_rank is not None:
        return column.copied()
    if isinstance(column, Datasets) and not column.optional:
        raise TypeError(
            "map: elements that hold datasets cannot be sent to worker processes; leave out processes=True or executor="
        )
    return column
