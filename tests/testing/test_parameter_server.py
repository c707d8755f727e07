# SPDX-License-Identifier: Apache-2.0
"""A cluster for tests starts and ends with its block."""

import threading

import distinput as di
from tests.patience import threads_since


def test_the_cluster_ends_with_the_block() -> None:
    before = threading.enumerate()
    with di.testing.local_parameter_server_cluster(num_workers=2, num_ps=1, engine="threads") as (
        strategy,
        coordinator,
    ):
        assert coordinator.strategy is strategy
        assert coordinator.schedule(lambda: 3).fetch() == 3
    assert threads_since(before) == []
