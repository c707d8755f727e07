# SPDX-License-Identifier: Apache-2.0
"""Clusters of threads whose seats tests can take away, with and without pickling."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from distinput.distribute.coordinator import ClusterCoordinator
from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy
from distinput.distribute.seats import AsIs, Packing, Pickled
from distinput.distribute.seats.threads import ThreadSeats
from tests.patience import wait_until

PACKINGS = [AsIs(), pytest.param(Pickled(), marks=pytest.mark.needs("cloudpickle"))]
both_packings = pytest.mark.parametrize("packing", PACKINGS, ids=["as_is", "pickled"])


@contextmanager
def cluster(
    workers: int = 2,
    servers: int = 1,
    packing: Packing | None = None,
    devices: list[str] | None = None,
    partitioner: Any = None,
    **options: Any,
) -> Iterator[tuple[ThreadSeats, ParameterServerStrategy, ClusterCoordinator]]:
    seats = ThreadSeats(workers, servers, packing=packing)
    with ParameterServerStrategy(None, partitioner, seats=seats, devices=devices) as strategy:
        coordinator = ClusterCoordinator(strategy, **options)
        yield seats, strategy, coordinator
    seats.close()
    # A lane that waits for its worker ends when the seats are closed.
    wait_until(lambda: not any(lane.thread.is_alive() for lane in coordinator._crew.lanes))
