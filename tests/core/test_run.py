# SPDX-License-Identifier: Apache-2.0
"""A run counts what its streams do, and says with an error where it happened."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from distinput.columns.block import Block, Failure
from distinput.run.run import OpCounters, Run
from distinput.values.nest import LEAF


@dataclass(eq=False)
class Step:
    op: str
    origin: str = "line 1"

    def where(self) -> str:
        return f"{self.op} at {self.origin}"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(Run, "clock", staticmethod(made))
    return made


def block(rows: int) -> Block:
    return Block.of_elements(LEAF, list(range(rows)))


def spending(clock: Clock, seconds: float, items: Any) -> Iterator[Any]:
    for item in items:
        clock.now += seconds
        yield item


def test_blocks_rows_and_seconds_are_counted(clock: Clock) -> None:
    step = Step("a")
    with Run([step]) as run:
        for _ in run.watch(step, spending(clock, 2.0, [(block(3), {}), (block(0), {}), (block(4), {})])):
            clock.now += 5.0
    counter = run.counter(step)
    assert (counter.blocks, counter.rows) == (3, 7)
    assert (counter.seconds, counter.own, counter.outside) == (6.0, 6.0, 15.0)
    assert counter.thread == threading.get_ident()


def test_time_is_shared_out_among_nested_steps(clock: Clock) -> None:
    inner, outer = Step("inner"), Step("outer")
    with Run([inner, outer]) as run:
        watched = run.watch(inner, spending(clock, 3.0, [(block(1), {}), (block(1), {})]))
        for _ in run.watch(outer, spending(clock, 1.0, watched)):
            pass
    assert (run.counter(inner).own, run.counter(inner).seconds) == (6.0, 6.0)
    assert (run.counter(outer).own, run.counter(outer).seconds) == (2.0, 8.0)


def test_waiting_is_no_work(clock: Clock) -> None:
    counter = OpCounters(own=5.0)

    def wait(seconds: float, *, fail: bool = False) -> str:
        clock.now += seconds
        if fail:
            raise ValueError
        return "over"

    assert counter.waits(wait, 2.0) == "over"
    with pytest.raises(ValueError):  # noqa: PT011 - counted all the same
        counter.waits(wait, 1.0, fail=True)
    assert (counter.waiting, counter.busy) == (3.0, 2.0)
    assert OpCounters(own=1.0, waiting=2.0).busy == 0.0


def test_late_work_belongs_to_the_step_within_which_it_is_done(clock: Clock) -> None:
    copying, looking = Step("copying"), Step("looking")
    run = Run([copying, looking])
    late = run.late(copying)
    late(4.0)  # in the consumer's loop

    def look() -> Iterator[Any]:
        clock.now += 3.0
        late(2.0)
        yield block(1), {}

    list(run.watch(looking, look()))
    assert (run.counter(copying).own, run.counter(copying).late) == (6.0, 4.0)
    assert run.counter(looking).own == 1.0


def test_steps_that_are_not_known_share_a_counter_by_line() -> None:
    run = Run([])
    assert run.counter(Step("a")) is run.counter(Step("a"))
    assert run.counter(Step("a", "line 2")) is not run.counter(Step("a"))
    known = Step("a")
    assert Run([known]).counter(known) is not Run([known]).counter(Step("a"))


def failing(error: Exception) -> Iterator[Any]:
    yield block(1), {}
    raise error


def notes(run: Run, *steps: Step) -> list[str]:
    watched: Iterator[Any] = failing(ValueError("no"))
    for step in steps:
        watched = run.watch(step, watched)
    with pytest.raises(ValueError, match="no") as caught:
        list(watched)
    return caught.value.__notes__


def test_the_innermost_step_is_named_once() -> None:
    assert notes(Run(), Step("inner"), Step("outer")) == ["in inner at line 1"]


def test_the_record_that_was_read_last_is_named() -> None:
    run = Run()
    aside = run.aside()
    run.reading = lambda: "record 7"
    where, read = notes(run, Step("a"))
    assert where == "in a at line 1"
    assert read.startswith("last read: record 7 (")
    assert notes(aside, Step("a")) == ["in a at line 1"]


def test_each_of_several_threads_names_its_own_record_and_the_others_any() -> None:
    run = Run()
    one, other = run.apart(), run.apart()
    one.reading, other.reading = lambda: "record 3", lambda: "record 8"
    found = [notes(each, Step("a"))[1].split(" (")[0] for each in (one, other, run)]
    assert found == ["last read: record 3", "last read: record 8", "last read: record 8"]


def test_a_step_that_knows_the_record_says_so_before_anything_else() -> None:
    class Knowing(Step):
        def told_record(self, error: Exception, state: Any, ahead: int) -> str | None:
            return f"record {state['row'] + ahead} of a"

    run = Run()
    run.reading = lambda: "record 900"
    watched = run.watch(
        Knowing("a"), iter([(block(1), {"row": 4}), (Failure(error := ValueError("no")), {"row": 8})]), {}
    )
    list(watched)
    assert error.__notes__ == ["in a at line 1", "record 7 of a"]

    def stream() -> Iterator[Any]:
        yield block(1), {"row": 4}
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        list(run.watch(Knowing("a"), stream(), {"row": 0}))
    assert caught.value.__notes__ == ["in a at line 1", "record 4 of a"]


def test_a_failure_is_passed_on_with_its_place() -> None:
    error = ValueError("no")
    ((passed, _),) = Run().watch(Step("a"), iter([(Failure(error), {})]))
    assert passed.error is error
    assert error.__notes__ == ["in a at line 1"]


def test_an_error_that_ends_a_tolerant_run_says_so_once() -> None:
    assert notes(Run().tolerating(), Step("inner"), Step("outer")) == [
        "in inner at line 1",
        "no element can follow: inner does not go on after this error",
    ]


def test_a_stream_is_closed_with_the_one_that_watches_it() -> None:
    closed = []

    def stream() -> Iterator[Any]:
        try:
            while True:
                yield block(1), {}
        finally:
            closed.append(True)

    watched = Run().watch(Step("a"), stream())
    next(watched)
    assert not closed
    watched.close()
    assert closed == [True]


@pytest.mark.parametrize("run_ahead, wanted", [(None, 100), (0, 1), (3, 4), (500, 100)])
def test_how_many_functions_may_be_called_at_once(run_ahead: int | None, wanted: int) -> None:
    assert Run(run_ahead=run_ahead).at_once(100) == wanted


def test_variants_change_one_thing_and_share_the_rest() -> None:
    run = Run(run_ahead=5).asking(by_element=True)
    variants = [run.one_by_one(), run.by_block(), run.tolerating(), run.aside()]
    assert [(each.run_ahead, each.by_element, each.tolerant) for each in variants] == [
        (0, True, False), (5, False, False), (5, True, True), (5, True, False),
    ]  # fmt: skip
    assert (run.run_ahead, run.by_element, run.tolerant) == (5, True, False)
    assert all(each.counters is run.counters and each.cancelled is run.cancelled for each in variants)
    assert variants[0].one_by_one() is variants[0]
    assert variants[1].by_block() is variants[1]
    assert variants[2].tolerating() is variants[2]
    assert Run().one_by_one().run_ahead is None


def test_closing_cancels_and_waits() -> None:
    run, begun, cancelled = Run(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        if run.cancelled.wait(60):
            cancelled.set()

    with run.pool(1) as pool:
        pool.submit(work)
        assert begun.wait(60)  # what has not begun is dropped
        run.close()
        assert cancelled.is_set()
    run.close()
