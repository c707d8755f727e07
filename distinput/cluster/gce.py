# SPDX-License-Identifier: Apache-2.0
"""The instances of a group of Google Compute Engine, listed by a client that the user hands over."""

from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import ClusterResolver, with_rpc_layer

__all__ = ["GCEClusterResolver"]


class GCEClusterResolver(ClusterResolver):
    """Asks the client for the running instances of an instance group, again at every call; their addresses are sorted.

    Args:
      project: the name of the project.
      zone: the zone of the group.
      instance_group: the name of the group.
      port: the port of every task.
      task_type: the job that the instances belong to.
      task_id: the number of this process among them, which you give each instance.
      rpc_layer: the protocol written before addresses.
      credentials: accepted for compatibility with TensorFlow, and ignored: the client has its own.
      service: the client, as `googleapiclient.discovery.build("compute", "v1")` makes it. The resolver opens no connection
        of its own.

    Raises:
      ValueError: no client.
      RuntimeError: `task_type` is set later.

    Source: `tf.distribute.cluster_resolver.GCEClusterResolver`, which makes a client if none is given.
    """

    source = "gce"

    def __init__(
        self,
        project: str,
        zone: str,
        instance_group: str,
        port: int,
        task_type: str = "worker",
        task_id: int = 0,
        rpc_layer: str | None = "grpc",
        credentials: Any = "default",
        service: Any = None,
    ) -> None:
        if service is None:
            raise ValueError(
                "GCEClusterResolver: needs service=googleapiclient.discovery.build('compute', 'v1'), a client with its "
                "credentials; the resolver opens no connection of its own"
            )
        self._group = {"project": project, "zone": zone, "instanceGroup": instance_group}
        self._port, self._service = port, service
        self._task_type, self._task_id, self._rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        groups, instances = self._service.instanceGroups(), self._service.instances()
        request = groups.listInstances(**self._group, body={"instanceState": "RUNNING"}, orderBy="name")
        addresses = []
        while request is not None:
            page = request.execute()
            for item in page.get("items", []):
                name = item["instance"].rpartition("/")[2]
                found = instances.get(project=self._group["project"], zone=self._group["zone"], instance=name).execute()
                addresses.append(f"{found['networkInterfaces'][0]['networkIP']}:{self._port}")
            request = groups.listInstances_next(previous_request=request, previous_response=page)
        return ClusterSpec({self._task_type: sorted(addresses)})

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        task_type = self._task_type if task_type is None else task_type
        task_id = self._task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return ""
        return with_rpc_layer(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self._rpc_layer)

    @property
    def task_type(self) -> str | None:
        """The job of this process, as it was given."""
        return self._task_type

    @task_type.setter
    def task_type(self, value: str | None) -> None:
        raise RuntimeError(
            "You cannot reset the task_type of the GCEClusterResolver after it has been created: the addresses are those "
            f"of the job {self._task_type!r}; make another resolver"
        )
