# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.ops.shard_batches import OwnShares, ShuffledRows
from distinput.plan.node import walk
from distinput.rewrite.rules import rewrite

RANGE = di.data.Dataset.range


def shares(dataset: di.data.Dataset, workers: int) -> list[list[list[int]]]:
    return [[[int(x) for x in rows] for rows in dataset.shard_batches(workers, index)] for index in range(workers)]


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("drop", [False, True])
def test_the_shares_of_all_workers_are_the_batches(workers: int, drop: bool) -> None:
    dataset = RANGE(23).shuffle(7, seed=3, reshuffle_each_iteration=False).batch(4, drop_remainder=drop)
    found = shares(dataset, workers)
    together = [[x for part in parts for x in part] for parts in zip(*found, strict=True)]
    assert together == [batch.tolist() for batch in dataset]


def test_a_worker_calls_its_function_for_its_own_rows_alone() -> None:
    calls: list[int] = []

    def note(x: Any) -> Any:
        calls.append(int(x))
        return x

    dataset = RANGE(12).map(note, output_signature=di.TensorSpec([], "int64")).batch(4)
    assert [rows.tolist() for rows in dataset.shard_batches(2, 1)] == [[2, 3], [6, 7], [10, 11]]
    assert sorted(calls) == [2, 3, 6, 7, 10, 11]


def test_states_are_those_of_the_op_that_reads_all_batches() -> None:
    dataset = RANGE(20).shuffle(5, seed=1, reshuffle_each_iteration=False).batch(4)
    own = dataset.shard_batches(2, 0)
    assert any(isinstance(step, OwnShares) for step in walk(rewrite(own.node)[0]))
    with iter(own) as elements:
        next(elements)
        state = elements.state()
    rest = [batch[0].tolist() for batch in zip(dataset.shard_batches(4, 0).restore(state), strict=True)]
    assert rest == [batch.tolist()[:1] for batch in dataset][1:]


def test_elements_of_a_shuffle_are_fetched_without_those_before_them() -> None:
    node = RANGE(30).shuffle(6, seed=2, reshuffle_each_iteration=False).node
    found = ShuffledRows(node.input, node.buffer_size, node.seed, reshuffle_each_iteration=False)
    order = [int(x) for x in di.data.Dataset(node)]
    assert [int(x) for x in found.fetch(np.array([29, 3, 17]), 0).elements()] == [order[29], order[3], order[17]]
    assert found.fetch(np.array([], np.int64), 0).size == 0
