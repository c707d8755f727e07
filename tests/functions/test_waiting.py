# SPDX-License-Identifier: Apache-2.0
"""Functions that name a queue, an event or a connection may wait for who uses what they give."""

import _thread
import functools
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any
from unittest import mock

import numpy as np
import pytest

import distinput as di
from distinput.ops import generator as generators
from distinput.ops.generator import may_wait
from distinput.streaming import buffered
from tests.patience import wait_until

_ACTIONS: "queue.Queue[int]" = queue.Queue()
_NUMBERS = [1, 2, 3]


class _Environment:
    """Gives a state, and waits for the answer to it."""

    def __init__(self) -> None:
        self.answers: queue.SimpleQueue[int] = queue.SimpleQueue()

    def __call__(self) -> Iterator[int]:
        return self.states()

    def states(self) -> Iterator[int]:
        state = 0
        while state < 5:
            yield state
            state += self.answers.get(timeout=60)


def _by_global() -> Iterator[int]:
    while True:
        yield _ACTIONS.get(timeout=60)


def _takes(actions: Any) -> Iterator[int]:
    while True:
        yield actions.get()


def _nested() -> Any:
    return [_by_global() for _ in range(1)]


def _event(event: Any) -> Callable[[], Any]:
    return lambda: event.wait()


def test_those_that_may_wait() -> None:
    environment = _Environment()
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe, os.fdopen(writing, "w"):
        waiting: list[Any] = [
            _by_global, _nested, functools.partial(_takes, _ACTIONS), environment, environment.states,
            _event(threading.Event()),
            lambda: time.sleep(1), lambda: sleep(1), lambda: input(), lambda: sys.stdin.readline(), lambda: pipe.readline(),
            lambda: list(iter(_ACTIONS.get, None)),
        ]  # fmt: skip
        assert [may_wait(function) for function in waiting] == [True] * len(waiting)


def test_those_that_do_not(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("x")
    lock = threading.Lock()
    with path.open() as file:
        others: list[Any] = [
            lambda: iter(_NUMBERS), lambda: np.arange(3), lambda: path.open(), lambda: file.readline(), lambda: lock.acquire(),
            lambda: time.time(), lambda: iter(range(3)), functools.partial(iter, [1]), len,
        ]  # fmt: skip
        assert [may_wait(function) for function in others] == [False] * len(others)


def _signed(generator: Callable[..., Any]) -> Any:
    return di.data.Dataset.from_generator(generator, output_signature=di.TensorSpec([], "int64"))


@pytest.mark.parametrize("make", [_signed, lambda generator: _signed(generator).map(lambda x: x).batch(1).unbatch()])
def test_a_generator_gets_the_answer_to_an_element_before_it_makes_the_next(make: Callable[[Any], Any]) -> None:
    environment, states = _Environment(), list[int]()
    for state in make(environment):
        states.append(int(state))
        environment.answers.put(1)
    assert states == [0, 1, 2, 3, 4]


def test_what_is_there_does_not_wait_for_the_next() -> None:
    release = threading.Event()

    def burst() -> Iterator[int]:
        yield from range(40)
        assert release.wait(60)
        yield 40

    iterator = iter(_signed(burst))
    assert [int(next(iterator)) for _ in range(40)] == list(range(40))
    release.set()
    assert [int(x) for x in iterator] == [40]


def test_the_first_element_comes_alone() -> None:
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for x in range(100):
            made.append(x)
            yield x

    iterator = iter(_signed(numbers))
    next(iterator)
    assert made == [0]


@pytest.fixture
def free_alarm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The alarm clock is used by nobody, and generators are stuck soon."""
    monkeypatch.setattr(generators, "_STUCK_SECONDS", 0.2)
    left, handler = signal.setitimer(signal.ITIMER_REAL, 0)[0], signal.signal(signal.SIGALRM, signal.SIG_DFL)
    yield
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, left)


def _burst(wait: Callable[[], Any]) -> Iterator[int]:
    yield from range(40)
    wait()
    yield 40


@pytest.mark.usefixtures("free_alarm")
@pytest.mark.parametrize("tolerant", [False, True])
def test_a_wait_for_the_loop_that_cannot_be_seen_ends_in_an_error(tolerant: bool) -> None:
    lock = _thread.allocate_lock()
    lock.acquire()
    dataset = _signed(lambda: _burst(lock.acquire))
    iterator = iter(dataset.ignore_errors() if tolerant else dataset)
    assert [int(next(iterator)) for _ in range(40)] == list(range(40))
    with pytest.raises(di.errors.DeadlineExceededError, match=r"set Options\.run_ahead = 0"):
        next(iterator)
    iterator = iter(dataset)  # another pass asks for one element at a time
    assert [int(next(iterator)) for _ in range(40)] == list(range(40))
    lock.release()
    assert [int(x) for x in iterator] == [40]


def _slow(x: Any) -> Any:
    sleep(0.05)
    return x


@pytest.mark.usefixtures("free_alarm")
@pytest.mark.parametrize(
    "make", [lambda ds: ds.map(_slow, num_parallel_calls=2), lambda ds: ds.map(_slow).on_workers("threads:2")]
)
def test_such_a_wait_ends_while_results_are_under_way(make: Callable[[Any], Any]) -> None:
    lock = _thread.allocate_lock()

    def numbers() -> Iterator[int]:
        for number in range(6):
            lock.acquire()
            yield number

    def answered() -> list[int]:
        numbers = []
        for number in dataset:
            numbers.append(int(number))
            lock.release()
        return numbers

    dataset = make(_signed(numbers))
    with pytest.raises(di.errors.DeadlineExceededError, match=r"set Options\.run_ahead = 0"):
        answered()
    assert answered() == list(range(6))


AHEAD: dict[str, Callable[[Any], Any]] = {
    "prefetch": lambda ds: ds.prefetch(2),
    "prefetch of a prefetch": lambda ds: ds.prefetch(1).map(lambda x: x).prefetch(1),
    "below map on threads": lambda ds: ds.prefetch(1).map(_slow, num_parallel_calls=2),
    "over map on threads": lambda ds: ds.map(_slow, num_parallel_calls=2).prefetch(2),
    "interleave": lambda ds: di.data.Dataset.range(1).interleave(lambda _: ds, 2, num_parallel_calls=2),
    "errors left out": lambda ds: ds.prefetch(2).ignore_errors(),
    "a strategy": lambda ds: di.distribute.MirroredStrategy(["cpu:0"]).experimental_distribute_dataset(
        ds.batch(1).prefetch(2)
    ),
}


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="no clocks of other threads")
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("name", AHEAD)
def test_such_a_wait_ends_on_a_thread_that_nobody_can_interrupt(
    name: str, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generators, "_STUCK_SECONDS", 0.2)
    monkeypatch.setattr(buffered, "_LOOK_SECONDS", 0.05)
    locks: list[Any] = []

    def numbers() -> Iterator[int]:
        lock = locks[-1]
        for number in range(6):
            lock.acquire()
            yield number

    dataset = AHEAD[name](_signed(numbers))

    def answered() -> list[int]:
        locks.append(_thread.allocate_lock())
        numbers = []
        for number in dataset:
            numbers.append(int(np.asarray(number).item()))
            locks[-1].release()
        return numbers

    def passes() -> None:
        with pytest.raises(di.errors.DeadlineExceededError, match=r"set Options\.run_ahead = 0"):
            answered()
        assert answered() == list(range(6))

    if elsewhere:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(passes).result()
    else:
        passes()
    for _ in range(6):  # lets the thread that was left end
        if locks[0].locked():
            locks[0].release()
        time.sleep(0.01)


def test_a_slow_generator_below_prefetch_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "_STUCK_SECONDS", 1.0)
    monkeypatch.setattr(buffered, "_LOOK_SECONDS", 0.02)
    lock = _thread.allocate_lock()
    lock.acquire()

    def slowly() -> Iterator[int]:
        yield from range(40)
        for number in range(40, 60):
            lock.acquire(timeout=0.07)
            yield number

    assert _signed(slowly).prefetch(2).to_list() == list(range(60))


@pytest.mark.parametrize("work, stuck", [(0.0, [False, False, False, True]), (5.0, [False] * 4)])
@pytest.mark.parametrize("still", [0.0, 600.0])
def test_a_process_that_stands_still_does_not_wait_in_vain(
    work: float, stuck: list[bool], still: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After five seconds of work or none, again and again; in the second ones the whole process is stopped, as by Ctrl-Z."""
    now = busy = 0.0
    monkeypatch.setattr(generators, "perf_counter", lambda: now)
    monkeypatch.setattr(generators, "_busy_seconds", lambda thread, clock: busy)
    alarm = generators._Alarm([[1]])
    alarm._elements, alarm._clock = [], 1
    found = []
    for look in range(4):
        now += 5.0
        if look == 1 and still:
            now += still
        else:
            busy += work
        found.append(alarm.is_stuck())
    assert found == stuck


@pytest.mark.usefixtures("free_alarm")
@pytest.mark.parametrize(
    "held, elements, wanted, rings", [([], [], 1, False), ([], [], 2, True), ([], [1], 1, True), ([[1]], [], 1, True)]
)
def test_an_alarm_clock_is_set_where_a_wait_can_hold_something_back(
    held: list[list[int]], elements: list[int], wanted: int, rings: bool
) -> None:
    alarm = generators._Alarm(held)
    try:
        assert alarm.set(elements, wanted) is rings
        assert any(signal.getitimer(signal.ITIMER_REAL)) is rings
    finally:
        alarm.clear()
    assert not any(signal.getitimer(signal.ITIMER_REAL))
    with ThreadPoolExecutor(1) as pool:  # where others may hold something back meanwhile
        assert pool.submit(alarm.set, elements, wanted).result()


@pytest.mark.usefixtures("free_alarm")
@pytest.mark.parametrize("nbytes, rings", [(8, True), (1 << 18, False)])
def test_elements_that_come_alone_need_no_alarm_clock(nbytes: int, rings: bool) -> None:
    dataset = di.data.Dataset.from_generator(
        lambda: iter(np.ones((9, nbytes), np.uint8)), output_signature=di.TensorSpec([nbytes], "uint8")
    )
    with mock.patch.object(generators.signal, "setitimer", wraps=signal.setitimer) as setting:
        assert len(list(dataset)) == 9
    assert bool(setting.call_args_list) is rings


@pytest.mark.usefixtures("free_alarm")
def test_a_generator_that_works_for_long_goes_on() -> None:
    def work() -> None:
        end = time.thread_time() + 0.5
        while time.thread_time() < end:
            pass

    assert _signed(lambda: _burst(work)).to_list() == list(range(41))


@pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists(), reason="the system does not tell who waits for a core"
)
def test_a_thread_that_waits_for_a_core_is_busy_and_one_that_sleeps_is_not() -> None:
    thread = threading.get_native_id()

    def works() -> float:
        """Seconds for each one of the processor's."""
        before, end = generators._busy_seconds(thread, None), time.thread_time() + 0.1
        while time.thread_time() < end:
            pass
        return (generators._busy_seconds(thread, None) - before) / 0.1

    def sleeps() -> float:
        """Seconds for each one of sleep."""
        before = generators._busy_seconds(thread, None)
        time.sleep(0.02)
        return (generators._busy_seconds(thread, None) - before) / 0.02

    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # this thread, and what it starts
    try:
        others = [subprocess.Popen([sys.executable, "-ISc", "while True: pass"]) for _ in range(12)]
        try:
            assert works() > 2, "it waits for its core for longer than it has it"
        finally:
            for other in others:
                other.kill()
                other.wait()
    finally:
        os.sched_setaffinity(0, cores)
    wait_until(lambda: sleeps() < 0.1)  # where others have the cores, it waits for one when it wakes up


@pytest.mark.usefixtures("free_alarm")
def test_a_wait_while_the_loop_has_all_elements_goes_on() -> None:
    def numbers() -> Iterator[int]:
        yield 0
        threading.Lock().acquire()
        unseen.join(0.5)
        yield 1

    unseen = threading.Thread(target=lambda: time.sleep(0.5))
    unseen.start()
    assert _signed(numbers).to_list() == [0, 1]


@pytest.mark.usefixtures("free_alarm")
def test_the_alarm_clock_of_the_process_stays_with_who_uses_it() -> None:
    rung: list[int] = []
    signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        lock = _thread.allocate_lock()
        lock.acquire()
        threading.Timer(0.5, lock.release).start()
        assert _signed(lambda: _burst(lock.acquire)).to_list() == list(range(41))
        assert not rung
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


class _Once:
    """Begins once, and goes on after an interrupt, which comes before element `at`."""

    def __init__(self, at: int) -> None:
        self.at, self.row = at, 0

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if self.row == self.at:
            self.at = -1
            raise KeyboardInterrupt
        if self.row == 100:
            raise StopIteration
        self.row += 1
        return self.row - 1


def _after_interrupts(iterator: Iterator[Any]) -> int:
    while True:
        try:
            return int(next(iterator))
        except KeyboardInterrupt:
            continue


@pytest.mark.parametrize("at", [0, 1, 2, 5, 7, 50, 99])
def test_an_iterator_that_begins_once_goes_on_after_an_interrupt(at: int) -> None:
    once = _Once(at)
    iterator = iter(_signed(lambda: once))
    assert [_after_interrupts(iterator) for _ in range(100)] == list(range(100))
    assert next(iterator, None) is None


@pytest.mark.parametrize("at", [1, 5, 50])
def test_a_generator_that_an_interrupt_has_ended_does_not_just_end(at: int) -> None:
    def numbers() -> Iterator[int]:
        yield from _Once(at)

    started = numbers()
    iterator = iter(_signed(lambda: started))
    assert [_after_interrupts(iterator) for _ in range(at)] == list(range(at))
    with pytest.raises(di.errors.FailedPreconditionError, match="begins only once, and was ended by an interrupt"):
        _after_interrupts(iterator)


def test_another_pass_over_what_begins_once_goes_on_where_it_stands() -> None:
    once = _Once(-1)
    dataset = _signed(lambda: once)
    first = next(iter(dataset))
    assert [int(first), *[int(x) for x in dataset]] == list(range(100))
    with pytest.warns(di.errors.InputWarning, match="gave the iterator of an earlier pass again, which had ended"):
        assert dataset.to_list() == []


def test_elements_that_are_gone_are_missed() -> None:
    once = _Once(-1)
    dataset = _signed(lambda: once)
    iterator = iter(dataset)
    for _ in range(40):
        next(iterator)
    state = iterator.state()
    for _ in range(40):
        next(iterator)
    with pytest.raises(di.errors.FailedPreconditionError, match="begins only once, and stands behind element"):
        list(dataset.restore(state))
