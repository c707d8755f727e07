# SPDX-License-Identifier: Apache-2.0
"""The address at which JAX's processes meet."""

from distinput.cluster.resolver import LaunchedClusterResolver
from distinput.cluster.topology import Sighting
from distinput.cluster.variables import Environ, text

__all__ = ["JaxClusterResolver"]


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
