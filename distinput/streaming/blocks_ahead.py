# SPDX-License-Identifier: Apache-2.0
"""Make the next blocks of a stream on a thread while earlier ones are used, where measurements show that it pays."""

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from distinput.core.block import Block
from distinput.core.cores import cores
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.state import State

if TYPE_CHECKING:
    from distinput.core.pool import Pool, Task

__all__ = ["Pace", "blocks_ahead"]

_TASKS, _TASK_BYTES = 2, 4 << 20
"""Blocks that a thread makes ahead, so that neither side has to wait for the other's lock at once; and the room for one of
them: a chunk of a file, and the offsets of the records in it."""

_WORTH_SECONDS, _WORTH_PART = 0.003, 0.125
"""Seconds that a thread must save before it is worth starting, which takes about a millisecond; and the fraction of the total
time that they must be."""

_HAND_OVER_SECONDS = 3e-4
"""Extra seconds for each block that a thread makes, because both sides wait for the GIL several times: 0.2 to 0.3 ms were
measured, whatever the size of the block."""

_COUNTED_SECONDS = 0.05
"""Only the last so many seconds that were measured count, so that a block that had to load kernels is soon forgotten."""


class Pace:
    """How long it takes to make the blocks of a stream, and to use them; a thread saves at most the shorter of the two.

    One is kept for all passes over a node, so that a later pass begins in the way that was best in earlier ones. Only blocks
    that were made and used in turn are counted, since those made on a thread wait for the GIL; the last ones count most.
    """

    def __init__(self) -> None:
        self._made = self._used = self._blocks = 0.0

    def begin(self) -> None:
        """Begin a pass; earlier measurements count less from now on."""
        self._keep(0.75)

    def took(self, made: float, used: float) -> None:
        """Count a block: the seconds to make it, and then to use it."""
        self._made, self._used, self._blocks = self._made + made, self._used + used, self._blocks + 1
        self._keep(min(1.0, _COUNTED_SECONDS / (self._made + self._used + 1e-9)))

    def _keep(self, part: float) -> None:
        self._made, self._used, self._blocks = self._made * part, self._used * part, self._blocks * part

    @property
    def pays(self) -> bool:
        """Whether a thread is worth its start and the hand-overs."""
        saved = min(self._made, self._used) - self._blocks * _HAND_OVER_SECONDS
        return saved > _WORTH_SECONDS and saved > _WORTH_PART * (self._made + self._used)


def blocks_ahead(open_stream: Callable[[Run], Stream], run: Run, pace: Pace) -> Stream:
    """The blocks of a stream that is read from files.

    Once a thread pays, it makes the next blocks, during which the GIL is free most of the time; never on a single core, or
    where the run has no room. States do not depend on it, and errors keep their place.

    Args:
      open_stream: opens the stream with a run that has a `reading` of its own.
      run: ends the thread; its `reading` follows the blocks that have been delivered.
      pace: of this stream in earlier passes.
    """
    aside = run.aside()
    with ExitStack() as stack:
        # Closed by whoever drops it last: this function, or a task that is still running when this function ends.
        stream = open_stream(aside)
        pool: Pool | None = None
        ahead: deque[Task[_Made]] = deque()
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
                if not alone and pace.pays and run.read_ahead.enter(_TASKS * _TASK_BYTES):
                    stack.callback(run.read_ahead.leave, _TASKS * _TASK_BYTES)
                    pool = stack.enter_context(run.pool(1))
            while pool is not None and len(ahead) < _TASKS:
                ahead.append(pool.submit(_made, stream, aside))


class _Made(NamedTuple):
    """The next item of a stream.

    Attributes:
      item: a block, the error in its place, or None at the end.
      reading: what the run's `reading` said at that time.
      seconds: how long it took to make.
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
