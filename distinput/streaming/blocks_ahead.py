# SPDX-License-Identifier: Apache-2.0
"""The next blocks of a stream are made on a thread while those before them are used, where that is measured to pay."""

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from distinput.core.block import Block
from distinput.core.room import cores
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.state import State

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Pace", "blocks_ahead"]

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


def blocks_ahead(open_stream: Callable[[Run], Stream], run: Run, pace: Pace) -> Stream:
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
