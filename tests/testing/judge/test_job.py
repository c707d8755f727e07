# SPDX-License-Identifier: Apache-2.0
"""Jobs, and functions that ask for parts of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.testing.judge.job import Job, Maker


@given(st.integers(0, 50), st.integers(1, 8), st.integers(1, 8), st.integers(1, 16))
def test_other_ranks_have_the_same_rows_in_a_step(records: int, ranks: int, batch: int, others: int) -> None:
    job = Job(records, ranks, batch)
    other = job.on(others)
    assert (other is None) == bool(job.global_batch % others)
    if other is not None:
        assert (other.global_batch, other.steps, other.ranks) == (job.global_batch, job.steps, others)


def test_a_function_gets_what_it_asks_for() -> None:
    def some(batch: int, rank: int, other: str = "own") -> Any:
        return batch, rank, other

    def every(**named: Any) -> Any:
        return named

    job = Job(records=9, ranks=2, batch=4, seed=3, epoch=1, workers=2)
    assert Maker(some, 9)(job, 1) == (4, 1, "own")
    assert Maker(every, ["a"])(job, 1) == {
        "records": ["a"],
        "rank": 1,
        "ranks": 2,
        "batch": 4,
        "global_batch": 8,
        "seed": 3,
        "epoch": 1,
        "workers": 2,
    }
    assert str(job) == "9 records, 2 ranks, batches of 4, 2 workers each"


def test_what_nobody_can_give_is_refused() -> None:
    with pytest.raises(ValueError, match="it also wants 'folder'; give it a default"):
        Maker(lambda rank, folder: None, 3)
