# SPDX-License-Identifier: Apache-2.0
"""An iteration ends with its stream, its run and its threads."""

import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import numpy as np
import pytest

import distinput as di
from distinput.data.iterator import Iteration
from distinput.run.run import Run
from tests.patience import threads_since

Dataset = di.data.Dataset


def iteration(dataset: di.data.Dataset) -> Iteration:
    node = dataset.node
    return Iteration(node, node.start(0), Run([]))


def test_it_reads_blocks_with_the_states_behind_them() -> None:
    reading = iteration(Dataset.range(5).batch(2))
    found = [(block.size, state is not None) for block, state in reading.stream]
    reading.close()
    assert sum(size for size, _ in found) == 3
    assert all(told for _, told in found)


def test_closing_ends_the_stream_and_the_run() -> None:
    reading = iteration(Dataset.range(5))
    next(reading.stream)
    reading.close()
    assert reading.run.cancelled.is_set()
    assert next(reading.stream, None) is None
    reading.close()


def test_no_thread_is_left_behind() -> None:
    before = threading.enumerate()
    with iter(Dataset.range(100_000).map(lambda x: x + 1, num_parallel_calls=2).prefetch(2)) as it:
        next(it)
    assert threads_since(before) == []


LOOK_AHEAD: dict[str, Callable[[Any], Any]] = {
    "batch": lambda ds: ds.batch(2),
    "map": lambda ds: ds.map(lambda array: array[:4]),
    "map in threads": lambda ds: ds.map(lambda array: array[:4], num_parallel_calls=2),
    "ragged_batch": lambda ds: ds.ragged_batch(2),
}


@pytest.mark.parametrize("step", LOOK_AHEAD)
def test_a_first_block_that_is_looked_at_is_not_held_for_the_whole_pass(step: str) -> None:
    made: list[Callable[[], Any]] = []

    def generator() -> Iterator[Any]:
        for number in range(24):
            array = np.full(1 << 18, number, np.uint8)  # a block of its own
            made.append(ref(array))
            yield array

    source = Dataset.from_generator(generator, output_signature=di.TensorSpec([1 << 18], "uint8"), copy=False)
    it = iter(LOOK_AHEAD[step](source))
    for _ in range(10):
        next(it)
    assert [array() is None for array in made[:5]] == [True] * 5
