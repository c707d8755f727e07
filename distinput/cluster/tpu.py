# SPDX-License-Identifier: Apache-2.0
"""The processes and devices that JAX has, as TensorFlow describes a TPU."""

from importlib import import_module
from typing import Any, Self

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import ClusterResolver, with_rpc_layer
from distinput.tpu.system import TPUSystemMetadata, initialize_tpu_system, jax_for, system_metadata
from distinput.tpu.topology import HardwareFeatures, Topology

_LOCAL = ("", "local")


class TPUClusterResolver(ClusterResolver):
    """The accelerators of this program: all devices that JAX has, in this process and in those that it is connected to.

    A program runs on the hosts of its TPU, a process on each. One host needs nothing else; on several, call
    `jax.distributed.initialize()` first. Without a TPU, whatever JAX has stands for one. Nothing is asked of a network.

    Args:
      tpu: None, "" or "local": the devices of this program.
      zone, project, credentials, service, discovery_url: how TensorFlow finds a TPU by its name; ignored.
      job_name: the name of the job of the processes.
      coordinator_name: the name of another job, whose only task is the coordinator.
      coordinator_address: its address; without one there is no such job.

    Raises:
      ValueError: `tpu` names a remote TPU.
      TypeError: `tpu` is neither a name nor None.
      EngineMissing: on access, JAX is not installed.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    >>> resolver.task_type, resolver.get_coordination_service_leader()
    ('worker', '/job:worker/task:0')

    Source: `tf.distribute.cluster_resolver.TPUClusterResolver`.
    """

    source = "tpu"

    @classmethod
    def connect(cls, tpu: str | None = None, zone: str | None = None, project: str | None = None) -> Self:
        """A resolver that knows the topology, as after `initialize_tpu_system`.

        Source: `tf.distribute.cluster_resolver.TPUClusterResolver.connect`.
        """
        resolver = cls(tpu, zone, project)
        initialize_tpu_system(resolver)
        return resolver

    def __init__(
        self,
        tpu: str | None = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: str | None = None,
    ) -> None:
        if tpu is not None and not isinstance(tpu, str):
            raise TypeError(f"TPUClusterResolver: tpu must be a string or None, got {type(tpu).__name__} {tpu!r}")
        if tpu is not None and tpu not in _LOCAL:
            raise ValueError(
                f"TPUClusterResolver: tpu must be None, '' or 'local', which mean the devices of this program, got {tpu!r}, "
                "the name of a remote TPU; run the program on the hosts of that TPU, a process on each, and call "
                "jax.distributed.initialize() first if there are several"
            )
        self._task_type = job_name
        self._coordinator_name, self._coordinator_address = coordinator_name, coordinator_address
        self._topology: Topology | None = None

    def __enter__(self) -> None:
        """Does nothing: there is no connection to open."""

    def __exit__(self, *error: object) -> None:
        """Does nothing."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it describes the same devices

    def _found_task_id(self) -> int | None:
        return int(jax_for("TPUClusterResolver").process_index())

    def cluster_spec(self) -> ClusterSpec:
        """A task for each process; empty for a program of one process.

        JAX knows the address at which the processes meet, on the host of the first one; the others are empty strings.
        """
        processes = int(jax_for("TPUClusterResolver").process_count())
        if processes == 1:
            return ClusterSpec({})
        jobs = {self._task_type or "worker": [_meeting_address(), *[""] * (processes - 1)]}
        if self._coordinator_name and self._coordinator_address:
            jobs[self._coordinator_name] = [self._coordinator_address]
        return ClusterSpec(jobs)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of a task, by default of this one; empty if it is not known, as in a program of one process.

        Raises:
          ValueError: no such job or task, in a program of several processes.
        """
        spec = self.cluster_spec()
        if not spec:
            return ""
        if task_type is None or task_id is None:
            task_type, task_id = self.task_type, self.task_id
        address = spec.task_address(task_type, task_id)  # type: ignore[arg-type]
        return address and with_rpc_layer(address, rpc_layer or self.rpc_layer or "grpc")

    def get_master(self) -> str:
        """The same as `master()`.

        Source: `tf.distribute.cluster_resolver.TPUClusterResolver.get_master`.
        """
        return self.master()

    def get_job_name(self) -> str | None:
        """The name of the job of the processes.

        Source: `tf.distribute.cluster_resolver.TPUClusterResolver.get_job_name`.
        """
        return self.task_type

    def get_coordination_service_leader(self) -> str:
        """The task whose process the others meet at.

        Source: `tf.distribute.cluster_resolver.TPUClusterResolver.get_coordination_service_leader`.
        """
        return f"/job:{self.get_job_name()}/task:0"

    def get_tpu_system_metadata(self) -> TPUSystemMetadata:
        """How many devices there are, and where.

        Raises:
          RuntimeError: processes have different numbers of devices.

        Source: `tf.distribute.cluster_resolver.TPUClusterResolver.get_tpu_system_metadata`.
        """
        return system_metadata(self.get_job_name() or "worker")

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """The number of devices of each process, under "TPU", whatever stands for one.

        Raises:
          RuntimeError: processes have different numbers of devices.
        """
        return {"TPU": self.get_tpu_system_metadata().num_of_cores_per_host}

    def set_tpu_topology(self, serialized_tpu_topology: bytes) -> None:
        """Keep a topology, for `tpu_hardware_feature`.

        Args:
          serialized_tpu_topology: `Topology.serialized()`.

        Raises:
          ValueError: it is not a topology.

        Source: `tf.distribute.cluster_resolver.TPUClusterResolver.set_tpu_topology`.
        """
        self._topology = Topology(serialized=serialized_tpu_topology)

    @property
    def tpu_hardware_feature(self) -> HardwareFeatures | None:
        """What a chip has besides its cores, for `HardwareFeature`; None before a topology is set.

        Source: `tf.distribute.cluster_resolver.TPUClusterResolver.tpu_hardware_feature`.
        """
        return None if self._topology is None else self._topology.features


def _meeting_address() -> str:
    """The address of JAX's coordination service; empty if JAX does not tell it."""
    state = getattr(import_module("jax._src.distributed"), "global_state", None)
    return getattr(state, "coordinator_address", None) or ""
