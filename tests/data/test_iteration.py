# SPDX-License-Identifier: Apache-2.0
"""An iteration ends with its stream, its run and its threads."""

import threading

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
