# SPDX-License-Identifier: Apache-2.0
"""`resolve` tells every process its place: given arguments first, then the environment, and no silent contradictions."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from distinput.cluster.resolve import RESOLVERS, SOURCES, resolver_of
from distinput.distribute.cluster_resolver import (
    Cluster,
    ClusterSpec,
    SimpleClusterResolver,
    TFConfigClusterResolver,
    UnionResolver,
    resolve,
)


def tf_config(rank: int, size: int) -> dict[str, str]:
    cluster = {"worker": [f"t{i}:1" for i in range(size)]}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": rank}})}


def torchrun(rank: int, size: int) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "torch", "MASTER_PORT": "2"}


def open_mpi(rank: int, size: int) -> dict[str, str]:
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size), "PMIX_RANK": str(rank)}


def pmi(rank: int, size: int) -> dict[str, str]:
    return {"PMI_RANK": str(rank), "PMI_SIZE": str(size)}


def slurm(rank: int, size: int) -> dict[str, str]:
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_STEP_NUM_TASKS": str(size),
        "SLURM_STEP_NODELIST": f"n[1-{size}]",
        "SLURM_STEP_TASKS_PER_NODE": f"1(x{size})",
        "SLURM_NODEID": str(rank),
        "SLURM_JOB_ID": "4100",
        "SLURM_RESTART_COUNT": "1",
    }


def kubernetes(rank: int, size: int) -> dict[str, str]:
    return {
        "JOB_COMPLETION_INDEX": str(rank),
        "DISTINPUT_NUM_WORKERS": str(size),
        "DISTINPUT_SUBDOMAIN": "net",
        "HOSTNAME": f"job-{rank}",
    }


# In the order in which they are asked.
LAUNCHERS = {
    "tf_config": tf_config,
    "torchrun": torchrun,
    "open_mpi": open_mpi,
    "pmi": pmi,
    "slurm": slurm,
    "kubernetes": kubernetes,
}
MEETING = {
    "tf_config": "t0:1",
    "torchrun": "torch:2",
    "open_mpi": None,
    "pmi": None,
    "slurm": "n1:61444",
    "kubernetes": "job-0.net:8470",
}
TORCHRUN = torchrun(1, 2) | {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "3"}
FULL = {"chief": ["c:1"], "worker": ["h:1", "h:2", "g:1"], "ps": ["p:1", "p:2"], "evaluator": ["e:1"]}
places = st.integers(1, 6).flatmap(lambda size: st.tuples(st.integers(0, size - 1), st.just(size)))


def place(cluster: Cluster) -> tuple[int, int]:
    return cluster.rank, cluster.size


# ---- the environment


@given(places, st.sampled_from(list(LAUNCHERS)))
def test_every_launcher_is_understood(at: tuple[int, int], name: str) -> None:
    cluster = resolve(LAUNCHERS[name](*at))
    assert place(cluster) == at
    assert (cluster.source, cluster.task_type, cluster.task_id) == (name, "worker", at[0])
    assert cluster.jobs.num_tasks("worker") == len(cluster.addresses) == at[1]
    assert cluster.coordinator == MEETING[name]
    assert cluster.is_chief == (at[0] == 0)
    assert 0 <= cluster.local_rank < cluster.local_size <= cluster.size
    assert cluster.restart_count == (name == "slurm")


@given(st.dictionaries(st.sampled_from(list(LAUNCHERS)), places, min_size=1))
def test_the_first_in_the_order_is_believed(found: dict[str, tuple[int, int]]) -> None:
    environ = {key: value for name, at in found.items() for key, value in LAUNCHERS[name](*at).items()}
    if "open_mpi" not in found:
        environ.pop("PMIX_RANK", None)
    first = next(name for name in LAUNCHERS if name in found)
    if first in ("tf_config", "torchrun"):  # what people write must not be contradicted
        assume(len(set(found.values())) == 1)
    cluster = resolve(environ)
    assert (cluster.source, place(cluster)) == (first, found[first])


def test_the_order_is_the_one_of_the_sources() -> None:
    order = [source.source for source in SOURCES]
    assert order == ["tf_config", "torchrun", "open_mpi", "pmi", "pmix", "jax", "slurm", "kubernetes"]
    assert all(order.index(a) < order.index(b) for a, b in pairwise(LAUNCHERS))


@given(places, st.sampled_from(list(LAUNCHERS)))
def test_all_processes_see_the_same_cluster(at: tuple[int, int], name: str) -> None:
    seen = [resolve(LAUNCHERS[name](rank, at[1])) for rank in range(at[1])]
    assert [cluster.rank for cluster in seen] == list(range(at[1]))
    assert len({(cluster.size, cluster.jobs, cluster.coordinator) for cluster in seen}) == 1


@given(places, st.sampled_from(list(LAUNCHERS)))
def test_the_mapping_is_left_alone(at: tuple[int, int], name: str) -> None:
    environ = LAUNCHERS[name](*at)
    kept = dict(environ)
    assert resolve(environ) == resolve(environ)
    assert environ == kept


@pytest.mark.parametrize("environ", [{}, {"TF_CONFIG": ""}, {"TF_CONFIG": "{}"}, {"RANK": "3"}, {"WORLD_SIZE": "3"}])
def test_without_a_cluster_it_is_a_single_process(environ: dict[str, str]) -> None:
    assert resolve(environ) == Cluster(0, 1, source="single")


def test_one_may_meet_at_an_address_and_be_alone() -> None:
    assert resolve({"MASTER_ADDR": "m", "MASTER_PORT": "1"}).source == "single"


def test_the_process_environment_is_the_default() -> None:
    program = "import distinput as di; c = di.distribute.cluster_resolver.resolve(); print(c.rank, c.size, c.source)"
    environ = {key: value for key, value in os.environ.items() if key != "TF_CONFIG"} | tf_config(1, 3)
    run = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True, timeout=300
    )
    assert run.stdout.split() == ["1", "3", "tf_config"]


def test_restarts_and_neighbours_are_the_launchers() -> None:
    cluster = resolve(TORCHRUN)
    assert (cluster.local_rank, cluster.local_size, cluster.restart_count) == (1, 2, 3)


def test_neighbours_have_the_same_host() -> None:
    config = {"cluster": {"worker": ["h:1", "g:1", "h:2", "[::1]:5", "[::1]:6"]}}
    at = [resolve({"TF_CONFIG": json.dumps(config | {"task": {"type": "worker", "index": i}})}) for i in range(5)]
    assert [(c.local_rank, c.local_size) for c in at] == [(0, 2), (0, 1), (1, 2), (0, 2), (1, 2)]


@pytest.mark.parametrize(
    "task_type, task_id, rank, size, coordinator, chief",
    [
        ("chief", 0, 0, 4, "c:1", True),
        ("worker", 1, 2, 4, "c:1", False),
        ("evaluator", 0, 0, 1, None, True),
        ("ps", 1, 1, 2, None, False),
    ],
)
def test_each_job_counts_its_own(
    task_type: str, task_id: int, rank: int, size: int, coordinator: str | None, chief: bool
) -> None:
    config = {"cluster": FULL, "task": {"type": task_type, "index": task_id}}
    cluster = resolve({"TF_CONFIG": json.dumps(config)})
    assert (*place(cluster), cluster.coordinator, cluster.is_chief) == (rank, size, coordinator, chief)
    assert (cluster.task_type, cluster.task_id) == (task_type, task_id)


# ---- sources that know a part


def test_jax_says_where_to_meet() -> None:
    jax = {"JAX_COORDINATOR_ADDRESS": "j:1"}
    cluster = resolve(jax, rank=1, size=2)
    assert (place(cluster), cluster.coordinator, cluster.source) == ((1, 2), "j:1", "explicit")
    cluster = resolve(jax | slurm(2, 3))
    assert (place(cluster), cluster.coordinator, cluster.source) == ((2, 3), "j:1", "slurm")
    assert resolve(jax | slurm(2, 3), coordinator="x:9").coordinator == "x:9"
    assert resolve(jax | tf_config(0, 2)).coordinator == "t0:1"


def test_a_master_address_in_a_slurm_script_is_where_to_meet() -> None:
    cluster = resolve(slurm(1, 2) | {"MASTER_ADDR": "m", "MASTER_PORT": "1"})
    assert (cluster.source, cluster.coordinator) == ("slurm", "m:1")


def test_pmix_and_slurm_must_mean_the_same_process() -> None:
    assert resolve(slurm(1, 2) | {"PMIX_RANK": "1"}).rank == 1
    with pytest.raises(ValueError, match="pmix says PMIX_RANK=0, but slurm says SLURM_PROCID=1; give rank and size"):
        resolve(slurm(1, 2) | {"PMIX_RANK": "0"})
    assert resolve(slurm(1, 2) | {"PMIX_RANK": "0"}, rank=0).rank == 0


@pytest.mark.parametrize(
    "environ, says",
    [
        (
            {"PMIX_RANK": "1"},
            "pmix says PMIX_RANK=1: there is a cluster, but the rank of this process or .* is unknown; give rank and size",
        ),
        ({"JAX_COORDINATOR_ADDRESS": "j:1"}, "jax says JAX_COORDINATOR_ADDRESS=j:1: there is a cluster"),
        ({"JOB_COMPLETION_INDEX": "1"}, "kubernetes says JOB_COMPLETION_INDEX=1: .* or set DISTINPUT_NUM_WORKERS"),
        ({"RANK": "1", "MASTER_ADDR": "m", "MASTER_PORT": "1"}, "torchrun says RANK=1: there is a cluster"),
        ({"TF_CONFIG": json.dumps({"cluster": FULL})}, 'not which of its tasks this process is; add "task"'),
    ],
)
def test_half_a_description_is_not_a_single_process(environ: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        resolve(environ)


@pytest.mark.parametrize(
    "environ",
    [{"PMIX_RANK": "1"}, {"JOB_COMPLETION_INDEX": "1"}, {"RANK": "1", "MASTER_ADDR": "m", "MASTER_PORT": "1"}],
)
def test_the_missing_half_can_be_given(environ: dict[str, str]) -> None:
    assert place(resolve(environ, size=3)) == (1, 3)


# ---- what is given


@given(places, places, st.sampled_from(list(LAUNCHERS)))
def test_rank_and_size_together_win(given_place: tuple[int, int], at: tuple[int, int], name: str) -> None:
    cluster = resolve(LAUNCHERS[name](*at), rank=given_place[0], size=given_place[1])
    assert (place(cluster), cluster.source) == (given_place, "explicit")


@given(places, st.integers(0, 7), st.sampled_from(list(LAUNCHERS)))
def test_a_rank_alone_must_fit_the_environment(at: tuple[int, int], rank: int, name: str) -> None:
    if rank < at[1]:
        cluster = resolve(LAUNCHERS[name](*at), rank=rank)
        assert (place(cluster), cluster.source, cluster.task_id) == ((rank, at[1]), name, rank)
    else:
        with pytest.raises(ValueError, match=f"rank={rank} was given, but {name} says"):
            resolve(LAUNCHERS[name](*at), rank=rank)


@given(places, st.integers(1, 7), st.sampled_from(list(LAUNCHERS)))
def test_a_size_alone_must_be_that_of_the_environment(at: tuple[int, int], size: int, name: str) -> None:
    if size == at[1]:
        assert place(resolve(LAUNCHERS[name](*at), size=size)) == at
    else:
        with pytest.raises(ValueError, match=f"size={size} was given, but {name} says"):
            resolve(LAUNCHERS[name](*at), size=size)


@given(places, st.booleans(), st.sampled_from(["torchrun", "open_mpi", "pmi", "slurm", "kubernetes"]))
def test_a_cluster_spec_takes_the_launchers_rank(at: tuple[int, int], chief: bool, name: str) -> None:
    size = at[1]
    addresses = [f"x{i}:1" for i in range(size)]
    spec = {"chief": addresses[:1], "worker": addresses[1:]} if chief and size > 1 else {"worker": addresses}
    cluster = resolve(LAUNCHERS[name](*at), cluster_spec=spec)
    assert (place(cluster), cluster.addresses, cluster.coordinator) == (at, tuple(addresses), "x0:1")
    assert cluster.jobs == ClusterSpec(spec)


def test_a_cluster_spec_with_a_task_says_everything() -> None:
    cluster = resolve(TORCHRUN, cluster_spec=FULL, task_type="worker", task_id=2)
    assert (place(cluster), cluster.source, cluster.coordinator) == ((3, 4), "explicit", "c:1")
    assert place(resolve({}, cluster_spec={"worker": ["a:1"]})) == (0, 1)


def test_a_task_overrides_that_of_tf_config() -> None:
    environ = {"TF_CONFIG": json.dumps({"cluster": FULL, "task": {"type": "worker", "index": 1}})}
    assert place(resolve(environ, task_id=0)) == (1, 4)
    assert place(resolve(environ, task_type="chief")) == (0, 4)
    assert place(resolve(environ, rank=3)) == (3, 4)


def test_a_place_on_the_machine_can_be_given() -> None:
    cluster = resolve(TORCHRUN, local_rank=0, local_size=1, coordinator="x:1")
    assert (cluster.local_rank, cluster.local_size, cluster.coordinator) == (0, 1, "x:1")
    assert resolve({}, rank=1, size=3, local_rank=1).local_size == 2


TF_TWO = tf_config(1, 2)


@pytest.mark.parametrize(
    "environ, arguments, says",
    [
        (TORCHRUN, {"size": 3}, "size=3 was given, but torchrun says WORLD_SIZE=2; .* rank and size together"),
        (TORCHRUN, {"size": 1}, "size=1 was given, but torchrun says WORLD_SIZE=2"),
        (TORCHRUN, {"rank": 2}, "rank=2 was given, but torchrun says WORLD_SIZE=2"),
        (TORCHRUN, {"local_rank": 2}, "local_rank=2 was given, but torchrun says LOCAL_WORLD_SIZE=2"),
        (TORCHRUN, {"local_size": 1}, "local_size=1 was given, but torchrun says LOCAL_RANK=1"),
        (TORCHRUN, {"cluster_spec": {"worker": ["a:1"]}}, r"cluster_spec=.* was given, but torchrun says WORLD_SIZE=2"),
        (TORCHRUN, {"task_type": "ps"}, "torchrun says WORLD_SIZE=2, and task_type='ps' was given; they cannot both"),
        (torchrun(2, 2), {}, "torchrun says RANK=2 and torchrun says WORLD_SIZE=2 cannot both hold"),
        (TF_TWO, {"size": 4}, r"size=4 was given, but tf_config says cluster=\{\"worker\": \[\"t0:1\", \"t1:1\"\]\}"),
        (TF_TWO, {"rank": 2}, "rank=2 was given, but tf_config says cluster="),
        (TF_TWO, {"task_id": 5}, "tf_config says cluster=.*, and task_id=5 was given; they cannot both hold"),
        (
            TF_TWO,
            {"cluster_spec": {"worker": ["a:1"]}},
            "cluster_spec=.* was given, and tf_config says task=.*index.*1",
        ),
        (tf_config(5, 2), {}, "tf_config says cluster=.*, and tf_config says task=.*cannot both hold"),
        (slurm(0, 2), {"size": 4}, "size=4 was given, but slurm says SLURM_STEP_NUM_TASKS=2"),
        ({}, {"rank": 2, "size": 2}, "rank=2 was given and size=2 was given; they cannot both hold"),
        ({}, {"rank": 1}, "rank=1 was given, but the number of processes is unknown; give size"),
        ({}, {"size": 2}, "size=2 was given, but the rank of this process is unknown; give rank"),
        ({}, {"task_id": 1}, "task_id=1 was given, but the cluster is unknown; give cluster_spec"),
        ({}, {"cluster_spec": FULL}, "the task of this process is unknown; give task_type and task_id"),
        ({}, {"cluster_spec": {"worker": ["a:1", "b:1"]}, "rank": 2}, "rank=2 was given and cluster_spec=.* was given"),
        ({}, {"cluster_spec": {"worker": ["a:1", "b:1"]}, "rank": 0, "size": 3}, "size=3 was given and cluster_spec="),
        (
            {},
            {"cluster_spec": {"worker": ["a:1", "b:1"]}, "task_type": "worker", "task_id": 1, "rank": 0},
            "rank=0 was given, but task 1 of job 'worker' has rank 1",
        ),
        ({}, {"size": 0}, "size must be at least 1, got 0"),
        ({}, {"rank": -1, "size": 2}, "rank must be at least 0, got -1"),
        ({}, {"rank": 0, "size": 1, "local_size": 2}, "local_size must be at most size, got local_size=2 and size=1"),
        ({}, {"rank": 0, "size": 2, "local_rank": 1, "local_size": 1}, "local_rank must be from 0 to local_size - 1"),
    ],
)
def test_what_cannot_both_hold_is_named(environ: dict[str, str], arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        resolve(environ, **arguments)


# ---- a resolver is made, or given


@given(places, st.sampled_from(list(LAUNCHERS)))
def test_a_strategys_resolver_says_what_was_found(at: tuple[int, int], name: str) -> None:
    environ = LAUNCHERS[name](*at)
    cluster = resolve(environ)
    resolver = resolver_of(cluster, environ)
    assert (resolver.task_type, resolver.task_id, resolver.cluster_spec()) == ("worker", at[0], cluster.jobs)
    assert isinstance(resolver, TFConfigClusterResolver) == (name == "tf_config")
    other = resolve(environ, rank=0)
    assert resolver_of(other, environ).task_id == 0


def test_without_a_cluster_the_resolver_is_that_of_tf_config() -> None:
    resolver = resolver_of(resolve({}), {})
    assert isinstance(resolver, TFConfigClusterResolver)
    assert resolver.task_type is None


def test_a_resolver_stands_before_the_environment() -> None:
    spec = ClusterSpec({"worker": ["a:1", "b:1"]})
    simple = SimpleClusterResolver(spec, task_type="worker", task_id=1)
    assert place(resolve(TORCHRUN | tf_config(0, 5), resolver=simple)) == (1, 2)
    assert place(resolve(TORCHRUN, resolver=UnionResolver(simple, task_id=0))) == (0, 2)
    assert resolve(TORCHRUN, resolver=simple).source == "simple"
    assert resolve({}, resolver=TFConfigClusterResolver(environ=tf_config(2, 3))).rank == 2


def test_a_resolver_without_a_cluster_is_a_single_process() -> None:
    assert resolve(TORCHRUN, resolver=SimpleClusterResolver(ClusterSpec({}))).source == "single"


def test_a_resolver_must_say_the_task_and_stand_alone() -> None:
    simple = SimpleClusterResolver(ClusterSpec({"worker": ["a:1", "b:1"]}))
    with pytest.raises(ValueError, match=r"simple says .* not which of its tasks this process is; give task_type"):
        resolve({}, resolver=simple)
    assert resolve({}, resolver=simple, task_type="worker", task_id=1).rank == 1
    with pytest.raises(ValueError, match="a resolver and a cluster_spec were given; give only one"):
        resolve({}, resolver=simple, cluster_spec={"worker": ["a:1"]})


# ---- two descriptions


def test_tf_config_against_torchrun_is_an_error() -> None:
    with pytest.raises(ValueError, match="there are two clusters") as caught:
        resolve(tf_config(0, 2) | torchrun(1, 4))
    for word in (
        'tf_config says cluster={"worker": ["t0:1", "t1:1"]}, task={"type": "worker", "index": 0} in TF_CONFIG: rank 0 of 2',
        "torchrun says RANK=1, WORLD_SIZE=4: rank 1 of 4",
        "cluster_resolver=TFConfigClusterResolver() or TorchrunClusterResolver()",
    ):
        assert word in str(caught.value)


@given(places, places, st.sampled_from(["torchrun", "open_mpi", "pmi", "slurm", "kubernetes"]))
def test_tf_config_and_a_launcher_must_agree(here: tuple[int, int], there: tuple[int, int], name: str) -> None:
    environ = tf_config(*here) | LAUNCHERS[name](*there)
    if here == there or (there[1] == 1 and name in ("slurm", "kubernetes")):
        assert place(resolve(environ)) == here
    else:
        with pytest.raises(ValueError, match=f"tf_config says .* but {name} says"):
            resolve(environ)
    # Who is told does not ask.
    assert place(resolve(environ, rank=here[0], size=here[1])) == here
    resolver = RESOLVERS[name](environ=environ)  # type: ignore[call-arg]
    assert place(resolve(environ, resolver=resolver)) == there


@pytest.mark.parametrize("task, index, rank, size", [("ps", 0, 4, 6), ("worker", 0, 1, 6), ("evaluator", 0, 6, 7)])
def test_a_launcher_may_count_parameter_servers_too(task: str, index: int, rank: int, size: int) -> None:
    environ = {"TF_CONFIG": json.dumps({"cluster": FULL, "task": {"type": task, "index": index}})} | slurm(rank, size)
    assert resolve(environ).task_type == task


def test_torchrun_knows_better_than_what_started_it() -> None:
    started = {"TORCHELASTIC_RUN_ID": "job"}
    assert place(resolve(torchrun(5, 8) | started | slurm(0, 2))) == (5, 8)
    assert place(resolve(torchrun(5, 8) | slurm(1, 2))) == (5, 8)  # each task of Slurm started four
    with pytest.raises(
        ValueError, match="torchrun says RANK=0, WORLD_SIZE=2: rank 0 of 2, but slurm says SLURM_PROCID=1"
    ):
        resolve(torchrun(0, 2) | slurm(1, 2))  # exported once, for all tasks
    with pytest.raises(ValueError, match="torchrun says RANK=0, WORLD_SIZE=3: rank 0 of 3, but open_mpi says"):
        resolve(torchrun(0, 3) | open_mpi(0, 2))


def test_what_is_not_taken_may_be_broken() -> None:
    assert place(resolve(tf_config(0, 2) | {"SLURM_PROCID": "7", "SLURM_STEP_NUM_TASKS": "2"})) == (0, 2)
