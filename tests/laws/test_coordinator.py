# SPDX-License-Identifier: Apache-2.0
"""Laws of a coordinator: whatever is lost and whatever fails, every function has one outcome and every effect is counted."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.coordinator import ClusterCoordinator
from distinput.distribute.seats import Packing
from distinput.distribute.seats.threads import ThreadSeats
from distinput.errors import CancelledError
from tests.depth import cases
from tests.distribute.coordinator.clusters import both_packings, cluster
from tests.patience import PATIENCE, wait_until

SEEDS = range(cases(5, 12))


@contextmanager
def losses(seats: ThreadSeats, seed: int) -> Any:
    """Workers are taken away at random moments until the block ends; the number of losses so far is in the list."""
    random, over, count = Random(seed), threading.Event(), [0]

    def take_away() -> None:
        while not over.wait(random.uniform(0.0002, 0.004)):
            worker = random.choice(seats.workers)
            away = random.random() < 0.3
            seats.lose(worker, back=not away)
            count[0] += 1
            if away:
                time.sleep(random.uniform(0, 0.003))
                seats.come_back(worker)

    thread = threading.Thread(target=take_away)
    thread.start()
    try:
        wait_until(lambda: count[0])
        yield count
    finally:
        over.set()
        thread.join()


class Begun:
    """How often each function began, counted in this process, since a seat may be lost with what it counts."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.lock = threading.Lock()

    def note(self, number: int) -> None:
        with self.lock:
            self.counts[number] += 1


BEGUN = Begun()


def note(number: int) -> None:
    BEGUN.note(number)


def joined(coordinator: ClusterCoordinator, seconds: float = 30.0) -> BaseException | None:
    """`join`, which must not hang; the error it raised."""
    error: list[BaseException | None] = []

    def join() -> None:
        try:
            coordinator.join()
            error.append(None)
        except BaseException as raised:  # noqa: BLE001 - looked at by the caller
            error.append(raised)

    thread = threading.Thread(target=join, daemon=True)
    thread.start()
    thread.join(seconds)
    assert error, "join hangs"
    return error[0]


@both_packings
@pytest.mark.parametrize("seed", SEEDS)
def test_every_result_is_right_although_workers_are_lost(seed: int, packing: Packing) -> None:
    BEGUN.counts.clear()
    random = Random(seed)
    with cluster(workers=random.randint(1, 4), packing=packing, max_retries=10**6) as (seats, strategy, coordinator):
        with strategy.scope():
            total = di.Variable(np.int64(0))

        def step(number: int, pause: float) -> int:
            note(number)
            total.assign_add(1)
            time.sleep(pause)
            return number * number

        with losses(seats, seed):
            results = [coordinator.schedule(step, (i, random.choice([0, 0, 0.001]))) for i in range(150)]
            assert joined(coordinator) is None
        assert coordinator.fetch(results) == [i * i for i in range(150)]
        assert coordinator.done()
        begun = BEGUN.counts
        assert set(begun) == set(range(150)), "every function ran"
        assert begun.total() <= 150 + coordinator._queue.put_backs, "only those put back ran again"
        assert int(total.numpy()) == begun.total(), "every addition is counted once"


@pytest.mark.parametrize("seed", SEEDS)
def test_every_function_has_one_outcome_although_some_fail(seed: int) -> None:
    random = Random(seed)
    fails = {i for i in range(200) if random.random() < 0.05}

    def step(number: int) -> int:
        if number in fails:
            raise KeyError(number)
        return -number

    with cluster(workers=3, max_retries=10**6) as (seats, _, coordinator):
        errors: list[int] = []
        results: dict[int, Any] = {}

        def caught(call: Callable[[], Any]) -> Any:
            try:
                return call()
            except KeyError as error:
                errors.append(error.args[0])
                return None

        with losses(seats, seed):
            for number in range(200):
                found = caught(lambda number=number: coordinator.schedule(step, (number,)))
                if found is not None:
                    results[number] = found
                if random.random() < 0.05:
                    caught(coordinator.join)
            while (error := joined(coordinator)) is not None:
                assert isinstance(error, KeyError)
                errors.append(error.args[0])
        assert set(errors) <= fails
        assert len(errors) == len(set(errors)), "an error is raised once"
        for number, result in results.items():
            try:
                value = result.fetch(60)
            except CancelledError:
                assert errors
            except KeyError as error:
                raised = error.args
                assert raised == (number,)
                assert number in fails
            else:
                assert value == -number
                assert number not in fails
        assert joined(coordinator) is None


@both_packings
@pytest.mark.parametrize("seed", SEEDS)
def test_exact_input_gives_each_worker_its_elements_in_order(seed: int, packing: Packing) -> None:
    with cluster(workers=2, packing=packing, max_retries=10**6) as (seats, _, coordinator):
        dataset = di.data.Dataset.range(1000).shuffle(100, seed=seed).batch(3)
        iterator = iter(coordinator.create_per_worker_dataset(dataset, exact_input=True))

        def step(iterator: Any) -> Any:
            return di.distribute.coordinator.experimental_get_current_worker_index(), next(iterator).tolist()

        with losses(seats, seed):
            results = [coordinator.schedule(step, (iterator,)) for _ in range(100)]
            assert joined(coordinator) is None
        expected = [batch.tolist() for batch in dataset]
        for worker in (0, 1):
            found = sorted(batch for index, batch in coordinator.fetch(results) if index == worker)
            assert found == sorted(expected[: len(found)]), "no element is passed over, none comes twice"


@pytest.mark.parametrize("seed", SEEDS)
def test_inputs_end_on_their_own_and_nothing_hangs(seed: int) -> None:
    with cluster(workers=3, max_retries=10**6) as (seats, _, coordinator):
        iterator = iter(coordinator.create_per_worker_dataset(di.data.Dataset.range(20)))
        with losses(seats, seed):
            for _ in range(10):
                try:
                    for _ in range(30):
                        coordinator.schedule(next, (iterator,))
                except di.errors.OutOfRangeError:
                    continue
                error = joined(coordinator)
                assert error is None or isinstance(error, di.errors.OutOfRangeError)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lost_server_ends_all_waiting(seed: int) -> None:
    random = Random(seed)
    with cluster(workers=2, servers=2) as (seats, strategy, coordinator):
        with strategy.scope():
            v = di.Variable(0)
        results = []
        timer = threading.Timer(random.uniform(0, 0.01), seats.lose, [random.choice(seats.servers)], {"back": False})
        timer.start()
        started = time.monotonic()
        with suppress(di.errors.UnavailableError):
            while time.monotonic() < started + PATIENCE:
                results.append(coordinator.schedule(lambda: v.assign_add(1).numpy()))
        assert time.monotonic() < started + PATIENCE, "the loss was not told"
        assert isinstance(joined(coordinator), di.errors.UnavailableError)
        for result in results:
            with suppress(CancelledError, di.errors.UnavailableError):
                result.fetch(60)
