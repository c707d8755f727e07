# SPDX-License-Identifier: Apache-2.0
"""A worker or parameter server that a program starts."""

import sys

import pytest

import distinput as di
from distinput.distribute.cluster_resolver import ClusterSpec, SimpleClusterResolver
from distinput.distribute.seats.local_cluster import ServerDef
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.testing.ports import free_ports

CLUSTER = {"chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1"]}


def test_the_task_is_named() -> None:
    server = di.distribute.Server(ClusterSpec(CLUSTER), "worker", 1, start=False)
    assert server.server_def == ServerDef(ClusterSpec(CLUSTER), "worker", 1, "grpc")
    assert server.target == "grpc://b:1"
    assert repr(server) == "Server(worker 1, grpc://b:1)"
    other = di.distribute.Server(server.server_def, task_index=0, protocol="http", start=False)
    assert other.target == "http://a:1"


def test_the_only_job_and_the_only_task_need_not_be_named() -> None:
    assert di.distribute.Server(CLUSTER, "ps", start=False).server_def.task_index == 0
    assert di.distribute.Server({"ps": {3: "p:1"}}, start=False).server_def.task_index == 3


@pytest.mark.parametrize(
    "args, says",
    [
        ((CLUSTER,), r"Must specify an explicit `job_name`, one of \['chief', 'worker', 'ps'\]"),
        ((CLUSTER, "worker"), r"Must specify an explicit `task_index`, one of \[0, 1\] of job 'worker'"),
        ((CLUSTER, "evaluator", 0), "No such job in cluster"),
        ((CLUSTER, "worker", 2), "No task with index 2 in job 'worker'"),
    ],
)
def test_a_task_must_be_one_of_the_cluster(args, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        di.distribute.Server(*args, start=False)


def test_something_else_is_no_cluster() -> None:
    with pytest.raises(
        TypeError, match="Could not convert `server_or_cluster_def` to a ServerDef or ClusterSpec, got 3"
    ):
        di.distribute.Server(3)


def test_a_local_server_is_the_program_itself() -> None:
    server = di.distribute.Server.create_local_server()
    assert server.server_def.cluster.as_dict() == {"localhost": ["localhost:0"]}
    server.start()
    server.join()


def test_a_task_that_was_not_started_is_not_waited_for() -> None:
    with pytest.raises(FailedPreconditionError, match=r"worker-0 was not started; call start\(\)"):
        di.distribute.Server(CLUSTER, "worker", 0, start=False).join()


def test_workers_need_to_know_their_coordinator() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InvalidArgumentError, match='add a task to "cluster" in TF_CONFIG, such as "chief"'):
        di.distribute.Server({"worker": ["a:1"]})


@pytest.mark.skipif(sys.platform == "win32", reason="seats end by signals")
def test_a_cluster_of_servers_that_ends_with_its_coordinator() -> None:
    pytest.importorskip("distributed")
    from distinput.distribute.seats import open_seats

    chief, *others = (f"127.0.0.1:{port}" for port in free_ports(3))
    cluster = {"chief": [chief], "worker": [others[0]], "ps": [others[1]]}
    servers = [di.distribute.Server(cluster, job, 0) for job in ("worker", "ps")]
    servers[0].start()  # goes on
    resolver = SimpleClusterResolver(ClusterSpec(cluster), task_type="chief", task_id=0)
    seats = open_seats("dask", resolver)
    try:
        assert (seats.workers, seats.servers) == (("worker-0",), ("ps-0",))
    finally:
        seats.close()
    for server in servers:
        server.join()
