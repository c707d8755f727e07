# SPDX-License-Identifier: Apache-2.0
"""Call a chain of functions on several threads, with the results in the order of the elements."""

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from threading import Event

from distinput.core.block import Block
from distinput.core.failure import Failure
from distinput.core.rows import Stream
from distinput.core.run import Counter, Run
from distinput.core.state import Mark, State
from distinput.functions.claim import Made
from distinput.functions.parts import Calls, Done, Note, Parts, Results, work
from distinput.streaming.autotune import Trial

__all__ = ["called_as_measured", "called_in_threads", "trial"]

_LEAST_CALL, _BEFORE_TRIAL, _TRIAL_PARTS, _GAIN = 10e-6, 0.02, 16, 5 / 6
"""AUTOTUNE tries threads if a call takes at least so many seconds, after so many seconds of calls, for so many parts, and keeps
them if an element then takes less than this fraction of its time without them."""

_NOT_FASTER = "inline, since threads were not faster"


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
    """Results until the parts have ended, or `enough` returns true."""
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
            over.set()  # calls in progress end early


def trial() -> Trial:
    """A trial for `called_as_measured`."""
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
    """Blocks of the results of `chain`, called inline or on threads: AUTOTUNE.

    Threads are tried if a call takes long enough for them to pay, and kept if results come faster with them, which they do if
    the functions release the GIL. The next pass begins with what was `found`.
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
    """Results from threads until the parts have ended, or it is time to measure again; only a few if they are not faster.

    The first part of a `fresh` pass is not measured: it waits for files to be opened and buffers to be filled.
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
    """Results of calls made here, until the parts have ended (returns False) or threads may pay (returns True)."""
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
