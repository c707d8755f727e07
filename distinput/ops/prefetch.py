# SPDX-License-Identifier: Apache-2.0
"""`prefetch`: make the next elements while earlier ones are in use."""

from collections.abc import Generator, Iterator
from dataclasses import field
from functools import cached_property
from math import inf
from typing import ClassVar

from distinput.columns.block import Block
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.plan.check import AUTOTUNE, in_int64, normalized
from distinput.plan.families import Transparent
from distinput.run.run import OpCounters, Run
from distinput.streaming.buffered import Buffer, Stopped, ThreadTrial, buffered

_HAND_OVER, _AT_ONCE = 50e-6, 1e-3
"""Seconds of overlap that a block must promise before a thread is tried: a few times the cost of handing it over. Below the
second figure, a trial that fails must be short compared with the time before it, and as many blocks as a trial has must agree,
since a single one may have met a slow moment."""

_TRIAL_BLOCKS, _BEFORE, _GAIN = 8, 160, 0.9
"""Blocks of a trial, and blocks before it if the promised overlap is small. A thread is kept if an element takes less than this
fraction of its time without one."""

_WINDOW_BLOCKS = 32
"""Blocks made without a thread that are looked at together."""


@dataclass(frozen=True, eq=False)
class Prefetch(Transparent):
    """Make up to `buffer_size` elements ahead, on a thread.

    Shapes and order: unchanged. State: that of the input, since it travels with each block; elements that were made ahead and
    not delivered are made again after a restart. The thread hands over whole blocks and ends with the iteration.

    Args:
      buffer_size: how many elements ahead; 0 does nothing. AUTOTUNE or None measures whether a thread pays, since handing over
        costs more than making cheap elements, and how many blocks ahead are enough, within `Options.autotune.ram_budget`;
        `stats()` shows what it chose, and the next pass begins with that.

    Raises:
      InvalidArgumentError: `buffer_size` is negative and not AUTOTUNE.

    >>> import distinput as di
    >>> di.data.Dataset.range(3).prefetch(2).to_list()
    [0, 1, 2]

    Source: `tf.data.Dataset.prefetch`.
    """

    delays: ClassVar[bool] = True
    fails_in_place: ClassVar[bool] = False
    buffer_size: int | None
    most_bytes: float = field(default=inf, kw_only=True, repr=False)
    """Nothing more is made ahead while so many bytes wait."""

    def __post_init__(self) -> None:
        size = AUTOTUNE if self.buffer_size is None else in_int64("prefetch", "buffer_size", self.buffer_size)
        if size < 0 and size != AUTOTUNE:
            raise InvalidArgumentError(f"prefetch: buffer_size must be at least 0, or AUTOTUNE, got {size}")
        normalized(self, "buffer_size", size)

    def stream(self, state: State, run: Run) -> Stream:
        upstream = self.input.open(state, run)
        if not self.buffer_size or run.run_ahead is not None:
            return upstream
        if self.buffer_size == AUTOTUNE:
            return _tuned(upstream, run, run.counter(self), self.trial)
        return buffered(upstream, Buffer(self.buffer_size, self.most_bytes), run, run.counter(self))

    @cached_property
    def trial(self) -> "_Trial":
        """What AUTOTUNE has measured, in all passes."""
        return _Trial(_TRIAL_BLOCKS, _GAIN)


@dataclass
class _Trial(ThreadTrial):
    """What AUTOTUNE has measured for one prefetch.

    Args:
      inline: blocks made without a thread.
      ahead: blocks that a thread makes ahead.
    """

    inline: int = 0
    ahead: int = 2


def _tuned(upstream: Stream, run: Run, counter: OpCounters, trial: _Trial) -> Iterator[tuple[Block, State]]:
    """The stream, made inline or on a thread, whichever was measured to be faster; measured again from time to time.

    A thread saves at most the shorter of the times for making a block and for using it, and because of the GIL it may save
    nothing. So it is tried if that time is worth it, and kept if elements then come faster.
    """
    ahead, fresh = trial.begin(), True
    here = True
    try:
        while ahead or (yield from _inline(upstream, counter, trial, fresh)):
            here = False
            if not (yield from _threaded(upstream, run, counter, trial, ahead)):
                return
            here = True
            ahead = fresh = False
    finally:
        if here:  # otherwise the thread closes it
            upstream.close()  # type: ignore[attr-defined]


class _Window:
    """Times of some blocks.

    Attributes:
      made: seconds to make them.
      used: seconds in which the consumer had them.
    """

    def __init__(self) -> None:
        self.blocks = self.rows = 0
        self.made = self.used = 0.0

    def add(self, rows: int, made: float, used: float) -> None:
        """Count one more block."""
        self.blocks += 1
        self.rows += rows
        self.made += made
        self.used += used

    @property
    def overlap(self) -> float:
        """Seconds that a thread might save for each block."""
        return min(self.made, self.used) / max(1, self.blocks)

    @property
    def per_row(self) -> float:
        """Seconds per element."""
        return (self.made + self.used) / max(1, self.rows)


def _inline(
    upstream: Stream, counter: OpCounters, trial: _Trial, fresh: bool
) -> Generator[tuple[Block, State], None, bool]:
    """Blocks made inline until a thread may pay (returns True) or the stream ends (returns False).

    The first block of a `fresh` pass is not measured: it waits for files to be opened and buffers to be filled.
    """
    counter.choice = "inline"
    clock = Run.clock
    window = _Window()
    begin = clock()
    for item in upstream:
        made = clock()
        yield item
        used = clock()
        if not fresh:
            window.add(item[0].size, made - begin, used - made)
            trial.inline += 1
            little = trial.inline > _BEFORE and window.blocks >= _TRIAL_BLOCKS
            if window.overlap > (_HAND_OVER if little else _AT_ONCE) and used >= trial.not_before:
                trial.alone = window.per_row
                return True
            if window.blocks >= _WINDOW_BLOCKS:
                window = _Window()
        begin, fresh = used, False
    return False


def _threaded(
    upstream: Stream, run: Run, counter: OpCounters, trial: _Trial, fresh: bool
) -> Generator[tuple[Block, State], None, bool]:
    """Blocks made on a thread until that does not pay or is to be measured again (True), or the stream ends (False)."""
    clock = Run.clock
    buffer = Buffer(None, run.ram_budget, trial.ahead)
    begin = clock()
    try:
        for item in buffered(upstream, buffer, run, counter):
            trial.ahead = buffer.blocks
            counter.choice = f"a thread, up to {trial.ahead} blocks ahead"
            yield item
            used = clock()
            if not fresh and not buffer.stopping:
                faster = trial.counted(item[0].size, used - begin)
                if faster is False or (faster and trial.again()):
                    buffer.stop()
            begin, fresh = used, False
    except Stopped:
        return True
    return False
