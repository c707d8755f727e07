# SPDX-License-Identifier: Apache-2.0
"""Values that every worker has of its own."""

import gc
import json
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.coordinator import PerWorkerValues, RemoteValue, experimental_get_current_worker_index
from distinput.distribute.seats import AsIs, Packing
from distinput.errors import FailedPreconditionError, OutOfRangeError, StateError
from tests.depth import cases
from tests.distribute.coordinator.clusters import both_packings, cluster
from tests.patience import wait_until


def on_both(coordinator: Any, function: Any, *args: Any) -> Any:
    """The results of a function on both workers, in their order."""
    meet = threading.Barrier(2)
    _MEETINGS[id(meet)] = meet

    def step(key: int, *given: Any) -> Any:
        from tests.distribute.coordinator import test_per_worker

        test_per_worker._MEETINGS[key].wait(60)
        return experimental_get_current_worker_index(), function(*given)

    found = coordinator.fetch([coordinator.schedule(step, (id(meet), *args)) for _ in range(2)])
    return [value for _, value in sorted(found, key=lambda pair: pair[0])]


_MEETINGS: dict[int, threading.Barrier] = {}


@both_packings
def test_each_worker_iterates_over_the_whole_dataset(packing: Packing) -> None:
    with cluster(packing=packing) as (_, _, coordinator):
        iterator = iter(coordinator.create_per_worker_dataset(di.data.Dataset.range(4).batch(2)))
        for expected in ([0, 1], [2, 3]):
            for found in on_both(coordinator, next, iterator):
                np.testing.assert_array_equal(found, expected)


@both_packings
def test_a_dataset_function_is_called_at_each_worker(packing: Packing) -> None:
    with cluster(packing=packing) as (_, _, coordinator):

        def dataset_fn() -> Any:
            return di.data.Dataset.range(6).shard(2, experimental_get_current_worker_index())

        dataset = coordinator.create_per_worker_dataset(dataset_fn)
        assert dataset.element_spec == di.TensorSpec([], np.int64)
        assert on_both(coordinator, lambda iterator: [int(x) for x in iterator], iter(dataset)) == [
            [0, 2, 4],
            [1, 3, 5],
        ]


def test_iterators_of_one_dataset_are_independent() -> None:
    with cluster(workers=1) as (_, _, coordinator):
        dataset = coordinator.create_per_worker_dataset(di.data.Dataset.range(4))
        first, second = iter(dataset), iter(dataset)
        found = [coordinator.schedule(next, (iterator,)).fetch() for iterator in (first, first, second)]
        assert found == [0, 1, 0]


def test_the_end_of_the_data_is_an_error_of_the_function() -> None:
    with cluster(workers=1) as (_, _, coordinator):
        iterator = iter(coordinator.create_per_worker_dataset(di.data.Dataset.range(1)))
        coordinator.schedule(next, (iterator,))
        coordinator.join()
        ended = coordinator.schedule(next, (iterator,))
        with pytest.raises(OutOfRangeError, match="End of sequence"):
            coordinator.join()
        with pytest.raises(OutOfRangeError):
            ended.fetch()


def test_only_workers_take_elements() -> None:
    with cluster() as (_, _, coordinator):
        iterator = iter(coordinator.create_per_worker_dataset(di.data.Dataset.range(1)))
        assert iter(iterator) is iterator
        for take in (lambda: next(iterator), iterator.get_next):
            with pytest.raises(NotImplementedError, match="Iterating over an `AsyncDistributedIterator`"):
                take()


def test_what_is_no_dataset_is_refused() -> None:
    with cluster() as (_, _, coordinator):
        with pytest.raises(ValueError, match="Unexpected dataset type"):
            coordinator.create_per_worker_dataset([1, 2])
        dataset = coordinator.create_per_worker_dataset(lambda: [1, 2])
        with pytest.raises(TypeError, match="the function must return a dataset, got list"):
            _ = dataset.element_spec
        coordinator.schedule(next, (iter(dataset),))
        with pytest.raises(TypeError, match="the function must return a dataset, got list"):
            coordinator.join()


@both_packings
def test_a_resource_can_be_fetched_from_all_workers(packing: Packing) -> None:
    with cluster(packing=packing) as (_, _, coordinator):
        counts = coordinator.create_per_worker_resource(lambda start: {"n": start}, (5,))

        def count(mine: Any) -> None:
            mine["n"] += 1

        on_both(coordinator, count, counts)
        assert coordinator.fetch(counts) == ({"n": 6}, {"n": 6})
        assert repr(counts) == "<PerWorkerValues of 2 workers>"


def test_a_resource_that_cannot_be_made_fails_the_functions_that_use_it_alone() -> None:
    with cluster(workers=1) as (_, _, coordinator):
        values = coordinator.create_per_worker_resource(lambda: 1 // 0)
        assert coordinator.schedule(lambda: 1).fetch(60) == 1
        with pytest.raises(ZeroDivisionError) as caught:
            coordinator.schedule(lambda x: x, (values,)).fetch(60)
        assert any("made a per-worker value on worker-0" in note for note in caught.value.__notes__)
        with pytest.raises(ZeroDivisionError):
            coordinator.fetch(values)
        with pytest.raises(ZeroDivisionError):
            coordinator.join()
        coordinator.join()


def test_a_resource_that_nothing_refers_to_is_dropped() -> None:
    class Thing:
        alive = 0

        def __init__(self) -> None:
            Thing.alive += 1

        def __del__(self) -> None:
            Thing.alive -= 1

    with cluster() as (_, _, coordinator):
        values = coordinator.create_per_worker_resource(Thing)
        wait_until(lambda: Thing.alive == 2)
        del values
        gc.collect()
        on_both(coordinator, int)
        on_both(coordinator, int)
        gc.collect()
        assert Thing.alive == 0


def test_values_of_another_coordinator_are_refused() -> None:
    with cluster() as (_, _, one), cluster() as (_, _, other):
        values = one.create_per_worker_resource(list)
        for given in ((values,), ({"x": [values]},)):
            with pytest.raises(ValueError, match="does not belong to this coordinator"):
                other.schedule(len, given)
        with pytest.raises(ValueError, match="a per-worker value cannot be an argument"):
            one.create_per_worker_resource(len, (values,))


def test_values_are_made_of_remote_values_alone() -> None:
    with pytest.raises(AssertionError, match="should only take `RemoteValue`s, got int"):
        PerWorkerValues([1])  # type: ignore[list-item]
    made = PerWorkerValues([RemoteValue()])
    with cluster(packing=AsIs()) as (_, _, coordinator), pytest.raises(ValueError, match="does not belong"):
        coordinator.schedule(len, (made,))


def numbers() -> "di.data.Dataset[Any]":
    return di.data.Dataset.range(40).shuffle(8, seed=3).batch(2)


def taken(coordinator: Any, iterator: Any, count: int) -> list[tuple[int, list[int]]]:
    """The worker and the elements of so many functions that finished."""

    def step(mine: Any) -> tuple[int, list[int]]:
        return experimental_get_current_worker_index(), [int(x) for x in next(mine)]

    results = [coordinator.schedule(step, (iterator,)) for _ in range(count)]
    coordinator.join()
    return list(coordinator.fetch(results))


@both_packings
@pytest.mark.parametrize("seed", range(cases(4, 40)))
def test_a_coordinator_that_is_started_again_goes_on_with_exactly_the_rest(
    packing: Packing, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    path, found, rows = str(tmp_path / "checkpoint"), [], 0
    for part in range(3):
        with cluster(packing=packing) as (seats, strategy, coordinator):
            iterator: Any = iter(coordinator.create_per_worker_dataset(numbers(), exact_input=True))
            with strategy.scope():
                total = di.Variable(0)
            checkpoint = di.train.Checkpoint(total=total, iterator=iterator)
            if part:
                checkpoint.restore(path)
            assert int(total.numpy()) == rows
            kept = taken(coordinator, iterator, chance.randrange(5))
            rows += sum(len(batch) for _, batch in kept)
            total.assign(rows)
            found += kept
            checkpoint.write(path)
            if chance.random() < 0.5:  # what is done after the checkpoint is done again
                taken(coordinator, iterator, chance.randrange(4))
            if chance.random() < 0.5:
                seats.lose("worker-0")
    wanted = [[int(x) for x in batch] for batch in numbers()]
    for worker in (0, 1):
        mine = [batch for index, batch in found if index == worker]
        assert sorted(mine) == sorted(wanted[: len(mine)]), "an element is lost, or comes twice"


def test_a_state_is_small_plain_and_taken_back_in_place() -> None:
    with cluster() as (_, _, coordinator):
        iterator: Any = iter(coordinator.create_per_worker_dataset(di.data.Dataset.range(9), exact_input=True))
        start = json.loads(json.dumps(iterator.state()))
        assert start == {"workers": [None, None]}
        assert [int(x) for x in on_both(coordinator, next, iterator)] == [0, 0]
        state = json.loads(json.dumps(iterator.state()))
        assert [int(x) for x in on_both(coordinator, next, iterator)] == [1, 1]
        iterator.load_state_dict(state)
        assert iterator.state() == state
        assert [int(x) for x in on_both(coordinator, next, iterator)] == [1, 1]
        iterator.load_state_dict(start)
        assert [int(x) for x in on_both(coordinator, next, iterator)] == [0, 0]


def test_positions_are_not_asked_for_while_functions_run() -> None:
    with cluster() as (_, _, coordinator):
        iterator: Any = iter(coordinator.create_per_worker_dataset(di.data.Dataset.range(9), exact_input=True))
        go_on = threading.Event()
        coordinator.schedule(go_on.wait, (10,))
        for ask in (iterator.state, lambda: iterator.load_state_dict({"workers": [None, None]})):
            with pytest.raises(FailedPreconditionError, match=r"call coordinator.join\(\) first"):
                ask()
        go_on.set()


def test_states_that_do_not_fit_are_refused() -> None:
    with cluster() as (_, _, coordinator):
        dataset = coordinator.create_per_worker_dataset(di.data.Dataset.range(9), exact_input=True)
        iterator: Any = iter(dataset)
        on_both(coordinator, next, iterator)
        state = iterator.state()
        strangers: list[Any] = [{}, {"workers": 3}, {"workers": [1, 2]}, [], None]
        for strange in strangers:
            with pytest.raises(StateError, match="not a state of a per-worker iterator"):
                dataset.restore(strange)
        with pytest.raises(StateError, match="positions of 1 workers, and the cluster has 2"):
            dataset.restore({"workers": state["workers"][:1]})
        other = coordinator.create_per_worker_dataset(di.data.Dataset.range(8), exact_input=True)
        coordinator.schedule(next, (other.restore(state),))
        with pytest.raises(StateError, match="range"):
            coordinator.join()
        plain = coordinator.create_per_worker_dataset(di.data.Dataset.range(9))
        with pytest.raises(FailedPreconditionError, match="exact_input=True"):
            plain.restore(state)
        assert not hasattr(iter(plain), "state")
