# SPDX-License-Identifier: Apache-2.0
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from distinput.distribute.core.rendezvous import Arrival, Rendezvous
from distinput.errors import AbortedError, Mismatch


def on_replicas(count: int, body: Callable[[Rendezvous, int], Any]) -> tuple[Rendezvous, list[Any]]:
    """What `body(meeting, replica)` returned or raised on each replica."""
    meeting = Rendezvous(count)
    results: list[Any] = [None] * count

    def work(index: int) -> None:
        try:
            results[index] = body(meeting, index)
        except Exception as error:  # noqa: BLE001 - the tests look at what was raised
            meeting.failed(index, error)
            results[index] = error
        else:
            meeting.ended(index)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a replica hangs"
    return meeting, results


def total(given: Sequence[int]) -> int:
    return sum(given)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_all_get_the_result_over_what_all_gave_again_and_again(count: int) -> None:
    def body(meeting: Rendezvous, index: int) -> Any:
        return [meeting.meet(index, Arrival.here("sum"), index + i, total) for i in range(20)]

    meeting, results = on_replicas(count, body)
    once = count * (count - 1) // 2
    assert results == [[once + count * i for i in range(20)]] * count
    assert (meeting.failures, meeting.uneven) == ([], False)


def test_what_replicas_give_comes_in_their_order() -> None:
    _, results = on_replicas(3, lambda meeting, i: meeting.meet(i, Arrival.here("list"), i, list))
    assert results == [[0, 1, 2]] * 3


def test_a_replica_that_fails_releases_the_others() -> None:
    def body(meeting: Rendezvous, index: int) -> Any:
        if index == 1:
            raise KeyError("poison")
        return meeting.meet(index, Arrival.here("sum"), index, total)

    meeting, results = on_replicas(3, body)
    assert [type(result) for result in results] == [AbortedError, KeyError, AbortedError]
    assert "replica 2 cannot meet the others in merge_call, because replica 1 failed" in str(results[2])
    assert [(index, type(error)) for index, error in meeting.failures] == [(1, KeyError)], "those released did not fail"


def test_a_replica_that_returns_early_is_uneven() -> None:
    def body(meeting: Rendezvous, index: int) -> Any:
        return None if index == 0 else meeting.meet(index, Arrival.here("sum"), index, total)

    meeting, results = on_replicas(2, body)
    assert isinstance(results[1], AbortedError)
    assert "another replica returned without calling it" in str(results[1])
    assert meeting.uneven


def test_an_error_of_the_merge_function_is_that_of_replica_0() -> None:
    def divide(given: Sequence[int]) -> Any:
        raise ZeroDivisionError("merged")

    meeting, results = on_replicas(2, lambda meeting, i: meeting.meet(i, Arrival.here("divide"), i, divide))
    assert [type(result) for result in results] == [ZeroDivisionError, AbortedError]
    assert [index for index, _ in meeting.failures] == [0]


def test_other_calls_do_not_meet() -> None:
    def body(meeting: Rendezvous, index: int) -> Any:
        return meeting.meet(index, Arrival.here("all_reduce SUM" if index else "all_gather, axis=0"), index, total)

    _, results = on_replicas(2, body)
    assert isinstance(results[0], Mismatch)
    assert "all replicas must make the same call" in str(results[0])
    assert "replica 0: all_gather, axis=0" in str(results[0])
    assert "replica 1: all_reduce SUM" in str(results[0])


def test_a_name_is_compared_in_the_place_of_the_line() -> None:
    def body(meeting: Rendezvous, index: int) -> Any:
        if index:
            return meeting.meet(index, Arrival.here("sum", "loss"), index, total)
        return meeting.meet(index, Arrival.here("sum", "loss"), index, total)

    assert on_replicas(2, body)[1] == [1, 1]


def test_replica_0_makes_what_all_replicas_get() -> None:
    made: list[int] = []

    def body(meeting: Rendezvous, index: int) -> Any:
        def make() -> object:
            made.append(index)
            return object()

        return [meeting.created(index, [f"key {i}"], "thing", make) for i in range(3)]

    _, results = on_replicas(4, body)
    assert made == [0, 0, 0]
    assert all(result == results[0] for result in results)
    assert len({id(thing) for thing in results[0]}) == 3


def test_what_replica_0_does_not_make_is_an_error() -> None:
    def body(meeting: Rendezvous, index: int) -> Any:
        return index and meeting.created(index, ["key"], "thing", object)

    _, results = on_replicas(2, body)
    assert "Tried to create thing with mismatching name on replica 1" in str(results[1])


def test_a_failure_of_replica_0_releases_those_that_wait_for_what_it_makes() -> None:
    def body(meeting: Rendezvous, index: int) -> Any:
        def make() -> Any:
            raise KeyError("boom")

        return meeting.created(index, ["key"], "thing", make)

    meeting, results = on_replicas(3, body)
    assert [type(result) for result in results] == [KeyError, AbortedError, AbortedError]
    assert [index for index, _ in meeting.failures] == [0]
