# SPDX-License-Identifier: Apache-2.0
"""Dask workers take seats by the names of tasks, or in the order of their own names."""

import re

import pytest

from distinput.cluster.dask import DaskClusterResolver, seats_of
from distinput.errors import UnavailableError


def test_names_of_tasks_are_seats_in_the_order_of_numbers() -> None:
    workers = dict.fromkeys(("ps-1", "worker-10", "worker-2", "evaluator-0", "tcp://a:1", "ps-0"), "")
    assert list(seats_of(workers, None)) == ["worker-2", "worker-10", "ps-0", "ps-1"]


def test_the_last_of_other_names_serve() -> None:
    assert seats_of({"a-1": "", "a-0": "", "a-2": ""}, 2) == {"worker-0": "a-0", "ps-0": "a-1", "ps-1": "a-2"}


@pytest.mark.parametrize("num_ps", [0, 2, 3])
def test_at_least_one_worker_is_left(num_ps: int) -> None:
    with pytest.raises(ValueError, match=f"must leave at least one of 2 Dask workers, got {num_ps}"):
        seats_of({"0": "", "1": ""}, num_ps)


def test_it_takes_an_address_or_a_client() -> None:
    with pytest.raises(TypeError, match=re.escape("running distributed.Client, got int")):
        DaskClusterResolver(3)
    resolver = DaskClusterResolver("tcp://a:8786")
    assert (resolver.task_type, resolver.task_id, resolver.master()) == ("chief", 0, "tcp://a:8786")


def test_tasks_that_are_to_come_are_known_by_their_numbers() -> None:
    resolver = DaskClusterResolver("tcp://a:8786", num_workers=2, num_ps=1)
    assert list(resolver.names()) == ["worker-0", "worker-1", "ps-0"]
    assert resolver.cluster_spec().as_dict() == {"worker": ["", ""], "ps": [""]}


@pytest.mark.parametrize("num_workers, num_ps", [(0, 1), (1, None), (1, 0)])
def test_tasks_that_are_to_come_are_at_least_one_of_each_job(num_workers: int, num_ps: int | None) -> None:
    with pytest.raises(ValueError, match="at least one worker and one parameter server"):
        DaskClusterResolver("tcp://a:8786", num_workers=num_workers, num_ps=num_ps)


def test_without_a_scheduler_the_message_says_how_to_start_one() -> None:
    dask = pytest.importorskip("dask", reason="dask is not installed (`pip install 'distinput[dask]'`)")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(UnavailableError, match=r"no Dask scheduler at tcp://127.0.0.1:1: .*distinput cluster start"),
    ):
        DaskClusterResolver("tcp://127.0.0.1:1").names()
