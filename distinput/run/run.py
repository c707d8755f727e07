# SPDX-License-Identifier: Apache-2.0
"""A run: what all streams of one iteration share, how they are watched, and how functions are called on their elements."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from contextvars import Context
from functools import partial
from itertools import islice, starmap
from threading import get_ident
from time import perf_counter, perf_counter_ns, process_time, thread_time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, Self, TypeVar

import numpy as np

from distinput.columns.block import MOST_BYTES, Block, Failure, Step, note_open_files, trouble_of
from distinput.columns.rows import PACE_SECONDS, Stream, Together, passing_over
from distinput.columns.state import Mark, State
from distinput.errors import CancelledError
from distinput.kernels.kernel import Flag
from distinput.names.lazy import dataclass, later, without_secrets
from distinput.run.threads import Closing, Pool, Threads
from distinput.values.leaves import is_ragged

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from distinput import url_secrets
    from distinput.names import words
else:
    url_secrets = later("distinput.url_secrets")  # for errors
    words = later("distinput.names.words")  # the same

P = ParamSpec("P")
R = TypeVar("R")

# ----------------------------------------------------------------------------
# Calling a Python function on every element of a stream, without making the first element wait for a whole block.
# ----------------------------------------------------------------------------


CalledBlock = tuple[list[Any], Block, int, Mark]

MOST_CALLS = 4096
"""Elements of one block of results."""

_RESULT_BYTES = 1 << 20
"""Bytes of results kept for one block: more would be fresh memory each time, and would leave the caches before it is used."""

_GROUP_BYTES = 1 << 22
"""Bytes of the results of a group, which a block may hold beyond these: it becomes a batch without another copy."""

_STRIDE = 16
"""Quick calls between two looks at the clock."""

_GROUP_SECONDS = 0.012
"""How much longer than `PACE_SECONDS` it may take until the consumer can make a batch: fewer results would wait for others."""

_BEHIND_ERROR = 64
"""Elements prepared for calls after one that failed: the more calls fail, the more often they are prepared again."""


_NUMBERS = (np.number, np.bool_, bool, int, float)


def called(
    stream: Stream,
    mark: Mark,
    call: Callable[..., Any],
    most: int = MOST_CALLS,
    *,
    unpack: bool = False,
    tolerant: bool = False,
) -> Iterator[CalledBlock]:
    """`call` on every element: yields (results, block, first row of them, mark after them).

    Results are sent when the block is over, when `most` are there, when `PACE_SECONDS` have passed, and before an error
    of `call` is raised, so that nothing that was made before the error is lost. With `unpack`, the components of a tuple are
    its arguments. A failure of the stream, and with `tolerant` one of `call`, comes as a block without results.
    """
    return applied(stream, mark, lambda rows: calls_of(call, rows, unpack=unpack), most, tolerant=tolerant)


def to_whole_groups(count: int, group: int, each: float) -> int:
    """How many results more a block is to end with, after `count` of `each` bytes, to end where a group of them ends."""
    return -count % group if group * each <= _GROUP_BYTES else 0


def applied(
    stream: Stream,
    mark: Mark,
    results_of: Callable[[Block], Iterator[Any]],
    most: int = MOST_CALLS,
    note: Callable[[Exception, Any], None] | None = None,
    *,
    together: Together | None = None,
    tolerant: bool = False,
) -> Iterator[CalledBlock]:
    """As `called`, with the results of each block from `results_of`, one for each element and made when asked for.

    The loop over elements runs inside the interpreter, so a call costs little more than itself; how many calls it makes
    between two looks at the clock depends on how long the last ones took. `note` is told of an error and its element.
    Results for groups are put `together`, and blocks end where groups end, if that is soon.
    """
    clock = perf_counter
    stride, behind, room, together = 1, 0, 0, together or Together(1)
    for rows, mark_at in passing_over(stream, mark):
        if type(rows) is Failure:
            yield [], rows, 0, mark_at(0)
            continue
        calls, first, until = results_of(rows), 0, rows.size
        while first < rows.size:
            results: list[Any] = []
            failure: Exception | None = None
            if first == until:
                until = rows.size
                calls = results_of(rows.rows(first, until))
            end = min(until, first + min(most, together.left()))
            now, nbytes, number, source = clock(), 0, None, calls
            deadline = now + PACE_SECONDS
            try:
                while True:
                    # The first one of many tells how much memory they take.
                    begin, fresh = now, not results
                    goal = min(first + len(results) + (1 if room and fresh else stride), end)
                    # `extend` keeps what was made before an error.
                    results.extend(islice(source, goal - first - len(results)))
                    if first + len(results) < goal:
                        raise stopped()
                    if fresh:
                        each, room = bytes_of(results[0]), together.begin(results[0])
                        count = max(stride, _RESULT_BYTES // each)
                        count = room or count + to_whole_groups(behind + count, together.group, each)
                        end = min(end, first + max(len(results), count))
                        number = _number_type(results[0])
                        results[:] = map(together.settle, results)
                        source = map(together.settle, calls) if room else calls
                    weight = 0 if together.holds_all else stride * _weight(results[-1], number)
                    now, nbytes = clock(), nbytes + weight
                    end = end if now <= deadline else min(end, goal + (first - goal - behind) % together.group)
                    if goal == end or nbytes > MOST_BYTES or now > deadline + _GROUP_SECONDS:
                        break
                    if now - begin < PACE_SECONDS / 8:
                        stride = min(2 * stride, _STRIDE)
                    elif now - begin > PACE_SECONDS / 2:
                        stride = max(1, stride // 2)
            except Exception as error:  # noqa: BLE001 - raised again once everything before it has been sent
                trouble_of(error).mark = mark_at(first + len(results))
                (note or note_element)(error, rows.shown(first + len(results)))
                failure = error
            if results:
                yield results, rows, first, mark_at(first + len(results))
            first, behind = first + len(results), behind + len(results)
            if failure is not None:
                if not tolerant:
                    raise failure
                first += 1
                yield [], Failure(failure), 0, mark_at(first)
                until = min(first + _BEHIND_ERROR, rows.size)
                calls = results_of(rows.rows(first, until))


def calls_of(call: Callable[..., Any], rows: Block, *, unpack: bool) -> Iterator[Any]:
    """The results of `call` on all rows, made as they are asked for."""
    if unpack and rows.structure.kind == "tuple":
        return starmap(call, rows.elements())
    return map(call, rows.elements())


def _number_type(result: Any) -> type[Any] | None:
    """The type of a number, whose bytes nobody needs to add up; None for anything else."""
    return type(result) if isinstance(result, _NUMBERS) else None


def _weight(result: Any, number: type[Any] | None) -> int:
    """`bytes_of`, in a moment where results are numbers of a type."""
    return 1 if type(result) is number else bytes_of(result)


def stopped() -> RuntimeError:
    """What to raise for a function that raised StopIteration, which would end a loop in silence."""
    return RuntimeError("the function raised StopIteration, which ends no dataset; return a value, or use take_while")


def called_once(function: Callable[..., R], *args: Any) -> R:
    """What a function returns that is called outside of a loop over elements; StopIteration is no end there either."""
    try:
        return function(*args)
    except StopIteration as error:
        raise stopped() from error


def note_element(error: Exception, element: Any) -> None:
    """Say with the error which element a function was given."""
    error.add_note(f"on {element_text(element)}")


def element_text(element: Any) -> str:
    """An element in a line, cut short."""
    text = repr(element)
    return f"element {text if len(text) <= 200 else text[:200] + '...'}"


def bytes_of(result: Any) -> int:
    """The bytes of the arrays and texts in a result; at least 1.

    >>> bytes_of((np.zeros(3), {"a": b"text", "b": ["more", 1]}))
    32
    """
    if isinstance(result, np.ndarray):
        return max(1, result.nbytes)
    if isinstance(result, bytes | str):
        return max(1, len(result))
    if is_ragged(result):
        return int(result.nbytes)
    items = result if isinstance(result, tuple | list) else result.values() if isinstance(result, dict) else ()
    return max(1, sum([bytes_of(item) for item in items if isinstance(item, _SIZED) or is_ragged(item)]))


_SIZED = (np.ndarray, bytes, str, tuple, list, dict)


# ----------------------------------------------------------------------------
# The read-ahead budget: how much the streams of one run may make ahead together.
# ----------------------------------------------------------------------------


_WAITING_PIECES, _WAITING_BYTES, _UNDER_WAY = 8, 4, 5
"""How many times as many pieces, and as much memory, there may be of those that wait for a network, and how many times as many
of these are under way, in half of the memory: a core has nothing to do meanwhile, and 64 MB are what a network of 1.2 GB/s
sends within the 50 ms that a request to an object store takes.

Pieces that share a network arrive together. If all that there is room for were under way, the network would be idle from then
on until the first of them are used. So the others wait to be requested, each when another has arrived.
"""


class ReadAheadBudget:
    """Room for a few pieces of work that wait to be used.

    Args:
      pieces: the most at a time.
      nbytes: the most memory of all of them together; a single piece may take more.

    >>> budget = ReadAheadBudget(pieces=2, nbytes=100)
    >>> budget.enter(70), budget.enter(70), budget.enter(30), budget.enter(0)
    (True, False, True, False)
    >>> [budget.under_way(size, waits=True) for size in (10, 40, 400)]
    [10, 5, 2]
    """

    def __init__(self, pieces: int, nbytes: int) -> None:
        self.pieces, self.nbytes = pieces, nbytes
        self._pieces = self._bytes = 0
        self._lock = threading.Lock()

    def most(self, *, waits: bool) -> int:
        """The most pieces at a time; there may be more that wait for a network."""
        return self.pieces * _WAITING_PIECES if waits else self.pieces

    def under_way(self, nbytes: int, *, waits: bool) -> int:
        """How many pieces of this memory are made at the same time; the others wait for their turn."""
        if not waits:
            return self.pieces
        return min(self.pieces * _UNDER_WAY, max(self.pieces, self.nbytes * _WAITING_BYTES // (2 * max(1, nbytes))))

    def enter(self, nbytes: int, *, waits: bool = False) -> bool:
        """True when there is room for a piece of work that takes this much memory, which then has to `leave`.

        Args:
          nbytes: its memory.
          waits: true if it mostly waits for a network, so that there may be more of its kind.
        """
        room = self.nbytes * _WAITING_BYTES if waits else self.nbytes
        with self._lock:
            if self._pieces >= self.most(waits=waits) or (self._pieces and self._bytes + nbytes > room):
                return False
            self._pieces += 1
            self._bytes += nbytes
            return True

    def leave(self, nbytes: int) -> None:
        """The piece is used, or given up."""
        with self._lock:
            self._pieces -= 1
            self._bytes -= nbytes


# ----------------------------------------------------------------------------
# A run: what all streams of one iteration share, and the one place where they are measured and their errors annotated.
# ----------------------------------------------------------------------------


_PATIENCE = 1.0
"""Seconds that threads are waited for which may wait for a loop that was left."""

_AHEAD, _AHEAD_BYTES = 3, 32 << 20
"""Parts of files that may be decoded ahead: many threads decode one, but the last of them often has more to do."""


_ROOM, _FEW = 6 << 20, 4
"""Bytes that the readers of a mixture may hold together, unless the options say it; each of a few reads as one alone does."""


_REQUESTS = 16
"""Threads that request what readers need next, all of them together."""


class CoreUse(NamedTuple):
    """What the threads of this process had of the cores.

    Args:
      seconds: on a core, all threads together.
      waits: how much oftener a thread gave its core up, to wait for something, than it lost it to another program.
      lost: how often a thread lost it.
    """

    seconds: float
    waits: int
    lost: int = 0

    def __sub__(self, before: "CoreUse") -> "CoreUse":
        """Between two moments."""
        return CoreUse(self.seconds - before.seconds, self.waits - before.waits, self.lost - before.lost)


def core_use() -> CoreUse:
    """Since this process began. Where the system does not tell how often threads waited, they always did."""
    if resource is None:
        return CoreUse(process_time(), perf_counter_ns())
    used = resource.getrusage(resource.RUSAGE_SELF)
    return CoreUse(used.ru_utime + used.ru_stime, used.ru_nvcsw - used.ru_nivcsw, used.ru_nivcsw)


def thread_use() -> CoreUse:
    """What this thread alone had of them; its waits are those for something else than a core."""
    waits = perf_counter_ns() if _OF_THREAD is None else int(resource.getrusage(_OF_THREAD).ru_nvcsw)
    return CoreUse(thread_time(), waits)


_OF_THREAD = getattr(resource, "RUSAGE_THREAD", None)


@dataclass
class OpCounters:
    """What one op did in a run.

    Args:
      blocks: blocks sent.
      rows: elements sent.
      seconds: time in this op and what it reads from, as far as that runs on the same thread.
      own: the part of it in this op alone.
      waiting: the part of that in which it waited for another thread or process.
      worked: seconds of work that it gave to other threads or processes.
      workers: how many of those there were.
      outside: time from an element sent to the next one asked for.
      late: the part of `own` that was spent on elements when they were handed out, to the loop that takes them.
      thread: the thread on which it ran last.
      nbytes: bytes of the blocks sent, counted only in a run that is recorded.
      choice: what AUTOTUNE chose for it, in words.
      dropped: elements that were left out because of an error.
      dropped_before: those of them in passes before this one.
      error: the last such error, in words.
      began: for the last step of a run, what the process had used of the cores before it.
      used: for the last step of a run that has ended, what the process had of the cores meanwhile.
    """

    blocks: int = 0
    rows: int = 0
    seconds: float = 0.0
    own: float = 0.0
    waiting: float = 0.0
    worked: float = 0.0
    workers: int = 0
    outside: float = 0.0
    late: float = 0.0
    thread: int = 0
    nbytes: int = 0
    choice: str = ""
    dropped: int = 0
    dropped_before: int = 0
    error: str = ""
    began: CoreUse | None = None
    used: CoreUse | None = None

    @property
    def busy(self) -> float:
        """Seconds of work in this op alone, on its own thread."""
        return max(0.0, self.own - self.waiting)

    def waits(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """`call(...)`, counted as waiting."""
        begin = Run.clock()
        try:
            return call(*args, **kwargs)
        finally:
            self.waiting += Run.clock() - begin

    def holds(self, rows: int) -> None:
        """So many elements wait in its buffer; a run that is recorded takes note of it."""


class Asked(NamedTuple):
    """What is asked of the steps below one of an iteration; steps hand it down as a part of the run.

    Args:
      by_element: the consumer looks at single elements, so a block may hold any number of rows not gathered or copied yet.
      run_ahead: how many elements functions may be ahead of those that were asked for; None: as many as a block holds.
      tolerant: a stream continues after an error, with a `Failure` in place of the element; otherwise it raises.
      dropping: a step above drops these failures, so that nobody is told of them.
      past_damage: a reader goes on behind a damaged record where its format can; otherwise with the next file.
      sampling: elements are read to see what they look like; what can be read only once is kept for the pass that comes.
      later: others have come before the first element, so nobody waits for it alone.
      requested: called by a reader that has requested the last bytes of the last file that it knows of: another one may begin.
      group: a step, by its id, and of how many of its elements the consumer makes one.
      room: bytes that a reader may hold of what it reads, where many are read by turns; None: as many as it likes.
      foreign: the ids of steps of which this is not asked, but `outside`.
      outside: what was asked before a step began to leave its own errors out.
    """

    by_element: bool = False
    run_ahead: int | None = None
    tolerant: bool = False
    dropping: bool = False
    past_damage: bool = False
    sampling: bool = False
    later: bool = False
    requested: Callable[[], None] | None = None
    group: tuple[int, int] = (0, 1)
    room: int | None = None
    foreign: frozenset[int] = frozenset()
    outside: "Asked | None" = None


class UnderWay(deque[Any]):
    """What is under way in one stream; like itself alone, so that it is found among others."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]


class Run(Closing):
    """One iteration: its thread pools, its cancellation and its counters, which all steps share, and what is asked of a step.

    Closing it leaves nothing behind. `asking` and what is named after a question give the same run with another one asked.

    Args:
      steps: those that get a counter each; others, of datasets made on the way, share one for each line that makes them.
      ram_budget: bytes that may wait in buffers whose sizes AUTOTUNE chooses.
      run_ahead: how many elements functions may be ahead of those that were asked for; None: as many as a block holds.
      memory_budget: bytes that readers may hold, all of them together; None: enough for each of a few, and `_ROOM` for many.

    Attributes:
      asked: what is asked of the steps that this run is handed to.
    """

    clock: ClassVar[Callable[[], float]] = staticmethod(perf_counter)
    cores: ClassVar[Callable[[], CoreUse]] = staticmethod(core_use)

    def __init__(
        self,
        steps: Iterable[Step] = (),
        ram_budget: int = 256 << 20,
        run_ahead: int | None = None,
        memory_budget: int | None = None,
    ) -> None:
        self.asked = Asked(run_ahead=run_ahead, room=memory_budget)
        self.counters: dict[Hashable, OpCounters] = {id(step): OpCounters() for step in steps}
        self._last = next(reversed(self.counters), None)  # the step that the loop takes elements of
        self.ram_budget = ram_budget
        self.resumed = False
        """True if it did not begin at the first element."""
        self.read_ahead = ReadAheadBudget(_AHEAD, _AHEAD_BYTES)
        """Shared by all readers."""
        self.cancelled = Flag()
        self.waits = Flag()
        """Set by a source that may wait for what the loop does, and so for ever when the loop is left."""
        self.holding: list[UnderWay] = []
        """What is under way in steps that ask for the next elements meanwhile."""
        self.sources: list[Callable[[], Exception | None]] = []
        """Each tells the error if a source waits in vain on another thread, for what the loop does with elements held back."""
        # Its own, and those of the runs that it is apart of.
        self._readings: tuple[list[Callable[[], str]], ...] = ([],)
        self._threads = Threads()
        self.check_process = self._threads.check_process
        self._inner: dict[int, float] = {}  # by thread: seconds in the streams called by the one that is running

    @property
    def by_element(self) -> bool:
        """See `Asked`; as the next ones."""
        return self.asked.by_element

    @property
    def run_ahead(self) -> int | None:
        """How many elements functions may be ahead."""
        return self.asked.run_ahead

    @property
    def tolerant(self) -> bool:
        """Whether a stream continues after an error."""
        return self.asked.tolerant

    @property
    def room(self) -> tuple[int | None, Callable[[], Pool]]:
        """Bytes that a reader may hold, and the threads that request them for all readers."""
        return self.asked.room, partial(self._threads.shared_pool, "requests", _REQUESTS)

    def asking(self, **changes: Any) -> Self:
        """The same run, of which something else is asked.

        Args:
          **changes: fields of `Asked`.

        >>> run = Run()
        >>> run.asking(tolerant=True).tolerant, run.tolerant
        (True, False)
        """
        run = self._same()
        run.asked = self.asked._replace(**changes)
        return run

    def _same(self) -> Self:
        """The same run as another object, made without `copy`, which takes several times as long: each pass makes some."""
        run = object.__new__(type(self))
        run.__dict__.update(self.__dict__)
        return run

    @property
    def reading(self) -> Callable[[], str] | None:
        """What says where the last record was read."""
        return next(iter(self._readings[0]), None)

    @reading.setter
    def reading(self, where: Callable[[], str]) -> None:
        for each in self._readings:
            each[:] = [where]

    def group(self, step: Step) -> int:
        """How many elements of a step its consumer waits for, to make one of them."""
        asked_of, size = self.asked.group
        return size if asked_of == id(step) else 1

    def at_once(self, most: int) -> int:
        """Elements for which a function may be called before the first of them is asked for, at most `most`."""
        return most if self.run_ahead is None else min(most, self.run_ahead + 1)

    def one_by_one(self) -> Self:
        """The same run for steps below one that has as many elements under way as may be ahead."""
        return self.asking(run_ahead=0) if self.run_ahead else self

    def aside(self) -> Self:
        """The same run for steps that go ahead of the others: `reading` is their own."""
        run = self._same()
        run._readings = ([],)
        return run

    def apart(self) -> Self:
        """The same run for one of several threads that read: what another one sets as `reading` is not theirs."""
        run = self._same()
        run._readings = ([], *self._readings)
        return run

    def sharing(self, streams: int) -> Self:
        """The same run for each of so many streams that are read by turns: they share the room for what is read.

        >>> Run().sharing(4).asked.room is None, Run().sharing(48).asked.room == 1 << 17
        (True, True)
        >>> Run(memory_budget=1 << 20).sharing(4).sharing(2).asked.room == 1 << 17
        True
        """
        room = self.asked.room
        if streams < 2 or (room is None and streams <= _FEW):
            return self
        return self.asking(room=max(1, (_ROOM if room is None else room) // streams))

    def by_block(self) -> Self:
        """The same run for steps whose consumers look at all rows of a block at once."""
        return self.asking(by_element=False) if self.by_element else self

    def tolerating(self, tolerant: bool = True) -> Self:
        """The same run for steps that go on after an error, or that do not."""
        return self if self.tolerant == tolerant else self.asking(tolerant=tolerant, dropping=False)

    def skipping(self, foreign: frozenset[int]) -> Self:
        """The same run for a step that continues after its own errors; for steps that it reads from it is as it was.

        Args:
          foreign: the ids of those steps.
        """
        return self.asking(tolerant=True, dropping=True, past_damage=True, foreign=foreign, outside=self.asked)

    def at(self, step: Step) -> Self:
        """The same run for `step`, which may be one that a step with `skipping` reads from."""
        outside = self.asked.outside
        if outside is None or id(step) not in self.asked.foreign:
            return self
        return self.asking(
            tolerant=outside.tolerant,
            dropping=outside.dropping,
            past_damage=outside.past_damage,
            foreign=outside.foreign,
            outside=outside.outside,
        )

    def goes_past(self, of_records: bool) -> bool:
        """Whether a reader goes on behind a record that cannot be read.

        Args:
          of_records: whether errors of the format are of single records, so that `ignore_errors` drops these alone.
        """
        return self.asked.past_damage or (self.tolerant and of_records)

    def counter(self, step: Step) -> OpCounters:
        """Where `step` is counted."""
        found = self.counters.get(id(step))
        if found is None:
            found = self.counters.setdefault((step.op, step.origin), OpCounters())
        return found

    def late(self, step: Step) -> Callable[[float], None]:
        """What counts seconds in which elements of `step` were made that it had sent before, when they were handed out."""
        counter, inner = self.counter(step), self._inner

        def count(seconds: float) -> None:
            counter.own += seconds
            thread = get_ident()
            if thread in inner:  # within the step that looks at them
                inner[thread] += seconds
            else:
                counter.late += seconds

        return count

    def watch(self, step: Step, stream: Stream, state: State | None = None) -> Stream:
        """`stream`, counted, and with notes on its errors that say which step raised them, where it was made, and which record.

        It gives nothing more once the run is cancelled: steps make less then, and some would ask for elements without end.

        `state` is the one that the stream begins at. In a tolerant run an error that it raises, rather than hand it on as a
        failure, is one after which nothing follows.
        """
        return self._watched(step, self.counter(step), stream, state)

    def annotate(self, error: BaseException, where: Callable[[], str]) -> None:
        """Say with an error where it happened, unless a step further in has said so."""
        trouble = trouble_of(error)
        if trouble.located:
            return
        trouble.located = True  # the innermost op is the one at fault
        # The error is told nevertheless where modules cannot be loaded, since no more files can be opened, and where its text
        # cannot be made.
        with suppress(Exception):
            error.add_note(f"in {where()}")
            if cure := words.cure_of(error):
                error.add_note(cure)
        note_open_files(error)
        with suppress(OSError):
            url_secrets.scrub(error)

    def note_record(self, error: Exception, step: Step, state: State | None, ahead: int) -> None:
        """Say with an error of a step which record it is about, or how far was read if that is not known."""
        trouble = trouble_of(error)
        if trouble.told:
            return
        trouble.told = True  # the innermost step knows
        told: str | None = None
        if state is not None and self.asked.outside is None:  # what leaves errors out asks itself
            with suppress(Exception):  # of looking for it, such as that the file is gone
                told = step.told_record(error, state, ahead)
        if told:
            error.add_note(without_secrets(told))
        elif self.reading is not None:
            behind = " (how far was read by then; the error is somewhere before)" if told is None else ""
            error.add_note(without_secrets(f"last read: {self.reading()}{behind}"))

    def _watched(self, step: Step, counter: OpCounters, stream: Stream, state: State | None) -> Stream:
        clock, inner, cancelled = Run.clock, self._inner, self.cancelled
        end: float | None = None
        is_last = id(step) == self._last
        if is_last:
            counter.began, counter.used = Run.cores(), None
        try:
            while True:
                counter.thread = thread = get_ident()
                # Streams of one thread are called by each other, so each adds its time for the one that called it.
                outer = inner.get(thread)
                inner[thread] = 0.0
                begin = clock()
                if end is not None:
                    counter.outside += begin - end
                try:
                    item = next(stream)
                except StopIteration:
                    if cancelled.was_set:
                        break
                    return
                finally:
                    end = clock()
                    spent = end - begin
                    counter.seconds += spent
                    counter.own += spent - inner[thread]
                    if outer is None:
                        del inner[thread]
                    else:
                        inner[thread] = outer + spent
                if cancelled.was_set:
                    break
                counter.blocks += 1
                counter.rows += item[0].size
                state = None if state is None else item[1]
                if type(item[0]) is Failure:
                    self.annotate(item[0].error, step.where)
                    self.note_record(item[0].error, step, state, -1)
                    trouble = trouble_of(item[0].error)
                    trouble.step = trouble.step or step
                yield item
                del item  # its memory is not held while the next one is made
            raise CancelledError("the iteration was closed while this element was made")
        except CancelledError:
            raise  # nothing is wrong with the step or the record
        except Exception as error:
            self.annotate(error, step.where)
            self.note_record(error, step, state, 0)
            trouble = trouble_of(error)
            if self.tolerant and not trouble.last:
                trouble.last = True
                error.add_note(f"no element can follow: {step.op} does not go on after this error")
            raise
        finally:
            if is_last and counter.began is not None:
                counter.used = Run.cores() - counter.began
            close = getattr(stream, "close", None)
            if close is not None:
                close()

    def shared_pool(self, work: str, threads: int) -> Pool:
        """The thread pool that all readers of this run share for some kind of work; see `Threads.shared_pool`."""
        return self._threads.shared_pool(work, threads)

    def pool(self, threads: int) -> AbstractContextManager[Pool]:
        """A thread pool for one stream; see `Threads.pool`."""
        return self._threads.pool(threads)

    @property
    def context(self) -> Context:
        """Context variables for one more thread; see `Threads`."""
        return self._threads.context

    def beside(self, thread: threading.Thread, end: Callable[[], None]) -> AbstractContextManager[None]:
        """A thread for one stream; see `Threads.beside`."""
        return self._threads.beside(thread, end)

    @property
    def has_threads(self) -> bool:
        """Whether threads are making something for it."""
        return self._threads.alive

    def cancel(self) -> None:
        """Tell what is under way to end, without waiting for it."""
        self.cancelled.set()
        self._threads.end()

    def close(self, patience: float | None = None) -> None:
        """Cancel what is under way and wait until it is gone; may be called again.

        Args:
          patience: seconds to wait for threads that are in the middle of something; None: as long as it takes.
        """
        self.cancel()
        self._threads.join(_PATIENCE if patience is None and self.waits.is_set() else patience)
