# SPDX-License-Identifier: Apache-2.0
"""Seats in Ray actors keep the laws of all seats."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from distinput.distribute.cluster_resolver import ClusterSpec, SimpleClusterResolver
from distinput.distribute.seats import SeatLost, open_seats
from distinput.testing import check_seats

pytestmark = [pytest.mark.needs_engine("ray"), pytest.mark.slow]

RESOLVER = SimpleClusterResolver(ClusterSpec({"worker": ["", ""], "ps": [""]}))


class Pid:
    """Placed at a seat, it knows the number of the process."""

    def get(self) -> int:
        return os.getpid()


@pytest.fixture
def seats() -> Iterator[Any]:
    opened = open_seats("ray", RESOLVER)
    yield opened
    opened.close()


def test_the_laws_of_seats(seats: Any) -> None:
    check_seats(seats)


def test_a_killed_worker_is_known_and_comes_back(seats: Any) -> None:
    told = threading.Event()
    seats.watch(lambda name: told.set())
    pid = seats.place("worker-0", Pid).call("get")
    os.kill(pid, signal.SIGKILL)
    assert told.wait(60)
    seats.wait_back("worker-0", 30)
    assert seats.place("worker-0", Pid).call("get") != pid


def test_a_parameter_server_does_not_come_back(seats: Any) -> None:
    server = seats.place("ps-0", Pid)
    os.kill(server.call("get"), signal.SIGKILL)
    with pytest.raises(SeatLost, match="ps-0 is lost"):
        server.call("get")
    with pytest.raises(TimeoutError):
        seats.wait_back("ps-0", 2.0)
