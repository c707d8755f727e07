# SPDX-License-Identifier: Apache-2.0
"""Processes whose datasets differ all say what differs, at once, and can go on; those whose differences do not matter, do."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.engines.processes import LIMIT, run

SAYS = {
    "seeds": "FailedPreconditionError: .*worker 1: step 2 (shuffle): seed 7, worker 0: seed 5",
    "order of files": "the same 4 files in another order: file 1 is d.txt, worker 0: a.txt",
    "one file fewer": "3 files, worker 0: 4 files: c.txt is missing",
    "batch sizes": "worker 1: step 2 (batch): batch_size 8, worker 0: batch_size 4",
    "policies": "worker 1: policy DATA, worker 0: OFF",
    "lengths": "worker 1: step 1 (from_tensor_slices): elements 30 rows of int64, worker 0: elements 40 rows of int64",
    "lengths behind a filter": "worker 1: step 1 (range): stop 30, worker 0: stop 40",
    "lengths nobody knows": "worker 0 has a batch of 4 rows, worker 1 has a batch of 2 rows",
    "steps": "StateError: .*worker 1 restores step 2, worker 0 restores step 1",
}
TIMEOUT = 2 * LIMIT  # a worker that waited for one who does not come would be killed before


@pytest.mark.parametrize("engine", ["torch", "mpi"])
def test_what_differs_is_said_on_all_workers_and_they_go_on(engine: str, tmp_path: Path) -> None:
    kinds = [*SAYS, "another folder", "no seed"]
    given = {"kinds": kinds, "folder": str(tmp_path)}
    results = run(engine, (1, 1), "compare", given, timeout=TIMEOUT).results
    for kind, text in SAYS.items():
        assert results[0][kind] == results[1][kind], kind
        for part in text.split(".*"):
            assert part in results[0][kind], kind
    for kind in ("another folder", "no seed"):
        steps: list[Any] = [step for result in results for step in result[kind]]
        rows = chain.from_iterable(part for step in steps for part in step)
        assert sorted(rows) == list(range(40)), kind


@pytest.mark.needs_engine("torch")
def test_a_job_ends_with_the_reason_on_every_worker(tmp_path: Path) -> None:
    given = {"kinds": ["seeds"], "folder": str(tmp_path), "raises": True}
    for answer in run("torch", (1, 1, 1), "compare", given, timeout=TIMEOUT).answers:
        assert answer is not None
        assert answer["error"] == "FailedPreconditionError"
        assert "worker 1: step 2 (shuffle): seed 7, worker 0: seed 5" in answer["text"]
