# SPDX-License-Identifier: Apache-2.0
"""What all resolvers have in common, one of a user's own included; those that read a launcher's variables."""

from typing import Any

import pytest

import distinput as di
from distinput.distribute.cluster_resolver import (
    RESOLVERS,
    ClusterResolver,
    ClusterSpec,
    JaxClusterResolver,
    KubernetesClusterResolver,
    OpenMPIClusterResolver,
    PMIClusterResolver,
    PMIxClusterResolver,
    SlurmClusterResolver,
    TorchrunClusterResolver,
)

TWO = {"worker": ["a:1", "b:2"]}


def slurm(
    rank: int = 0, size: int = 3, nodes: str = "n[9-10]", counts: str | None = "2,1", **more: str
) -> dict[str, str]:
    environ = {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(size), "SLURM_STEP_NODELIST": nodes, **more}
    return environ | ({} if counts is None else {"SLURM_STEP_TASKS_PER_NODE": counts})


def test_the_table_is_alphabetical_and_names_every_source() -> None:
    assert list(RESOLVERS) == sorted(RESOLVERS)
    assert {name: cls.source for name, cls in RESOLVERS.items()} == {name: name for name in RESOLVERS}


def test_every_resolver_is_public() -> None:
    public = di.distribute.cluster_resolver
    assert [cls.__name__ for cls in RESOLVERS.values() if getattr(public, cls.__name__) is not cls] == []


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
            "torchrun: RANK must be an integer, at least 0",
        ),
        (
            TorchrunClusterResolver(environ=TORCHRUN | {"WORLD_SIZE": "0"}),
            "torchrun: WORLD_SIZE .* at least 1, got '0'",
        ),
        (OpenMPIClusterResolver(environ=OPEN_MPI | {"OMPI_COMM_WORLD_RANK": "x"}), "OMPI_COMM_WORLD_RANK .* got 'x'"),
        (
            PMIClusterResolver(environ=PMI | {"PMI_SIZE": "1.5"}),
            "pmi: PMI_SIZE must be an integer, at least 1, got '1.5'",
        ),
        (SlurmClusterResolver(environ=slurm(rank=3)), "SLURM_PROCID=3 must be below SLURM_STEP_NUM_TASKS=3"),
        (
            KubernetesClusterResolver(num_workers=2, environ={"JOB_COMPLETION_INDEX": "2"}),
            "JOB_COMPLETION_INDEX=2 must be below",
        ),
    ],
)
def test_a_wrong_variable_is_named(resolver: ClusterResolver, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        resolver.cluster_spec()


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
