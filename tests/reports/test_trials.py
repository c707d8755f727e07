# SPDX-License-Identifier: Apache-2.0
"""Changes that are tried keep the elements; those that cannot be made are said to have failed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.ops.map import Map
from distinput.plan.node import walk
from distinput.reports.bench import CHANGES, _edited, bench, trials


def squared(x: int) -> int:
    return x * x


DATASETS: dict[str, Any] = {
    "map": di.data.Dataset.range(30).map(squared).batch(4),
    "two branches": di.data.Dataset.zip(di.data.Dataset.range(9).map(squared), di.data.Dataset.range(9)),
    "random": di.data.Dataset.range(30).map(lambda x, rng: x + rng.integers(9), rng=True, seed=1),
}


UNCHANGED = {
    ("map after batch", "two branches"),
    ("map after batch", "random"),
    ("map_rows instead of map", "random"),
}


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("change", [change for change in CHANGES if "processes" not in change])
def test_a_change_keeps_the_elements(name: str, change: str) -> None:
    dataset = DATASETS[name]
    changed = _edited(dataset.node, CHANGES[change])
    assert changed is not dataset.node or (change, name) in UNCHANGED
    assert repr(list(Dataset(changed).iter_pass(0))) == repr(list(dataset.iter_pass(0)))


def test_a_function_of_elements_is_not_measured_with_batches() -> None:
    def first_or_all(x: Any) -> Any:
        return x[:1] if x.ndim else x

    dataset = di.data.Dataset.range(30).map(first_or_all).batch(4)
    found = {one.change: one.error for one in trials(dataset, bench(dataset, warm_up=0), 0.01)}
    assert "the function takes single elements" in found["map after batch"]
    alike = {one.change: one.error for one in trials(DATASETS["map"], bench(DATASETS["map"], warm_up=0), 0.01)}
    assert (alike["map after batch"], alike["map(vectorize=True)"]) == ("", "")


@pytest.mark.parametrize(
    "function, error",
    [
        (lambda x: x - np.mean(x), "the function takes single elements"),
        (lambda x: x if np.sum(x) < 500 else x + 1, "the function takes single elements"),
        (lambda x: x * 2, ""),
        (lambda x: {"x": np.sum(x)}, "must have 30 rows"),
    ],
)
def test_a_function_of_elements_is_not_measured_with_many_rows(function: Any, error: str) -> None:
    for numbers in (di.data.Dataset.range(64).skip(34), di.data.Dataset.range(34, 64).shuffle(9)):
        dataset = numbers.map(function)
        found = {one.change: one for one in trials(dataset, bench(dataset, warm_up=0), 0.01)}
        told = found["map_rows instead of map"]
        assert error in told.error
        assert bool(told.error) == bool(error), told


def test_steps_that_the_user_has_decided_on_are_left_alone() -> None:
    numbers = di.data.Dataset.range(3)
    for dataset in (numbers, numbers.map(squared, num_parallel_calls=2), numbers.map(squared, synchronous=True)):
        assert _edited(dataset.node, CHANGES["map(num_parallel_calls=AUTOTUNE)"]) is dataset.node


def test_every_map_is_told_to_use_processes() -> None:
    changed = _edited(DATASETS["map"].node, CHANGES["map(num_parallel_calls=AUTOTUNE, processes=True)"])
    assert [step.processes for step in walk(changed) if isinstance(step, Map)] == [True]


def test_times_are_those_of_the_measurement_and_failures_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    told = bench(DATASETS["map"], warm_up=0)

    def measured(dataset: Dataset, seconds: float) -> object:  # type: ignore[type-arg]
        if any(isinstance(step, Map) and step.processes for step in walk(dataset.node)):
            raise OSError("no processes\nhere")
        return replace(told, seconds=told.seconds / 3)

    monkeypatch.setattr("distinput.reports.bench.bench", measured)
    threads, processes, *_ = trials(DATASETS["map"], told)
    assert threads.times == pytest.approx(3)
    assert (processes.times, processes.error) == (None, "OSError: no processes")
