# SPDX-License-Identifier: Apache-2.0
"""Random generators that functions hold: each worker process has a copy, so elements get the same numbers, which is told."""

import random
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from random import randrange
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InputWarning

RANGE = di.data.Dataset.range
SPEC = di.TensorSpec([], "int64")
GENERATOR = np.random.default_rng(0)
OF_PYTHON = random.Random(0)
SYSTEM = random.SystemRandom()


class Adds:
    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __call__(self, x: Any) -> Any:
        return x + self.generator.integers(9)

    def method(self, x: Any) -> Any:
        return x + self.generator.integers(9)


class Draws:
    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return index + self.generator.integers(9)


def of_module(x: Any) -> Any:
    return x + GENERATOR.integers(9)


def calls_another(x: Any) -> Any:
    return of_module(x)


def of_python(x: Any) -> Any:
    return x + OF_PYTHON.randrange(9)


def of_default(x: Any, generator: Any = np.random.RandomState(0)) -> Any:  # noqa: B008
    return x + generator.randint(9)


def of_closure() -> Callable[[Any], Any]:
    generator = np.random.default_rng(0)
    return lambda x: x + generator.integers(9)


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "global": of_module,
    "function of a function": calls_another,
    "Python": of_python,
    "default": of_default,
    "closure": of_closure(),
    "object": Adds(np.random.default_rng(0)),
    "bound": Adds(np.random.default_rng(0)).method,
    "partial": partial(of_default, generator=np.random.default_rng(0)),
    "method of a generator": OF_PYTHON.randrange,
}


def of_the_system(x: Any) -> Any:
    return x + SYSTEM.randrange(9)


def of_the_process(x: Any) -> Any:
    return x + randrange(9) + np.random.randint(9) + random.randrange(9)  # noqa: NPY002


def with_its_own(x: Any, rng: Any) -> Any:
    return x + rng.integers(9)


class Shuffled:
    """Draws when it is made alone."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)
        self.order = self.generator.permutation(4)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return self.order[index]

    def __call__(self, x: Any) -> Any:
        return self.order[x]


class Reseeded(Adds):
    """Sends no generator to another process, which makes its own."""

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.generator = np.random.default_rng()


def told(make: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        make()
    return [str(each.message) for each in found if each.category is InputWarning]


@pytest.mark.parametrize("name", HOLDERS)
def test_a_generator_that_processes_copy_is_told(name: str) -> None:
    pytest.importorskip("cloudpickle")
    function = HOLDERS[name]
    (said,) = told(lambda: RANGE(4).map(function, output_signature=SPEC, processes=True))
    assert "map: what worker processes call holds a random generator (" in said
    assert "map(..., rng=True, seed=1)" in said
    assert told(lambda: RANGE(4).map(function, output_signature=SPEC, num_parallel_calls=2)) == []


def of_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)


def test_all_ways_to_have_processes_tell() -> None:
    with ThreadPoolExecutor(1) as threads, ProcessPoolExecutor(1) as processes:
        here = [threads, lambda: ThreadPoolExecutor(1), partial(ThreadPoolExecutor, 1), lambda: of_threads()]
        there = [processes, lambda: ProcessPoolExecutor(1), partial(ProcessPoolExecutor, 1)]
        mapped = RANGE(4).map(of_module, output_signature=SPEC)
        for executor in here:
            assert (
                told(lambda executor=executor: RANGE(4).map(of_module, output_signature=SPEC, executor=executor)) == []
            )
        for executor in there:
            made = told(lambda executor=executor: RANGE(4).map(of_module, output_signature=SPEC, executor=executor))
            assert len(made) == 1
        assert told(lambda: mapped.on_workers("threads:1")) == told(lambda: mapped.on_workers(threads)) == []
        assert len(told(lambda: mapped.on_workers("processes:1")) + told(lambda: mapped.on_workers(processes))) == 2
    source = Draws(np.random.default_rng(0))
    (said,) = told(lambda: di.data.Dataset.from_source(source, processes=True))
    assert "numpy.random.default_rng((seed, index))" in said
    assert told(lambda: di.data.Dataset.from_source(source)) == []


@pytest.mark.parametrize("function", [of_the_system, of_the_process])
def test_what_each_process_seeds_itself_is_not_told(function: Callable[[Any], Any]) -> None:
    assert told(lambda: RANGE(4).map(function, output_signature=SPEC, processes=True)) == []


@pytest.mark.parametrize("function", [Shuffled(), Shuffled().__getitem__, Reseeded(np.random.default_rng(0))])
def test_what_no_process_draws_from_a_copy_is_not_told(function: Callable[[Any], Any]) -> None:
    assert told(lambda: RANGE(4).map(function, output_signature=SPEC, processes=True)) == []


def test_a_source_that_was_shuffled_when_it_was_made_is_not_told() -> None:
    assert told(lambda: di.data.Dataset.from_source(Shuffled(), processes=True)) == []


def test_the_generator_of_an_element_is_not_told() -> None:
    assert told(lambda: RANGE(4).map(with_its_own, output_signature=SPEC, processes=True, rng=True, seed=1)) == []
