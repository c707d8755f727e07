# SPDX-License-Identifier: Apache-2.0
"""A source that waits for what the loop does with an element gets its answer, whatever stands above it asks for ahead."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.patience import PATIENCE

Dataset = di.data.Dataset
AUTOTUNE = di.data.AUTOTUNE
INT64 = di.TensorSpec([], "int64")
_MOST_SECONDS = 60.0


def same(x: Any) -> Any:
    return x


def slow(x: Any) -> Any:
    time.sleep(0.01)
    return x


def source(answers: "queue.Queue[int]", group: int = 1) -> di.data.Dataset[Any]:
    """Six numbers; behind each group of them it waits for an answer."""

    def numbers() -> Iterator[int]:
        for number in range(6):
            if number and not number % group:
                answers.get(timeout=_MOST_SECONDS)
            yield number

    return Dataset.from_generator(numbers, output_signature=INT64)


def ahead(count: int) -> di.data.Options:
    options = di.data.Options()
    options.run_ahead = count
    return options


ONE: dict[str, Callable[[Any], Any]] = {
    "map on threads": lambda ds: ds.map(same, num_parallel_calls=2),
    "slow map on threads": lambda ds: ds.map(slow, num_parallel_calls=3),
    "map, AUTOTUNE": lambda ds: ds.map(slow, num_parallel_calls=AUTOTUNE),
    "map in processes": lambda ds: ds.map(abs, num_parallel_calls=2, processes=True),
    "map by an executor": lambda ds: ds.map(slow, executor=ThreadPoolExecutor(2)),
    "maps over a map": lambda ds: ds.map(same).map(slow, num_parallel_calls=2).map(slow, num_parallel_calls=4),
    "map with random numbers": lambda ds: ds.map(lambda x, rng: x, rng=True, num_parallel_calls=2),
    "on workers": lambda ds: ds.map(slow).filter(lambda x: x >= 0).on_workers("threads:2"),
    "on processes": lambda ds: ds.map(abs).on_workers("processes:2"),
    "prefetch": lambda ds: ds.prefetch(2),
    "map over prefetch": lambda ds: ds.prefetch(2).map(same, num_parallel_calls=2).prefetch(AUTOTUNE),
    "map over flat_map": lambda ds: Dataset.range(1).flat_map(lambda _: ds).map(same, num_parallel_calls=2),
    "map over interleave": lambda ds: Dataset.range(1).interleave(lambda _: ds, 2, num_parallel_calls=2).map(slow, 2),
    "map over zip": lambda ds: Dataset.zip(ds, Dataset.range(9)).map(lambda x, _: x, num_parallel_calls=2),
    "few ahead": lambda ds: ds.map(slow, num_parallel_calls=4).with_options(ahead(2)),
    "errors left out": lambda ds: ds.map(same, num_parallel_calls=2).ignore_errors(),
    "a plan of one replica": lambda ds: di.distribute.MirroredStrategy(["cpu:0"]).experimental_distribute_dataset(
        ds.map(slow, num_parallel_calls=2).batch(1).prefetch(2)
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_each_element_comes_before_the_next_one_is_waited_for(name: str) -> None:
    answers: queue.Queue[int] = queue.Queue()
    got = []
    for element in ONE[name](source(answers)):
        got.append(int(np.asarray(element).item()))
        answers.put(1)
    assert got == list(range(6))


TWO: dict[str, Callable[[Any], Any]] = {
    "batch on threads": lambda ds: ds.batch(2, num_parallel_calls=2),
    "map over batch": lambda ds: ds.batch(2).map(slow, num_parallel_calls=2),
    "batch over map": lambda ds: ds.map(slow, num_parallel_calls=3).padded_batch(2),
    "batch on workers": lambda ds: ds.map(slow).batch(2).map(slow).on_workers("threads:2"),
    "two replicas": lambda ds: di.distribute.MirroredStrategy(["cpu:0", "cpu:1"]).experimental_distribute_dataset(
        ds.map(slow, num_parallel_calls=2).batch(2)
    ),
}


@pytest.mark.parametrize("name", TWO)
def test_no_step_waits_for_more_than_it_needs(name: str) -> None:
    answers: queue.Queue[int] = queue.Queue()
    steps = 0
    for _ in TWO[name](source(answers, 2)):
        steps += 1
        answers.put(1)
    assert steps == 3


def test_calls_overlap_where_a_source_that_may_wait_does_not() -> None:
    records: queue.Queue[int] = queue.Queue()
    for number in range(8):
        records.put(number)
    two = threading.Barrier(2)

    def work(x: Any) -> Any:
        if x < 2:
            two.wait(PATIENCE)  # fails where one call waits for another's end
        return x

    ds = Dataset.from_generator(lambda: iter(records.get, 7), output_signature=INT64).map(work, num_parallel_calls=4)
    assert ds.to_list() == list(range(7))


@pytest.mark.parametrize("service", ["threads:2", "processes:2"])
def test_workers_run_a_source_once(service: str) -> None:
    """What comes through a queue comes once."""
    records: queue.Queue[int] = queue.Queue()
    for number in range(9):
        records.put(number)
    ds = Dataset.from_generator(lambda: iter(records.get, 8), output_signature=INT64).map(abs).on_workers(service)
    assert ds.to_list() == list(range(8))


@pytest.mark.parametrize("name", ["prefetch", "map on threads", "on workers"])
def test_a_loop_is_left_while_the_source_waits(name: str) -> None:
    answers: queue.Queue[int] = queue.Queue()
    begin = time.monotonic()
    with iter(ONE[name](source(answers))) as iterator:
        assert next(iterator) == 0
    assert time.monotonic() - begin < _MOST_SECONDS / 2
    answers.put(1)  # lets the thread end
