# SPDX-License-Identifier: Apache-2.0
"""The pods of an indexed Kubernetes Job, and pods that a client of the API server lists."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import ClusterResolver, Environ, LaunchedClusterResolver, natural, text
from distinput.cluster.topology import Sighting


class KubernetesExecutableLocation(Enum):
    """Where the program runs: in a pod of the cluster, or elsewhere.

    Source: `tf.distribute.cluster_resolver.KubernetesExecutableLocation`.
    """

    WITHIN_CLUSTER = 0
    OFF_CLUSTER = 1


class KubernetesClusterResolver(LaunchedClusterResolver):
    """Reads JOB_COMPLETION_INDEX and HOSTNAME, which an indexed Job sets in its pods, or asks the client you hand over.

    Without `override_client` no API server is asked. With one, it lists the pods of each job by their labels, again at every
    call; set `task_type` and `task_id`, which it does not know.

    Kubernetes tells a pod its index but not how many pods there are: give `num_workers`, or set
    DISTINPUT_NUM_WORKERS in the pod template to `spec.completions`. Pods find each other through a headless service:
    give `subdomain`, or set DISTINPUT_SUBDOMAIN to `spec.template.spec.subdomain`.

    Args:
      job_to_label_mapping: for each job the label selectors of its pods; only with `override_client`. By default the job
        "worker" has the pods with the label job-name=tensorflow.
      tf_server_port: the port of every pod.
      rpc_layer: the protocol written before addresses.
      override_client: has `list_pod_for_all_namespaces(label_selector=)`, as `kubernetes.client.CoreV1Api` does, with its
        credentials loaded.
      executable_location: accepted for compatibility with TensorFlow, which chooses credentials by it.
      num_workers: the number of pods that compute together.
      subdomain: the name of the headless service; without it addresses are not known.
      job_name: the name of the Job; by default the part of HOSTNAME before the index.
      environ: the variables to read; those of the process by default.

    Raises:
      TypeError: `job_to_label_mapping` is not a mapping.
      ValueError: labels without a client, or an unknown location; on access, a variable that is not an integer, or an index
        that is not below the number of pods.
      RuntimeError: on access, a pod is not running, this process is not in a pod of an indexed Job, or the number of pods is
        not known.

    >>> import distinput as di
    >>> environ = {"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "train-1"}
    >>> resolver = di.distribute.cluster_resolver.KubernetesClusterResolver(num_workers=2, subdomain="net", environ=environ)
    >>> resolver.task_id, resolver.cluster_spec().as_dict()
    (1, {'worker': ['train-0.net:8470', 'train-1.net:8470']})

    Source: `tf.distribute.cluster_resolver.KubernetesClusterResolver`, which makes a client if none is given.
    """

    source = "kubernetes"
    started_by = (
        "an indexed Kubernetes Job (completionMode: Indexed sets JOB_COMPLETION_INDEX) that also says how many pods "
        "there are, in num_workers or DISTINPUT_NUM_WORKERS"
    )

    def __init__(
        self,
        job_to_label_mapping: Mapping[str, Sequence[str]] | None = None,
        tf_server_port: int = 8470,
        rpc_layer: str | None = "grpc",
        override_client: Any = None,
        executable_location: KubernetesExecutableLocation = KubernetesExecutableLocation.WITHIN_CLUSTER,
        *,
        num_workers: int | None = None,
        subdomain: str | None = None,
        job_name: str | None = None,
        environ: Environ | None = None,
    ) -> None:
        super().__init__(rpc_layer, environ=environ)
        if job_to_label_mapping is not None and not isinstance(job_to_label_mapping, Mapping):
            raise TypeError(
                "KubernetesClusterResolver: job_to_label_mapping must be a dict from jobs to label selectors, got "
                f"{job_to_label_mapping!r}; the number of pods is num_workers="
            )
        if job_to_label_mapping is not None and override_client is None:
            raise ValueError(
                "KubernetesClusterResolver: job_to_label_mapping needs override_client=kubernetes.client.CoreV1Api(), "
                "which asks the API server; without a client the variables of an indexed Job are read"
            )
        if not isinstance(executable_location, KubernetesExecutableLocation):
            raise ValueError(  # noqa: TRY004 - the type that TensorFlow raises
                "KubernetesClusterResolver: The executable location provided is invalid: it must be a "
                f"KubernetesExecutableLocation, got {executable_location!r}"
            )
        self._labels = dict(job_to_label_mapping or {"worker": ["job-name=tensorflow"]})
        self._client = override_client
        self._num_workers, self._subdomain, self._job_name = num_workers, subdomain, job_name
        self._port = tf_server_port

    def cluster_spec(self) -> ClusterSpec:
        if self._client is None:
            return super().cluster_spec()
        return ClusterSpec(
            {job: [one for label in labels for one in self._pods(label)] for job, labels in self._labels.items()}
        )

    def _pods(self, label: str) -> list[str]:
        """The addresses of the pods with a label, by the names of the pods."""
        addresses = []
        for pod in sorted(self._client.list_pod_for_all_namespaces(label_selector=label).items, key=_name):
            if pod.status.phase != "Running":
                raise RuntimeError(
                    f'KubernetesClusterResolver: Pod "{_name(pod)}" is not running; phase: "{pod.status.phase}"; wait until '
                    f"all pods with the label {label!r} run"
                )
            addresses.append(f"{pod.status.host_ip}:{self._port}")
        return addresses

    def _found_task_type(self) -> str | None:
        return super()._found_task_type() if self._client is None else None  # which does not know it

    def _found_task_id(self) -> int | None:
        return super()._found_task_id() if self._client is None else None

    def sighting(self) -> Sighting | None:
        if self._client is not None:
            return ClusterResolver.sighting(self)
        environ, source = self._environ, self.source
        index = natural(environ, "JOB_COMPLETION_INDEX", source)
        if index is None:
            return None
        size = self._num_workers or natural(environ, "DISTINPUT_NUM_WORKERS", source, 1)
        if size is not None and index >= size:
            raise ValueError(
                f"kubernetes: JOB_COMPLETION_INDEX={index} must be below the number of workers, got {size}; let "
                "spec.completions, spec.parallelism and DISTINPUT_NUM_WORKERS be the same number"
            )
        words = dict.fromkeys(("rank", "task"), f"JOB_COMPLETION_INDEX={index}")
        addresses = self._addresses(index, size or 1)
        if size is None:
            return Sighting(source, rank=index, coordinator=addresses[0] or None, words=words)
        return Sighting(
            source,
            rank=index,
            size=size,
            local_rank=0,
            local_size=1,
            jobs=ClusterSpec({"worker": addresses}),
            task_type="worker",
            task_id=index,
            coordinator=addresses[0] or None,
            words=words | dict.fromkeys(("size", "jobs"), f"DISTINPUT_NUM_WORKERS={size}"),
        )

    def _addresses(self, index: int, size: int) -> list[str]:
        environ = self._environ
        subdomain = self._subdomain or text(environ, "DISTINPUT_SUBDOMAIN")
        job = self._job_name
        if job is None:
            # A pod of an indexed Job is called <job>-<index>; one on its host's network has the host's name.
            name, _, number = (text(environ, "HOSTNAME") or "").split(".")[0].rpartition("-")
            job = name if number == str(index) else None
        if not job or not subdomain:
            return [""] * size
        return [f"{job}-{i}.{subdomain}:{self._port}" for i in range(size)]


def _name(pod: Any) -> str:
    return str(pod.metadata.name)
