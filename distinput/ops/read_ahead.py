# SPDX-License-Identifier: Apache-2.0
"""What readers share: what comes next in files is read or decoded on threads while what came before is used."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from distinput.core.block import Block
from distinput.core.failure import Failure
from distinput.core.room import cores
from distinput.core.rows import RowQueue, Stream
from distinput.core.run import Run
from distinput.core.state import Mark, State
from distinput.formats.portion import Portion

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Pace", "Place", "blocks_in", "made_ahead", "places", "portions_in", "read_ahead"]

Place = dict[str, Any]
"""Where reading stands, for notes on errors: the "path" of a file, and the "position" in it.

And the mark "behind" the file, where reading goes on after an "error" that came before its first record, or when the file is
"lost" because of a later one.
"""

_Item = tuple[Mark, Place, Portion | Failure]

_TASKS, _TASK_BYTES = 2, 4 << 20
"""Blocks that a thread is told to make ahead, so that neither side waits for the other's lock at once; and room for one: a
chunk of a file, and where the records in it are."""

_WORTH_SECONDS, _WORTH_PART = 0.003, 0.125
"""Time that a thread must save before it is worth its start, which takes about a millisecond; and how much of all the time that
must be."""

_HAND_OVER_SECONDS = 3e-4
"""What each block costs more that a thread makes, since both sides wait for Python's lock several times: it was 0.2 to 0.3 ms,
whatever the size of the block."""

_COUNTED_SECONDS = 0.05
"""How much of the time that was measured counts, the last: a block for which kernels are loaded is soon forgotten."""


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
) -> Iterator[_Item]:
    """As `blocks_in`, for `read_ahead`."""
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


def read_ahead(portions: Iterator[_Item], run: Run) -> Stream:
    """The rows of portions, in their order.

    Once a second block is asked for, the portions that come next are decoded on threads, in which Python's lock is free; as
    many as the run has room for, and none on a single core. A state knows nothing of that, and errors keep their place.

    Args:
      portions: each with the mark of its file and the place that `run.reading` tells, which is kept up to date.
      run: ends the threads.
    """
    with ExitStack() as stack:
        ahead = _Ahead(portions, run, stack)
        stack.callback(ahead.give_up)
        while (pulled := ahead.next()) is not None:
            if isinstance(pulled.item, tuple) and "lost" in pulled.item[1]:
                ahead.drop(pulled)
            else:
                yield from _blocks(pulled, ahead, run)


def _blocks(pulled: "_Pulled", ahead: "_Ahead", run: Run) -> Stream:
    """The rows of what was pulled. Its own function, so that nothing of a portion is held while the next one is decoded."""
    if pulled.reading is not None:
        run.reading = pulled.reading
    if isinstance(pulled.item, Exception):
        raise pulled.item
    mark, place, portion = pulled.item
    if isinstance(portion, Failure):
        yield portion, place["behind"]
        return
    try:
        decoded = ahead.decoded(pulled, portion)
        ahead.go_on(run.room.nbytes)  # a large one has to wait until what came before is no longer in use
        for block, after in portion.blocks(decoded):
            place["position"] = after
            yield block, {**mark, "position": after}
            ahead.asked = True
            ahead.go_on()
    except Exception as error:
        if not run.tolerant:
            raise
        place["lost"] = True
        yield Failure(error), place["behind"]


class Pace:
    """How long the blocks of a stream take to be made, and to be used: a thread that makes them ahead saves the shorter.

    One is kept for all passes over a node, so that a later one begins as the earlier ones have shown to be best. Only blocks
    that were made and used in turn are counted, since those of a thread wait for Python's lock; the last ones count most.
    """

    def __init__(self) -> None:
        self._made = self._used = self._blocks = 0.0

    def begin(self) -> None:
        """A pass begins; what was known before counts less."""
        self._keep(0.75)

    def took(self, made: float, used: float) -> None:
        """A block took so many seconds to be made, and then to be used."""
        self._made, self._used, self._blocks = self._made + made, self._used + used, self._blocks + 1
        self._keep(min(1.0, _COUNTED_SECONDS / (self._made + self._used + 1e-9)))

    def _keep(self, part: float) -> None:
        self._made, self._used, self._blocks = self._made * part, self._used * part, self._blocks * part

    @property
    def pays(self) -> bool:
        """Whether a thread is worth its start and its hand-overs."""
        saved = min(self._made, self._used) - self._blocks * _HAND_OVER_SECONDS
        return saved > _WORTH_SECONDS and saved > _WORTH_PART * (self._made + self._used)


def made_ahead(open_stream: Callable[[Run], Stream], run: Run, pace: Pace) -> Stream:
    """The blocks of a stream that is made of bytes of files.

    Once a thread pays, the next blocks are made on it, in which Python's lock is free most of the time; none on a single
    core, or where the run has no room. A state knows nothing of that, and errors keep their place.

    Args:
      open_stream: opens it with a run whose `reading` is its own.
      run: ends the thread; its `reading` goes with the blocks that have been given.
      pace: of this stream in the passes before.
    """
    aside = run.aside()
    with ExitStack() as stack:
        # Closed where it is let go of last: here, or by a task that is under way when this ends.
        stream = open_stream(aside)
        pool: ThreadPoolExecutor | None = None
        ahead: deque[Future[_Made]] = deque()
        alone = cores() == 1
        pace.begin()
        while True:
            made = ahead.popleft().result() if ahead else _made(stream, aside)
            begin = Run.clock()
            if made.reading is not None:
                run.reading = partial(str, made.reading)
            if made.item is None:
                return
            if isinstance(made.item, Exception):
                raise made.item
            yield made.item
            if pool is None:
                pace.took(made.seconds, Run.clock() - begin)
                if not alone and pace.pays and run.room.enter(_TASKS * _TASK_BYTES):
                    stack.callback(run.room.leave, _TASKS * _TASK_BYTES)
                    pool = stack.enter_context(run.pool(1))
            while pool is not None and len(ahead) < _TASKS:
                ahead.append(pool.submit(_made, stream, aside))


class _Made(NamedTuple):
    """What came next in a stream.

    Attributes:
      item: a block, the error in its place, or None at the end.
      reading: what the run's `reading` said then.
      seconds: how long it took.
    """

    item: tuple[Block, State] | Exception | None
    reading: str | None
    seconds: float


def _made(stream: Stream, aside: Run) -> _Made:
    """The next block of a stream that was opened with the run `aside`."""
    begin = Run.clock()
    item: tuple[Block, State] | Exception | None
    try:
        item = next(stream, None)
    except Exception as error:  # noqa: BLE001 - raised when its turn has come
        item = error
    return _Made(item, None if aside.reading is None else aside.reading(), Run.clock() - begin)


class _Pulled:
    """What came from the portions: one of them, or the error in its place; and what `run.reading` said then.

    Attributes:
      future: of the decoded portion, if a thread has it.
    """

    __slots__ = ("future", "item", "reading")

    def __init__(self, item: _Item | Exception, reading: Callable[[], str] | None) -> None:
        self.item, self.reading = item, reading
        self.future: Future[Any] | None = None


class _Ahead:
    """The portions that were pulled and not yet used: those that threads have, and one that has to wait.

    Attributes:
      asked: true once a second block was asked for; who looks at the first element alone pays for one portion.
    """

    def __init__(self, portions: Iterator[_Item], run: Run, stack: ExitStack) -> None:
        self.asked = False
        self._portions, self._run, self._stack = portions, run, stack
        self._threads = run.room.pieces if cores() > 1 else 0
        self._pool: ThreadPoolExecutor | None = None
        self._decoding: deque[_Pulled] = deque()
        self._held: _Pulled | None = None
        self._reading: Callable[[], str] | None = None

    def next(self) -> _Pulled | None:
        """What comes next; None at the end."""
        if self._decoding:
            return self._decoding.popleft()
        held, self._held = self._held, None
        return held or self._pull()

    def decoded(self, pulled: _Pulled, portion: Portion) -> Any:
        """What `portion.blocks` is given."""
        if pulled.future is None:
            return portion.decode()
        try:
            return pulled.future.result()
        finally:
            self._run.room.leave(portion.nbytes)

    def drop(self, pulled: _Pulled) -> None:
        """What was pulled is not wanted."""
        if pulled.future is not None and isinstance(pulled.item, tuple) and isinstance(pulled.item[2], Portion):
            with suppress(Exception):
                self.decoded(pulled, pulled.item[2])

    def go_on(self, most: float = inf) -> None:
        """Let threads decode portions of at most so many bytes, as long as there is room."""
        while self.asked and len(self._decoding) < self._threads:
            pulled = self._held or self._pull()
            if pulled is None:
                self._threads = 0
                return
            self._held = pulled
            portion = None if isinstance(pulled.item, Exception) else pulled.item[2]
            if portion is None or isinstance(portion, Failure) or not self._may_begin(portion, most):
                return
            if self._pool is None:
                self._pool = self._stack.enter_context(self._run.pool(self._threads))
            pulled.future = self._pool.submit(portion.decode)
            self._decoding.append(pulled)
            self._held = None

    def _may_begin(self, portion: Portion, most: float) -> bool:
        if portion.nbytes > most or self._run.cancelled.is_set():
            return False
        last = self._decoding[-1].future if self._decoding else None
        if portion.follows and last is not None and not last.done():
            return False
        return self._run.room.enter(portion.nbytes)

    def _pull(self) -> _Pulled | None:
        before = self._run.reading
        if self._reading is not None:  # only the first portion of a file says where it is
            self._run.reading = self._reading
        try:
            item: _Item | Exception | None = next(self._portions, None)
        except Exception as error:  # noqa: BLE001 - raised when its turn has come
            item = error
        self._reading = reading = self._run.reading
        if before is not None:
            self._run.reading = before
        return None if item is None else _Pulled(item, reading)

    def give_up(self) -> None:
        """Nothing more is wanted."""
        for pulled in self._decoding:
            if not isinstance(pulled.item, Exception):
                self._run.room.leave(pulled.item[2].nbytes)
        self._decoding.clear()
