# SPDX-License-Identifier: Apache-2.0
"""The tree of one worker: the seeds of all workers are one, and a decision that was made is not made again."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import FailedPreconditionError, NotFoundError
from distinput.plan.families import with_seed
from distinput.plan.options import Decision
from distinput.sharding.policies import auto_shard, policy_named
from tests.distribute.workers import with_policy

POLICY = di.data.experimental.AutoShardPolicy
RANGE = di.data.Dataset.range


def test_one_seed_makes_the_shares_of_a_random_order_a_whole() -> None:
    shares = [Dataset(auto_shard(with_seed(RANGE(20).shuffle(20).node, 5), 2, worker)).to_list() for worker in range(2)]
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


def read_twice(shares: list[di.data.Dataset[Any]]) -> list[list[Any]]:
    first = [share.to_list() for share in shares]
    assert [share.to_list() for share in shares] == first
    return first


@pytest.mark.parametrize("kept", ["in memory", "by pipeline", "snapshot"])
def test_what_one_worker_keeps_is_not_served_to_another(kept: str, tmp_path: Path) -> None:
    numbers = RANGE(6).shard(di.data.experimental.SHARD_HINT, di.data.experimental.SHARD_HINT)
    folder = str(tmp_path / "kept")
    cached = {
        "in memory": lambda: numbers.cache(),
        "by pipeline": lambda: numbers.cache(shared=folder),
        "snapshot": lambda: numbers.snapshot(folder),
    }[kept]()
    node = with_policy(cached, POLICY.HINT).node
    shares = [Dataset(auto_shard(node, workers, worker)) for workers in (2, 3) for worker in range(workers)]
    assert read_twice(shares) == [[0, 2, 4], [1, 3, 5], [0, 3], [1, 4], [2, 5]]


def test_a_worker_is_served_what_it_kept_when_its_share_is_asked_for_again() -> None:
    calls = []

    def counted(x: Any) -> Any:
        calls.append(int(x))
        return x

    node = with_policy(RANGE(4).map(counted).cache(), POLICY.BALANCED).node
    for _ in range(2):
        assert [Dataset(auto_shard(node, 2, worker)).to_list() for worker in range(2)] == [[0, 1], [2, 3]]
    assert sorted(calls) == [0, 1, 2, 3]


def test_a_folder_of_one_worker_is_refused_to_another(tmp_path: Path) -> None:
    hint = di.data.experimental.SHARD_HINT
    node = with_policy(RANGE(6).shard(hint, hint).cache(str(tmp_path / "kept")), POLICY.HINT).node
    first, second = [Dataset(auto_shard(node, 2, worker)) for worker in range(2)]
    assert first.to_list() == [0, 2, 4]
    with pytest.raises(FailedPreconditionError, match=r"was written by another pipeline: step 2 \(shard\)"):
        second.to_list()
