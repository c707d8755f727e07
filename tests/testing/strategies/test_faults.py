# SPDX-License-Identifier: Apache-2.0
"""Random faults."""

from typing import Any

import fsspec
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.testing.faulty_files import FaultyFiles
from distinput.testing.strategies import file_faults, interruptions, jobs
from tests.depth import cases


@settings(max_examples=cases(5, 100))
@given(file_faults())
def test_lines_are_read_through_faults(faults: dict[str, Any]) -> None:
    fsspec.filesystem("memory").pipe("/judged/a.txt", b"one\ntwo\n")
    faulty = FaultyFiles(fsspec.filesystem("memory"), **faults)
    di.io.mount("faulty://", faulty, retries=di.io.Retries(first_pause=0.0001))
    try:
        assert di.data.TextLineDataset("faulty://judged/a.txt").to_list() == [b"one", b"two"]
    finally:
        di.io.unmount("faulty://")


@given(st.data())
def test_ranks_after_an_interruption_divide_the_rows_of_a_step(data: Any) -> None:
    job = data.draw(jobs())
    for steps, ranks in data.draw(interruptions(job)):
        assert 0 <= steps <= job.steps
        assert job.global_batch % ranks == 0
    assert {each.ranks for each in data.draw(interruptions(job, elastic=False))} <= {job.ranks}
