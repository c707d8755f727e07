# SPDX-License-Identifier: Apache-2.0
"""Each resolver by itself: TensorFlow's ones as TensorFlow's, and those that read a launcher's variables."""

import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.cluster.slurm import deal_tasks
from distinput.distribute.cluster_resolver import (
    RESOLVERS,
    ClusterResolver,
    ClusterSpec,
    JaxClusterResolver,
    KubernetesClusterResolver,
    OpenMPIClusterResolver,
    PMIClusterResolver,
    PMIxClusterResolver,
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
    TorchrunClusterResolver,
    UnionResolver,
)

TWO = {"worker": ["a:1", "b:2"]}


def tf_config(config: Any) -> dict[str, str]:
    return {"TF_CONFIG": config if isinstance(config, str) else json.dumps(config)}


def simple(cluster: Any = TWO, **more: Any) -> SimpleClusterResolver:
    return SimpleClusterResolver(ClusterSpec(cluster), **more)


def slurm(
    rank: int = 0, size: int = 3, nodes: str = "n[9-10]", counts: str | None = "2,1", **more: str
) -> dict[str, str]:
    environ = {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(size), "SLURM_STEP_NODELIST": nodes, **more}
    return environ | ({} if counts is None else {"SLURM_STEP_TASKS_PER_NODE": counts})


# ---- the table


def test_the_table_is_alphabetical_and_names_every_source() -> None:
    assert list(RESOLVERS) == sorted(RESOLVERS)
    assert {name: cls.source for name, cls in RESOLVERS.items()} == {name: name for name in RESOLVERS}


def test_every_resolver_is_public() -> None:
    public = di.distribute.cluster_resolver
    assert [cls.__name__ for cls in RESOLVERS.values() if getattr(public, cls.__name__) is not cls] == []


# ---- TF_CONFIG


def test_tf_config_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = TFConfigClusterResolver()
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert not resolver.cluster_spec()
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": TWO, "task": {"type": "worker", "index": "1"}}))
    assert (resolver.task_type, resolver.task_id, resolver.master()) == ("worker", 1, "b:2")


def test_what_is_set_on_a_tf_config_resolver_wins() -> None:
    environ = tf_config({"cluster": TWO, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"})
    resolver = TFConfigClusterResolver(environ=environ)
    resolver.task_id = 0
    resolver.rpc_layer = "http"
    assert resolver.master() == "http://a:1"
    resolver.task_type = "ps"
    with pytest.raises(ValueError, match="No such job in cluster: 'ps'"):
        resolver.master()


@pytest.mark.parametrize(
    "config, says",
    [
        ("{", "TF_CONFIG: must be JSON, got '{'"),
        ("[1]", r"TF_CONFIG: must be a JSON object such as .*\"index\": 0\}\}, got '\[1\]'"),
        ({"cluster": [1]}, r"TF_CONFIG: cluster must be an object .*, got \[1\]"),
        ({"cluster": {"worker": "a:1"}}, "TF_CONFIG: cluster must be an object .*got str 'a:1'"),
        ({"cluster": TWO, "task": 1}, "TF_CONFIG: task must be an object .*, got 1"),
        ({"cluster": TWO, "task": {"type": "worker", "index": "x"}}, "task.index must be a whole number, got 'x'"),
    ],
)
def test_a_wrong_tf_config_is_shown(config: Any, says: str) -> None:
    resolver = TFConfigClusterResolver(environ=tf_config(config))
    with pytest.raises(ValueError, match=says):
        (resolver.cluster_spec(), resolver.task_id)


def test_a_task_beyond_the_cluster_is_found_by_master() -> None:
    resolver = TFConfigClusterResolver(environ=tf_config({"cluster": TWO, "task": {"type": "worker", "index": 7}}))
    assert resolver.task_id == 7
    with pytest.raises(ValueError, match="No task with index 7 in job 'worker'"):
        resolver.master()


# ---- simple and union


def test_a_simple_resolver_wants_a_spec() -> None:
    with pytest.raises(TypeError, match=r"cluster_spec must be a ClusterSpec, got dict; write ClusterSpec"):
        SimpleClusterResolver(TWO)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="master must be a string, got int 1"):
        simple(master=1)
    with pytest.raises(TypeError, match=r"num_accelerators must be a dict .* got int 2"):
        simple(num_accelerators=2)


def test_a_simple_resolver_names_its_master_only_without_a_task() -> None:
    resolver = simple(master="m:0", task_type="worker", task_id=1)
    assert (resolver.master(), resolver.master("worker"), resolver.master("worker", 1)) == ("m:0", "m:0", "b:2")


def test_a_union_keeps_task_id_zero() -> None:
    first = simple(task_type="worker", task_id=1)
    assert UnionResolver(first, task_id=0).task_id == 0
    assert UnionResolver(first).task_id == 1
    union = UnionResolver(first)
    union.task_id, union.task_type, union.rpc_layer = 0, "ps", "grpc"
    assert (union.task_id, union.task_type, union.rpc_layer) == (0, "ps", "grpc")
    assert first.task_id == 1


def test_a_union_joins_lists_and_merges_numbered_tasks() -> None:
    lists = UnionResolver(simple(), simple({"worker": ["c:3"], "ps": ["p:1"]}))
    assert lists.cluster_spec().as_dict() == {"worker": ["a:1", "b:2", "c:3"], "ps": ["p:1"]}
    gaps = UnionResolver(simple(), simple({"worker": {4: "e:5"}}))
    assert gaps.cluster_spec().as_dict() == {"worker": {0: "a:1", 1: "b:2", 4: "e:5"}}
    with pytest.raises(KeyError, match=r"Duplicate keys detected .* tasks \[4\] of job 'worker' are named twice"):
        UnionResolver(gaps, simple({"worker": {4: "f:1"}})).cluster_spec()


def test_a_union_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="At least one ClusterResolver is required"):
        UnionResolver()
    with pytest.raises(ValueError, match=r"Unexpected kwargs provided \['environment'\]; known are task_type"):
        UnionResolver(simple(), environment="x")
    with pytest.raises(TypeError, match="must be a sub-class of `ClusterResolver`, got int 3"):
        UnionResolver(simple(), 3)  # type: ignore[arg-type]


# ---- launchers


TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "h0",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "TORCHELASTIC_RUN_ID": "none",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_RANK": "3",
}
PMI = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


@pytest.mark.parametrize(
    "resolver, first",
    [
        (TorchrunClusterResolver(environ=TORCHRUN), "h0:29500"),
        (OpenMPIClusterResolver(environ=OPEN_MPI), ""),
        (PMIClusterResolver(environ=PMI), ""),
        (PMIxClusterResolver(4, environ=OPEN_MPI), ""),
        (JaxClusterResolver(3, 4, environ={"JAX_COORDINATOR_ADDRESS": "h0:29500"}), "h0:29500"),
        (JaxClusterResolver(3, 4, environ={"JAX_COORDINATOR_ADDRESS": "h0", "JAX_COORDINATOR_PORT": "7"}), "h0:7"),
    ],
)
def test_a_launchers_processes_are_workers(resolver: ClusterResolver, first: str) -> None:
    assert (resolver.task_type, resolver.task_id) == ("worker", 3)
    assert resolver.cluster_spec().as_dict() == {"worker": [first, "", "", ""]}
    assert resolver.master() == ""
    assert resolver.master("worker", 0, "grpc") == (f"grpc://{first}" if first else "")
    assert resolver.num_accelerators() == {}
    assert resolver.environment == ""


def test_a_task_can_be_set_on_a_launchers_resolver() -> None:
    resolver = TorchrunClusterResolver(environ=TORCHRUN)
    resolver.task_id = 0
    assert resolver.master() == "h0:29500"
    assert di.distribute.cluster_resolver.resolve({}, resolver=resolver).rank == 0


@pytest.mark.parametrize(
    "cls",
    [
        JaxClusterResolver,
        KubernetesClusterResolver,
        OpenMPIClusterResolver,
        PMIClusterResolver,
        PMIxClusterResolver,
        SlurmClusterResolver,
        TorchrunClusterResolver,
    ],
)
def test_a_launcher_that_did_not_start_this_process_is_an_error(cls: Any) -> None:
    resolver = cls(environ={})
    for ask in (resolver.cluster_spec, resolver.master, lambda: resolver.task_type, lambda: resolver.task_id):
        with pytest.raises(RuntimeError, match=f"{cls.__name__}: this process must have been started by"):
            ask()


@pytest.mark.parametrize(
    "resolver, says",
    [
        (
            TorchrunClusterResolver(environ=TORCHRUN | {"RANK": "-1"}),
            "torchrun: RANK must be a whole number, at least 0",
        ),
        (
            TorchrunClusterResolver(environ=TORCHRUN | {"WORLD_SIZE": "0"}),
            "torchrun: WORLD_SIZE .* at least 1, got '0'",
        ),
        (OpenMPIClusterResolver(environ=OPEN_MPI | {"OMPI_COMM_WORLD_RANK": "x"}), "OMPI_COMM_WORLD_RANK .* got 'x'"),
        (
            PMIClusterResolver(environ=PMI | {"PMI_SIZE": "1.5"}),
            "pmi: PMI_SIZE must be a whole number, at least 1, got '1.5'",
        ),
        (SlurmClusterResolver(environ=slurm(rank=3)), "SLURM_PROCID=3 must be below SLURM_STEP_NUM_TASKS=3"),
        (KubernetesClusterResolver(2, environ={"JOB_COMPLETION_INDEX": "2"}), "JOB_COMPLETION_INDEX=2 must be below"),
    ],
)
def test_a_wrong_variable_is_named(resolver: ClusterResolver, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        resolver.cluster_spec()


# ---- Slurm


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
    with pytest.raises(ValueError, match=r"auto_set_gpu must be False, got True; .*`srun --gpus-per-task=N`"):
        SlurmClusterResolver(auto_set_gpu=True)


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


# ---- Kubernetes


def test_a_pods_name_gives_the_addresses() -> None:
    environ = {
        "JOB_COMPLETION_INDEX": "1",
        "HOSTNAME": "my-job-1",
        "DISTINPUT_NUM_WORKERS": "2",
        "DISTINPUT_SUBDOMAIN": "net",
    }
    resolver = KubernetesClusterResolver(tf_server_port=9000, environ=environ)
    assert resolver.cluster_spec().as_dict() == {"worker": ["my-job-0.net:9000", "my-job-1.net:9000"]}
    assert resolver.master() == "grpc://my-job-1.net:9000"
    strange = KubernetesClusterResolver(environ=environ | {"HOSTNAME": "node7"})
    assert strange.cluster_spec().as_dict() == {"worker": ["", ""]}
    named = KubernetesClusterResolver(job_name="other", environ=environ | {"HOSTNAME": "node7"})
    assert named.cluster_spec().task_address("worker", 0) == "other-0.net:8470"


# ---- one of a user's own


def test_a_resolver_of_a_users_own_needs_two_methods() -> None:
    class Mine(ClusterResolver):
        def cluster_spec(self) -> ClusterSpec:
            return ClusterSpec(TWO)

        def master(self, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
            return "m:1"

    resolver = Mine()
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer) == (None, None, None)
    resolver.task_type, resolver.task_id, resolver.rpc_layer = "worker", 1, "grpc"
    assert di.distribute.cluster_resolver.resolve({}, resolver=resolver).source == "Mine"
    with pytest.raises(TypeError, match="abstract"):
        ClusterResolver()  # type: ignore[abstract]
