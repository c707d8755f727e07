# SPDX-License-Identifier: Apache-2.0
"""Values on devices of several workers: the numbers, rules and errors are those of workers on the host."""

import threading
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.distribute.test_device_arithmetic import COUNTERS, training
from tests.distribute.workers import on_workers

BACKENDS = ("jax", "torch")
REPLICAS = (2, 1)


def framework_of(backend: str) -> Any:
    """The class of the arrays of a backend."""
    return getattr(pytest.importorskip(backend), "Array" if backend == "jax" else "Tensor")


def put_on(strategy: Any, values: list[Any]) -> Any:
    """A distributed value of this worker's parts of a list with a value for each replica."""
    replicas = strategy._replicas
    mine = values[replicas.first : replicas.first + replicas.count]
    return di.distribute.PerReplica([replicas.devices.put(value, i, owned=True) for i, value in enumerate(mine)])


SMALL = [np.float32([0.1, 1e7, i]) for i in range(3)]
ROWS = [np.arange(n * 2, dtype=np.float32).reshape(n, 2) / 3 for n in (3, 0, 2)]
INTS = [np.arange(n, dtype=np.int32) for n in (1, 4, 0)]
BYTES = [np.full((2, 2), 200 + i, np.uint8) for i in range(3)]
LARGE = [np.full(20_000, 2.0**-i, np.float32) for i in range(3)]
LARGE_INTS = [np.full(20_000, 2**30, np.int32)] * 3
FLAGS = [np.array([True]), np.array([False, True]), np.array([], bool)]


def numbers(strategy: Any, worker: int) -> list[Any]:
    """All arithmetic over all workers."""
    found: list[Any] = []
    for op, whole, rows in (("SUM", [SMALL, BYTES, LARGE], [ROWS, INTS]), ("MEAN", [SMALL, LARGE_INTS], [INTS])):
        found += [strategy.reduce(op, put_on(strategy, values), axis=None) for values in whole]
        found += [strategy.reduce(op, put_on(strategy, values), axis=0) for values in rows]
    found.append(strategy.reduce("MEAN", {"x": put_on(strategy, ROWS)}, axis=(0, 1))["x"])
    found += [strategy.gather(put_on(strategy, values), axis=0) for values in (ROWS, FLAGS)]
    found.append(strategy.gather(put_on(strategy, [row.T for row in ROWS]), axis=-1))
    found.append(strategy.reduce("SUM", put_on(strategy, SMALL), axis=None, deterministic=True))
    options = di.distribute.InputOptions(balanced_split=True)
    steps = di.data.Dataset.range(4).map(np.float32).batch(3)
    for step in strategy.experimental_distribute_dataset(
        steps, options
    ):  # the last one has a row for one replica alone
        doubled = strategy.run(lambda x: x * 2, args=(step,))
        found.append(strategy.reduce("MEAN", doubled, axis=0))
        found.append(strategy.gather(doubled, axis=0))

    def together(x: Any) -> Any:
        context = di.distribute.get_replica_context()
        return context.all_reduce("SUM", x), context.all_gather(x, axis=0)

    for value in strategy.run(together, args=(put_on(strategy, SMALL),)):
        found += strategy.experimental_local_results(value)
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_are_those_of_workers_on_the_host(backend: str) -> None:
    kind = framework_of(backend)
    expected = on_workers(REPLICAS, numbers)
    for worker, found in enumerate(on_workers(REPLICAS, numbers, 30.0, backend)):
        assert not isinstance(found, Exception), found
        assert len(found) == len(expected[worker])
        for made, right in zip(found, expected[worker], strict=True):
            assert isinstance(made, kind)
            assert tuple(made.shape) == np.shape(right)
            np.testing.assert_allclose(np.asarray(made), right, rtol=1e-6)


def mistakes(strategy: Any, worker: int) -> list[str]:
    """What is said to calls that cannot be made; each fails on all workers, and the next one works."""
    wrong = [
        (lambda: strategy.reduce("SUM", put_on(strategy, ROWS), axis=None)),
        (lambda: strategy.reduce("SUM", put_on(strategy, [np.zeros((1, 2)), *[np.zeros((1, 3))] * 2]), 0)),
        (lambda: strategy.reduce("SUM", put_on(strategy, [np.int8([1]), *[np.int16([1])] * 2]), axis=0)),
        (lambda: strategy.reduce("SUM", put_on(strategy, FLAGS), axis=0)),
        (lambda: strategy.reduce("SUM", put_on(strategy, ROWS), axis=2)),
        (lambda: strategy.gather(put_on(strategy, ROWS), axis=1)),
        (lambda: strategy.gather(put_on(strategy, [np.float32(1)] * 3), axis=0)),
        (lambda: strategy.gather(put_on(strategy, [np.int8([1]), *[np.int16([1])] * 2]), axis=0)),
    ]
    said = []
    for call in wrong:
        try:
            call()
            said.append("nobody refused")
        except (di.errors.InvalidArgumentError, TypeError, ValueError) as error:
            said.append(f"{type(error).__name__}: {error}")
        assert float(strategy.reduce("SUM", put_on(strategy, SMALL), axis=None)[2]) == sum(
            range(strategy.num_replicas_in_sync)
        )
    return said


@pytest.mark.parametrize("backend", BACKENDS)
def test_mistakes_are_those_of_workers_on_the_host(backend: str) -> None:
    framework_of(backend)
    expected = on_workers(REPLICAS, mistakes)
    assert on_workers(REPLICAS, mistakes, 30.0, backend) == expected
    assert all("nobody refused" not in said for said in expected)


def differing(strategy: Any, worker: int) -> str:
    """One worker has its value on the host."""
    value = put_on(strategy, SMALL)
    if worker:
        value = di.distribute.PerReplica([np.asarray(part) for part in value.values])
    try:
        strategy.reduce("SUM", value, axis=None, name="mixed")
    except di.errors.Mismatch as error:
        return str(error)
    return "nobody refused"


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_on_devices_and_on_the_host_are_told_apart(backend: str) -> None:
    framework_of(backend)
    for said in on_workers(REPLICAS, differing, 30.0, backend):
        assert f"rank 0: reduce SUM, axis=None, on {backend} devices, given float32[3]" in said
        assert "rank 1: reduce SUM, axis=None, given float32[3]" in said


def counted_arithmetic(backend: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A body for workers that counts what passes between host and devices in the arithmetic alone."""
    meeting = threading.Barrier(len(REPLICAS))
    counted: list[Any] = []

    def body(strategy: Any, worker: int) -> Any:
        options = di.distribute.InputOptions(balanced_split=True)
        rows = di.data.Dataset.range(7).map(np.float32).batch(7)
        (element,) = strategy.experimental_distribute_dataset(rows, options)
        large = put_on(strategy, LARGE)
        for begin in (False, True):
            if meeting.wait(60) == 0 and begin:
                counted.append(COUNTERS[backend](monkeypatch))
            meeting.wait(60)
            training(strategy, element)
            strategy.reduce("SUM", large, axis=None)
        meeting.wait(60)
        return counted[0].out, counted[0].back

    return body


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_passes_between_host_and_devices(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    framework_of(backend)
    body = counted_arithmetic(backend, monkeypatch)
    assert on_workers(REPLICAS, body, 30.0, backend) == [([], [])] * len(REPLICAS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_worker_without_data_gathers_with_the_others(backend: str) -> None:
    framework_of(backend)

    def body(strategy: Any, worker: int) -> list[list[int]]:
        data = di.data.Dataset.range(2 if worker else 4).map(np.int32)
        steps = strategy.distribute_datasets_from_function(lambda _: data)
        return [
            [int(x) for x in strategy.gather(strategy.run(lambda x: x[None], args=(step,)), axis=0)] for step in steps
        ]

    assert on_workers([1, 1], body, 30.0, backend) == [[[0, 0], [1, 1], [2], [3]]] * 2
