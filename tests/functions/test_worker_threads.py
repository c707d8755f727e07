# SPDX-License-Identifier: Apache-2.0
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import UnavailableError
from distinput.testing import check_restart
from distinput.testing.functions import MAPS, SIGNATURES
from tests.ops.iterating import Pairs, until_error

RANGE = di.data.Dataset.range
INT64 = di.TensorSpec([], "int64")


def double(x: Any) -> Any:
    return x * 2


def pid(x: Any) -> Any:
    return np.int64(os.getpid())


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


def dies_at_seven(x: Any) -> Any:
    if x == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def slow(x: Any) -> Any:
    time.sleep(0.02 if x < 4 else 60)
    return x


def data_set(x: Any) -> Any:
    return RANGE(int(x))


WAYS: list[dict[str, Any]] = [
    {"num_parallel_calls": 2},
    {"num_parallel_calls": di.data.AUTOTUNE},
    {"num_parallel_calls": 2, "processes": True},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["several", "raggeds", "uneven", "record", "point", "change"])
def test_every_way_gives_what_a_loop_gives(way: dict[str, Any], name: str) -> None:
    source = RANGE(23).map(MAPS["raggeds"], output_signature=SIGNATURES["raggeds"]).filter(lambda x: len(x["n"]) > 0)
    signature = SIGNATURES.get(name)
    here = source.map(MAPS[name], output_signature=signature)
    spread = source.map(MAPS[name], output_signature=signature, **way)
    for _ in range(2):
        assert repr(list(spread)) == repr(list(here))


@pytest.mark.parametrize("way", WAYS)
def test_states_are_exact(way: dict[str, Any]) -> None:
    check_restart(RANGE(14).map(double, **way).batch(3))


@pytest.mark.parametrize("way", WAYS)
def test_neighbouring_maps_share_their_workers(way: dict[str, Any]) -> None:
    dataset = RANGE(7).map(double, **way).map(fails_at_seven, output_signature=INT64, **way)
    assert dataset.to_list() == [0, 2, 4, 6, 8, 10, 12]
    assert "rules: map_of_map" in dataset.explain()


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
    assert element == "on element np.int64(7)"
    assert where.startswith("in map(map_func=fails_at_seven, ")
    assert "test_worker_threads.py:" in where


def test_an_error_that_cannot_travel_is_told() -> None:
    error = until_error(RANGE(3).map(awkward, num_parallel_calls=1, processes=True, output_signature=INT64))[1]
    assert isinstance(error, RuntimeError)
    assert str(error) == "Awkward: not simple"
    assert "tests.functions.test_worker_threads.Awkward: not simple" in error.__notes__[0]


def test_a_process_that_is_killed_is_an_error_with_its_place() -> None:
    dataset = RANGE(20).map(dies_at_seven, num_parallel_calls=2, processes=True, output_signature=INT64)
    before, error = until_error(dataset)
    assert before == list(range(len(before)))
    assert len(before) <= 7
    assert isinstance(error, UnavailableError)
    assert "was ended by signal 9" in str(error)
    assert "map(map_func=dies_at_seven" in error.__notes__[0]


def test_closing_does_not_wait_for_a_slow_process() -> None:
    dataset = RANGE(20).map(slow, num_parallel_calls=2, processes=True, output_signature=INT64).prefetch(1)
    with iter(dataset) as elements:
        assert [next(elements) for _ in range(4)] == [0, 1, 2, 3]
        begin = time.monotonic()
    assert time.monotonic() - begin < 10
    del dataset
    assert time.monotonic() - begin < 20


def test_two_iterators_at_once_do_not_mix() -> None:
    dataset = RANGE(40).map(double, num_parallel_calls=1, processes=True)
    pairs = list(zip(dataset, dataset, strict=True))
    assert pairs == [(2 * x, 2 * x) for x in range(40)]


def test_data_sets_do_not_go_to_processes() -> None:
    error = until_error(RANGE(3).window(2).map(len, num_parallel_calls=1, processes=True, output_signature=INT64))[1]
    assert isinstance(error, TypeError)
    assert "cannot be sent to worker processes" in str(error)


def test_a_function_that_cannot_be_sent_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TypeError, match=r"map: .*<lambda>.* cannot be sent to worker processes"):
        RANGE(3).map(lambda x: x, processes=True)


def test_autotune_uses_threads_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.ops.map._cores", lambda: 2)
    monkeypatch.setattr("distinput.functions.parts._MOST_ROWS", 4)
    dataset = RANGE(200).map(Pairs(), num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64)
    assert dataset.to_list() == list(range(200))
    assert dataset.stats()["1:map"]["chose"] == "2 threads"
    with iter(dataset) as elements:
        next(elements)
        assert elements.stats()["1:map"]["chose"] == "2 threads", "the next pass begins with what was found"


def test_autotune_leaves_short_calls_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.ops.map._cores", lambda: 2)
    monkeypatch.setattr("distinput.functions.worker_threads._BEFORE_TRIAL", 0.0)
    monkeypatch.setattr("distinput.functions.worker_threads._LEAST_CALL", 0.1)
    threads = set()

    def note(x: Any) -> Any:
        threads.add(threading.current_thread())
        return x

    dataset = RANGE(1000).map(note, num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64)
    assert dataset.to_list() == list(range(1000))
    assert threads == {threading.main_thread()}
    assert dataset.stats()["1:map"]["chose"] == "inline"


def test_autotune_goes_back_where_threads_do_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.streaming.autotune.AGAIN", 60.0)
    monkeypatch.setattr("distinput.ops.map._cores", lambda: 2)
    lock = threading.Lock()

    def one_at_a_time(x: Any) -> Any:
        with lock:
            time.sleep(0.02)
        return x

    dataset = RANGE(40).map(one_at_a_time, num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64)
    for _ in range(2):
        assert dataset.to_list() == list(range(40))
        assert dataset.stats()["1:map"]["chose"] == "inline, since threads were not faster"
    assert dataset.stats()["1:map"].get("workers", 0) == 0  # the second pass did not try them again


def test_nothing_is_lost_when_autotune_changes_its_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.ops.map._cores", lambda: 2)
    monkeypatch.setattr("distinput.streaming.autotune.AGAIN", 0.0)
    changes = {
        "_BEFORE_TRIAL": 0.0,
        "_LEAST_CALL": 0.0,
        "_TRIAL_PARTS": 2,
        "_GAIN": 0.0,
    }
    monkeypatch.setattr("distinput.functions.parts._MOST_ROWS", 2)
    for name, value in changes.items():
        monkeypatch.setattr(f"distinput.functions.worker_threads.{name}", value)
    dataset = RANGE(100).map(double, num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64)
    choices = set()
    with iter(dataset) as elements:
        found = []
        for element in elements:
            found.append(int(element))
            choices.add(elements.stats()["1:map"]["chose"])
    assert found == list(range(0, 200, 2))
    assert {"2 threads, on trial", "inline, since threads were not faster"} <= choices
    check_restart(RANGE(20).map(double, num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64))
