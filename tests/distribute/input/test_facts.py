# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np

import distinput as di
from distinput.distribute.input.comparison import PYTHON, JobFacts, groups, of_pipeline, said

Dataset = di.data.Dataset


def facts(dataset: Any = None, python: str = PYTHON, **about: Any) -> JobFacts:
    return {"about": about, "steps": None if dataset is None else of_pipeline(dataset.node), "python": python}


def test_groups_begin_with_the_largest_and_keep_the_order_of_workers() -> None:
    assert groups(["a", "b", "b", "c", "b"]) == [[1, 2, 4], [0], [3]]
    assert groups([{"x": 1, "y": 2}, {"y": 2, "x": 1}]) == [[0, 1]]
    assert groups(["a", "b"]) == [[0], [1]], "of equals the one with the first worker"


def test_equal_pipelines_have_nothing_to_say() -> None:
    def make() -> Any:
        return Dataset.range(9).shuffle(3, seed=1).map(lambda x: x + 1).batch(2)

    assert said([facts(make()), facts(make())], {}) == ([], [])


def test_what_differs_beside_the_pipeline_is_told_alone() -> None:
    three, four = Dataset.range(3), Dataset.range(4)
    wrong, _ = said([facts(three, tail="drop"), facts(four, tail="drop"), facts(four, tail="pad")], {})
    assert wrong == ["worker 1: step 1 (range): stop 4, worker 0: stop 3", "worker 2: tail pad, worker 0: drop"]


def test_another_argument_names_the_step() -> None:
    wrong, _ = said(
        [facts(Dataset.range(9).batch(2)), facts(Dataset.range(9).batch(3)), facts(Dataset.range(9).batch(2))], {}
    )
    assert wrong == ["worker 1: step 2 (batch): batch_size 3, worker 0: batch_size 2"]


def test_another_step_names_both() -> None:
    wrong, _ = said([facts(Dataset.range(9).batch(2)), facts(Dataset.range(9).skip(2))], {})
    assert wrong == ["worker 1: step 2 is skip, worker 0: batch"]


def test_more_steps_name_the_last_ones() -> None:
    wrong, _ = said([facts(Dataset.range(9)), facts(Dataset.range(9).skip(2))], {})
    assert wrong == ["worker 1: 2 steps, the last one skip, worker 0: 1 steps, the last one range"]


def test_arrays_are_compared_by_their_values() -> None:
    def make(last: int) -> Any:
        return Dataset.from_tensor_slices(np.array([1, 2, last]))

    assert said([facts(make(3)), facts(make(3))], {}) == ([], [])
    assert said([facts(make(3)), facts(make(4))], {})[0] == [
        "worker 1: step 1 (from_tensor_slices): holds other values than worker 0"
    ]


def test_functions_are_compared_where_the_python_is_the_same() -> None:
    here, there = Dataset.range(9).map(lambda x: x + 1), Dataset.range(9).map(lambda x: x * 2)
    assert said([facts(here), facts(there)], {})[0] == [
        "worker 1: step 2 (map): its function does something else than that of worker 0"
    ]
    assert said([facts(here), facts(there, python="CPython 3.99.0")], {})[0] == []


def test_values_that_a_function_reads_are_a_hint_unless_it_decides() -> None:
    def make(step: str, limit: int) -> Any:
        return getattr(Dataset.range(9), step)(lambda x: x < limit)

    wrong, hints = said([facts(make("map", 3)), facts(make("map", 4))], {})
    assert wrong == []
    assert hints == ["worker 1: the function of step 2 (map) reads other values from outside than that of worker 0"]
    assert said([facts(make("filter", 3)), facts(make("filter", 4))], {})[0] == [
        "worker 1: step 2 (filter): its function reads other values from outside than that of worker 0"
    ]
