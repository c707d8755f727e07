# SPDX-License-Identifier: Apache-2.0
"""The tasks of a Slurm step and their hosts."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.cluster.slurm import deal_tasks
from distinput.distribute.cluster_resolver import (
    SlurmClusterResolver,
)


def slurm(
    rank: int = 0, size: int = 3, nodes: str = "n[9-10]", counts: str | None = "2,1", **more: str
) -> dict[str, str]:
    environ = {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(size), "SLURM_STEP_NODELIST": nodes, **more}
    return environ | ({} if counts is None else {"SLURM_STEP_TASKS_PER_NODE": counts})


def test_slurms_hosts_keep_their_numeric_order() -> None:
    resolver = SlurmClusterResolver(environ=slurm(rank=2))
    assert resolver.cluster_spec().as_dict() == {"worker": ["n9:8888", "n9:8889", "n10:8888"]}
    assert resolver.get_task_info() == ("worker", 2)
    assert resolver.master() == "grpc://n10:8888"


def test_a_slurm_step_may_have_several_jobs() -> None:
    resolver = SlurmClusterResolver({"ps": 1, "worker": 2}, port_base=7000, environ=slurm(rank=1))
    assert resolver.cluster_spec().as_dict() == {"ps": ["n9:7000"], "worker": ["n9:7001", "n10:7000"]}
    assert resolver.get_task_info() == ("worker", 0)


def test_a_batch_script_is_no_step() -> None:
    script = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_NODELIST": "n[1-8]", "SLURM_JOB_ID": "5"}
    assert SlurmClusterResolver(environ=script).sighting() is None


def test_slurm_needs_no_gpu_and_changes_nothing() -> None:
    before = dict(os.environ)
    environ = slurm()
    kept = dict(environ)
    assert SlurmClusterResolver(gpus_per_node=0, environ=environ).num_accelerators() == {}
    assert SlurmClusterResolver(environ=environ).num_accelerators() == {}
    assert SlurmClusterResolver(gpus_per_node=4, environ=environ).num_accelerators() == {"GPU": 2}
    assert SlurmClusterResolver(gpus_per_task=3, environ=environ).num_accelerators() == {"GPU": 3}
    assert environ == kept
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    "given, already, shown",
    [
        ({"gpus_per_task": 2}, None, "2,3"),
        ({"gpus_per_node": 4}, None, "2,3"),
        ({"gpus_per_task": 2, "auto_set_gpu": False}, None, None),
        ({"gpus_per_task": 2}, "7", "7"),
        ({}, None, None),
    ],
)
def test_a_task_sees_its_own_gpus(monkeypatch: pytest.MonkeyPatch, given, already, shown) -> None:
    for name, value in slurm(rank=1).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", already or "")
    if already is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    SlurmClusterResolver(**given).cluster_spec()
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == shown
    SlurmClusterResolver(gpus_per_task=9, environ=slurm(rank=0)).cluster_spec()  # describes another process
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == shown


def test_a_host_of_its_own_distribution_is_followed() -> None:
    cyclic = slurm(size=5, counts="3,2", SLURM_DISTRIBUTION="cyclic:block")
    hosts = [
        address.split(":")[0] for address in SlurmClusterResolver(environ=cyclic).cluster_spec().as_dict()["worker"]
    ]
    assert hosts == ["n9", "n10", "n9", "n10", "n9"]
    plane = slurm(size=5, counts="3,2", SLURM_DISTRIBUTION="plane=2", SLURM_DIST_PLANESIZE="2")
    hosts = [
        address.split(":")[0] for address in SlurmClusterResolver(environ=plane).cluster_spec().as_dict()["worker"]
    ]
    assert hosts == ["n9", "n9", "n10", "n10", "n9"]
    arbitrary = slurm(SLURM_DISTRIBUTION="arbitrary")
    assert SlurmClusterResolver(environ=arbitrary).cluster_spec().as_dict() == {"worker": ["", "", ""]}


@pytest.mark.parametrize(
    "resolver, says",
    [
        (
            SlurmClusterResolver(environ=slurm(rank=1, SLURM_NODEID="1")),
            r"rank 1 must run on host number 0 \(n9\) when tasks are dealt by 'block', got SLURM_NODEID=1; set SLURM_DIST",
        ),
        (
            SlurmClusterResolver(environ=slurm(counts="2")),
            "must add up to SLURM_STEP_NUM_TASKS=3, got tasks per node '2'",
        ),
        (
            SlurmClusterResolver(tasks_per_node=2, environ=slurm()),
            "got tasks per node 2 for 2 hosts; give tasks_per_node",
        ),
        (SlurmClusterResolver({"worker": 2}, environ=slurm()), r"jobs must have as many tasks .*=3, got 2 in"),
    ],
)
def test_slurm_variables_that_contradict_are_named(resolver: SlurmClusterResolver, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        resolver.cluster_spec()


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 4))
def test_every_host_gets_its_tasks(counts: list[int], plane: int) -> None:
    assert deal_tasks(counts) == [node for node, count in enumerate(counts) for _ in range(count)]
    dealt = deal_tasks(counts, plane)
    assert [dealt.count(node) for node in range(len(counts))] == counts
    # Walking round the hosts, at most `plane` tasks for each, is what the list must say.
    waiting, walked = list(counts), []
    while sum(waiting):
        for node in range(len(counts)):
            for _ in range(plane):
                if waiting[node]:
                    waiting[node] -= 1
                    walked.append(node)
    assert dealt == walked
