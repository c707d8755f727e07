# SPDX-License-Identifier: Apache-2.0
"""The reference engine: objects of this process, whose seats tests can take away."""

import pickle
import threading

import pytest

from distinput.distribute.seats import Pickled, SeatLost
from distinput.distribute.seats.threads import ThreadSeats


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> int:
        self.count += number
        return self.count

    def then(self, action: object) -> str:
        assert callable(action)
        action()
        return "done"


def test_an_object_keeps_what_its_methods_change() -> None:
    placed = ThreadSeats(1, 1).place("ps-0", Counter)
    assert [placed.call("add", 2), placed.call("add", 3)] == [2, 5]
    assert placed.seat == "ps-0"


def test_an_error_of_a_method_is_raised_as_it_is() -> None:
    with pytest.raises(TypeError):
        ThreadSeats(1, 1).place("ps-0", Counter).call("add")


def test_what_is_unpickled_reaches_the_same_object() -> None:
    placed = ThreadSeats(1, 1).place("ps-0", Counter)
    pickle.loads(pickle.dumps(placed)).call("add", 7)
    assert placed.call("add", 0) == 7


def test_an_object_that_nothing_refers_to_cannot_be_unpickled() -> None:
    sent = pickle.dumps(ThreadSeats(1, 1).place("ps-0", Counter))
    with pytest.raises(SeatLost, match="nothing refers to it"):
        pickle.loads(sent)


def test_a_lost_seat_is_told_and_its_objects_are_gone() -> None:
    seats = ThreadSeats(2, 0)
    told: list[str] = []
    seats.watch(told.append)
    mine, other = seats.place("worker-0", Counter), seats.place("worker-1", Counter)
    seats.lose("worker-0")
    assert told == ["worker-0"]
    with pytest.raises(SeatLost) as caught:
        mine.call("add", 1)
    assert not caught.value.started
    assert other.call("add", 1) == 1
    assert seats.place("worker-0", Counter).call("add", 1) == 1, "an empty seat took its place"


def test_the_result_of_a_call_in_progress_is_lost_with_the_seat() -> None:
    seats = ThreadSeats(1, 0)
    placed = seats.place("worker-0", Counter)
    with pytest.raises(SeatLost) as caught:
        placed.call("then", lambda: seats.lose("worker-0"))
    assert caught.value.started


def test_a_seat_that_is_away_comes_back_empty() -> None:
    seats = ThreadSeats(1, 0)
    seats.lose("worker-0", back=False)
    with pytest.raises(SeatLost, match="not come back"):
        seats.place("worker-0", Counter)
    with pytest.raises(TimeoutError, match="worker-0 did not come back within 0 seconds"):
        seats.wait_back("worker-0", 0)
    timer = threading.Timer(0.02, seats.come_back, ["worker-0"])
    timer.start()
    seats.wait_back("worker-0", 10)
    assert seats.place("worker-0", Counter).call("add", 1) == 1


def test_closing_ends_all_waiting() -> None:
    seats = ThreadSeats(1, 0)
    placed = seats.place("worker-0", Counter)
    seats.lose("worker-0", back=False)
    timer = threading.Timer(0.02, seats.close)
    timer.start()
    with pytest.raises(SeatLost, match="closed"):
        seats.wait_back("worker-0", 10)
    seats.close()
    with pytest.raises(SeatLost):
        placed.call("add", 1)


@pytest.mark.needs("cloudpickle")
def test_pickled_seats_send_what_places_an_object() -> None:
    base = Counter()
    placed = ThreadSeats(1, 0, packing=Pickled()).place("worker-0", lambda: base)
    placed.call("add", 5)
    assert base.count == 0, "the object at the seat is a copy"
