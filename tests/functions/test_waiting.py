# SPDX-License-Identifier: Apache-2.0
"""Functions that name a queue, an event or a connection may wait for who uses what they give."""

import functools
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.ops.generator import may_wait

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
            state += self.answers.get(timeout=20)


def _by_global() -> Iterator[int]:
    while True:
        yield _ACTIONS.get(timeout=20)


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
