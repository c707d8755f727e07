# SPDX-License-Identifier: Apache-2.0
"""Sizes that users write large to mean "all" take the memory of what there is, also after a restart."""

import json
from collections.abc import Callable
from itertools import islice

import pytest

import distinput as di
from distinput.testing.elements import exact
from tests.traced_memory import peak_memory

Dataset = di.data.Dataset
HUGE = 10**10


def some(n: int = 3000) -> di.data.Dataset:
    """Elements that nobody can count beforehand."""
    return Dataset.range(n).filter(lambda x: x >= 0)


PIPELINES: dict[str, Callable[[], di.data.Dataset]] = {
    "shuffle": lambda: some(150_000).shuffle(HUGE, seed=1).batch(1000),
    "shuffle and repeat": lambda: some().shuffle(HUGE, seed=1).repeat(2),
    "shuffle by number": lambda: Dataset.range(3000).shuffle(HUGE, seed=1),
    "shuffle of a count": lambda: (
        some().apply(di.data.experimental.assert_cardinality(3000)).shuffle(HUGE, seed=1).skip(5)
    ),
    "batch": lambda: some().batch(HUGE),
    "padded_batch": lambda: some().padded_batch(HUGE),
    "rebatch": lambda: some().batch(10).rebatch(HUGE),
    "window": lambda: some(100).window(HUGE).flat_map(lambda window: window),
    "group_by_window": lambda: some().group_by_window(lambda x: x % 3, lambda _, group: group, HUGE),
    "interleave": lambda: some(40).interleave(lambda _: Dataset.range(2), cycle_length=HUGE),
    "interleave ahead": lambda: some(40).interleave(
        lambda _: Dataset.range(2), cycle_length=HUGE, num_parallel_calls=HUGE
    ),
    "shard_batches": lambda: some().batch(10).shard_batches(HUGE, 3),
    "prefetch": lambda: some().prefetch(HUGE),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_no_more_is_reserved_than_can_come(name: str) -> None:
    make = PIPELINES[name]
    list(make().take(1))  # what is compiled or loaded for it

    def restart() -> None:
        with iter(make()) as iterator:
            list(islice(iterator, 8))
            state = json.loads(json.dumps(iterator.state()))
            rest = [exact(element) for element in iterator]
        with make().restore(state) as again:
            assert repr([exact(element) for element in again]) == repr(rest)

    assert peak_memory(restart) < 100_000_000
