# SPDX-License-Identifier: Apache-2.0
"""Who saves together."""

from typing import Any

import pytest

import distinput as di
from distinput.errors import FailedPreconditionError
from distinput.train.checkpoint import Crew, crew_of, entered_strategy
from tests.distribute.workers import on_workers


def test_a_process_without_others() -> None:
    crew = Crew(None)
    assert (crew.is_chief, crew.size, crew.exchange("x", lambda: 3), crew.bytes_of_chief(b"ab", 2)) == (
        True,
        1,
        [3],
        b"ab",
    )
    strategy = di.distribute.MirroredStrategy(["CPU:0"])
    assert entered_strategy() is None
    with strategy.scope():
        assert entered_strategy() is strategy
    assert crew_of([strategy, None]).size == 1


def test_workers_exchange() -> None:
    def body(strategy: Any, worker: int) -> Any:
        crew = crew_of([None, strategy, strategy])
        content = crew.bytes_of_chief(bytes(100_000) if crew.is_chief else None, 100_000)
        return crew.rank, crew.size, crew.exchange("x", lambda: worker * 2), len(content)

    assert on_workers([1, 1, 1], body) == [(worker, 3, [0, 2, 4], 100_000) for worker in range(3)]


def test_two_groups_of_workers_are_refused() -> None:
    def body(strategy: Any, worker: int) -> Any:
        return strategy

    strategies = on_workers([1, 1], body)
    with pytest.raises(FailedPreconditionError, match="2 strategies of several workers"):
        crew_of(strategies)
