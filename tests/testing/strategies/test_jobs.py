# SPDX-License-Identifier: Apache-2.0
"""Random jobs."""

import pytest
from hypothesis import find, given

from distinput.testing.judge.job import Job
from distinput.testing.strategies import jobs


@given(jobs(most_ranks=3, most_batch=4, most_steps=5))
def test_jobs_are_within_their_bounds(job: Job) -> None:
    assert 1 <= job.ranks <= 3
    assert 1 <= job.batch <= 4
    assert job.steps <= 5


@pytest.mark.parametrize(
    "end",
    [
        lambda job: job.records == 0,
        lambda job: 0 < job.records < job.ranks,
        lambda job: job.records and job.records % job.global_batch == 0,
        lambda job: job.steps > 1 and job.records % job.global_batch == 1 and job.ranks > 1,
        lambda job: job.steps > 1 and job.records % job.global_batch == job.global_batch - 1 > 1,
    ],
)
def test_each_kind_of_end_is_found(end: object) -> None:
    find(jobs(), end)  # type: ignore[arg-type]
