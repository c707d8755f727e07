# SPDX-License-Identifier: Apache-2.0
"""A dataset that goes on from a state also has the later passes of the one that saved it, though it drew other seeds."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distinput.data import Dataset

N = 12

SEEDLESS: dict[str, Callable[[], Dataset[Any]]] = {
    "shuffle": lambda: Dataset.range(N).shuffle(N),
    "shuffle once": lambda: Dataset.range(N).shuffle(N, reshuffle_each_iteration=False),
    "shuffle of a stream": lambda: (
        Dataset.range(N).filter(lambda x: x >= 0).shuffle(4).map(lambda x: x).batch(1).unbatch()
    ),
    "global_shuffle": lambda: Dataset.range(N).global_shuffle(),
    "two of them": lambda: Dataset.zip((Dataset.range(N).shuffle(N), Dataset.range(N).shuffle(N))).map(
        lambda a, b: a * N + b
    ),
    "two places": lambda: (lambda ds: Dataset.zip((ds, ds)).map(lambda a, b: a * N + b))(Dataset.range(N).shuffle(N)),
    "map with rng": lambda: Dataset.range(N).map(lambda x, rng: rng.integers(1 << 30), rng=True),
    "sample": lambda: Dataset.sample_from_datasets(
        [Dataset.range(N), Dataset.range(N, 2 * N)], rerandomize_each_iteration=True
    ),
    "resample": lambda: (
        Dataset.range(5 * N).rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5]).map(lambda k, x: x)
    ),
    "flat_map": lambda: Dataset.range(3).flat_map(lambda x: Dataset.range(N).shuffle(N)),
    "cache": lambda: Dataset.range(N).shuffle(N).cache(),
    "cache below": lambda: Dataset.range(N).shuffle(N).cache().shuffle(N),
    "repeat": lambda: Dataset.range(N).shuffle(N).repeat(2),
}


def numbers(dataset: Any) -> list[int]:
    return [int(x) for x in dataset]


@pytest.mark.parametrize("way", ["restore", "load_state_dict", "twice"])
@pytest.mark.parametrize("name", SEEDLESS)
@pytest.mark.parametrize("passes", [0, 1])
def test_later_passes_are_those_of_the_dataset_that_saved(name: str, way: str, passes: int) -> None:
    first = SEEDLESS[name]()
    for _ in range(passes):
        numbers(first)
    it = iter(first)
    next(it)
    state = json.loads(json.dumps(it.state()))
    rest, later = numbers(it), [numbers(first), numbers(first)]
    again = SEEDLESS[name]()
    if way == "load_state_dict":
        other = iter(again)
        other.load_state_dict(state)
    else:
        other = again.restore(state)
    if way == "twice":
        state = other.state()
        again = SEEDLESS[name]()
        numbers(again)
        other = again.restore(state)
    assert numbers(other) == rest
    assert [numbers(again), numbers(again)] == later


def test_positions_are_those_of_the_state(tmp_path: Path) -> None:
    first = Dataset.range(N).shuffle(N)
    it = iter(first)
    state = it.state()
    wanted = [int(x) for x in first[list(range(N))]]
    again = Dataset.range(N).shuffle(N)
    numbers(again[:])
    again.restore(state)
    assert [int(x) for x in again[list(range(N))]] == wanted
