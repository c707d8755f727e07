# SPDX-License-Identifier: Apache-2.0
"""How engines for a coordinator are found, and what a loss says."""

import pickle

import pytest

from distinput.distribute.cluster_resolver import ClusterSpec, SimpleClusterResolver
from distinput.distribute.seats import SEATS, SeatLost, open_seats, register_seats

RESOLVER = SimpleClusterResolver(ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["c:1"]}))


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown coordinator engine 'x'; known are dask, ray, threads"):
        open_seats("x", RESOLVER)


def test_a_worker_needs_time_before_it_counts_as_lost() -> None:
    with pytest.raises(ValueError, match="worker_timeout_seconds must be positive, got 0"):
        open_seats("threads", RESOLVER, worker_timeout_seconds=0)


def test_an_engine_can_be_registered_twice_but_not_replaced() -> None:
    register_seats("threads", "distinput.distribute.seats.threads:open_seats")
    with pytest.raises(ValueError, match="the name is taken"):
        register_seats("threads", "elsewhere:open_seats")
    assert list(SEATS) == ["dask", "ray", "threads"]


@pytest.mark.parametrize(
    "error, text",
    [(SeatLost("ps-0"), "ps-0 is lost"), (SeatLost("worker-1", "killed", started=False), "worker-1 is lost: killed")],
)
def test_a_loss_names_the_seat_also_after_it_travelled(error: SeatLost, text: str) -> None:
    there = pickle.loads(pickle.dumps(error))
    assert (str(there), there.seat, there.reason, there.started) == (text, error.seat, error.reason, error.started)


@pytest.mark.parametrize("test", [1, 2])
def test_what_one_test_registers_is_unknown_to_the_next(test: int) -> None:
    register_seats("mine", "distinput.distribute.seats.threads:open_seats")
    assert "mine" in SEATS
