# SPDX-License-Identifier: Apache-2.0
"""The resolver over JAX's devices, in one process; tests/engines tries it in several."""

import copy

import pytest

import distinput as di

jax = pytest.importorskip("jax")
resolvers = di.distribute.cluster_resolver


@pytest.mark.parametrize("tpu", [None, "", "local"])
def test_a_program_of_one_process(tpu: str | None) -> None:
    resolver = resolvers.TPUClusterResolver(tpu)
    assert resolver.cluster_spec() == resolvers.ClusterSpec({})
    assert (resolver.master(), resolver.get_master(), resolver.environment) == ("", "", "")
    assert (resolver.task_type, resolver.task_id, resolver.get_job_name()) == ("worker", 0, "worker")
    assert resolver.num_accelerators() == {"TPU": 8}
    assert resolvers.resolve(resolver=resolver).size == 1


def test_the_metadata_of_the_system() -> None:
    metadata = resolvers.TPUClusterResolver("", job_name="tpu_worker").get_tpu_system_metadata()
    assert metadata[:3] == (8, 1, 8)
    assert metadata.topology is not None
    assert metadata.topology.num_tpus_per_task == 8
    assert metadata.devices[1] == "/job:tpu_worker/replica:0/task:0/device:CPU:1"


def test_the_features_are_known_once_the_topology_is() -> None:
    resolver = resolvers.TPUClusterResolver()
    assert resolver.tpu_hardware_feature is None
    connected = resolvers.TPUClusterResolver.connect("local")
    feature = di.tpu.experimental.HardwareFeature(connected.tpu_hardware_feature)
    assert feature.embedding_feature is di.tpu.experimental.HardwareFeature.EmbeddingFeature.UNSUPPORTED
    with pytest.raises(ValueError, match="Topology: serialized must be a TopologyProto"):
        resolver.set_tpu_topology(b"\xff")


@pytest.mark.parametrize("tpu", ["my-tpu", "grpc://10.240.1.2:8470"])
def test_a_remote_tpu_is_refused_with_the_cure(tpu: str) -> None:
    with pytest.raises(ValueError, match=r"got '.*', the name of a remote TPU; .*jax\.distributed\.initialize\(\)"):
        resolvers.TPUClusterResolver(tpu, zone="europe-west4-a")


def test_a_name_that_is_no_text() -> None:
    with pytest.raises(TypeError, match="tpu must be a string or None, got int 3"):
        resolvers.TPUClusterResolver(3)  # type: ignore[arg-type]


def test_it_can_be_copied_entered_and_numbered() -> None:
    resolver = resolvers.TPUClusterResolver(job_name="a")
    assert copy.deepcopy(resolver) is resolver
    with resolver:
        resolver.task_type, resolver.task_id = "b", 3
    assert (resolver.task_type, resolver.task_id) == ("b", 3)
    assert resolver.get_coordination_service_leader() == "/job:b/task:0"


def test_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    monkeypatch.setattr(jax, "process_index", lambda: 2)
    monkeypatch.setattr("distinput.cluster.tpu._meeting_address", lambda: "a:1234")
    resolver = resolvers.TPUClusterResolver(coordinator_name="boss", coordinator_address="b:1")
    assert resolver.cluster_spec().as_dict() == {"worker": ["a:1234", "", ""], "boss": ["b:1"]}
    assert resolver.task_id == 2
    assert (resolver.master(), resolver.master("worker", 0), resolver.master("boss", 0, "http")) == (
        "",
        "grpc://a:1234",
        "http://b:1",
    )
    with pytest.raises(ValueError, match="No task with index 3"):
        resolver.master("worker", 3)
