# SPDX-License-Identifier: Apache-2.0
"""A variable of which every worker has one of its own."""

import numpy as np
import pytest

from distinput.distribute.coordinator import experimental_get_current_worker_index
from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy
from distinput.distribute.seats import Packing
from distinput.distribute.seats.threads import ThreadSeats
from tests.distribute.coordinator.clusters import both_packings, cluster


@both_packings
def test_workers_change_their_own(packing: Packing) -> None:
    with cluster(packing=packing) as (_, strategy, coordinator):
        steps = strategy.per_worker_variable(0, name="steps")

        def step() -> int:
            steps.assign_add(1)
            return experimental_get_current_worker_index()

        ran = coordinator.fetch([coordinator.schedule(step) for _ in range(20)])
        assert [int(value) for value in steps.read_all()] == [ran.count(0), ran.count(1)]
        assert steps.numpy() == 0, "the coordinator's own"
        steps.assign(7)
        assert steps.numpy() == 7
        assert (steps.name, steps.dtype, steps.shape.as_list(), steps.trainable) == ("steps:0", np.int32, [], False)


@both_packings
def test_a_function_makes_the_value_at_each_worker(packing: Packing) -> None:
    with cluster(packing=packing) as (_, strategy, coordinator):
        index = strategy.per_worker_variable(lambda: _index(), dtype="float64")
        assert index.numpy() == -1
        assert index.read_all() == [0.0, 1.0]
        assert coordinator.schedule(lambda: float(index) in (0.0, 1.0)).fetch()


def _index() -> int:
    try:
        return experimental_get_current_worker_index()
    except RuntimeError:
        return -1


def test_a_lost_worker_starts_with_the_initial_value() -> None:
    with cluster(workers=1) as (seats, strategy, coordinator):
        count = strategy.per_worker_variable(5)
        coordinator.schedule(lambda: count.assign_add(1)).fetch()
        assert count.read_all() == [6]
        seats.lose("worker-0")
        assert count.read_all() == [5]


def test_workers_do_not_read_those_of_others() -> None:
    with cluster(packing=None) as (_, strategy, coordinator):
        count = strategy.per_worker_variable(5)
        assert coordinator.schedule(count.numpy).fetch() == 5
    strategy = ParameterServerStrategy(seats=ThreadSeats(1, 1))
    with pytest.raises(ValueError, match="construct the ClusterCoordinator of the strategy first"):
        strategy.per_worker_variable(1)
