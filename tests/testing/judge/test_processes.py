# SPDX-License-Identifier: Apache-2.0
"""Ranks and workers in processes that are killed."""

import pytest

from distinput.testing import judge
from tests.depth import cases
from tests.testing.judge import toys


def test_a_state_that_holds_in_one_process_is_found() -> None:
    report = judge(toys.of_this_process, 17, ranks=2, batch=4, laws=["restart", "rank killed"])
    assert report.kept == ("restart",)
    assert "after step 1 of rank 1, gone on with: step" in report["rank killed"].says


def test_a_function_that_cannot_be_pickled_is_not_judged() -> None:
    report = judge(toys.maker(toys.Right), 17, ranks=2, batch=4, laws=["rank killed"])
    assert "make it a function of a module" in report["rank killed"].says
    assert report.ok


@pytest.mark.parametrize(
    "make, says",
    [
        (toys.with_workers, "without an error: "),
        (toys.says_so, "RuntimeError: a worker has died"),
        (toys.waits_forever, "no step for 3 seconds"),
    ][: cases(2, 3)],
)
def test_a_worker_that_is_killed(make: object, says: str) -> None:
    report = judge(make, 17, ranks=1, batch=2, workers=[2], laws=["worker killed"], patience=3)
    assert says in report["worker killed"].says
    assert report.ok == (make is toys.says_so)


def test_a_loader_that_has_no_workers_may_say_so() -> None:
    report = judge(toys.without_workers, 17, ranks=1, batch=2, workers=[2], laws=["workers", "worker killed"])
    assert report.refused == ("workers", "worker killed"), str(report)
    assert "ValueError: no workers here" in report["worker killed"].says


def test_other_steps_with_workers_are_found() -> None:
    report = judge(toys.with_workers, 17, ranks=1, batch=2, workers=[1, 2], laws=["workers"])
    assert "with 2 workers instead of none, step 1 of rank 0 is" in report["workers"].says
