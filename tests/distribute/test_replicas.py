# SPDX-License-Identifier: Apache-2.0
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from distinput.distribute import MirroredStrategy
from distinput.distribute.core.replicas import Replicas
from tests.distribute.workers import on_workers


def numbers(replicas: Replicas) -> tuple[Any, ...]:
    return replicas.count, replicas.first, replicas.total, replicas.workers, replicas.rank, replicas.wraps


@pytest.mark.parametrize("count", [1, 3])
def test_of_one_process(count: int) -> None:
    replicas = MirroredStrategy([f"CPU:{i}" for i in range(count)])._replicas
    assert numbers(replicas) == (count, 0, count, 1, 0, count > 1)
    assert replicas.peers is None


def test_of_several_workers() -> None:
    found = on_workers([2, 1], lambda strategy, worker: numbers(strategy._replicas))
    assert found == [(2, 0, 3, 2, 0, True), (1, 2, 3, 2, 1, True)]


def test_one_worker_with_one_replica_gets_distributed_values_all_the_same() -> None:
    assert on_workers([1], lambda strategy, worker: numbers(strategy._replicas)) == [(1, 0, 1, 1, 0, True)]


def test_nobody_changes_it() -> None:
    replicas = MirroredStrategy(["CPU:0"])._replicas
    with pytest.raises(FrozenInstanceError):
        replicas.count = 2  # type: ignore[misc]
