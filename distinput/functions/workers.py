# SPDX-License-Identifier: Apache-2.0
"""Calls of a chain of functions on threads, in worker processes and by executors, with results in the order of elements."""

import pickle
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent import futures  # whose threads are loaded by who has some: not where a program ends
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import field
from functools import lru_cache, partial
from itertools import count
from threading import current_thread, main_thread
from typing import Any, Protocol

from distinput.arrow.adopt import Promise, adopt, all_known, owned
from distinput.columns.block import (
    MOST_BYTES,
    Block,
    ColumnBlock,
    Failure,
    balanced_slices,
    fault_of,
    of_all,
    rows_within,
    trace_text,
)
from distinput.columns.column import Column, Dense, Strings
from distinput.columns.ragged import Datasets, Ragged
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import Mark, State
from distinput.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from distinput.functions.chain import Chain, Kinds, Refills
from distinput.functions.claim import MadeBlock, behind, formed
from distinput.functions.compiled import Compiled
from distinput.kernels.kernel import Flag
from distinput.names.lazy import dataclass
from distinput.run.processes import Dealer, Dealt, Processes, Workforce, pickled, without
from distinput.run.run import CoreUse, OpCounters, Run, UnderWay, stopped, thread_use
from distinput.run.segments import Closed, dumps, dumps_with_buffers, has_cloudpickle
from distinput.run.threads import Task, check_threads, cores, in_lane, lane
from distinput.streaming.buffered import ThreadTrial
from distinput.values.nest import Structure
from distinput.values.spec import Spec

# ----------------------------------------------------------------------------
# Items of an object with a length, read by position: what is called for `from_source`, as functions are for `map`.
# ----------------------------------------------------------------------------


class Reads:
    """Reads items of a source: one by one with `__getitem__`, or many in one call if it has `__getitems__`.

    It stands where a chain of functions stands, with positions as the elements.

    Args:
      source: has `__len__` and `__getitem__`.
      length: how many items it had when the dataset was made.
      copy: False: it does not change an array that it has given.
      said: what the user says about the items.

    Attributes:
      lends: whether arrays in the items are the source's own, which nobody may write to.
    """

    op = "from_source"
    settled, kinds = True, ()  # as a chain of one function

    def __init__(self, source: Any, length: int, *, copy: bool = True, said: Spec | None = None) -> None:
        self.source, self.length, self.copy, self.said = source, length, copy, said
        plain = type(source) in (list, tuple)  # no function runs that could change an item
        self.lends = plain or not copy
        self._promise = None if plain or copy else Promise("from_source: the source")
        self._many: Callable[[list[int]], Sequence[Any]] | None = getattr(source, "__getitems__", None)

    @property
    def functions(self) -> tuple[Any, ...]:
        """What is called, for messages."""
        return (self.source,)

    def settle(self, kinds: tuple[Spec | None, ...]) -> None:
        """Do nothing: there are no functions whose results the next one gets."""

    def results(self, rows: Block, refills: Refills | None = None) -> Iterator[Any]:
        """The items at these positions, read as they are requested; an array that the source may still change is copied."""
        self.check_length()
        indices = list(map(int, rows.elements()))
        items = map(self.source.__getitem__, indices) if self._many is None else self._together(indices)
        if not self.lends:
            return map(owned if refills is None else refills.owned, items)
        if self._promise is not None:
            return map(self._promise, items)
        listed = list(items)  # of a list, so that no function runs
        return iter(listed) if all_known(listed) else map(adopt, listed)

    def check_length(self) -> None:
        """Refuse a source that has another length than it had when the dataset was made.

        Raises:
          FailedPreconditionError: it has.
        """
        length = len(self.source)
        if length != self.length:
            raise of_all(
                FailedPreconditionError(
                    f"from_source: the source must keep its length while it is read, got {length} items now and {self.length} "
                    "when the dataset was made; make the dataset again after the source has changed"
                )
            )

    def place(self, error: BaseException, element: Any) -> tuple[int, Any]:
        """Which function raised an error, and its argument."""
        return 0, element

    def told(self, given: Any) -> str:
        """A position in words, for notes on errors."""
        return f"index {int(given)} of a {type(self.source).__qualname__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Reads, copy=self.copy, said=self.said), (self.source, self.length)

    def _together(self, indices: list[int]) -> Iterator[Any]:
        """The items of one call; if it fails, those of one call each, so that those before the error are delivered."""
        assert self._many is not None
        items: list[Any] = []
        try:
            items += self._many(indices)
        except Exception as error:
            if len(indices) == 1:
                raise
            for index in indices[:-1]:
                yield from self._many([index])
            self._many(indices[-1:])
            error.add_note(f"__getitems__ failed for {len(indices)} positions, each of which can be read alone")
            raise
        if len(items) != len(indices):
            raise InvalidArgumentError(
                f"from_source: __getitems__ must return one item for each index, got {len(items)} for {len(indices)} indices"
            )
        items.reverse()
        while items:
            yield items.pop()  # held by nobody else, so `owned` need not copy its arrays


# ----------------------------------------------------------------------------
# The elements of a stream in parts for threads and processes, and the results of calling functions on a part.
#
# A part takes a few milliseconds, however long one call takes: handing it over costs some microseconds for a thread and
# some tens of microseconds for a process, and the first element waits for its whole part.
# ----------------------------------------------------------------------------


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
                self._rows, self._at = next(self._blocks)
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

    @property
    def empty(self) -> bool:
        """Whether the next part needs another block."""
        return self._rows is None or self._first >= self._rows.size

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
class FailedCall:
    """An error of a call: the index of the function, the element in words, and the traceback of another process."""

    error: Exception
    index: int
    element: str
    trace: str = ""


@dataclass
class Done:
    """The results of a part in blocks, with an error in the place of each missing result.

    From another process, also the specs of what the functions before the last return, and what `Refills.error` says there.
    """

    parts: list[Block | FailedCall]
    seconds: float = 0.0
    kinds: Kinds = ()
    mixed: Exception | None = None

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
      stalls: whether the next block of elements may wait for what the loop does with those before it.
      each: whether every array that is copied is looked at.

    Attributes:
      refills: sees whether the functions fill arrays again and again, which they may not do on several threads.
    """

    chain: Calls
    run: Run
    counter: OpCounters
    note: Note
    stalls: Callable[[], bool] = lambda: False
    each: bool = True
    refills: Refills = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "refills", Refills(self.chain.op, self.chain.functions, each=self.each))

    def check_refills(self, done: Done) -> None:
        """Refuse functions that do so on several threads, here or where they were called, whatever `on_error` says.

        Raises:
          InvalidArgumentError: they do; any result may be wrong.
        """
        error = done.mixed or self.refills.error()
        if error is not None:
            self.note(error, len(self.chain.functions) - 1, "")
            raise error

    def parts(self, upstream: Stream, state: State) -> Parts:
        """The elements of a stream in parts; of one element each where nothing may be read ahead."""
        return Parts(upstream, state, None if self.run.run_ahead is None else 1)

    def work(self, rows: Block, over: Callable[[], bool] | None) -> Done:
        """The results for a part; see `work`."""
        return work(self.chain, rows, over, self.refills, tolerant=self.run.tolerant)

    def delivered(self, done: Done, rows: Block, at: Callable[[int], Mark]) -> Results:
        """The results of a part one after the other; see `Done.delivered`."""
        self.check_refills(done)
        return done.delivered(rows, at, self.note, tolerant=self.run.tolerant)


def work(
    chain: Calls, part: Block, over: Callable[[], bool] | None, refills: Refills | None = None, *, tolerant: bool
) -> Done:
    """Call the functions on the elements of a part until `over` returns true or, unless `tolerant`, there is an error."""
    parts: list[Block | FailedCall] = []
    begin = Run.clock()
    first = 0
    ends = over is not None and over()
    while first < part.size and not ends:
        results: list[Any] = []
        trouble: FailedCall | None = None
        try:
            calls = chain.results(part.rows(first, part.size), refills)
            if over is None:
                results.extend(calls)
            else:
                for result in calls:
                    results.append(result)
                    if ends := over():
                        break
            if first + len(results) < part.size and not ends:
                raise stopped()
        except Exception as error:  # noqa: BLE001 - raised when its turn comes
            index, given = chain.place(error, part.shown(first + len(results)))
            trouble = FailedCall(error, index, chain.told(given))
        for made, place, _ in formed(results, chain.said) if results else ():
            if isinstance(made, Block):
                parts.append(made)
            else:
                parts.append(FailedCall(made, len(chain.functions) - 1, chain.told(part.row(first + place))))
        if trouble is None:
            break
        parts.append(trouble)
        if not tolerant:
            break
        first += len(results) + 1
        ends = over is not None and over()
    return Done(parts, Run.clock() - begin)


# ----------------------------------------------------------------------------
# Parts of a stream are worked on elsewhere, several at a time; their results come in the order of the elements.
# ----------------------------------------------------------------------------


class Lanes(Protocol):
    """Threads, processes or an executor: parts are sent there, and their results received in the order of sending."""

    workers: int

    def send(self, rows: Block) -> Any:
        """Hand a part over; what is returned stands for its results."""

    def ready(self, sent: Any) -> bool:
        """Whether these results are there."""

    def receive(self, sent: Any) -> Done:
        """These results, waited for.

        Raises:
          Closed: the run was closed meanwhile.
        """


def in_order(
    parts: Parts, calling: Calling, lanes: Lanes, most: int | None = None, enough: Callable[[], bool] = lambda: False
) -> Results:
    """Results until the parts have ended, or `enough` returns true and those under way have come.

    Args:
      parts: of the elements.
      calling: the functions, and the pass.
      lanes: where they are called.
      most: parts that may be under way; None: as many as keep the workers busy.
      enough: asked before a part is sent.

    Raises:
      Closed: the run was closed.
    """
    run, chain, counter = calling.run, calling.chain, calling.counter
    counter.workers = lanes.workers
    waiting = UnderWay()
    run.holding.append(waiting)
    try:
        while True:
            limit = run.at_once(most or parts.waiting(lanes.workers)) if chain.settled else 1
            full = (
                len(waiting) >= limit or parts.ended or enough() or bool(waiting and parts.empty and calling.stalls())
            )
            if waiting and (full or _ready(lanes, *waiting[0])):
                rows, mark_at, sent = waiting.popleft()
                if type(rows) is Failure:
                    yield rows, mark_at, rows
                    continue
                done = counter.waits(lanes.receive, sent)
                counter.worked += done.seconds
                parts.took(done)
                chain.settle(done.kinds)
                yield from calling.delivered(done, rows, mark_at)
            elif full:
                return
            elif (part := parts.next()) is not None:
                rows, mark_at = part
                waiting.append((rows, mark_at, None if type(rows) is Failure else lanes.send(rows)))
    finally:
        run.holding.remove(waiting)
        waiting.clear()


def _ready(lanes: Lanes, rows: Block, _: Callable[[int], Mark], sent: Any) -> bool:
    return type(rows) is Failure or lanes.ready(sent)


# ----------------------------------------------------------------------------
# Call a chain of functions on several threads, with the results in the order of the elements.
# ----------------------------------------------------------------------------


_LEAST_CALL, _BEFORE_TRIAL, _TRIAL_PARTS, _GAIN = 10e-6, 0.02, 16, 5 / 6
"""AUTOTUNE tries threads if a call takes at least so many seconds, after so many seconds of calls, for so many parts, and keeps
them if an element then takes less than this fraction of its time without them."""

_MOST_WAITING = 32
"""Threads at most for functions that wait, as many times the cores as they take longer than they compute."""

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


def thread_trial() -> ThreadTrial:
    """A trial for `called_as_measured`."""
    return ThreadTrial(_TRIAL_PARTS, _GAIN)


def called_as_measured(upstream: Stream, state: State, threads: int, calling: Calling, trial: ThreadTrial) -> Results:
    """Blocks of the results of functions called inline or on threads: AUTOTUNE.

    Threads are tried if a call takes long enough for them to pay, and kept if results come faster with them, which they do if
    the functions release the GIL. There are more of them than `threads` where calls wait. The next pass begins with what the
    trial has found.
    """
    parts = Parts(upstream, state)
    fresh = trial.begin()
    while not parts.ended:
        if fresh or (yield from _inline(parts, threads, calling, trial)):
            yield from _on_trial(parts, threads, calling, trial, fresh)
            fresh = False
    parts.close()


def _on_trial(parts: Parts, threads: int, calling: Calling, trial: ThreadTrial, fresh: bool) -> Results:
    """Results from threads until the parts have ended, or it is time to measure again; only a few if they are not faster.

    The first part of a `fresh` pass is not measured: it waits for files to be opened and buffers to be filled.
    """
    counter, threads = calling.counter, max(threads, trial.threads)
    counter.choice = f"{threads} threads" + ("" if trial.faster else ", on trial")
    faster: bool | None = None
    over = False

    def given_up() -> bool:
        return over

    begin = Run.clock()
    for made in _on_threads(parts, threads, calling, given_up):
        if faster is None and not fresh:
            faster = trial.counted(made[0].size, Run.clock() - begin)
            if faster is not None:
                counter.choice = f"{threads} threads" if faster else _NOT_FASTER
        over = over or faster is False or (faster is True and trial.again())
        yield made
        begin, fresh = Run.clock(), False
    if over:
        counter.workers = 0


def _inline(parts: Parts, threads: int, calling: Calling, trial: ThreadTrial) -> Generator[MadeBlock, None, bool]:
    """Results of calls made here, until the parts have ended (returns False) or threads may pay (returns True)."""
    calling.counter.choice = _NOT_FASTER if trial.alone else "inline"
    rows, seconds, use, warm = 0, 0.0, CoreUse(0.0, 0), False
    while (part := parts.next()) is not None:
        if type(part[0]) is Failure:
            yield part[0], part[1], part[0]
            continue
        before = thread_use()
        done = calling.work(part[0], calling.run.cancelled.is_set)
        now = thread_use() - before
        parts.took(done)
        yield from calling.delivered(done, *part)
        if warm:
            rows, seconds = rows + part[0].size, seconds + done.seconds
            use = CoreUse(use.seconds + now.seconds, use.waits + now.waits)
        warm = True
        waiting = use.waits > 0 and use.seconds < seconds / 2
        pays = seconds > max(_BEFORE_TRIAL, _LEAST_CALL * rows) and Run.clock() >= trial.not_before
        if pays and (threads > 1 or waiting) and not calling.refills.seen:
            trial.alone = seconds / rows
            trial.threads = int(min(_MOST_WAITING, threads * seconds / max(use.seconds, 1e-9))) if waiting else 0
            return True
    return False


# ----------------------------------------------------------------------------
# Call a chain of functions in worker processes, with the results in the order of the elements.
# ----------------------------------------------------------------------------


def workforce_of(chain: Calls, count: int) -> Workforce:
    """`count` workers for the functions of an op, started when they are first needed."""
    call = f"{chain.op}(processes=True)"
    task = WorkerTask(chain, call)
    return Workforce(lambda: Processes(task, count, call))


class WorkerTask:
    """The work of a worker process on a part of the elements.

    Args:
      chain: the functions.
      call: what the program wrote to have workers, for messages.
    """

    def __init__(self, chain: Calls, call: str) -> None:
        self.chain, self.call = chain, call
        self._refills = Refills(chain.op, chain.functions)

    def __reduce__(self) -> tuple[Any, ...]:
        return WorkerTask, (self.chain, self.call)

    def __repr__(self) -> str:
        return ", ".join(getattr(f, "__qualname__", None) or repr(f) for f in self.chain.functions)

    def __call__(self, given: tuple[Block, Kinds, bool]) -> Done:
        part, kinds, tolerant = given
        self.chain.settle(kinds)
        refills = self._refills if lane() else None  # beside other threads
        done = work(self.chain, part, None, refills, tolerant=tolerant)
        done.kinds = self.chain.kinds
        error = None if refills is None else refills.error()
        if error is not None:
            done.mixed = sendable(error)
        for place, made in enumerate(done.parts):
            if isinstance(made, FailedCall):
                fault_of(made.error)  # which its traceback tells
                made.trace = trace_text(made.error)
                made.error = sendable(made.error)
                continue
            try:
                done.parts[place] = packed(made, self.call)
            except TypeError as refused:  # no result of this function can be sent
                done.mixed, done.parts = sendable(refused), []
                break
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
    """Worker processes, and how parts get there."""

    def __init__(self, processes: Processes, calling: Calling) -> None:
        self._dealer, self._calling, self._call = Dealer(processes, self.going_on), calling, processes.call
        self.workers = len(processes)

    def send(self, rows: Block) -> Dealt:
        """Hand a part to a worker."""
        calling = self._calling
        return self._dealer.send((packed(rows, self._call), calling.chain.kinds, calling.run.tolerant))

    def ready(self, sent: Dealt) -> bool:
        """Whether its results are there."""
        return self._dealer.ready(sent)

    def receive(self, sent: Dealt) -> Done:
        """The results of a part.

        Raises:
          Closed: the run was closed.
        """
        done: Done = self._dealer.receive(sent)
        _note_traces(done, f"worker process {sent.pid}")
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
            workers.send(worker, (packed(part, workers.call), chain.kinds, False))
        done = [workers.receive(worker, _patiently) for worker in range(len(parts))]
        for worker, each in enumerate(done):
            _note_traces(each, f"worker process {workers.pids[worker]}")
    return list(zip(parts, done, strict=True))


def _patiently() -> bool:
    return True


def _note_traces(done: Done, worker: str) -> None:
    for made in done.parts:
        if isinstance(made, FailedCall):
            made.error.add_note(f"in {worker}:\n{made.trace}")


def sendable(error: Exception) -> Exception:
    """`error`, or an error with the same message and notes that can be pickled."""
    try:
        copy = pickle.loads(dumps_with_buffers(error)[0])
    except Exception:  # noqa: BLE001 - a class may be pickled wrongly in any way
        copy = None
    if type(copy) is type(error) and str(copy) == str(error):
        return error.with_traceback(None)
    other = RuntimeError(f"{type(error).__qualname__}: {error}")
    for note in getattr(error, "__notes__", ()):
        other.add_note(str(note))
    return other


def packed(block: Block, call: str) -> Block:
    """The same elements in memory that holds nothing else, so that no more than they are sent.

    Args:
      block: the elements.
      call: what the program wrote to have workers, for messages; see `without`.

    Raises:
      TypeError: they hold datasets.
    """
    columns = [_packed_column(column, call) for column in block.materialize().columns]
    return ColumnBlock(block.structure, columns, block.size)


def _packed_column(column: Column, call: str) -> Column:
    if isinstance(column, Dense):
        array = column.array
        return column if array.flags.c_contiguous else Dense(array.copy())
    if isinstance(column, Strings):
        return column.used()
    if isinstance(column, Ragged):
        sizes = column.sizes
        flat = _packed_column(column.unstack(), call)
        assert isinstance(flat, Dense | Strings)
        return Ragged(flat, sizes.cumsum() - sizes, sizes, column.loose)
    if column.ragged_rank is not None:
        return column.copied()
    if isinstance(column, Datasets) and not column.optional:
        op, cure = without(call)
        raise TypeError(f"{op}: elements that hold datasets cannot be sent to worker processes; {cure}")
    return column


# ----------------------------------------------------------------------------
# Call a chain of functions through an executor of `concurrent.futures`, with the results in the order of the elements.
#
# What the functions raise travels as a result. So what a future raises tells that the worker was lost, and its part is sent
# again: to the same executor, or, if that is broken, to a new one. A pool of processes of Python's is broken for good when
# one of its processes is killed; one with the same settings takes its place.
#
# Source: PEP 3148.
# ----------------------------------------------------------------------------


_BY_EXECUTOR = "map(executor=)"

_TRIES = 4
"""How often a part is sent before its loss is an error."""

_LOOK_SECONDS = 0.2
"""How often a wait looks whether the iteration was closed."""


def check_executor(executor: Any) -> None:
    """Refuse what is neither an executor nor a function; a class of executors is neither, since it has yet to be told a size.

    Raises:
      TypeError: it is neither.
    """
    if isinstance(executor, type) and callable(getattr(executor, "submit", None)):
        name = executor.__name__
        raise TypeError(
            f"map: executor must be a concurrent.futures.Executor, or a function that makes one, got the class {name}; "
            f"give {name}(4), or lambda: {name}(4)"
        )
    if not callable(getattr(executor, "submit", None)) and not callable(executor):
        raise TypeError(
            "map: executor must be a concurrent.futures.Executor, or a function that makes one, got "
            f"{executor!r}; for Dask give client.get_executor()"
        )


@dataclass(eq=False)
class _Sent:
    """A part that is under way."""

    rows: Block
    future: "Future[Done]"
    to: Executor
    tries: int = 1


def workers_of(executor: Any) -> int:
    """How many calls an executor makes at a time; where it does not tell, how many cores this machine has."""
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)  # Dask's, by the address of the worker
    found = sum(threads().values()) if callable(threads) else getattr(executor, "_max_workers", None)
    return found if isinstance(found, int) and found > 0 else cores()


def called_by_executor(upstream: Stream, state: State, executor: Any, most: int | None, calling: Calling) -> Results:
    """Blocks of the results of functions called through an executor.

    Args:
      upstream: of elements.
      state: where it begins.
      executor: or a function that makes one.
      most: parts that may be under way; None: two for each worker.
      calling: the functions, and the pass.

    Raises:
      UnavailableError: the executor is broken, or has lost a part several times.
    """
    parts = calling.parts(upstream, state)
    lanes = _ByExecutor(executor, calling)
    try:
        yield from in_order(parts, calling, lanes, most)
    except Closed:
        return  # the run was closed while it waited
    finally:
        lanes.close()
    parts.close()


class _ByExecutor:
    """The executor, and how parts get there."""

    def __init__(self, executor: Any, calling: Calling) -> None:
        self._given, self._calling = executor, calling
        self._made: list[Executor] = []
        self._executor: Any = executor if hasattr(executor, "submit") else self._fresh(executor)
        check_threads(self._executor)
        self._payload: bytes | None = None
        self._pass, self._calls = uuid.uuid4().hex, count()
        self._under_way: deque[_Sent] = deque()
        self.workers = workers_of(self._executor)

    def send(self, rows: Block) -> _Sent:
        """Hand a part to the executor.

        Raises:
          UnavailableError: it takes no more.
        """
        sent = _Sent(rows, *self._submitted(rows))
        self._under_way.append(sent)
        return sent

    def ready(self, sent: _Sent) -> bool:
        """Whether its results, or the news of its loss, are there."""
        return sent.future.done()

    def receive(self, sent: _Sent) -> Done:
        """The results of a part, sent again if they were lost.

        Raises:
          Closed: the run was closed.
          TypeError: it cannot be sent.
          UnavailableError: it was lost several times.
        """
        while True:
            try:
                result = sent.future.result(_LOOK_SECONDS)
            except TimeoutError as error:
                if self._calling.run.cancelled.is_set():
                    raise Closed from None
                if not sent.future.done():
                    continue
                lost: BaseException = error
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                lost = error
            else:
                self._under_way.remove(sent)
                return pickle.loads(result) if isinstance(result, bytes) else result
            # What cannot be pickled fails each time; of Dask, a TypeError also tells of a worker lost just behind its result.
            unsendable = isinstance(lost, TypeError | AttributeError | pickle.PicklingError)
            if sent.tries < _TRIES:
                if sent.to is self._executor and not unsendable:
                    self._renewed(lost)
            elif unsendable:
                functions = self._calling.chain.functions
                raise TypeError(
                    f"map: {functions!r:.200}, its elements or its results cannot be sent to the executor: {lost}; "
                    "define functions at the top level of a module, or install cloudpickle"
                ) from lost
            else:
                raise UnavailableError(
                    f"map: the executor lost {sent.rows.size} elements {_TRIES} times, the last time with "
                    f"{type(lost).__name__}: {lost}; a function may end its worker, or need more memory than there is"
                ) from lost
            sent.future, sent.to = self._submitted(sent.rows)
            sent.tries += 1

    def close(self) -> None:
        """Cancel what is under way, and end the executors that were made here."""
        for sent in self._under_way:
            sent.future.cancel()
        for made in self._made:
            made.shutdown(wait=False)  # without `cancel_futures`, which Dask and loky do not know

    def _submitted(self, rows: Block, *, again: bool = True) -> "tuple[Future[Done], Executor]":
        """What the executor, or a new one in its place, makes of a part, and which of them it was.

        Raises:
          TypeError: the part cannot be sent.
          UnavailableError: neither takes more work.
        """
        executor = self._executor
        function, given = self._call_of(executor, rows)
        try:
            return executor.submit(function, *given), executor
        except Exception as error:
            if again and self._renewed(error):
                return self._submitted(rows, again=False)
            raise self._broken(error) from error

    def _call_of(self, executor: Any, rows: Block) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What a worker calls for a part, and with which arguments."""
        calling = self._calling
        if _is_here(executor):
            return in_lane, (calling.work, rows, calling.run.cancelled.is_set)
        if self._payload is None:
            self._payload = pickled(_BY_EXECUTOR, WorkerTask(calling.chain, _BY_EXECUTOR))
        # Dask takes calls with equal arguments for one call, so there is a number, too.
        part: Any = (packed(rows, _BY_EXECUTOR), calling.chain.kinds, calling.run.tolerant)
        if _is_of_main(rows.structure):
            part = dumps(part)
        return _called_there, (self._payload, part, (self._pass, next(self._calls)))

    def _renewed(self, error: BaseException) -> bool:
        """Whether there is a new executor in the place of a broken one."""
        if not hasattr(self._given, "submit"):
            self._executor = self._fresh(self._given)
        elif _is_pool_of_processes(self._given) and isinstance(error, BrokenExecutor):
            self._executor = self._fresh(partial(_like, self._given))
        else:
            return False
        return True

    def _fresh(self, make: Callable[[], Executor]) -> Executor:
        made = make()
        if not callable(getattr(made, "submit", None)):
            raise TypeError(
                f"map: the function given as executor must make a concurrent.futures.Executor, got {made!r}"
            )
        self._made.append(made)
        return made

    def _broken(self, error: Exception) -> UnavailableError:
        return UnavailableError(
            f"map: the executor accepts no more work ({type(error).__name__}: {error}); give a function that makes an "
            "executor, which is called again when one has broken: executor=lambda: ProcessPoolExecutor(4)"
        )


def _is_pool_of_processes(executor: Any) -> bool:
    """Whether it is the one of Python, which nobody has to import in order to ask."""
    kind = type(executor)
    return (kind.__module__, kind.__name__) == ("concurrent.futures.process", "ProcessPoolExecutor")


def _like(broken: Any) -> Executor:
    """A pool of processes with the settings of one that is of no use any more, since one of its processes was killed."""
    made: Executor = type(broken)(
        broken._max_workers, broken._mp_context, initializer=broken._initializer, initargs=broken._initargs
    )
    return made


def _is_here(executor: Any) -> bool:
    """Whether its workers are threads of this interpreter, so that nothing needs to be pickled."""
    names = [kind.__name__ for kind in type(executor).__mro__]
    return isinstance(executor, futures.ThreadPoolExecutor) and "InterpreterPoolExecutor" not in names


def has_processes(executor: Any) -> bool:
    """Whether an executor, or the one that a function makes, may call in other processes."""
    if hasattr(executor, "submit"):
        return not _is_here(executor)
    names = (getattr(getattr(executor, "func", None), "__name__", ""), *_names_in(executor))
    return not any("ThreadPool" in name for name in names)


def _names_in(function: Any, depth: int = 3) -> Iterator[str]:
    """What a function names, and what functions of its module name that it calls."""
    code = getattr(function, "__code__", None)
    for name in () if code is None or not depth else code.co_names:
        yield name
        yield from _names_in(function.__globals__.get(name), depth - 1)


@lru_cache(maxsize=8)
def _sent(data: bytes) -> WorkerTask:
    """What was sent, with all that the functions hold."""
    made = pickle.loads(data)
    assert isinstance(made, WorkerTask)
    return made


@lru_cache(maxsize=8)
def _task(data: bytes, of_pass: str) -> WorkerTask:  # noqa: ARG001 - a pass of its own
    """The work of a pass: the functions are shared, and what they return is claimed anew."""
    sent = _sent(data)
    return WorkerTask(sent.chain.anew() if isinstance(sent.chain, Chain) else sent.chain, sent.call)


def _is_of_main(structure: Structure) -> bool:
    """Whether elements have classes of the main script, which are sent whole, as functions are: workers may have none."""
    own = structure.cls is not None and structure.cls.__module__ == "__main__"
    return has_cloudpickle() and (own or any(map(_is_of_main, structure.children)))


def _called_there(data: bytes, part: tuple[Block, Kinds, bool] | bytes, call: tuple[str, int]) -> Done | bytes:
    """What a worker does with a part; `call` is the pass, and a number in it."""
    task, given = _task(data, call[0]), pickle.loads(part) if isinstance(part, bytes) else part
    # The workers of some executors, such as those of Dask, call on several threads; others on the first one of a process.
    done = task(given) if current_thread() is main_thread() else in_lane(task, given)
    if done.mixed is not None:
        done.mixed.add_note("in a worker of the executor")
    _note_traces(done, "a worker of the executor")
    return dumps(done) if any(map(_made_of_main, done.parts)) else done


def _made_of_main(made: Block | FailedCall) -> bool:
    if isinstance(made, FailedCall):
        return has_cloudpickle() and type(made.error).__module__ == "__main__"
    return _is_of_main(made.structure)
