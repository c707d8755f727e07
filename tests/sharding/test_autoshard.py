# SPDX-License-Identifier: Apache-2.0
"""The tree of one worker: the seeds of all workers are one, and a decision that was made is not made again."""

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import NotFoundError
from distinput.plan.options import Decision
from distinput.sharding.policies import auto_shard, policy_named
from tests.distribute.workers import with_policy

POLICY = di.data.experimental.AutoShardPolicy
RANGE = di.data.Dataset.range


def test_one_seed_makes_the_shares_of_a_random_order_a_whole() -> None:
    shares = [Dataset(auto_shard(RANGE(20).shuffle(20).node, 2, worker, seed=5)).to_list() for worker in range(2)]
    assert sorted(shares[0] + shares[1]) == list(range(20))


def test_the_policy_that_is_given_goes_before_that_of_the_options() -> None:
    node = with_policy(RANGE(4), POLICY.OFF).node
    assert Dataset(auto_shard(node, 2, 1)).to_list() == [0, 1, 2, 3]
    assert Dataset(auto_shard(node, 2, 1, policy=POLICY.DATA)).to_list() == [1, 3]


def test_a_decision_is_carried_out_as_it_was_made() -> None:
    off = policy_named("OFF")
    node = with_policy(RANGE(4), POLICY.FILE).node
    with pytest.raises(NotFoundError):
        auto_shard(node, 2, 1)
    assert auto_shard(node, 2, 1, decision=Decision(off, off, "asked", "")) is node


@pytest.mark.parametrize("name", ["OFF", "BALANCED", "FILE", "HINT"])
def test_one_worker_of_one_reads_everything(name: str) -> None:
    assert Dataset(auto_shard(with_policy(RANGE(4), POLICY[name]).node, 1, 0)).to_list() == [0, 1, 2, 3]
