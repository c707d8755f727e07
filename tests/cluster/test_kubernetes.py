# SPDX-License-Identifier: Apache-2.0
"""The pods of an indexed Job, and those that a client lists."""

from types import SimpleNamespace

import pytest

from distinput.distribute.cluster_resolver import (
    KubernetesClusterResolver,
    KubernetesExecutableLocation,
    resolve,
)


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


class Client:
    """As `kubernetes.client.CoreV1Api`, with pods of our own."""

    def __init__(self, **pods: list[tuple[str, str, str]]) -> None:
        self.pods, self.asked = pods, []

    def list_pod_for_all_namespaces(self, label_selector: str) -> SimpleNamespace:
        self.asked.append(label_selector)
        found = self.pods[label_selector.partition("=")[2]]
        return SimpleNamespace(
            items=[
                SimpleNamespace(
                    metadata=SimpleNamespace(name=name), status=SimpleNamespace(phase=phase, host_ip=address)
                )
                for name, phase, address in found
            ]
        )


def test_a_client_lists_the_pods_by_their_labels() -> None:
    client = Client(
        a=[("a-1", "Running", "10.0.0.2"), ("a-0", "Running", "10.0.0.1")], b=[("b-0", "Running", "10.0.0.9")]
    )
    resolver = KubernetesClusterResolver(
        {"worker": ["job-name=a", "job-name=b"], "ps": ["job-name=b"]}, 9000, None, client
    )
    assert resolver.cluster_spec().as_dict() == {
        "worker": ["10.0.0.1:9000", "10.0.0.2:9000", "10.0.0.9:9000"],
        "ps": ["10.0.0.9:9000"],
    }
    assert client.asked == ["job-name=a", "job-name=b", "job-name=b"]
    assert (resolver.task_type, resolver.task_id, resolver.master()) == (None, None, "")
    resolver.task_type, resolver.task_id = "worker", 1
    assert resolver.master() == "10.0.0.2:9000"
    assert resolver.master("ps", 0, "grpc") == "grpc://10.0.0.9:9000"
    assert resolve(resolver=resolver).rank == 1


def test_without_labels_the_pods_are_those_of_tensorflow() -> None:
    resolver = KubernetesClusterResolver(override_client=Client(tensorflow=[("t", "Running", "10.0.0.1")]))
    assert resolver.cluster_spec().as_dict() == {"worker": ["10.0.0.1:8470"]}


def test_every_pod_must_run() -> None:
    resolver = KubernetesClusterResolver(override_client=Client(tensorflow=[("t", "Pending", "")]))
    with pytest.raises(RuntimeError, match='Pod "t" is not running; phase: "Pending"; wait until all pods'):
        resolver.cluster_spec()


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match=r"must be a dict from jobs to label selectors, got 2; .* num_workers="):
        KubernetesClusterResolver(2)
    with pytest.raises(
        ValueError, match=r"job_to_label_mapping needs override_client=kubernetes\.client\.CoreV1Api\(\)"
    ):
        KubernetesClusterResolver({"worker": ["x=y"]})
    with pytest.raises(ValueError, match="The executable location provided is invalid"):
        KubernetesClusterResolver(executable_location="here")
    assert [one.value for one in KubernetesExecutableLocation] == [0, 1]
