# SPDX-License-Identifier: Apache-2.0
"""What users see of a coordinator."""

import gc
import inspect
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.coordinator import ClusterCoordinator, PerWorkerValue, PerWorkerValues
from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy
from distinput.distribute.seats import AsIs, Packing, Pickled
from distinput.distribute.seats.threads import ThreadSeats
from distinput.errors import CancelledError, FailedPreconditionError
from tests.distribute.coordinator.clusters import both_packings, cluster
from tests.patience import threads_since, wait_until


def test_there_is_one_coordinator_for_a_strategy() -> None:
    with cluster() as (_, strategy, coordinator):
        assert ClusterCoordinator(strategy) is coordinator
        assert ClusterCoordinator(strategy=strategy, max_retries=7) is coordinator
        assert coordinator.strategy is strategy
        coordinator.close()
        with ClusterCoordinator(strategy) as other:
            assert other is not coordinator
            assert other.schedule(lambda: 1).fetch() == 1


def test_other_strategies_have_none() -> None:
    with pytest.raises(ValueError, match=r"Only `tf\.distribute\.ParameterServerStrategy` is supported to work with"):
        ClusterCoordinator(di.distribute.MirroredStrategy(["CPU:0"]))


def test_the_names_of_tensorflow() -> None:
    assert PerWorkerValue is PerWorkerValues
    assert di.distribute.experimental.coordinator is di.distribute.coordinator
    assert next(iter(inspect.signature(ClusterCoordinator).parameters)) == "strategy"
    assert list(inspect.signature(ClusterCoordinator.schedule).parameters) == ["self", "fn", "args", "kwargs"]


def test_a_function_that_waits_for_all_functions_is_refused() -> None:
    with cluster() as (_, _, coordinator):
        result = coordinator.schedule(lambda: coordinator.join())
        with pytest.raises(RuntimeError, match="a scheduled function cannot wait for all scheduled functions"):
            result.fetch()


@both_packings
def test_functions_lambdas_closures_and_objects_can_be_scheduled(packing: Packing) -> None:
    class Adder:
        def __init__(self, base: int) -> None:
            self.base = base

        def __call__(self, x: int, more: int = 0) -> int:
            return self.base + x + more

    base = 10
    with cluster(packing=packing) as (_, _, coordinator):
        results = [
            coordinator.schedule(np.sum, args=[np.arange(4)]),
            coordinator.schedule(lambda: base),
            coordinator.schedule(Adder(3), (1,), {"more": 5}),
            coordinator.schedule(Adder(1).__call__, args=(2,)),
        ]
        assert coordinator.fetch(results) == [6, 10, 9, 3]
        assert coordinator.fetch({"a": (results[1], None), "b": "text"}) == {"a": (10, None), "b": "text"}


def test_schedule_returns_at_once() -> None:
    release = threading.Event()
    with cluster() as (_, _, coordinator):
        results = [coordinator.schedule(release.wait, (10,)) for _ in range(100)]
        assert not coordinator.done()
        release.set()
        coordinator.join()
        assert coordinator.done()
        assert all(coordinator.fetch(results))


@pytest.mark.parametrize(
    "given, says",
    [
        ({"args": 3}, r"args must be a tuple or list, got 3 \(int\); write args=\(x,\) for one argument"),
        ({"args": "ab"}, r"args must be a tuple or list, got 'ab' \(str\)"),
        ({"kwargs": [1]}, r"kwargs must be a dict from names to arguments, got \[1\] \(list\)"),
    ],
)
def test_arguments_that_are_no_arguments_are_refused(given: Any, says: str) -> None:
    with cluster(workers=1) as (_, _, coordinator), pytest.raises(TypeError, match=says):
        coordinator.schedule(print, **given)


def test_schedule_blocks_when_too_many_wait() -> None:
    release = threading.Event()
    scheduled: list[int] = []
    with cluster(queue_limit=3) as (_, _, coordinator):

        def schedule() -> None:
            for number in range(10):
                coordinator.schedule(release.wait, (10,))
                scheduled.append(number)

        thread = threading.Thread(target=schedule)
        thread.start()
        wait_until(lambda: len(scheduled) == 5)  # two run, three wait
        release.set()
        thread.join()
        coordinator.join()
    with pytest.raises(ValueError, match="queue_limit must be at least 1"):
        ClusterCoordinator(ParameterServerStrategy(seats=ThreadSeats(1, 1)), queue_limit=0)


@pytest.mark.needs("cloudpickle")
def test_what_was_scheduled_does_not_see_later_changes_when_it_is_sent() -> None:
    release = threading.Event()
    with cluster(workers=1, packing=Pickled()) as (_, _, coordinator):
        given, results = np.zeros(3), []
        for number in range(3):
            given[:] = number
            results.append(coordinator.schedule(lambda x: float(x.sum()), (given,)))
        release.set()
        assert coordinator.fetch(results) == [0.0, 3.0, 6.0]


@pytest.mark.parametrize(
    "where", [lambda r: ((r,), {}), lambda r: (({"x": [r]},), {}), lambda r: ((), {"named": (1, r)})]
)
def test_remote_values_are_no_arguments(where: Any) -> None:
    with cluster() as (_, _, coordinator):
        args, kwargs = where(coordinator.schedule(lambda: 1))
        with pytest.raises(ValueError, match="used as an input to scheduled function is not yet supported"):
            coordinator.schedule(lambda *_, **__: 1, args, kwargs)
        with pytest.raises(ValueError, match="used as an input to scheduled function is not yet supported"):
            coordinator.create_per_worker_resource(lambda *_, **__: 1, args, kwargs)


@pytest.mark.needs("cloudpickle")
def test_what_cannot_be_called_or_sent_is_refused() -> None:
    with cluster(packing=Pickled()) as (_, _, coordinator):
        with pytest.raises(ValueError, match="must be a callable object, got int"):
            coordinator.schedule(3)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="must be a callable object, got int"):
            coordinator.create_per_worker_resource(3)  # type: ignore[arg-type]
        with pytest.raises(
            TypeError, match=r"schedule: .*lambda.* cannot be sent to a worker: .* create_per_worker_resource"
        ):
            coordinator.schedule(lambda lock: lock, (threading.Lock(),))
        with pytest.raises(TypeError, match="a ClusterCoordinator cannot be sent to a worker"):
            coordinator.schedule(lambda: coordinator.done())
        with pytest.raises(TypeError, match="cannot be sent"):
            pickle.dumps(coordinator)


@both_packings
def test_the_first_error_is_raised_once_and_the_others_are_cancelled(packing: Packing) -> None:
    with cluster(workers=1, packing=packing) as (_, _, coordinator):

        def fail(what: str) -> None:
            raise KeyError(what)

        before = coordinator.schedule(lambda: 1)
        coordinator.join()
        release = threading.Event() if packing == AsIs() else None
        if release is not None:  # so that the others are there when the function fails
            coordinator.schedule(release.wait, (10,))
        failed = coordinator.schedule(fail, ("first",))
        after = [] if release is None else [coordinator.schedule(lambda: 2) for _ in range(3)]
        if release is not None:
            release.set()
        with pytest.raises(KeyError, match="first") as caught:
            coordinator.join()
        assert any("fail on worker-0" in note for note in caught.value.__notes__)
        coordinator.join()
        assert before.fetch() == 1
        with pytest.raises(KeyError):
            failed.fetch()
        for cancelled in after:
            with pytest.raises(CancelledError, match="another function failed with KeyError"):
                cancelled.fetch()
        assert coordinator.schedule(lambda: 3).fetch() == 3


def test_done_raises_the_error_too() -> None:
    with cluster() as (_, _, coordinator):
        result = coordinator.schedule(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            result.fetch()
        with pytest.raises(ZeroDivisionError):
            coordinator.done()
        assert coordinator.done()


def test_even_the_end_of_the_program_is_an_error_of_the_function() -> None:
    with cluster() as (_, _, coordinator):
        coordinator.schedule(lambda: exec("raise SystemExit(3)"))
        with pytest.raises(SystemExit):
            coordinator.join()
        assert coordinator.schedule(lambda: 1).fetch() == 1


def test_closing_cancels_what_waits_and_waits_for_what_runs() -> None:
    release, started = threading.Event(), threading.Event()
    with cluster(workers=1) as (_, _, coordinator):

        def run() -> str:
            started.set()
            release.wait(60)
            return "done"

        running, waiting = coordinator.schedule(run), coordinator.schedule(run)
        assert started.wait(60)
        threading.Timer(0.03, release.set).start()
        coordinator.close()
        coordinator.close()
        assert running.fetch() == "done"
        with pytest.raises(CancelledError, match="the coordinator was closed"):
            waiting.fetch()
        with pytest.raises(FailedPreconditionError, match="it was closed"):
            coordinator.schedule(run)
        with pytest.raises(FailedPreconditionError):
            coordinator.join()


def test_a_coordinator_that_is_forgotten_ends() -> None:
    gc.collect()
    before = threading.enumerate()

    def use() -> list[Any]:
        strategy = ParameterServerStrategy(seats=ThreadSeats(2, 1))
        coordinator = ClusterCoordinator(strategy)
        with strategy.scope():
            v = di.Variable(0)
        dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(10).batch(1))
        iterator = iter(coordinator.create_per_worker_dataset(dataset))
        coordinator.schedule(lambda it: v.assign_add(int(next(it)[0])), (iterator,)).fetch()
        coordinator.join()
        assert len(threads_since(before, "distinput-worker-")) == 2
        return [weakref.ref(coordinator), weakref.ref(strategy)]

    there = use()
    wait_until(lambda: gc.collect() >= 0 and not any(ref() for ref in there))
    wait_until(lambda: not threads_since(before, "distinput-worker-"))


def test_a_coordinator_lives_until_its_functions_have_run() -> None:
    release = threading.Event()
    before = threading.enumerate()
    results = []

    def make() -> None:
        coordinator = ClusterCoordinator(ParameterServerStrategy(seats=ThreadSeats(1, 1)))
        results.extend([coordinator.schedule(release.wait, (10,)) for _ in range(3)])

    make()
    gc.collect()
    release.set()
    assert [result.fetch(60) for result in results] == [True] * 3
    wait_until(lambda: gc.collect() >= 0 and not threads_since(before, "distinput-worker-"))


def test_results_and_arguments_are_not_kept() -> None:
    class Thing:
        pass

    with cluster() as (_, _, coordinator):
        things = [Thing(), Thing()]
        alive = [weakref.ref(thing) for thing in things]
        result = coordinator.schedule(lambda given: given[0], (tuple(things),))
        coordinator.join()
        del things
        wait_until(lambda: alive[1]() is None)
        assert alive[0]() is not None
        del result
        wait_until(lambda: alive[0]() is None)
