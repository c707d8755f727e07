# SPDX-License-Identifier: Apache-2.0
"""The pods of an indexed Kubernetes Job."""

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import LaunchedClusterResolver
from distinput.cluster.topology import Sighting
from distinput.cluster.variables import Environ, natural, text

__all__ = ["KubernetesClusterResolver"]


class KubernetesClusterResolver(LaunchedClusterResolver):
    """Reads JOB_COMPLETION_INDEX and HOSTNAME, which an indexed Job sets in its pods; no API server is asked.

    Kubernetes tells a pod its index but not how many pods there are: give `num_workers`, or set
    DISTINPUT_NUM_WORKERS in the pod template to `spec.completions`. Pods find each other through a headless service:
    give `subdomain`, or set DISTINPUT_SUBDOMAIN to `spec.template.spec.subdomain`.

    Args:
      num_workers: the number of pods that compute together.
      subdomain: the name of the headless service; without it addresses are not known.
      job_name: the name of the Job; by default the part of HOSTNAME before the index.
      tf_server_port: the port of every pod.
      rpc_layer: the protocol written before addresses.
      environ: the variables to read; those of the process by default.

    Raises:
      RuntimeError: on access, this process is not in a pod of an indexed Job, or the number of pods is not known.
      ValueError: on access, a variable that is not an integer, or an index that is not below the number of pods.

    >>> import distinput as di
    >>> environ = {"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "train-1"}
    >>> resolver = di.distribute.cluster_resolver.KubernetesClusterResolver(2, "net", environ=environ)
    >>> resolver.task_id, resolver.cluster_spec().as_dict()
    (1, {'worker': ['train-0.net:8470', 'train-1.net:8470']})

    Source: the name is that of `tf.distribute.cluster_resolver.KubernetesClusterResolver`, which asks the API server.
    """

    source = "kubernetes"
    started_by = (
        "an indexed Kubernetes Job (completionMode: Indexed sets JOB_COMPLETION_INDEX) that also says how many pods "
        "there are, in num_workers or DISTINPUT_NUM_WORKERS"
    )

    def __init__(
        self,
        num_workers: int | None = None,
        subdomain: str | None = None,
        job_name: str | None = None,
        tf_server_port: int = 8470,
        rpc_layer: str | None = "grpc",
        *,
        environ: Environ | None = None,
    ) -> None:
        super().__init__(rpc_layer, environ=environ)
        self._num_workers, self._subdomain, self._job_name = num_workers, subdomain, job_name
        self._port = tf_server_port

    def sighting(self) -> Sighting | None:
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
        words = {"rank": f"JOB_COMPLETION_INDEX={index}", "task": f"JOB_COMPLETION_INDEX={index}"}
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
            words=words | {"size": f"DISTINPUT_NUM_WORKERS={size}", "jobs": f"DISTINPUT_NUM_WORKERS={size}"},
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
