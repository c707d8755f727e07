# SPDX-License-Identifier: Apache-2.0
"""Call a chain of functions on several threads, with the results in the order of the elements."""

from collections.abc import Callable, Generator
from typing import Any

from distinput.core.block import Block
from distinput.core.failure import Failure
from distinput.core.pool import Task
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.state import State
from distinput.functions.claim import MadeBlock
from distinput.functions.in_order import in_order
from distinput.functions.parts import Calling, Done, Parts, Results
from distinput.kernels.flag import Flag
from distinput.streaming.autotune import ThreadTrial

__all__ = ["called_as_measured", "called_in_threads", "trial"]

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
