# SPDX-License-Identifier: Apache-2.0
import random
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import distinput as di
from distinput.run.run import CoreUse, Run

RANGE = di.data.Dataset.range
INT64 = di.TensorSpec([], "int64")


class Clock(threading.local):
    """A clock for each thread, which goes on only when it is told that work was done there, or that it waited."""

    now = 0.0
    cores: ClassVar[list[float]] = [
        0.0,
        0.0,
        0.0,
    ]  # of all threads: seconds on a core, how often they waited, or lost it

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        """So much time passes on a core."""
        self.now += seconds
        self.cores[0] += seconds

    def wait(self, seconds: float) -> None:
        """So much time passes, but not on a core."""
        self.now += seconds
        self.cores[1] += 1

    def used(self) -> CoreUse:
        """Of the cores."""
        return CoreUse(self.cores[0], int(self.cores[1]), int(self.cores[2]))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(Clock, "cores", [0.0, 0.0, 0.0])
    monkeypatch.setattr(Run, "clock", staticmethod(made))
    monkeypatch.setattr(Run, "cores", staticmethod(made.used))
    return made


def mapping(
    clock: Clock, seconds: float, name: str, threads: int | None
) -> Callable[[di.data.Dataset], di.data.Dataset]:
    def function(x: Any) -> Any:
        clock.work(seconds)
        return x

    function.__qualname__ = name
    return lambda ds: ds.map(function, num_parallel_calls=threads, output_signature=INT64)


def keeping(clock: Clock, seconds: float, name: str) -> Callable[[di.data.Dataset], di.data.Dataset]:
    def function(x: Any) -> bool:
        clock.work(seconds)
        return True

    function.__qualname__ = name
    return lambda ds: ds.filter(function)


def rows_of(clock: Clock, seconds: float, name: str) -> Callable[[di.data.Dataset], di.data.Dataset]:
    def function(rows: Any) -> Any:
        clock.work(seconds * len(rows))
        return rows

    function.__qualname__ = name
    return lambda ds: ds.map_rows(function, output_signature=INT64)


def synthetic(clock: Clock, seed: int) -> tuple[di.data.Dataset, float, str]:
    """A pipeline of random steps, one of which, or the loop, takes three times what the others take together.

    Returns:
      the pipeline, the seconds for which the loop keeps each element, and the name of the slow part.
    """
    draw = random.Random(seed)
    count = draw.randint(1, 5)
    seconds = [draw.uniform(0.1, 1.0) for _ in range(count + 1)]
    slow = draw.randrange(count + 1)
    names = [f"part{index}" for index in range(count + 1)]
    dataset = RANGE(40)
    workers = [draw.choice([None, 1, 2, 4]) for _ in range(count)]
    seconds[slow] = 3 * sum(seconds) * (workers[slow] or 1 if slow < count else 1)
    for index in range(count):
        kinds = [
            mapping(clock, seconds[index], names[index], workers[index]),
            keeping(clock, seconds[index] / (workers[index] or 1), names[index]),
            rows_of(clock, seconds[index] / (workers[index] or 1), names[index]),
        ]
        dataset = draw.choice(kinds)(dataset)
        step = draw.choice([None, None, "prefetch", "enumerate"])
        if step == "prefetch":
            dataset = dataset.prefetch(draw.choice([1, 8, 100]))
        elif step == "enumerate":
            dataset = dataset.enumerate().batch(3).unbatch().map_rows(lambda number, x: x, output_signature=INT64)
    return dataset, seconds[count], "the loop" if slow == count else names[slow]


def test_the_slow_part_is_named(clock: Clock) -> None:
    right = 0
    pipelines = 200
    for seed in range(pipelines):
        dataset, seconds, slow = synthetic(clock, seed)
        for _ in dataset:
            clock.work(seconds)
        right += slow in dataset.stats().bottleneck.lower()
    assert right >= 0.95 * pipelines, f"{right} of {pipelines}"


def test_what_is_told_adds_up(clock: Clock) -> None:
    dataset = mapping(clock, 2.0, "slow", None)(RANGE(10)).batch(5)
    for _ in dataset:
        clock.work(3.0)
    stats = dataset.stats()
    assert stats["1:map"]["busy"] == pytest.approx(20.0)
    assert stats["2:batch"]["busy"] == pytest.approx(0.0)
    assert stats["2:batch"]["seconds"] == pytest.approx(20.0)
    assert stats.outside == pytest.approx(6.0)
    assert stats.slowest == "1:map"
    assert stats.bottleneck.startswith("map(map_func=slow, ")
    assert "is the slowest step, with 77 % of 26 s; num_parallel_calls= spreads it" in stats.bottleneck


def test_work_on_threads_counts_by_their_number(clock: Clock) -> None:
    dataset = mapping(clock, 4.0, "spread", 4)(mapping(clock, 1.5, "here", None)(RANGE(20)))
    assert len(list(dataset)) == 20
    stats = dataset.stats()
    assert (stats["2:map"]["workers"], stats["2:map"]["worked"]) == (4, pytest.approx(80.0))
    assert stats.slowest == "1:map"
    slower = mapping(clock, 8.0, "spread", 4)(mapping(clock, 1.5, "here", None)(RANGE(20)))
    assert len(list(slower)) == 20
    assert slower.stats().slowest == "2:map"
    assert "more than 4 workers would help" in slower.stats().bottleneck


def test_steps_on_one_thread_add_up_against_another_thread(clock: Clock) -> None:
    dataset = RANGE(10)
    for name in ("a", "b", "c"):
        dataset = keeping(clock, 2.0, name)(dataset)
    dataset = keeping(clock, 3.0, "last")(dataset.prefetch(5))
    assert len(list(dataset)) == 10
    assert dataset.stats().slowest in ("1:filter", "2:filter", "3:filter")  # 6 seconds together


def test_prefetch_waits_and_does_not_work() -> None:
    dataset = RANGE(30).map(lambda x: sum(range(20_000)) + x, output_signature=INT64).prefetch(1)
    assert len(list(dataset)) == 30
    told = dataset.stats()["2:prefetch"]
    assert told["waiting"] > told["busy"]
    assert dataset.stats().slowest == "1:map"


def test_steps_inside_an_interleave_are_told_by_line() -> None:
    dataset = RANGE(8).interleave(lambda x: RANGE(3).map(np.negative), cycle_length=2)
    assert len(list(dataset)) == 24
    stats = dataset.stats()
    assert stats["inner:map"]["rows"] == 24
    assert sum(name.startswith("inner:") for name in stats) == 2


def test_nothing_is_told_before_the_first_element() -> None:
    dataset = RANGE(3)
    assert (dataset.stats(), dataset.stats().slowest) == ({}, "")
    iterator = iter(dataset)
    assert dataset.stats().bottleneck == "No element was asked for yet."
    next(iterator)
    assert dataset.stats()["0:range"]["rows"] == 3
    assert dataset.stats() == iterator.stats()


def test_the_table_is_printed() -> None:
    dataset = RANGE(10).batch(5).prefetch(di.data.AUTOTUNE).map(lambda x: x)
    list(dataset)
    lines = str(dataset.stats()).splitlines()
    assert lines[0].split() == ["step", "blocks", "rows", "busy", "s", "waiting", "s", "workers", "chosen"]
    assert [line.split()[0] for line in lines[1:-1]] == ["0:range", "1:batch", "2:map"]


def test_a_restored_iterator_is_told_of_as_well() -> None:
    dataset = RANGE(10).shuffle(3)
    iterator = iter(dataset)
    next(iterator)
    assert len(list(dataset.restore(iterator.state()))) == 9
    assert dataset.stats()["1:shuffle"]["rows"] >= 9
