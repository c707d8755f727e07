# SPDX-License-Identifier: Apache-2.0
"""One program gives the same numbers under every strategy: sums, means, gathers, variables and checkpoints."""

import itertools
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.testing import check_strategy
from tests.depth import sampled
from tests.distribute.workers import on_workers

Aggregation = di.VariableAggregation
Program = Callable[[Any], Any]


def devices(count: int) -> list[str]:
    return [f"CPU:{index}" for index in range(count)]


def on_threads(workers: int, replicas: int) -> Callable[[Program], list[Any]]:
    def run(program: Program) -> list[Any]:
        found = on_workers([replicas] * workers, lambda strategy, worker: program(strategy), timeout=60)
        for result in found:
            if isinstance(result, Exception):
                raise result
        return found

    return run


def alone(make: Callable[[], Any]) -> Callable[[Program], list[Any]]:
    return lambda program: [program(make())]


def on_devices(count: int, *, compile: bool) -> Callable[[Program], list[Any]]:
    def run(program: Program) -> list[Any]:
        import jax

        return [program(D.TPUStrategy(devices=jax.devices()[:count], compile=compile))]

    return run


D = di.distribute
TPU = {f"TPU {n}": on_devices(n, compile=True) for n in sampled([3], [1, 8])}
TPU |= {"TPU 3 eager": on_devices(3, compile=False)}
STRATEGIES: dict[str, Callable[[Program], list[Any]]] = {
    "default": alone(D.get_strategy),
    "one device": alone(lambda: D.OneDeviceStrategy("CPU:0")),
    **{f"mirrored {n}": alone(lambda n=n: D.MirroredStrategy(devices(n))) for n in (1, 2, 3, 4)},
    **{f"central {n}": alone(lambda n=n: D.experimental.CentralStorageStrategy(devices(n))) for n in (1, 2, 3)},
    **{f"workers {w} of {r}": on_threads(w, r) for w, r in ((1, 1), (2, 1), (2, 2), (3, 1))},
    **(TPU if find_spec("jax") else {}),
}
"""For each strategy: calls a program with it on every worker, and returns the results."""


def functions(name: str) -> Any:
    """What programs compute with under this strategy."""
    if name not in TPU:
        return np
    import jax.numpy

    return jax.numpy


def steps(strategy: Any, dataset: Any) -> Any:
    """All steps, also the last one where some replicas have no row."""
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    if not hasattr(iterator, "get_next_as_optional"):
        yield from iterator
        return
    while (step := iterator.get_next_as_optional()).has_value():
        yield step.get_value()


@pytest.mark.filterwarnings("ignore:a component of a step is float64")  # JAX computes in 32 bits, and says so once
@pytest.mark.parametrize("name", STRATEGIES)
def test_all_laws_hold(name: str) -> None:
    # The default strategy is none: its scope is no scope, and its datasets are the datasets themselves.
    leave_out = ["contexts", "errors", "checkpoint"] if name == "default" else []
    for checked in STRATEGIES[name](lambda strategy: check_strategy(strategy, leave_out=leave_out)):
        assert "training" in checked


@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.integers(0, 40),
    st.integers(1, 12),
    st.integers(1, 3),
    st.sampled_from(["float64", "float32", "int64"]),
)
def test_a_program_gives_the_numbers_of_numpy(name: str, rows: int, batch: int, width: int, dtype: str) -> None:
    xp, wide = functions(name), "float64"
    if name in TPU:  # JAX has no numbers of 64 bits unless it is told to
        dtype, wide = dtype.replace("64", "32"), "float32"
    data = (np.arange(rows * width) % 17 - 5).reshape(rows, width).astype(dtype)

    def program(strategy: Any) -> Any:
        with strategy.scope():
            total = di.Variable(np.zeros(width, dtype), aggregation=Aggregation.SUM)
            count = di.Variable(np.int32(0), aggregation=Aggregation.ONLY_FIRST_REPLICA)
            largest = di.Variable(np.zeros(width, wide), aggregation=Aggregation.MEAN)
            on_read = di.Variable(
                np.zeros(width, wide), aggregation=Aggregation.SUM, synchronization=di.VariableSynchronization.ON_READ
            )

        def step(x: Any) -> Any:
            context = D.get_replica_context()
            assert context is not None
            together = context.all_reduce("SUM", (x * x).sum(axis=0).astype(wide))
            total.assign_add(x.sum(axis=0).astype(dtype))
            count.assign_add(1)
            largest.assign(xp.maximum(largest.value(), together))
            on_read.assign_add(x.sum(axis=0).astype(wide))
            return x * 3 + 1

        found = []
        for x in steps(strategy, di.data.Dataset.from_tensor_slices(data).batch(batch)):
            y = strategy.run(step, args=(x,))
            sums, means = [strategy.reduce(op, y, axis=0) for op in ("SUM", "MEAN")]
            found.append((np.asarray(sums), means, np.sort(strategy.gather(y, axis=0), axis=0)))
        return found, [v.numpy() for v in (total, count, largest, on_read)]

    whole = [data[first : first + batch] for first in range(0, rows, batch)]
    for found, variables in STRATEGIES[name](program):
        assert len(found) == len(whole)
        for (sums, means, gathered), x in zip(found, whole, strict=True):
            y = x * 3 + 1
            np.testing.assert_allclose(sums, y.sum(axis=0), rtol=1e-5)
            assert sums.dtype == dtype
            np.testing.assert_allclose(means, y.mean(axis=0), rtol=1e-5)
            np.testing.assert_array_equal(gathered, np.sort(y, axis=0))
        squares = [(x * x).sum(axis=0) for x in whole]
        largest = np.max(squares, axis=0) if squares else np.zeros(width)
        for value, expected in zip(variables, (data.sum(axis=0), len(whole), largest, data.sum(axis=0)), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-6)


PORTABLE = ["one device", "mirrored 2", "mirrored 3", "central 2", "workers 2 of 1", "workers 2 of 2", "TPU 3"]
PAIRS = [pair for pair in itertools.permutations(PORTABLE, 2) if set(pair) <= set(STRATEGIES)]


@pytest.mark.parametrize("saved, restored", PAIRS)
def test_what_one_strategy_saves_another_one_restores(saved: str, restored: str, tmp_path: Path) -> None:
    rows, batch, taken = 29, 6, 2
    path = tmp_path / "saved"

    def job(strategy: Any, xp: Any) -> Any:
        with strategy.scope():
            total = di.Variable(np.zeros(2, np.float32), aggregation=Aggregation.SUM)
            seen = di.Variable(
                np.float32(0), aggregation=Aggregation.SUM, synchronization=di.VariableSynchronization.ON_READ
            )
        dataset = di.data.Dataset.range(rows).shuffle(rows, seed=3).batch(batch)
        iterator = iter(strategy.experimental_distribute_dataset(dataset))
        checkpoint = di.train.Checkpoint(total=total, seen=seen, iterator=iterator)

        def step(x: Any) -> None:
            ones = x * 0 + 1
            total.assign_add(xp.stack([x.sum(), ones.sum()]).astype(np.float32))
            seen.assign_add(ones.sum().astype(np.float32))

        def go(count: int | None = None) -> None:
            while count is None or count > 0:
                found = iterator.get_next_as_optional()
                if not found.has_value():
                    return
                strategy.run(step, args=(found.get_value(),))
                count = None if count is None else count - 1

        return checkpoint, go, lambda: (total.numpy().tolist(), float(seen.numpy()))

    def save(strategy: Any) -> Any:
        checkpoint, go, values = job(strategy, functions(saved))
        go(taken)
        checkpoint.write(path)
        return values()

    def restore(strategy: Any) -> Any:
        checkpoint, go, values = job(strategy, functions(restored))
        checkpoint.read(path).assert_consumed()
        restored_values = values()
        go()
        return restored_values, values()

    before = STRATEGIES[saved](save)
    assert len({str(values) for values in before}) == 1
    assert before[0][0][1] == before[0][1] == taken * batch
    for found, at_the_end in STRATEGIES[restored](restore):
        assert found == before[0]
        assert at_the_end == ([sum(range(rows)), rows], rows)


@pytest.mark.parametrize("workers, servers", [(1, 1), (2, 1), (3, 2)])
def test_steps_taken_one_after_the_other_on_workers_learn_what_one_process_does(workers: int, servers: int) -> None:
    """Asynchronous training differs by the order of steps alone: where each waits for the one before, nothing differs."""
    rng = np.random.default_rng(1)
    batches = [(rng.normal(size=(n, 3)), rng.normal(size=n)) for n in (4, 4, 3, 1, 4)]

    def train(strategy: Any, call: Callable[..., None]) -> Any:
        with strategy.scope():
            weights = di.Variable(np.zeros(3), aggregation=Aggregation.MEAN)
            rows = di.Variable(np.int64(0), aggregation=Aggregation.SUM)

        def step(x: Any, y: Any) -> None:
            def replica(x: Any, y: Any) -> None:
                weights.assign_sub(0.1 * x.T @ (x @ weights.value() - y) / len(x))
                rows.assign_add(np.int64(len(x)))

            strategy.run(replica, args=(x, y))

        for batch in batches:
            call(step, batch)
        return weights.numpy(), int(rows.numpy())

    expected, count = train(D.get_strategy(), lambda step, batch: step(*batch))
    assert count == 16
    with di.testing.local_parameter_server_cluster(workers, servers) as (strategy, coordinator):

        def call(step: Any, batch: Any) -> None:
            coordinator.schedule(step, args=batch)
            coordinator.join()

        learned, seen = train(strategy, call)
        np.testing.assert_allclose(learned, expected, rtol=1e-12)
        assert seen == count
