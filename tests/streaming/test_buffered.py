# SPDX-License-Identifier: Apache-2.0
import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Dense
from distinput.run.run import OpCounters, Run
from distinput.streaming.buffered import Buffer, Stopped, buffered
from distinput.values.nest import LEAF


def block(number: int) -> Block:
    return ColumnBlock(LEAF, [Dense(np.full(4, number))], 4)


class Numbered:
    """Blocks with a number each; tells which were made, on which threads, and whether the stream was closed."""

    def __init__(self, count: int, fails_at: int = -1) -> None:
        self.count, self.fails_at = count, fails_at
        self.made: list[int] = []
        self.threads: set[int] = set()
        self.closed = False

    def stream(self) -> Iterator[tuple[Block, Any]]:
        try:
            for number in range(self.count):
                if number == self.fails_at:
                    raise ValueError(f"no block {number}")
                self.made.append(number)
                self.threads.add(threading.get_ident())
                yield block(number), {"row": 4 * number + 4}
        finally:
            self.closed = True


def test_blocks_come_in_order_with_their_states_and_are_made_on_another_thread() -> None:
    source = Numbered(20)
    with Run() as run:
        found = [
            (int(made.row(0)), state) for made, state in buffered(source.stream(), Buffer(8, 1e9), run, OpCounters())
        ]
    assert found == [(number, {"row": 4 * number + 4}) for number in range(20)]
    assert len(source.threads) == 1
    assert threading.get_ident() not in source.threads
    assert source.closed


def test_no_more_rows_wait_than_there_is_room_for() -> None:
    source = Numbered(20)
    with Run() as run:
        stream = buffered(source.stream(), Buffer(8, 1e9), run, OpCounters())
        next(stream)
        stream.close()  # type: ignore[attr-defined]
    assert len(source.made) <= 4  # one delivered, two that wait, and one that waits for room


def test_an_error_comes_after_the_blocks_before_it() -> None:
    source = Numbered(20, fails_at=3)
    with Run() as run:
        stream = buffered(source.stream(), Buffer(100, 1e9), run, OpCounters())
        assert [int(next(stream)[0].row(0)) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="no block 3"):
            next(stream)
    assert source.closed


def test_a_buffer_that_is_stopped_gives_what_waits_and_leaves_the_stream_open() -> None:
    source = Numbered(20)
    upstream, buffer = source.stream(), Buffer(8, 1e9)
    found: list[int] = []

    def take_all(run: Run) -> None:
        for made, _ in buffered(upstream, buffer, run, OpCounters()):
            found.append(int(made.row(0)))
            buffer.stop()

    with Run() as run, pytest.raises(Stopped):
        take_all(run)
    assert found == source.made  # nothing is lost, so that the consumer can go on with the stream itself
    assert not source.closed
    assert int(next(upstream)[0].row(0)) == len(found)


def test_a_consumer_that_is_dropped_ends_the_thread() -> None:
    before = set(threading.enumerate())
    source = Numbered(20)
    with Run() as run:
        stream = buffered(source.stream(), Buffer(8, 1e9), run, OpCounters())
        next(stream)
        del stream
        gc.collect()
        assert source.closed
    assert set(threading.enumerate()) <= before


class Late:
    """A thread that fills a buffer, and is late for the block that is wanted next; the clock tells what it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(Run, "clock", staticmethod(lambda: self.now))
        self.buffer = Buffer(None, 1 << 30)
        self.item: Any = (ColumnBlock(LEAF, [Dense(np.zeros(4))], 4), {})

    def come(self, seconds: float, *, full: bool) -> None:
        """Be so late, after the buffer was full or not."""
        buffer = self.buffer
        for _ in range(buffer.blocks if full else 1):
            buffer.put(self.item)
        if full:
            room = threading.Timer(0.02, buffer.get)
            room.start()
            buffer.put(self.item)  # waits
            room.join()
        while buffer.items:
            buffer.get()

        def put() -> None:
            self.now += seconds
            buffer.put(self.item)

        late = threading.Timer(0.02, put)
        late.start()
        buffer.get()
        late.join()


def test_the_buffer_grows_where_the_thread_was_late_for_long_after_it_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late(monkeypatch)
    late.come(0.5, full=True)
    assert late.buffer.blocks == 4
    late.now += 1.0
    late.come(0.04, full=True)
    assert late.buffer.blocks == 4
    late.come(0.04, full=True)  # 0.08 of 1.08 seconds
    assert late.buffer.blocks == 8


def test_the_buffer_does_not_grow_by_moments_and_where_it_was_never_full(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late(monkeypatch)
    for _ in range(5):
        late.come(0.001, full=True)
        late.come(0.5, full=False)
    assert late.buffer.blocks == 2


def test_a_trial_that_ends_lets_the_thread_go_and_leaves_the_length_as_it_was() -> None:
    buffer = Buffer(None, 1 << 30)
    item: Any = (ColumnBlock(LEAF, [Dense(np.zeros(4))], 4), {})
    for _ in range(2):
        assert buffer.put(item)
    threading.Timer(0.05, buffer.stop).start()
    assert not buffer.put(item)  # waits until then
    assert [buffer.get() for _ in range(3)] == [item] * 3
    assert buffer.blocks == 2


def test_what_waits_keeps_to_the_memory_budget() -> None:
    buffer = Buffer(None, 1)
    buffer.put((block(0), {}))
    threading.Timer(0.05, buffer.close).start()
    assert not buffer.put((block(1), {}))
