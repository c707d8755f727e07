# SPDX-License-Identifier: Apache-2.0
"""A state is small whatever the elements and the buffers hold."""

import json
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import distinput as di
from tests.traced_memory import traced

Dataset = di.data.Dataset


def wide(n: int) -> di.data.Dataset:
    """Elements of 8 kB that cannot be reached by number."""
    return Dataset.range(n).filter(lambda x: x >= 0).map(lambda x: np.full(1000, x))


PIPELINES: dict[str, Callable[[], di.data.Dataset]] = {
    "batch": lambda: wide(300).batch(100),
    "cache": lambda: wide(300).cache(),
    "group_by_window": lambda: wide(300).group_by_window(lambda x: x[0] % 7, lambda _, group: group.batch(50), 50),
    "interleave": lambda: Dataset.range(16).interleave(lambda i: wide(30), cycle_length=8, num_parallel_calls=2),
    "padded_batch": lambda: wide(300).padded_batch(90),
    "prefetch": lambda: wide(300).prefetch(100),
    "rebatch": lambda: wide(300).batch(100).rebatch([7, 90]),
    "shuffle": lambda: wide(10_300).shuffle(10_000).take(300),
    "shuffle by number": lambda: Dataset.range(30_000).shuffle(10_000).take(300),
    "unique": lambda: Dataset.range(300).unique(),
    "window": lambda: wide(300).window(100, shift=7).map(lambda w: w),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_no_state_holds_data(name: str) -> None:
    with iter(PIPELINES[name]()) as iterator:
        sizes = [len(json.dumps(iterator.state()))]
        sizes += [len(json.dumps(iterator.state())) for _ in iterator]
    assert len(sizes) > 3
    assert max(sizes) < 4096


def test_groups_of_many_keys_are_told_in_a_small_state() -> None:
    def key(x: int) -> np.int64:
        return np.int64((x + 1) // 2 if x < 2000 else x)  # key 0 waits to the end; at the end so do 500 others

    dataset = Dataset.range(2500).group_by_window(key, lambda _, group: group.batch(2), window_size=2)
    states, elements = [], []
    with iter(dataset) as iterator:
        for element in iterator:
            elements.append(element.tolist())
            states.append(iterator.state())
    assert len(elements) == 999 + 2 + 500
    assert max(len(json.dumps(state)) for state in states) < 4096
    for at in (10, 800, 998, 999, 1000, 1200, len(states) - 1):
        with dataset.restore(states[at]) as rest:
            assert [element.tolist() for element in rest] == elements[at + 1 :]


def test_groups_keep_only_what_waits() -> None:
    def key(x: np.ndarray) -> np.int64:
        return np.int64(x[0] > 0)  # the first element waits for a second one to the end

    dataset = wide(20_000).group_by_window(key, lambda _, group: group.batch(10), window_size=10)
    with traced(), iter(dataset) as iterator:
        for _ in range(1500):
            next(iterator)
        held, _ = tracemalloc.get_traced_memory()
    assert held < 60_000_000  # 15 000 elements of 8 kB are 120 MB
