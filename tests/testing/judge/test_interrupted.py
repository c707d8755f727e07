# SPDX-License-Identifier: Apache-2.0
"""Loaders that are stopped several times, on random ranks."""

from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from distinput.testing import check_interrupted, judge
from distinput.testing.judge.job import Job
from distinput.testing.judge.loaders.ours import numpy_steps
from distinput.testing.strategies import interruptions, jobs
from tests.depth import cases
from tests.testing.judge import toys


@settings(max_examples=cases(25, 500))
@given(st.data())
def test_our_loader_delivers_each_record_once_however_it_is_interrupted(data: Any) -> None:
    job = data.draw(jobs())
    check_interrupted(numpy_steps, job, data.draw(interruptions(job)))


@settings(max_examples=cases(10, 200))
@given(jobs())
def test_our_loader_keeps_the_laws_of_ends_in_random_jobs(job: Job) -> None:
    laws = ["exactly once", "equal steps", "partial batches"]
    judge(numpy_steps, job.records, ranks=job.ranks, batch=job.batch, seed=job.seed, laws=laws).check()


def test_the_smallest_job_that_breaks_a_law_is_found() -> None:
    def wrong(job: Job) -> bool:
        report = judge(toys.unequal, job.records, ranks=job.ranks, batch=job.batch, laws=["equal steps"])
        return not report.ok

    smallest = find(jobs(), wrong)
    assert (smallest.records, smallest.ranks, smallest.batch) == (1, 2, 1)


def test_what_goes_on_with_the_wrong_rows_is_found() -> None:
    with pytest.raises(AssertionError, match=r"interrupted by \[\(1, 4\)\]: .* lost"):
        check_interrupted(toys.maker(toys.OfOneRank), Job(17, 2, 4), [(1, 4)])
    with pytest.raises(ValueError, match="3 ranks must divide the 8 rows of a step"):
        check_interrupted(toys.right, Job(17, 2, 4), [(1, 3)])
    check_interrupted(toys.right, Job(17, 2, 4), [(1, 4), (1, 1)])
