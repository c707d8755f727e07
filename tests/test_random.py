# SPDX-License-Identifier: Apache-2.0
"""`distinput.random.set_seed`: steps without a seed follow one, as in TensorFlow."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import distinput as di
from distinput.data import Dataset
from distinput.plan.families import set_global_seed

N = 20


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    set_global_seed(None)


def numbers(dataset: Any) -> list[int]:
    return [int(x) for x in dataset]


STEPS: dict[str, Callable[[], Dataset[Any]]] = {
    "shuffle": lambda: Dataset.range(N).shuffle(N),
    "global_shuffle": lambda: Dataset.range(N).global_shuffle(),
    "random": lambda: Dataset.random().take(N),
    "sample": lambda: Dataset.sample_from_datasets([Dataset.range(N), Dataset.range(N, 2 * N)]),
    "resample": lambda: (
        Dataset.range(9 * N).rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5]).map(lambda k, x: x)
    ),
    "map with rng": lambda: Dataset.range(N).map(lambda x, rng: rng.integers(1 << 30), rng=True),
    "flat_map": lambda: Dataset.range(3).flat_map(lambda x: Dataset.range(N).shuffle(N)),
    "interleave": lambda: Dataset.range(3).interleave(lambda x: Dataset.range(N).shuffle(N), cycle_length=2),
}


@pytest.mark.parametrize("step", STEPS)
def test_the_same_seed_makes_the_same_passes(step: str) -> None:
    found = []
    for _ in range(2):
        di.random.set_seed(7)
        first, second = STEPS[step](), STEPS[step]()
        found.append([numbers(first), numbers(second), numbers(first)])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]
    di.random.set_seed(8)
    assert numbers(STEPS[step]()) != found[0][0]


def test_what_was_made_before_keeps_its_seed() -> None:
    before = Dataset.range(N).shuffle(N, reshuffle_each_iteration=False)
    order = numbers(before)
    di.random.set_seed(1)
    assert numbers(before) == order


def test_steps_with_a_seed_follow_it_alone() -> None:
    alone = numbers(Dataset.range(N).shuffle(N, seed=3))
    di.random.set_seed(1)
    assert numbers(Dataset.range(N).shuffle(N, seed=3)) == alone


def test_functions_that_run_take_no_seed_from_the_order() -> None:
    orders = []
    for read in (0, 2, 30):
        di.random.set_seed(1)
        made = iter(Dataset.range(3).flat_map(lambda x: Dataset.range(N).shuffle(N)))
        for _ in range(read):
            next(made)
        orders.append(numbers(Dataset.range(N).shuffle(N)))
    assert orders[0] == orders[1] == orders[2]


def test_equal_steps_after_the_same_seed_are_two_steps() -> None:
    both = []
    for _ in range(2):
        di.random.set_seed(1)
        both.append(Dataset.range(N).shuffle(N))
    assert all(a == b for a, b in Dataset.zip(tuple(both)))
    assert not all(a == b for a, b in Dataset.zip((both[0], both[0])))


def test_set_seed_has_its_older_names() -> None:
    assert di.compat.v1.set_random_seed is di.random.set_seed
    with pytest.raises(TypeError, match="set_seed: seed must be an integer"):
        di.random.set_seed("1")  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="draw from a NumPy generator"):
        di.random.uniform  # type: ignore[attr-defined]  # noqa: B018
