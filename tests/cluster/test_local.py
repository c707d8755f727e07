# SPDX-License-Identifier: Apache-2.0
"""A cluster within this process."""

import pytest

from distinput.cluster.launchers import LocalClusterResolver


def test_it_has_the_tasks_asked_for() -> None:
    resolver = LocalClusterResolver(num_workers=3, num_ps=2)
    assert (resolver.cluster_spec().num_tasks("worker"), resolver.cluster_spec().num_tasks("ps")) == (3, 2)
    assert (resolver.task_type, resolver.task_id, resolver.master(), resolver.engine) == ("chief", 0, "", "threads")


@pytest.mark.parametrize("numbers", [{"num_workers": 0}, {"num_ps": 0}])
def test_a_job_needs_a_task(numbers: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=rf"{next(iter(numbers))} must be at least 1, got 0"):
        LocalClusterResolver(**numbers)
