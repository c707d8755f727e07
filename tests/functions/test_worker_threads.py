# SPDX-License-Identifier: Apache-2.0
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.run.run import Run
from distinput.testing import check_restart
from distinput.testing.pipeline import MAPS, SIGNATURES
from tests.ops.iterating import Pairs

RANGE = di.data.Dataset.range
INT64 = di.TensorSpec([], "int64")


def double(x: Any) -> Any:
    return x * 2


def fails_at_seven(x: Any) -> Any:
    if x == 7:
        raise KeyError("seven")
    return x


def data_set(x: Any) -> Any:
    return RANGE(int(x))


ADDED: ContextVar[int] = ContextVar("ADDED", default=0)


def add(x: Any) -> Any:
    return x + ADDED.get()


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


PLACES: dict[str, Callable[[Any], Any]] = {
    "here": lambda d: d.map(add),
    "threads": lambda d: d.map(add, num_parallel_calls=2),
    "autotune": lambda d: d.map(add, num_parallel_calls=di.data.AUTOTUNE),
    "ahead": lambda d: d.map(add).prefetch(2),
    "threads, ahead": lambda d: d.map(add, num_parallel_calls=2).batch(2, num_parallel_calls=2).prefetch(2).unbatch(),
    "interleaved": lambda d: d.interleave(lambda x: di.data.Dataset.from_tensors(x).map(add), num_parallel_calls=2),
    "read": lambda d: (
        di.data.Dataset.from_source([0, 1, 2]).batch(1).map(add, num_parallel_calls=2).unbatch().prefetch(1)
    ),
    "generated": lambda d: di.data.Dataset.from_generator(lambda: map(add, range(3)), output_signature=INT64).prefetch(
        1
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_functions_see_the_context_variables_of_the_program_on_every_thread(place: str) -> None:
    dataset = PLACES[place](RANGE(3))
    for added in (7, 8):
        token = ADDED.set(added)
        try:
            assert dataset.to_list() == [added, added + 1, added + 2]
        finally:
            ADDED.reset(token)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        list(PLACES[place](RANGE(3)).map(lambda x: np.float64(1) / np.float64(x - x), num_parallel_calls=2))


def test_autotune_uses_threads_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.ops.map.cores", lambda: 2)
    monkeypatch.setattr("distinput.functions.workers._MOST_ROWS", 4)
    monkeypatch.setattr("distinput.functions.workers._MOST_WAITING", 2)
    dataset = RANGE(200).map(Pairs(), num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64, vectorize=False)
    assert dataset.to_list() == list(range(200))
    assert dataset.stats()["1:map"]["chose"] == "2 threads"
    with iter(dataset) as elements:
        next(elements)
        assert elements.stats()["1:map"]["chose"] == "2 threads", "the next pass begins with what was found"


@pytest.mark.parametrize("count", [1, 2])
def test_autotune_uses_more_threads_than_cores_where_calls_wait(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("distinput.ops.map.cores", lambda: count)

    def asks(x: Any) -> Any:
        time.sleep(0.005)
        return x

    dataset = RANGE(300).map(asks, num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64, vectorize=False)
    assert dataset.to_list() == list(range(300))
    threads, _, said = dataset.stats()["1:map"]["chose"].partition(" ")
    assert (int(threads) > 4, said[:7]) == (True, "threads")


def test_autotune_leaves_short_calls_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.ops.map.cores", lambda: 2)
    monkeypatch.setattr("distinput.functions.workers._BEFORE_TRIAL", 0.0)
    monkeypatch.setattr("distinput.functions.workers._LEAST_CALL", 60.0)  # so short at any load
    threads = set()

    def note(x: Any) -> Any:
        threads.add(threading.current_thread())
        return x

    dataset = RANGE(1000).map(note, num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64, vectorize=False)
    assert dataset.to_list() == list(range(1000))
    assert threads == {threading.main_thread()}
    assert dataset.stats()["1:map"]["chose"] == "inline"


def test_autotune_goes_back_where_threads_do_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.streaming.buffered.AGAIN", 60.0)
    monkeypatch.setattr("distinput.ops.map.cores", lambda: 2)
    lock, now = threading.Lock(), [0.0]
    monkeypatch.setattr(Run, "clock", staticmethod(lambda: now[0]))  # the calls alone take time, at any load

    def one_at_a_time(x: Any) -> Any:
        with lock:
            now[0] += 0.02
            time.sleep(0.001)
        return x

    dataset = RANGE(40).map(one_at_a_time, num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64, vectorize=False)
    for _ in range(2):
        assert dataset.to_list() == list(range(40))
        assert dataset.stats()["1:map"]["chose"] == "inline, since threads were not faster"
    assert dataset.stats()["1:map"].get("workers", 0) == 0  # the second pass did not try them again


def test_nothing_is_lost_when_autotune_changes_its_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.ops.map.cores", lambda: 2)
    monkeypatch.setattr("distinput.streaming.buffered.AGAIN", 0.0)
    changes = {
        "_BEFORE_TRIAL": 0.0,
        "_LEAST_CALL": 0.0,
        "_TRIAL_PARTS": 2,
        "_GAIN": 0.0,
    }
    monkeypatch.setattr("distinput.functions.workers._MOST_ROWS", 2)
    for name, value in changes.items():
        monkeypatch.setattr(f"distinput.functions.workers.{name}", value)
    dataset = RANGE(100).map(double, num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64, vectorize=False)
    choices = set()
    with iter(dataset) as elements:
        found = []
        for element in elements:
            found.append(int(element))
            choices.add(elements.stats()["1:map"]["chose"])
    assert found == list(range(0, 200, 2))
    assert {"2 threads, on trial", "inline, since threads were not faster"} <= choices
    check_restart(RANGE(20).map(double, num_parallel_calls=di.data.AUTOTUNE, output_signature=INT64, vectorize=False))
