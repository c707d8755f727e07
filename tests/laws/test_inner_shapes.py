# SPDX-License-Identifier: Apache-2.0
"""Law: a replica without rows has the inner shape of the rows of the others, however batches are cut.

So what every replica computes can be gathered and reduced over rows in each step, also where the spec leaves shapes open.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from tests.distribute.workers import on_workers, with_policy

POLICY = di.data.experimental.AutoShardPolicy
INNER = st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple)
REPLICAS = st.one_of(
    st.integers(2, 8).map(lambda r: [r]), st.sampled_from([[1, 1], [2, 2], [1, 1, 1], [3, 3]])
)  # of each worker
Made = Callable[[Any], di.data.Dataset]


def matrices(rows: int, inner: Sequence[int]) -> di.data.Dataset:
    """Rows of one inner shape that the spec leaves open, numbered from 0."""

    def generate() -> Any:
        return iter([np.full(inner, row, np.int64) for row in range(rows)])

    return di.data.Dataset.from_generator(generate, output_signature=di.TensorSpec([None] * len(inner), "int64"))


def steps_of(replicas: Sequence[int], distribute: Callable[[Any], Any]) -> list[list[tuple[int, ...]]]:
    """The shapes of all replicas in each step, each of which must allow `gather` and `reduce` over the rows."""

    def body(strategy: Any, _: int) -> list[list[tuple[int, ...]]]:
        made = []
        for step in distribute(strategy):
            doubled = strategy.run(lambda x: 2 * x, args=(step,))
            whole, total = strategy.gather(doubled, axis=0), strategy.reduce("SUM", step, axis=0)
            assert np.array_equal(whole.sum(axis=0), 2 * total)
            made.append([np.shape(part) for part in strategy.experimental_local_results(step)])
        return made

    if len(replicas) == 1:
        return body(di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas[0])]), 0)
    results = on_workers(replicas, body)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return [[shape for worker in step for shape in worker] for step in zip(*results, strict=True)]


def check(steps: list[list[tuple[int, ...]]], inner: Sequence[int], rows: int | None = None) -> None:
    assert {shape[1:] for step in steps for shape in step} <= {tuple(inner)}
    if rows is not None:
        assert sum(shape[0] for step in steps for shape in step) == rows


@given(REPLICAS, INNER, st.integers(0, 9), st.integers(1, 9), st.booleans(), st.sampled_from(["AUTO", "DATA"]))
def test_of_global_batches(
    replicas: list[int], inner: tuple[int, ...], rows: int, size: int, balanced: bool, policy: str
) -> None:
    options = di.distribute.InputOptions(balanced_split=balanced)
    dataset = with_policy(matrices(rows, inner).batch(size), POLICY[policy])
    check(steps_of(replicas, lambda s: s.experimental_distribute_dataset(dataset, options)), inner, rows)


@given(REPLICAS, INNER, st.lists(st.integers(0, 6), min_size=3, max_size=3), st.integers(1, 9), st.booleans())
def test_of_each_workers_own_data(
    replicas: list[int], inner: tuple[int, ...], rows: list[int], size: int, legacy: bool
) -> None:
    """Policy OFF: the workers' parts may have any lengths; where the batch size is hidden, batches are cut one by one."""

    def distribute(strategy: Any) -> Any:
        batches = matrices(rows[strategy._replicas.rank], inner).batch(size)
        batches = batches.map(lambda x: x) if legacy else batches
        return strategy.experimental_distribute_dataset(with_policy(batches, POLICY.OFF))

    check(steps_of(replicas, distribute), inner, sum(rows[: len(replicas)]))


@given(REPLICAS, INNER, st.lists(st.integers(0, 5), min_size=3, max_size=3), st.integers(1, 3))
def test_of_datasets_from_a_function(replicas: list[int], inner: tuple[int, ...], rows: list[int], size: int) -> None:
    def distribute(strategy: Any) -> Any:
        return strategy.distribute_datasets_from_function(
            lambda context: matrices(rows[context.input_pipeline_id], inner).batch(size)
        )

    check(steps_of(replicas, distribute), inner, sum(rows[: len(replicas)]))


@given(st.sampled_from([[1, 1], [1, 1, 1]]), st.lists(st.integers(0, 6), min_size=3, max_size=3))
def test_where_every_step_has_a_width_of_its_own(replicas: list[int], batches: list[int]) -> None:
    """A worker that has run out takes the width of the step, which only the others know."""

    def widening(count: int) -> di.data.Dataset:
        made = [np.ones((2, step + 1), np.int64) for step in range(count)]
        return di.data.Dataset.from_generator(lambda: iter(made), output_signature=di.TensorSpec([None, None], "int64"))

    def distribute(strategy: Any) -> Any:
        return strategy.distribute_datasets_from_function(lambda c: widening(batches[c.input_pipeline_id]))

    steps = steps_of(replicas, distribute)
    assert [{shape[1] for shape in step} for step in steps] == [{k + 1} for k in range(len(steps))]
    assert len(steps) == max(batches[: len(replicas)])


@pytest.mark.parametrize("replicas", [[1, 1], [2, 2]])
@pytest.mark.parametrize("lines", [[3, 0], [0, 4], [1, 6]])
def test_of_files_that_were_counted(replicas: list[int], lines: list[int], tmp_path: Any) -> None:
    for i, count in enumerate(lines):
        np.save(tmp_path / f"{i}.npy", np.arange(count))
    files = [str(tmp_path / f"{i}.npy") for i in range(len(lines))]

    def distribute(strategy: Any) -> Any:
        rows = di.data.NpyDataset(files).map(
            lambda x: np.full((2,), x), output_signature=di.TensorSpec([None], "int64")
        )
        assert rows.element_spec.shape == (None,)
        return strategy.experimental_distribute_dataset(with_policy(rows.batch(4), POLICY.FILE))

    check(steps_of(replicas, distribute), (2,), sum(lines))


def test_a_restored_worker_that_has_run_out_knows_the_shape() -> None:
    def body(strategy: Any, worker: int) -> Any:
        made = strategy.distribute_datasets_from_function(
            lambda context: matrices([6, 1][context.input_pipeline_id], (3,)).batch(1)
        )
        iterator = iter(made)
        for _ in range(4):
            next(iterator)
        return [np.shape(step.values[0]) for step in made.restore(iterator.state())]

    assert on_workers([1, 1], body) == [[(1, 3)] * 2, [(0, 3)] * 2]
