# SPDX-License-Identifier: Apache-2.0
"""Resolvers for MPI launchers: Open MPI, launchers that use PMI (MPICH, Intel MPI), and bare PMIx."""

from dataclasses import replace
from typing import ClassVar

from distinput.cluster.resolver import LaunchedClusterResolver
from distinput.cluster.topology import Sighting
from distinput.cluster.variables import Environ, natural, text

__all__ = ["OpenMPIClusterResolver", "PMIClusterResolver", "PMIxClusterResolver"]


class _MPIClusterResolver(LaunchedClusterResolver):
    """The base of resolvers for MPI launchers, which differ in their variables' names; none sets addresses."""

    names: ClassVar[dict[str, str]]

    def sighting(self) -> Sighting | None:
        environ, names = self._environ, self.names
        if text(environ, names["rank"]) is None:
            return None
        found = {
            field: natural(environ, name, self.source, 1 if field.endswith("size") else 0)
            for field, name in names.items()
        }
        words = {field: f"{name}={environ[name]}" for field, name in names.items() if text(environ, name)}
        return Sighting(
            self.source,
            rank=found.get("rank"),
            size=found.get("size"),
            local_rank=found.get("local_rank"),
            local_size=found.get("local_size"),
            words=words,
        )


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
