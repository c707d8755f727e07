# SPDX-License-Identifier: Apache-2.0
"""Resolvers for launchers that tell all in a few variables or calls: MPI, torchrun, JAX, threads, GCE."""

from dataclasses import replace
from typing import Any, ClassVar

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import (
    ClusterResolver,
    Environ,
    LaunchedClusterResolver,
    address_of,
    natural,
    text,
    with_rpc_layer,
)
from distinput.cluster.topology import Sighting

# ----------------------------------------------------------------------------
# Resolvers for MPI launchers: Open MPI, launchers that use PMI (MPICH, Intel MPI), and bare PMIx.
# ----------------------------------------------------------------------------


class _NumbersClusterResolver(LaunchedClusterResolver):
    """The base of resolvers for launchers that set a variable for each number, which differ in the variables' names."""

    names: ClassVar[dict[str, str]]

    def _read(self, **more: Any) -> Sighting:
        """The numbers in the variables, and what else is known."""
        environ, names = self._environ, self.names
        found: dict[str, Any] = {
            field: natural(environ, name, self.source, int(field.endswith("size"))) for field, name in names.items()
        }
        words = {field: f"{name}={environ[name]}" for field, name in names.items() if text(environ, name)}
        return Sighting(self.source, **found, words=words, **more)


class _MPIClusterResolver(_NumbersClusterResolver):
    """The base of resolvers for MPI launchers; none sets addresses."""

    def sighting(self) -> Sighting | None:
        return None if text(self._environ, self.names["rank"]) is None else self._read()


class OpenMPIClusterResolver(_MPIClusterResolver):
    """Reads OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE and their LOCAL forms.

    Args:
      rpc_layer: the protocol written before addresses.
      environ: the variables to read; those of the process by default.

    Raises:
      RuntimeError: on access, Open MPI did not start this process.
      ValueError: on access, a variable that is not an integer.

    >>> import distinput as di
    >>> environ = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"}
    >>> di.distribute.cluster_resolver.OpenMPIClusterResolver(environ=environ).task_id
    2

    Source: distinput's own; the variables are those of Open MPI's `mpiexec`.
    """

    source = "open_mpi"
    started_by = "Open MPI's mpiexec"
    names: ClassVar[dict[str, str]] = {
        "rank": "OMPI_COMM_WORLD_RANK",
        "size": "OMPI_COMM_WORLD_SIZE",
        "local_rank": "OMPI_COMM_WORLD_LOCAL_RANK",
        "local_size": "OMPI_COMM_WORLD_LOCAL_SIZE",
    }


class PMIClusterResolver(_MPIClusterResolver):
    """Reads PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS.

    Args:
      rpc_layer: the protocol written before addresses.
      environ: the variables to read; those of the process by default.

    Raises:
      RuntimeError: on access, no such launcher started this process.
      ValueError: on access, a variable that is not an integer.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.PMIClusterResolver(environ={"PMI_RANK": "0", "PMI_SIZE": "3"})
    >>> resolver.cluster_spec().num_tasks("worker")
    3

    Source: distinput's own; the variables are those of the `mpiexec` of MPICH and Intel MPI.
    """

    source = "pmi"
    started_by = "the mpiexec of MPICH or Intel MPI"
    names: ClassVar[dict[str, str]] = {
        "rank": "PMI_RANK",
        "size": "PMI_SIZE",
        "local_rank": "MPI_LOCALRANKID",
        "local_size": "MPI_LOCALNRANKS",
    }


class PMIxClusterResolver(_MPIClusterResolver):
    """Reads PMIX_RANK. PMIx has no variable for the number of processes, so pass it to the resolver.

    Args:
      size: the number of processes.
      rpc_layer: the protocol written before addresses.
      environ: the variables to read; those of the process by default.

    Raises:
      RuntimeError: on access, PMIx did not start this process, or `size` was not given.
      ValueError: on access, a variable that is not an integer.

    >>> import distinput as di
    >>> di.distribute.cluster_resolver.PMIxClusterResolver(size=4, environ={"PMIX_RANK": "3"}).task_id
    3

    Source: distinput's own; the variable is that of PMIx.
    """

    source = "pmix"
    started_by = "a launcher that speaks PMIx, and be given `size`, which PMIx tells in no variable"
    names: ClassVar[dict[str, str]] = {"rank": "PMIX_RANK"}

    def __init__(
        self, size: int | None = None, rpc_layer: str | None = None, *, environ: Environ | None = None
    ) -> None:
        super().__init__(rpc_layer, environ=environ)
        self._size = size

    def sighting(self) -> Sighting | None:
        found = super().sighting()
        return found and replace(found, size=self._size)


# ----------------------------------------------------------------------------
# A resolver for clusters started by torchrun or another launcher for torch.distributed.
# ----------------------------------------------------------------------------


class TorchrunClusterResolver(_NumbersClusterResolver):
    """Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RESTART_COUNT.

    Args:
      rpc_layer: the protocol written before addresses.
      environ: the variables to read; those of the process by default.

    Raises:
      RuntimeError: on access, RANK and WORLD_SIZE are not set.
      ValueError: on access, a variable that is not an integer.

    >>> import distinput as di
    >>> environ = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "29500"}
    >>> resolver = di.distribute.cluster_resolver.TorchrunClusterResolver(environ=environ)
    >>> resolver.task_id, resolver.cluster_spec().as_dict()
    (1, {'worker': ['a:29500', '']})

    Source: distinput's own; the variables are those of `torchrun`.
    """

    source = "torchrun"
    started_by = "torchrun, or with RANK and WORLD_SIZE set"
    names: ClassVar[dict[str, str]] = {
        "rank": "RANK",
        "size": "WORLD_SIZE",
        "local_rank": "LOCAL_RANK",
        "local_size": "LOCAL_WORLD_SIZE",
    }

    def sighting(self) -> Sighting | None:
        environ = self._environ
        host, port = text(environ, "MASTER_ADDR"), text(environ, "MASTER_PORT")
        coordinator = f"{host}:{port}" if host and port else None
        # Other programs use RANK or WORLD_SIZE alone, too; together with one of these they are torch's.
        known = coordinator is not None or text(environ, "TORCHELASTIC_RUN_ID") is not None
        both = text(environ, "RANK") is not None and text(environ, "WORLD_SIZE") is not None
        if not known and not both:
            return None
        restarts = natural(environ, "TORCHELASTIC_RESTART_COUNT", self.source) or 0
        return self._read(coordinator=coordinator, restart_count=restarts)


# ----------------------------------------------------------------------------
# The address at which JAX's processes meet.
# ----------------------------------------------------------------------------


class JaxClusterResolver(LaunchedClusterResolver):
    """Reads JAX_COORDINATOR_ADDRESS. JAX has no variable for the number of a process, so pass it to the resolver.

    Args:
      process_id: the number of this process.
      num_processes: the number of processes.
      rpc_layer: the protocol written before addresses.
      environ: the variables to read; those of the process by default.

    Raises:
      RuntimeError: on access, JAX_COORDINATOR_ADDRESS is not set, or the numbers were not given.

    >>> import distinput as di
    >>> environ = {"JAX_COORDINATOR_ADDRESS": "a:1234"}
    >>> resolver = di.distribute.cluster_resolver.JaxClusterResolver(1, 2, environ=environ)
    >>> resolver.cluster_spec().as_dict()
    {'worker': ['a:1234', '']}

    Source: distinput's own; the arguments are those of `jax.distributed.initialize`.
    """

    source = "jax"
    started_by = "something that sets JAX_COORDINATOR_ADDRESS, and be given process_id and num_processes"

    def __init__(
        self,
        process_id: int | None = None,
        num_processes: int | None = None,
        rpc_layer: str | None = None,
        *,
        environ: Environ | None = None,
    ) -> None:
        super().__init__(rpc_layer, environ=environ)
        self._process_id, self._num_processes = process_id, num_processes

    def sighting(self) -> Sighting | None:
        environ = self._environ
        address = text(environ, "JAX_COORDINATOR_ADDRESS")
        if address is None:
            return None
        port = text(environ, "JAX_COORDINATOR_PORT")
        if port is not None and ":" not in address:
            address = f"{address}:{port}"
        return Sighting(
            self.source,
            rank=self._process_id,
            size=self._num_processes,
            coordinator=address,
            words={"coordinator": f"JAX_COORDINATOR_ADDRESS={address}"},
        )


# ----------------------------------------------------------------------------
# A resolver for workers and parameter servers that are threads of this process.
# ----------------------------------------------------------------------------


class LocalClusterResolver(ClusterResolver):
    """Describes a cluster within this process, for `ParameterServerStrategy`: nothing is installed, started or connected.

    Args:
      num_workers: how many workers.
      num_ps: how many parameter servers.

    Raises:
      ValueError: a number is less than 1.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=2)
    >>> resolver.cluster_spec()
    ClusterSpec({'worker': ['local', 'local'], 'ps': ['local']})
    >>> di.distribute.ParameterServerStrategy(resolver)
    ParameterServerStrategy(threads, 2 workers, 1 parameter server)

    Source: distinput's own.
    """

    source = "local"
    engine = "threads"

    def __init__(self, num_workers: int = 1, num_ps: int = 1) -> None:
        for name, count in (("num_workers", num_workers), ("num_ps", num_ps)):
            if count < 1:
                raise ValueError(f"LocalClusterResolver: {name} must be at least 1, got {count}")
        self._spec = ClusterSpec({"worker": ["local"] * num_workers, "ps": ["local"] * num_ps})
        self._task_type, self._task_id = "chief", 0

    def cluster_spec(self) -> ClusterSpec:
        """The workers and parameter servers, all with the address "local"."""
        return self._spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Empty: there is nothing to connect to."""
        return ""


# ----------------------------------------------------------------------------
# A resolver for a cluster that the program itself describes.
# ----------------------------------------------------------------------------


class SimpleClusterResolver(ClusterResolver):
    """Returns the values that it was given.

    Args:
      cluster_spec: a `ClusterSpec`.
      master: the result of `master()` without a task.
      task_type: the job of this process.
      task_id: its number there.
      environment: the value of `environment`.
      num_accelerators: the result of `num_accelerators()`, such as {"GPU": 2}.
      rpc_layer: the protocol written before addresses.

    Raises:
      TypeError: `cluster_spec` is not a ClusterSpec, `master` not a string, or `num_accelerators` not a dict.

    >>> import distinput as di
    >>> resolvers = di.distribute.cluster_resolver
    >>> spec = resolvers.ClusterSpec({"worker": ["a:1", "b:2"]})
    >>> resolver = resolvers.SimpleClusterResolver(spec, task_type="worker", task_id=1, rpc_layer="grpc")
    >>> resolver.master("worker", 0)
    'grpc://a:1'

    Source: `tf.distribute.cluster_resolver.SimpleClusterResolver`.
    """

    source = "simple"

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: dict[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError(
                f"SimpleClusterResolver: cluster_spec must be a ClusterSpec, got {type(cluster_spec).__name__}; write "
                "ClusterSpec({...})"
            )
        if not isinstance(master, str):
            raise TypeError(f"SimpleClusterResolver: master must be a string, got {type(master).__name__} {master!r}")
        if num_accelerators is not None and not isinstance(num_accelerators, dict):
            raise TypeError(
                "SimpleClusterResolver: num_accelerators must be a dict such as {'GPU': 2}, got "
                f"{type(num_accelerators).__name__} {num_accelerators!r}"
            )
        self._cluster_spec, self._master = cluster_spec, master
        self._task_type, self._task_id = task_type, task_id
        self._environment, self._accelerators, self._rpc_layer = environment, num_accelerators, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        return self._cluster_spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        named = task_type is not None and task_id is not None
        address = self._cluster_spec.task_address(task_type, task_id) if named else self._master  # type: ignore[arg-type]
        return with_rpc_layer(address, rpc_layer or self._rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        return dict(self._accelerators or {})


# ----------------------------------------------------------------------------
# The instances of a group of Google Compute Engine, listed by a client that the user hands over.
# ----------------------------------------------------------------------------


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
        return address_of(self, task_type, task_id, rpc_layer)

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
