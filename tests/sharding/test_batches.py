# SPDX-License-Identifier: Apache-2.0
"""The batch size of a pipeline, and the cut of global batches for the replicas of one worker."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.sharding.own_rows import batch_size_of, rebatch_for, sizes_for_worker

RANGE = di.data.Dataset.range


@pytest.mark.parametrize(
    "dataset, size",
    [
        (RANGE(8).batch(4, drop_remainder=True), 4),
        (RANGE(8).batch(4), 4),
        (RANGE(8).batch(4).prefetch(1).repeat(), 4),
        (RANGE(8).batch(4, drop_remainder=True).map(lambda x: x[:2]), 2),
        (RANGE(8).batch(4).map(lambda x: x[:2]), None),
        (RANGE(8).batch(4, num_parallel_calls=2), None),
        (di.data.Dataset.from_tensors((np.zeros((4, 2)), np.zeros((3,)))), None),
        (di.data.Dataset.from_tensors(np.zeros((0, 2))), None),
    ],
)
def test_the_spec_tells_the_size_or_the_last_batch_does(dataset: Any, size: int | None) -> None:
    assert batch_size_of(dataset.node) == size


@pytest.mark.parametrize(
    "dataset, says",
    [
        (RANGE(8), "must have a batch axis to be divided over replicas, got a scalar; call .batch"),
        (RANGE(8).window(2), "is a dataset; flat_map or zip it first"),
    ],
)
def test_what_has_no_batch_axis_has_no_size(dataset: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        batch_size_of(dataset.node)


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 4), st.data())
def test_sizes_of_a_round_sum_to_the_global_batch(size: int, workers: int, replicas: int, data: st.DataObject) -> None:
    worker = data.draw(st.integers(0, workers - 1))
    sizes = sizes_for_worker(size, workers, replicas, worker)
    assert len(sizes) == workers * replicas
    assert sum(sizes) == size
    assert max(sizes) - min(sizes) <= 1
    first = [sizes_for_worker(size, workers, replicas, w)[:replicas] for w in range(workers)]
    assert sum(map(sum, first)) == size, "in one step, all replicas together have one global batch"


@pytest.mark.parametrize("worker, sizes", [(0, [2, 2, 1, 1]), (1, [1, 1, 2, 2])])
def test_batches_of_known_size_are_counted_through(worker: int, sizes: list[int]) -> None:
    node = rebatch_for(RANGE(12).batch(6).node, 2, 2, worker)
    assert [len(batch) for batch in Dataset(node)] == sizes * 2
    assert [step.op for step in node.steps] == ["range", "batch", "rebatch"]
    assert node.op == "prefetch"


def test_batches_of_unknown_size_are_cut_one_by_one() -> None:
    node = rebatch_for(RANGE(5).batch(3).map(lambda x: x).node, 2, 1, 0)
    assert [batch.tolist() for batch in Dataset(node)] == [[0, 1], [2], [3], [4]]


def test_one_replica_gets_the_batches_as_they_are() -> None:
    node = RANGE(5).batch(3).node
    assert rebatch_for(node, 1, 1, 0) is node
