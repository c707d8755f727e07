# SPDX-License-Identifier: Apache-2.0
"""Policy HINT: elements are divided where the pipeline says so, and nowhere else."""

import pytest

import distinput as di
from tests.distribute.workers import with_policy

HINT = di.data.experimental.AutoShardPolicy.HINT
MARK = di.data.experimental.SHARD_HINT
shard = di.data.experimental.auto_shard_dataset


@pytest.mark.parametrize("worker, batches", [(0, [[0, 2], [4]]), (1, [[1, 3], [5]])])
def test_elements_are_divided_at_the_hint(worker: int, batches: list[list[int]]) -> None:
    dataset = with_policy(di.data.Dataset.range(6).shard(MARK, MARK).batch(2), HINT)
    assert shard(dataset, 2, worker).to_list() == batches


def test_every_hint_of_a_pipeline_counts() -> None:
    both = di.data.Dataset.zip(
        di.data.Dataset.range(4).shard(MARK, MARK), di.data.Dataset.range(10, 14).shard(MARK, MARK)
    )
    assert shard(with_policy(both, HINT), 2, 1).to_list() == [(1, 11), (3, 13)]


def test_other_shards_stay() -> None:
    dataset = with_policy(di.data.Dataset.range(6).shard(2, 0), HINT)
    assert shard(dataset, 3, 2).to_list() == [0, 2, 4]
