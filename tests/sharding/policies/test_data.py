# SPDX-License-Identifier: Apache-2.0
"""Policy DATA: every n-th element; of batches that are cut for replicas, every n-th piece."""

from typing import Any

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from tests.distribute.workers import with_policy

DATA = di.data.experimental.AutoShardPolicy.DATA
shard, rebatch = di.data.experimental.auto_shard_dataset, di.data.experimental.rebatch_for_worker


def shares(dataset: Dataset, workers: int, replicas: int = 1) -> list[Any]:
    dataset = with_policy(dataset, DATA)
    return [
        shard(rebatch(dataset, workers, replicas, worker), workers, worker, workers * replicas).to_list()
        for worker in range(workers)
    ]


def test_elements_go_around() -> None:
    dataset = with_policy(di.data.Dataset.range(7), DATA)
    assert [shard(dataset, 3, worker).to_list() for worker in range(3)] == [[0, 3, 6], [1, 4], [2, 5]]


def test_each_batch_is_cut_alone() -> None:
    assert shares(di.data.Dataset.range(10).batch(6), 2) == [[[0, 1, 2], [6, 7]], [[3, 4, 5], [8, 9]]]


def test_a_short_batch_may_leave_nothing() -> None:
    assert shares(di.data.Dataset.range(5).batch(4), 4)[2:] == [[[2], []], [[3], []]]


@pytest.mark.parametrize("on_top", [lambda ds: ds.prefetch(2), lambda ds: ds.with_options(di.data.Options())])
def test_steps_that_are_in_no_state_stay_on_top(on_top: Any) -> None:
    dataset = on_top(with_policy(di.data.Dataset.range(6), DATA))
    tree = shard(dataset, 2, 1)
    assert tree.node.op == dataset.node.op
    assert tree.to_list() == [1, 3, 5]


def test_batches_of_the_users_own_are_dealt_whole() -> None:
    dataset = with_policy(di.data.Dataset.range(8).batch(4).rebatch(2), DATA)
    assert shard(dataset, 2, 1).to_list() == [[2, 3], [6, 7]]
