# SPDX-License-Identifier: Apache-2.0
"""A summary holds what the plans of all workers say."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.sharding.shard_plan import FileRange, ShardPlan, WorkerPlan, summary_of


def plan(rows: Sequence[int | None], nbytes: Sequence[int | None], steps: int | None = 3) -> ShardPlan:
    workers = [
        WorkerPlan(i, (FileRange("a"), FileRange("a", 3), FileRange(f"{i}")), n, size, steps)
        for i, (n, size) in enumerate(zip(rows, nbytes, strict=True))
    ]
    return ShardPlan("DATA", "AUTO", "asked", "", len(rows), 1, "", "own", workers)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), min_size=1, max_size=6))
def test_the_least_the_most_and_the_sum(workers: list[tuple[int, int]]) -> None:
    rows, nbytes = [n for n, _ in workers], [size for _, size in workers]
    told = summary_of(plan(rows, nbytes))
    assert told.files == (2, 2)
    assert (told.rows, told.bytes) == ((min(rows), max(rows)), (min(nbytes), max(nbytes)))
    assert (told.total_rows, told.total_bytes) == (sum(rows), sum(nbytes))
    assert told.idle == rows.count(0)
    of = nbytes if sum(nbytes) else rows
    assert told.balance == (pytest.approx(sum(of) / len(of) / max(of)) if sum(of) else None)


@pytest.mark.parametrize("unknown", [None, -1])
def test_what_is_not_known_of_one_worker_is_not_known(unknown: int | None) -> None:
    told = summary_of(plan([3, unknown], [unknown, 4], unknown))
    assert (told.rows, told.bytes, told.idle, told.balance, told.steps) == (None, None, None, None, unknown)
    assert told.to_dict()["balance"] is None
