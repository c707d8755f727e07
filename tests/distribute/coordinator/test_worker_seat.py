# SPDX-License-Identifier: Apache-2.0
"""What a worker makes of a call."""

import threading
from typing import Any

import pytest

import distinput as di
from distinput.distribute.coordinator.worker_seat import Call, CallOutcome, Slot, WorkerSeat, is_worker
from distinput.distribute.seats import AsIs, Packing, Pickled, SeatLost
from distinput.errors import OutOfRangeError, UnavailableError
from tests.distribute.coordinator.clusters import both_packings

STRATEGY = di.distribute.get_strategy()


class Worker:
    def __init__(self, packing: Packing | None = None, index: int = 1) -> None:
        self.packing = packing or AsIs()
        self.seat = WorkerSeat(index, self.packing)

    def run(self, function: Any, *args: Any, keys: tuple[int, ...] = (), **kwargs: Any) -> CallOutcome:
        return self.unpacked(self.seat.run(self.packing.pack(Call(None, function, args, kwargs, keys))))

    def make(self, key: int, function: Any, **kwargs: Any) -> CallOutcome:
        return self.unpacked(self.seat.make(key, self.packing.pack(Call(None, function, (), {})), **kwargs))

    def unpacked(self, packed: Any) -> CallOutcome:
        outcome = self.packing.unpack(packed)
        assert isinstance(outcome, CallOutcome)
        return outcome


def test_a_function_knows_its_worker_and_its_strategy() -> None:
    strategy = di.distribute.OneDeviceStrategy("CPU:0")

    def where() -> Any:
        index = di.distribute.coordinator.experimental_get_current_worker_index()
        return index, di.distribute.get_strategy() is strategy, di.distribute.in_cross_replica_context()

    worker = Worker()
    packed = worker.packing.pack(Call(strategy, where, (), {}))
    assert worker.unpacked(worker.seat.run(packed)).value == (1, True, True)
    assert not is_worker()


@both_packings
def test_an_error_is_an_outcome(packing: Packing) -> None:
    outcome = Worker(packing).run(lambda: 1 // 0)
    assert isinstance(outcome.error, ZeroDivisionError)
    assert not outcome.server


@both_packings
def test_the_end_of_an_iterator_has_the_name_of_tensorflow(packing: Packing) -> None:
    outcome = Worker(packing).run(lambda: next(iter(())))
    assert isinstance(outcome.error, OutOfRangeError)
    assert str(outcome.error) == "End of sequence"


@both_packings
def test_a_lost_server_is_named_even_if_the_function_wraps_the_error(packing: Packing) -> None:
    def read() -> None:
        try:
            raise UnavailableError("lost") from SeatLost("ps-1")
        except UnavailableError as error:
            raise RuntimeError("no luck") from error

    outcome = Worker(packing).run(read)
    assert isinstance(outcome.error, RuntimeError)
    assert outcome.server == "ps-1"


@both_packings
def test_results_travel_as_arguments_do(packing: Packing) -> None:
    assert Worker(packing).run(lambda a, b: a + b, 1, b=2).value == 3


@pytest.mark.needs("cloudpickle")
def test_what_cannot_be_sent_back_is_an_error_that_names_the_function() -> None:
    def step() -> Any:
        return threading.Lock()

    class Odd(Exception):
        def __reduce__(self) -> Any:
            raise TypeError("not me")

    def fail() -> None:
        raise Odd

    outcome = Worker(Pickled()).run(step)
    assert isinstance(outcome.error, TypeError)
    assert "step returned cannot be sent" in str(outcome.error)
    outcome = Worker(Pickled()).run(fail)
    assert "fail raised Odd() cannot be sent" in str(outcome.error)


@both_packings
def test_slots_anywhere_among_the_arguments_get_the_worker_s_own_value(packing: Packing) -> None:
    worker = Worker(packing)
    assert worker.make(7, lambda: [10]).error is None

    def step(first: Any, named: Any) -> Any:
        first["x"][0].append(1)
        return first["x"][0], named

    assert worker.run(step, {"x": [Slot(7)]}, named=(2, Slot(7)), keys=(7,)).value == ([10, 1], (2, [10, 1]))
    assert worker.unpacked(worker.seat.fetch(7)).value == [10, 1]


def test_a_forgotten_value_is_gone() -> None:
    worker = Worker()
    worker.make(7, list)
    worker.seat.forget(7)
    worker.seat.forget(7)
    assert isinstance(worker.run(lambda x: x, Slot(7), keys=(7,)).error, KeyError)
    assert worker.unpacked(worker.seat.fetch(7)).error is not None


def test_a_value_that_cannot_be_made_is_an_outcome() -> None:
    outcome = Worker().make(1, lambda: 1 // 0)
    assert isinstance(outcome.error, ZeroDivisionError)


def test_exact_iterators_report_their_position_after_each_call() -> None:
    def make(state: Any = None) -> Any:
        dataset = di.data.Dataset.range(5)
        return iter(dataset) if state is None else dataset.restore(state)

    worker = Worker()
    worker.make(1, make, exact=True)
    worker.make(2, make)
    first = worker.run(lambda a, b: (next(a), next(b)), Slot(1), Slot(2), keys=(1, 2))
    assert first.value == (0, 0)
    assert first.states is not None
    assert list(first.states) == [1]
    assert worker.run(lambda: 0).states is None
    other = Worker()
    other.make(1, make, exact=True, state=first.states[1])
    assert other.run(next, Slot(1), keys=(1,)).value == 1


def test_a_function_that_fails_has_taken_its_elements_all_the_same() -> None:
    worker = Worker()
    worker.make(1, lambda: iter(di.data.Dataset.range(5)), exact=True)

    def fail(iterator: Any) -> None:
        next(iterator)
        raise KeyError("late")

    failed = worker.run(fail, Slot(1), keys=(1,))
    assert isinstance(failed.error, KeyError)
    assert failed.states is not None
    other = Worker()
    other.make(1, lambda state: di.data.Dataset.range(5).restore(state), exact=True, state=failed.states[1])
    assert other.run(next, Slot(1), keys=(1,)).value == 1


def test_the_end_of_an_exact_iterator_is_a_position_too() -> None:
    worker = Worker()
    worker.make(1, lambda: iter(di.data.Dataset.range(0)), exact=True)
    outcome = worker.run(next, Slot(1), keys=(1,))
    assert isinstance(outcome.error, OutOfRangeError)
    assert outcome.states is not None


@pytest.mark.needs("cloudpickle")
@pytest.mark.parametrize("keys", [(), (1,)])
def test_an_error_that_travels_takes_the_lines_of_its_function_along(keys: tuple[int, ...]) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("here")

    worker = Worker(Pickled())
    worker.make(1, list)
    error = worker.run(fail, *[Slot(key) for key in keys], keys=keys).error
    assert error is not None
    (note,) = error.__notes__
    assert note.startswith("at the worker:\n")
    assert 'raise KeyError("here")' in note
    assert "worker_seat.py" not in note.replace("test_worker_seat.py", "")
