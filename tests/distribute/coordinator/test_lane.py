# SPDX-License-Identifier: Apache-2.0
"""What happens to closures and per-worker values when workers are lost."""

import threading
from collections import deque
from collections.abc import MutableSequence
from typing import Any

import pytest

import distinput as di
from distinput.distribute.coordinator.closures import Patience
from distinput.distribute.seats.threads import ThreadSeats
from distinput.errors import AbortedError, UnavailableError
from tests.distribute.coordinator.clusters import cluster
from tests.patience import wait_until


def lose_mine(seats: ThreadSeats, times: MutableSequence[int]) -> int:
    """Lose the worker that runs this, once for each item."""
    index = di.distribute.coordinator.experimental_get_current_worker_index()
    if times:
        times.pop()
        seats.lose(f"worker-{index}")
    return index


def test_a_closure_whose_worker_is_lost_runs_again() -> None:
    with cluster() as (seats, _, coordinator):
        results = [coordinator.schedule(lose_mine, (seats, times)) for times in ([0], [0, 0], [])]
        coordinator.join()
        assert all(index in (0, 1) for index in coordinator.fetch(results))
        assert coordinator._queue.put_backs == 3


def test_a_function_that_loses_its_worker_again_and_again_is_named() -> None:
    with cluster(max_retries=2) as (seats, _, coordinator):
        times = list(range(10))
        result = coordinator.schedule(lose_mine, (seats, times))
        with pytest.raises(AbortedError, match=r"lose_mine lost its worker 3 times .* max_retries is 2"):
            coordinator.join()
        assert len(times) == 7
        with pytest.raises(AbortedError):
            result.fetch()
        assert coordinator.schedule(lambda: 1).fetch(60) == 1


def test_no_retry_means_no_retry() -> None:
    with cluster(max_retries=0) as (seats, _, coordinator):
        coordinator.schedule(lose_mine, (seats, [0]))
        with pytest.raises(AbortedError, match="lost its worker 1 times"):
            coordinator.join()


def test_an_idle_worker_that_is_lost_costs_no_retry_and_makes_its_values_anew() -> None:
    made: list[int] = []
    with cluster(workers=1, max_retries=0) as (seats, _, coordinator):
        values = coordinator.create_per_worker_resource(lambda: made.append(1) or len(made))
        assert coordinator.schedule(lambda x: x, (values,)).fetch(60) == 1
        seats.lose("worker-0")
        wait_until(lambda: len(made) == 2)  # at once, not only when a closure comes
        assert coordinator.schedule(lambda x: x, (values,)).fetch(60) == 2


def test_other_workers_go_on_while_one_is_away_and_it_takes_part_again() -> None:
    with cluster() as (seats, _, coordinator):
        seats.lose("worker-0", back=False)
        index = di.distribute.coordinator.experimental_get_current_worker_index
        results = [coordinator.schedule(index) for _ in range(20)]
        coordinator.join()
        assert set(coordinator.fetch(results)) == {1}
        seats.come_back("worker-0")
        meet = threading.Barrier(2)
        both = [coordinator.schedule(lambda: (meet.wait(60), index())[1]) for _ in range(2)]
        assert sorted(coordinator.fetch(both)) == [0, 1]


def test_a_lost_worker_is_waited_for_only_so_long() -> None:
    with cluster(workers=1, worker_return_seconds=0.05) as (seats, _, coordinator):
        seats.lose("worker-0", back=False)
        result = coordinator.schedule(lambda: 1)
        with pytest.raises(UnavailableError, match=r"no worker is left; the last one: worker-0 did not come back"):
            coordinator.join()
        with pytest.raises(di.errors.CancelledError):
            result.fetch(60)


def test_an_iterator_starts_again_when_its_worker_was_lost() -> None:
    with cluster(workers=1) as (seats, _, coordinator):
        iterator = iter(coordinator.create_per_worker_dataset(di.data.Dataset.range(5)))
        take = [coordinator.schedule(next, (iterator,)).fetch(60) for _ in range(3)]
        seats.lose("worker-0")
        take += [coordinator.schedule(next, (iterator,)).fetch(60) for _ in range(2)]
        assert take == [0, 1, 2, 0, 1]


def test_an_exact_iterator_continues_after_the_last_function_that_finished() -> None:
    with cluster(workers=1) as (seats, _, coordinator):
        iterator = iter(coordinator.create_per_worker_dataset(di.data.Dataset.range(6), exact_input=True))

        def step(iterator: Any, lose: deque[int]) -> int:
            element = int(next(iterator))
            lose_mine(seats, lose)
            return element

        found = [
            coordinator.schedule(step, (iterator, lose)).fetch(60) for lose in map(deque, ([], [], [0], [], [0, 0], []))
        ]
        assert found == [0, 1, 2, 3, 4, 5]


def test_a_parameter_server_that_is_lost_is_told_at_once_and_for_good() -> None:
    release = threading.Event()
    with cluster(servers=2) as (seats, _, coordinator):
        coordinator.schedule(release.wait, (10,))
        seats.lose("ps-1", back=False)
        for _ in range(2):
            for call in (coordinator.join, coordinator.done, lambda: coordinator.schedule(lambda: 1)):
                with pytest.raises(UnavailableError, match="parameter server ps-1 is lost"):
                    call()
        release.set()


def test_a_parameter_server_that_was_lost_before_there_was_a_coordinator_is_told() -> None:
    seats = ThreadSeats(1, 1)
    seats.lose("ps-0", back=False)
    with di.distribute.ParameterServerStrategy(None, seats=seats) as strategy:
        coordinator = di.distribute.coordinator.ClusterCoordinator(strategy)
        with pytest.raises(UnavailableError, match="parameter server ps-0 is lost"):
            coordinator.join()
    seats.close()


def test_a_function_that_meets_a_lost_server_fails_with_unavailable() -> None:
    with cluster() as (seats, strategy, coordinator):
        with strategy.scope():
            v = di.Variable(1.0)
        seats._watchers.clear()  # the engine has not told it yet
        seats.lose("ps-0", back=False)
        result = coordinator.schedule(lambda: v + 1)
        with pytest.raises(UnavailableError, match="parameter server ps-0 is lost"):
            result.fetch(60)
        with pytest.raises(UnavailableError):
            coordinator.join()
        with pytest.raises(UnavailableError):
            coordinator.join()


def test_the_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="max_retries must be at least 0, got -1"):
        Patience(max_retries=-1)
    with pytest.raises(ValueError, match="worker_return_seconds must be at least 0"):
        Patience(worker_return_seconds=-1)
