# SPDX-License-Identifier: Apache-2.0
"""A stream made on a thread of its own, into a buffer from which its consumer takes the blocks."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import field
from math import inf
from typing import Any
from weakref import ref as weakref

from distinput.columns.block import Block, Failure
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.kernels.kernel import Flag, HelperThread
from distinput.names.lazy import dataclass
from distinput.plan.node import Node, walk
from distinput.run.run import OpCounters, Run
from distinput.run.threads import in_lane

# ----------------------------------------------------------------------------
# What AUTOTUNE has measured about threads for one step of a pipeline, kept from pass to pass.
# ----------------------------------------------------------------------------


AGAIN, SELDOM = 0.5, 60.0
"""Seconds after which a choice is measured again; doubled after each measurement, up to the second figure."""


@dataclass
class ThreadTrial:
    """Whether elements come faster with threads: measured without, then with them, and again from time to time.

    It belongs to a step of the running tree, so a later pass continues where an earlier one stopped, even in the middle of
    a trial. No state holds it, since the elements are the same either way.

    Args:
      blocks: how many blocks are made with threads before the decision.
      gain: threads are kept if an element takes less than this fraction of its time without them.
      alone: seconds per element without threads.
      faster: the last decision.
      not_before: when threads may be tried again.
      until: when elements are measured without threads again, if threads were faster.
      lasts: seconds for which the next decision holds.
      threads: how many of them, where that was measured; else 0.
    """

    blocks: int
    gain: float
    alone: float = 0.0
    faster: bool = False
    not_before: float = 0.0
    until: float = 0.0
    lasts: float = field(default_factory=lambda: AGAIN)
    threads: int = 0
    _tried: int = 0
    _rows: int = 0
    _seconds: float = 0.0

    def begin(self) -> bool:
        """Begin a pass; True if it should begin with threads, because they were faster, or on trial, in the last one."""
        return not self.again() and (self.faster or self._tried > 0)

    def again(self) -> bool:
        """Whether elements should now be measured without threads again, although threads were faster.

        The time without them may have been measured while something else had the processor.
        """
        if not self.faster or Run.clock() < self.until:
            return False
        self._tried, self._rows, self._seconds = 0, 0, 0.0
        self.hold()
        return True

    def counted(self, rows: int, seconds: float) -> bool | None:
        """Count one more block made with threads; whether they are faster, or None while that is undecided.

        If they were faster and no longer seem to be, something else may have had the processor for a while, so they may be
        tried again at once; after that, only once the decision has held for its time.
        """
        self._tried, self._rows, self._seconds = self._tried + 1, self._rows + rows, self._seconds + seconds
        if self._tried < self.blocks:
            return None
        before, self.faster = self.faster, self._seconds < self.gain * self.alone * self._rows
        self._tried, self._rows, self._seconds = 0, 0, 0.0
        if self.faster != before:
            self.lasts = AGAIN
            self.until = Run.clock() + AGAIN
        elif not self.faster:
            self.not_before = Run.clock() + self.lasts
            self.hold()
        return self.faster

    def hold(self) -> None:
        """Let the next decision hold for twice as long."""
        self.lasts = min(2 * self.lasts, SELDOM)
        self.until = Run.clock() + self.lasts


# ----------------------------------------------------------------------------
# A buffer, the thread that fills it, and the stream that takes from it.
# ----------------------------------------------------------------------------


_MOST_BLOCKS = 32

_LOOK_SECONDS = 1.0
"""Between two looks at sources that may wait in vain."""

_LATE_SECONDS, _LATE_PART = 0.01, 0.05
"""A longer buffer is worth its memory once the thread, after it had waited for room, was late for so many seconds, and for
this part of all the time since the buffer last grew."""

_Item = tuple[Block, State] | BaseException | None


class Buffer:
    """Blocks between the thread that makes them and the consumer; an error takes the place of a block.

    Args:
      rows: room for so many elements. None: room for a few blocks, and for more if the consumer has to wait for long although
        the buffer had been full, since then the two only take turns at being late.
      most_bytes: how many bytes may wait, not counting one block.
      blocks: how many blocks are "a few" at first.
    """

    def __init__(self, rows: int | None, most_bytes: float, blocks: int = 2) -> None:
        self.room, self.most_bytes, self.blocks = rows, most_bytes, blocks
        self.items: deque[_Item] = deque()
        self.rows = self.bytes = 0
        self.was_full = False
        self.late, self.since = 0.0, Run.clock()
        self.closed = self.stopping = False
        self.complete = False
        """True once the stream has ended, or failed: what is still to come waits here."""
        # No condition: it waits and rings in Python code, in which an interrupt of the consumer would leave its lock behind.
        self._lock = threading.RLock()
        self._waiting: list[Flag] = []  # each set when something has changed

    def _is_full(self) -> bool:
        if self.stopping:
            return False
        full = len(self.items) >= self.blocks if self.room is None else self.rows >= self.room
        return full or self.bytes >= self.most_bytes

    def put(self, item: _Item) -> bool:
        """Wait for room and hand over an item; False if the consumer has gone or wants no more."""
        while True:
            with self._lock:
                if self.closed:
                    return False
                if not self._is_full():
                    self.items.append(item)
                    self.complete = not isinstance(item, tuple)
                    self._count(item, 1)
                    self._changed()
                    return not self.stopping
                self.was_full = True
                change = self._next_change()
            change.wait()

    def get(self, sources: Sequence[Callable[[], Exception | None]] = ()) -> _Item:
        """Wait for the next item; None is the end, also when the buffer is closed while its consumer waits.

        Args:
          sources: each tells the error if nothing more will come of it.
        """
        begin: float | None = None
        while True:
            with self._lock:
                if self.items or self.closed:
                    if begin is not None and self.was_full:
                        self._waited(Run.clock() - begin)
                    item = self.items.popleft() if self.items else None
                    self._count(item, -1)
                    self._changed()
                    return item
                change = self._next_change()
            begin = Run.clock() if begin is None else begin
            while not change.wait(_LOOK_SECONDS):
                for told in list(sources):
                    if (error := told()) is not None:
                        return error

    def _next_change(self) -> Flag:
        """What is set when something has changed."""
        change = Flag()
        self._waiting.append(change)
        return change

    def _changed(self) -> None:
        """Tell those who wait for a change."""
        for change in self._waiting:
            change.set()
        self._waiting.clear()

    def _waited(self, seconds: float) -> None:
        """The consumer had to wait although the buffer had been full; if that goes on, the buffer grows.

        Source: tf.data's prefetch autotuner, which grows whenever the thread is late once, however short the wait.
        """
        self.was_full = False
        self.late += seconds
        now = Run.clock()
        if self.late > max(_LATE_SECONDS, _LATE_PART * (now - self.since)):
            self.blocks, self.late, self.since = min(2 * self.blocks, _MOST_BLOCKS), 0.0, now

    def _count(self, item: _Item, sign: int) -> None:
        if isinstance(item, tuple):
            self.rows += sign * (item[0].size or 1)  # a failure takes up a place too
            if self.most_bytes < inf:
                self.bytes += sign * item[0].nbytes

    def stop(self) -> None:
        """Let the thread end after the block that it is making; waiting blocks can still be taken."""
        with self._lock:
            self.stopping = True
            self._changed()

    def close(self) -> None:
        """Drop everything: the consumer has gone."""
        with self._lock:
            self.closed = True
            self.items.clear()
            self._changed()


class Stopped(Exception):
    """The thread has stopped, but the stream goes on."""


class _Source:
    """The stream that a thread reads. The consumer owns it: the thread refers to it only while it makes a block."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def next(self) -> _Item:
        """The next block, an error, or None at the end; the last two close the stream."""
        try:
            item = next(self.stream, None)
            if item is not None:
                block, state = item
                # Here, where the consumer does not wait for it.
                return block if type(block) is Failure else block.materialize(), state
        except BaseException as error:  # noqa: BLE001 - handed to the consumer, who raises it where it can be caught
            self.close()
            return error
        self.close()
        return None

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()  # type: ignore[attr-defined]


def _fill(source: "weakref[_Source]", buffer: Buffer) -> None:
    while True:
        stream = source()
        if stream is None:  # the consumer has been collected
            return
        item = stream.next()
        del stream  # lets a consumer that is dropped now be collected
        if not buffer.put(item):
            break
        if not isinstance(item, tuple):
            return
    if buffer.stopping:
        buffer.put(Stopped())
    elif (stream := source()) is not None:
        stream.close()


def buffered(upstream: Stream, buffer: Buffer, run: Run, counter: OpCounters, *, at_once: bool = False) -> Stream:
    """The blocks of a stream, made on a thread.

    Args:
      upstream: the stream.
      buffer: where the blocks wait.
      run: ends the thread.
      counter: counts how long the consumer waits.
      at_once: True to start the thread now, not when the first block is asked for.

    Raises:
      Stopped: the buffer was stopped; the caller can continue with the stream itself.
    """
    blocks = _buffered(upstream, buffer, run, counter, at_once)
    if at_once:
        next(blocks)
    return blocks


def _buffered(upstream: Stream, buffer: Buffer, run: Run, counter: OpCounters, at_once: bool) -> Iterator[Any]:
    """The blocks, and with `at_once` something before them, which comes when the thread has started."""
    source = _Source(upstream)
    fill, given = run.context.run, (in_lane, _fill, weakref(source), buffer)
    thread = HelperThread(target=fill, args=given, name="distinput-prefetch")
    with ExitStack() as stack:
        counter.waits(stack.enter_context, run.beside(thread, buffer.close))  # this waits for the thread to start
        if at_once:
            yield None
        while True:
            item = counter.waits(buffer.get, run.sources)
            counter.holds(buffer.rows)
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item


# ----------------------------------------------------------------------------
# A source may wait for what the loop does with its elements. Who asks for the next ones ahead must not wait with it while the
# loop waits for results that are there.
# ----------------------------------------------------------------------------


def opened_ahead(node: Node, state: State, run: Run, counter: OpCounters) -> tuple[Stream, Callable[[], bool]]:
    """The stream of a step for who asks for its next elements while others are under way, and whether the next block may wait.

    If a source below may wait for what the loop does, the stream is made on a thread, and does not wait for what is there.

    Args:
      node: the step.
      state: where it begins.
      run: ends the thread.
      counter: counts how long the consumer waits.
    """
    stream = node.open(state, run)
    if run.run_ahead is not None or run.asked.sampling or not any(step.waits for step in walk(node)):
        return stream, run.waits.is_set  # by a source that a function made
    buffer = Buffer(None, run.ram_budget)
    return buffered(stream, buffer, run, counter), lambda: not (buffer.items or buffer.closed)
