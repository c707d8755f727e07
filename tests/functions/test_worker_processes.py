# SPDX-License-Identifier: Apache-2.0
import os
import random
import signal
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import UnavailableError
from distinput.run.processes import _RUNNING
from tests.ops.iterating import until_error

RANGE = di.data.Dataset.range
INT64 = di.TensorSpec([], "int64")


def first_numbers(x: int) -> Any:
    return RANGE(int(x))


def double(x: Any) -> Any:
    return x * 2


def fails_at_seven(x: Any) -> Any:
    if x == 7:
        raise KeyError("seven")
    return x


class Awkward(Exception):
    """An error that pickle cannot make again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def awkward(x: Any) -> Any:
    raise Awkward("not ", "simple")


def pid(x: Any) -> Any:
    return np.int64(os.getpid())


def dies_at_seven(x: Any) -> Any:
    if x == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def slow(x: Any) -> Any:
    time.sleep(0.02 if x < 4 else 60)
    return x


def test_processes_start_once() -> None:
    dataset = RANGE(50).map(pid, num_parallel_calls=2, processes=True)
    first, second = set(dataset.repeat(2).to_list()), set(dataset.to_list())
    assert len(first) == 2
    assert os.getpid() not in first
    third = set(dataset.to_list())
    assert second == third


@pytest.mark.parametrize("maps", [1, 2])
def test_an_error_in_a_process_says_everything(maps: int) -> None:
    dataset = RANGE(20).map(fails_at_seven, num_parallel_calls=2, processes=True, output_signature=INT64)
    if maps == 2:
        dataset = dataset.map(double, num_parallel_calls=2, processes=True, output_signature=INT64)
    before, error = until_error(dataset)
    assert before == [x * maps for x in range(7)]
    assert isinstance(error, KeyError)
    trace, element, where = error.__notes__
    assert trace.startswith("in worker process ")
    assert 'raise KeyError("seven")' in trace
    frames = [line for line in trace.splitlines() if line.startswith("  File ")]
    assert len(frames) == 1, "frames of the library stand nowhere above the function"
    assert element == "on element np.int64(7)"
    assert where.startswith("in map(map_func=fails_at_seven, ")
    assert "test_worker_processes.py:" in where


def test_an_error_that_cannot_travel_is_told() -> None:
    error = until_error(RANGE(3).map(awkward, num_parallel_calls=1, processes=True, output_signature=INT64))[1]
    assert isinstance(error, RuntimeError)
    assert str(error) == "Awkward: not simple"
    assert "tests.functions.test_worker_processes.Awkward: not simple" in error.__notes__[0]


def ends_at_three(x: Any) -> Any:
    if x == 3:
        sys.exit("no such option")  # as argparse does
    return x


def test_a_function_that_exits_is_told_at_once_with_its_line() -> None:
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"(?s)in ends_at_three.*sys.exit.*SystemExit: no such option"):
        RANGE(6).map(ends_at_three, processes=True).to_list()
    assert time.monotonic() - begin < 60  # no worker has to die of it


def test_a_process_that_is_killed_is_an_error_with_its_place() -> None:
    dataset = RANGE(20).map(dies_at_seven, num_parallel_calls=2, processes=True, output_signature=INT64)
    before, error = until_error(dataset)
    assert before == list(range(len(before)))
    assert len(before) <= 7
    assert isinstance(error, UnavailableError)
    assert "was ended by signal 9" in str(error)
    assert "map(map_func=dies_at_seven" in error.__notes__[0]
    again, error = until_error(dataset)  # another pass begins with other workers
    assert again == list(range(len(again)))
    assert "was ended by signal 9" in str(error)


class Slow:
    """A source whose items take a moment."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.003)
        return np.int64(index * 2)


def slowly(x: Any) -> Any:
    time.sleep(0.003)
    return x * 2


@pytest.mark.parametrize("of", ["map", "source"])
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_worker_loses_and_repeats_nothing(of: str, seed: int) -> None:
    draw = random.Random(seed)
    dataset = RANGE(40).map(slowly, num_parallel_calls=2, processes=True)
    if of == "source":
        dataset = di.data.Dataset.from_source(Slow(), num_parallel_calls=2, processes=True)
    at, wanted = draw.sample(range(40), 2), list(range(0, 80, 2))
    for _ in range(2):
        found = []
        for element in dataset:
            found.append(int(element))
            if len(found) in at:
                pids = [pid for workers in _RUNNING if workers.op in ("map", "from_source") for pid in workers.pids]
                with suppress(ProcessLookupError):  # the one that was killed before, which nobody has missed yet
                    os.kill(draw.choice(pids), signal.SIGKILL)
        assert found == wanted
    assert dataset.to_list() == wanted


def test_closing_does_not_wait_for_a_slow_process() -> None:
    dataset = RANGE(20).map(slow, num_parallel_calls=2, processes=True, output_signature=INT64).prefetch(1)
    with iter(dataset) as elements:
        assert [next(elements) for _ in range(4)] == [0, 1, 2, 3]
        begin = time.monotonic()
    del dataset
    assert time.monotonic() - begin < 60 / 2, "of those that the process takes"


def test_two_iterators_at_once_do_not_mix() -> None:
    dataset = RANGE(40).map(double, num_parallel_calls=1, processes=True)
    pairs = list(zip(dataset, dataset, strict=True))
    assert pairs == [(2 * x, 2 * x) for x in range(40)]


def test_datasets_do_not_go_to_processes() -> None:
    error = until_error(RANGE(3).window(2).map(len, num_parallel_calls=1, processes=True, output_signature=INT64))[1]
    assert isinstance(error, TypeError)
    assert str(error) == "map: elements that hold datasets cannot be sent to worker processes; leave out processes=True"


@pytest.mark.parametrize("signature", [None, di.data.DatasetSpec(INT64)])
def test_datasets_do_not_come_from_processes(signature: Any) -> None:
    """What a function returns is refused as what it would get is: not by an error of the worker."""
    made = RANGE(3).map(first_numbers, num_parallel_calls=1, processes=True, output_signature=signature)
    error = until_error(made)[1]
    assert isinstance(error, TypeError)
    assert str(error) == "map: elements that hold datasets cannot be sent to worker processes; leave out processes=True"


def test_a_function_that_cannot_be_sent_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TypeError, match=r"map: .*<lambda>.* cannot be sent to worker .* leave out processes=True$"):
        RANGE(3).map(lambda x: x, processes=True)
