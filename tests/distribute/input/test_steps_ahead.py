# SPDX-License-Identifier: Apache-2.0
"""Steps that are put on devices ahead: the same steps, states and errors as without, and nothing left behind.

The devices of these tests are threads that want a `put`, as accelerators do.
"""

import gc
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.devices import register_backend
from distinput.distribute.devices.threads import ThreadDevices
from distinput.distribute.input import delivery
from distinput.distribute.input.dealing import END
from distinput.distribute.input.delivery import StepsAhead
from distinput.run.run import CoreUse
from distinput.testing.block_sizes import small_blocks
from tests.patience import threads_since, wait_until

Dataset = di.data.Dataset


class Put:
    """An array on a device, which nobody can look into without the device."""

    def __init__(self, device: int, array: Any) -> None:
        self.device, self.array = device, array


class Far(ThreadDevices):
    """Devices with memory of their own, which remember how many arrays were put."""

    host_memory = False
    puts = 0

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        self.puts += 1
        return Put(device, np.array(value))


def far(replicas: int = 2) -> Any:
    register_backend("far", Far)
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)], backend="far")


def options(ahead: int) -> Any:
    return di.distribute.InputOptions(experimental_per_replica_buffer_size=ahead)


def plain(step: Any) -> list[Any]:
    """For each replica its device and values, for each leaf."""
    leaves = step if isinstance(step, tuple) else (step,)
    parts = [getattr(leaf, "values", (leaf,)) for leaf in leaves]
    return [
        [
            (part.device, part.array.tolist()) if isinstance(part, Put) else (i, part.tolist())
            for i, part in enumerate(each)
        ]
        for each in parts
    ]


OTHERS: list[threading.Thread] = []
"""What ran before the test: earlier ones may have dropped iterators, whose threads end a moment later."""


@pytest.fixture(autouse=True)
def note_threads_of_others() -> None:
    OTHERS[:] = threading.enumerate()


def threads() -> list[str]:
    return [thread.name for thread in threads_since(OTHERS, "distinput-steps-ahead")]


def wait_for_no_threads() -> None:
    wait_until(lambda: gc.collect() >= 0 and not threads())


MAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "batches": lambda s, o: s.experimental_distribute_dataset(Dataset.range(11).batch(4), o),
    "full batches": lambda s, o: s.experimental_distribute_dataset(Dataset.range(11).batch(4, drop_remainder=True), o),
    "two leaves": lambda s, o: s.experimental_distribute_dataset(Dataset.range(7).map(lambda x: (x, x * 2)).batch(3), o),
    "shuffled": lambda s, o: s.experimental_distribute_dataset(Dataset.range(9).shuffle(4, seed=1).batch(2), o),
    "scalars": lambda s, o: s.distribute_datasets_from_function(lambda _: Dataset.range(7), o),
    "dealt": lambda s, o: s.distribute_datasets_from_function(lambda _: Dataset.range(7).batch(2), o),
    "generated": lambda s, o: s.distribute_datasets_from_function(
        lambda _: Dataset.from_generator(lambda: iter(range(5)), output_signature=di.TensorSpec([], "int64")), o
    ),
    "padded": lambda s, o: s.experimental_distribute_dataset(
        Dataset.range(7).batch(4), di.distribute.InputOptions(
            experimental_per_replica_buffer_size=o.experimental_per_replica_buffer_size, tail="pad"
        )
    ),
}  # fmt: skip


@settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # a failure leaves threads, for which shrinking would wait
@given(
    st.sampled_from(list(MAKERS)),
    st.integers(1, 3),
    st.integers(1, 4),
    st.booleans(),
    st.integers(0, 6),
    st.sampled_from([1, 2, 40]),
)
def test_steps_and_states_are_those_without_a_thread(
    maker: str, replicas: int, ahead: int, optional: bool, restart: int, rows: int
) -> None:
    def run(strategy: Any) -> list[tuple[Any, str]]:
        dataset = MAKERS[maker](strategy, options(ahead))
        iterator = iter(dataset)
        found: list[tuple[Any, str]] = [(None, json.dumps(iterator.state()))]
        while True:
            if len(found) == restart + 1:
                iterator = dataset.restore(json.loads(found[-1][1]))
            if optional:
                given = iterator.get_next_as_optional()
                step = given.get_value() if given.has_value() else None
            else:
                step = next(iterator, None)
            found.append((None if step is None else plain(step), json.dumps(iterator.state())))
            if step is None:
                assert next(iterator, None) is None
                return found

    # How many elements of a function travel together depends on how long they take, and a state may say where a block begins
    # and how many of its elements were delivered. Blocks whose sizes are given make states equal to the letter.
    with small_blocks(rows):
        assert run(far(replicas)) == run(di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)]))
        wait_for_no_threads()


@settings(max_examples=max(2, settings().max_examples // 4), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.sampled_from(list(MAKERS)), st.integers(1, 3), st.sampled_from([1, 2]))
def test_states_of_steps_ahead_have_the_same_rest_whatever_the_blocks(maker: str, replicas: int, rows: int) -> None:
    dataset = MAKERS[maker](far(replicas), options(2))

    def rests(states: list[Any]) -> list[list[Any]]:
        return [[plain(step) for step in dataset.restore(json.loads(state))] for state in states]

    with small_blocks(rows), iter(dataset) as iterator:
        states = [json.dumps(iterator.state()), *[json.dumps(iterator.state()) for _ in iterator]]
        small = rests(states)
    assert rests(states) == small == [small[0][done:] for done in range(len(states))]
    wait_for_no_threads()


def test_partial_steps_are_marked() -> None:
    dataset = far(2).distribute_datasets_from_function(lambda _: Dataset.range(3), options(2))
    iterator = iter(dataset)
    next(iterator)
    last = iterator.get_next_as_optional().get_value()
    assert last.present == (True, False)


def places_of_quick_steps(ahead: int, shape: Callable[[Any], Any]) -> list[Any]:
    """What happens at each request for a step, and the positions then; two of the steps fail the first time."""
    failures: dict[int, BaseException] = {2: KeyboardInterrupt("in time"), 4: ValueError("too far")}

    def finish(step: Any) -> Any:
        failure = failures.pop(int(step.values[0][0]), None)
        if failure is not None:
            raise failure
        return step

    source = far(2).experimental_distribute_dataset(shape(Dataset.range(6)))._source
    steps = StepsAhead(source.begin(), finish, ahead, quick=math.inf)
    found: list[Any] = [steps.places()]
    for _ in range(9):
        try:
            step = steps.next(True)
            found += [step if step is END else plain(step), steps.places(), steps.places(waiting=True)]
        except BaseException as error:  # noqa: BLE001 - the error is what is compared
            found += [str(error), steps.places()]
    steps.close()
    return found


@pytest.mark.parametrize(
    "shape", [lambda ds: ds.batch(2), lambda ds: ds.filter(lambda x: x >= 0).batch(2)], ids=["own", "cut"]
)
def test_positions_of_steps_made_when_asked_for_are_those_taken_at_once(shape: Callable[[Any], Any]) -> None:
    assert places_of_quick_steps(2, shape) == places_of_quick_steps(0, shape)


@pytest.mark.parametrize("waits, made_by", [(0, []), (1, ["distinput-steps-ahead"])])
def test_a_thread_makes_steps_that_wait_and_not_those_that_lose_their_core(
    monkeypatch: pytest.MonkeyPatch, waits: int, made_by: list[str]
) -> None:
    asked = itertools.count()
    monkeypatch.setattr(delivery, "perf_counter", lambda: 0.02 * next(asked))
    monkeypatch.setattr(delivery, "thread_use", lambda: CoreUse(0.0, waits * next(asked)))
    source = far(2).experimental_distribute_dataset(Dataset.range(400).batch(2))._source
    steps = StepsAhead(source.begin(), lambda step: step, ahead=1, quick=0.001)
    for _ in range(12):
        steps.next(True)
    assert threads() == made_by
    steps.close()


@pytest.mark.parametrize(
    "long, waits, made_by, asked",
    [
        pytest.param([], 1, [], 0, id="none is long"),
        pytest.param([9], 1, [], 3, id="one is long"),
        pytest.param(range(1, 60, 2), 1, ["distinput-steps-ahead"], 6, id="every second one waits"),
        pytest.param(range(1, 60, 2), 0, [], 39, id="every second one loses its core"),
    ],
)
def test_what_a_thread_has_of_its_core_is_asked_for_while_steps_do_not_look_quick(
    monkeypatch: pytest.MonkeyPatch, long: Any, waits: int, made_by: list[str], asked: int
) -> None:
    clock, uses = [0.0], itertools.count(1)
    monkeypatch.setattr(delivery, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(delivery, "thread_use", lambda: CoreUse(0.0, waits * next(uses)))
    numbers = itertools.count()

    def finish(step: Any) -> Any:
        clock[0] += 0.01 if next(numbers) in long else 0.00001
        return step

    source = far(2).experimental_distribute_dataset(Dataset.range(400).batch(2))._source
    steps = StepsAhead(source.begin(), finish, ahead=1, quick=0.001)
    for _ in range(60):
        steps.next(True)
    assert threads() == made_by
    assert (next(uses) - 1) // 2 == asked, "before and after each of so many steps"
    steps.close()


@pytest.mark.parametrize("ahead", [1, 3])
def test_as_many_steps_as_asked_for_are_made_ahead(ahead: int) -> None:
    strategy = far(2)
    with iter(strategy.experimental_distribute_dataset(Dataset.range(40).batch(2), options(ahead))) as iterator:
        next(iterator)
        devices = strategy._replicas.devices
        wait_until(lambda: devices.puts >= 2 * (1 + ahead))
        time.sleep(0.05)
        assert devices.puts == 2 * (1 + ahead)
        assert threads() == ["distinput-steps-ahead"]
    assert threads() == []


def test_nothing_is_made_before_the_first_step_nor_without_room() -> None:
    strategy = far(2)
    iterator = iter(strategy.experimental_distribute_dataset(Dataset.range(4).batch(2), options(2)))
    assert threads() == []
    assert strategy._replicas.devices.puts == 0
    with iter(strategy.experimental_distribute_dataset(Dataset.range(8).batch(2), options(0))) as eager:
        next(eager)
        time.sleep(0.05)
        assert strategy._replicas.devices.puts == 2
        assert threads() == []
    iterator.close()


def breaks_at(*numbers: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if int(x) in numbers:
            raise ValueError(f"element {int(x)}")
        return x

    return function


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_an_error_keeps_its_place_and_the_iteration_goes_on(ahead: int) -> None:
    dataset = far(1).experimental_distribute_dataset(Dataset.range(5).map(breaks_at(1, 3)).batch(1), options(ahead))
    found: list[Any] = []
    states: list[Any] = []
    iterator = iter(dataset)
    while True:
        try:
            found.append(next(iterator).array.tolist())
        except ValueError as error:
            found.append(str(error))
        except StopIteration:
            break
        states.append(iterator.state())
    assert [each if isinstance(each, list) else each[:9] for each in found] == [[0], "element 1", [2], "element 3", [4]]
    assert [next(dataset.restore(states[i])).array.tolist() for i in (1, 3)] == [[2], [4]]  # after each error
    del iterator
    wait_for_no_threads()


def test_a_put_that_fails_is_the_error_of_its_step() -> None:
    strategy = far(2)
    put = strategy._replicas.devices.put

    def fails(value: Any, device: int, *, owned: bool) -> Any:
        if value.tolist() == [3]:
            raise MemoryError("no room for 3")
        return put(value, device, owned=owned)

    strategy._replicas.devices.put = fails
    iterator = iter(strategy.experimental_distribute_dataset(Dataset.range(6).batch(2), options(2)))
    assert plain(next(iterator)) == [[(0, [0]), (1, [1])]]
    with pytest.raises(MemoryError, match="no room for 3"):
        next(iterator)
    assert plain(next(iterator)) == [[(0, [4]), (1, [5])]]


def endless() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


@pytest.mark.parametrize("taken", [0, 1, 5])
@pytest.mark.parametrize("way", ["close", "drop", "error", "load"])
def test_nothing_is_left_behind(taken: int, way: str) -> None:
    signature = di.TensorSpec([], "int64")
    source = Dataset.from_generator(endless, output_signature=signature).batch(2)
    dataset = far(2).experimental_distribute_dataset(source, options(3))
    iterator = iter(dataset)
    beginning = iterator.state()
    for _ in range(taken):
        next(iterator)
    if way == "close":
        iterator.close()
        iterator.close()
        assert threads() == []
        assert next(iterator, None) is None
    elif way == "load":
        iterator.load_state_dict(beginning)
        assert plain(next(iterator)) == [[(0, [0]), (1, [1])]]
        assert len(threads()) == 1
        iterator.close()
    elif way == "error":
        with pytest.raises(ZeroDivisionError):
            consume(iterator)
    del iterator
    wait_for_no_threads()


def consume(iterator: Any) -> None:
    for step in iterator:
        raise ZeroDivisionError(step)


def test_functions_on_the_thread_see_the_settings_of_the_program() -> None:
    def function(x: Any) -> Any:
        return np.float64(np.geterr()["divide"] == "raise") + 0 * x

    with np.errstate(divide="raise"):
        dataset = far(2).distribute_datasets_from_function(
            lambda _: Dataset.range(4).map(function).batch(1), options(1)
        )
        assert [plain(step)[0][0][1] for step in dataset] == [[1.0], [1.0]]


def test_the_thread_works_while_the_consumer_does() -> None:
    """The consumer keeps each step until the next one has been put, which is put ahead or not at all."""
    strategy = far(2)
    devices = strategy._replicas.devices
    for number, _ in enumerate(strategy.experimental_distribute_dataset(Dataset.range(20).batch(2), options(1))):
        wait_until(lambda number=number: devices.puts >= 2 * min(number + 2, 10))
    assert devices.puts == 20
