# SPDX-License-Identifier: Apache-2.0
"""A resolver for clusters started by torchrun or another launcher for torch.distributed."""

from distinput.cluster.resolver import LaunchedClusterResolver
from distinput.cluster.topology import Sighting
from distinput.cluster.variables import natural, text

__all__ = ["TorchrunClusterResolver"]


class TorchrunClusterResolver(LaunchedClusterResolver):
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

    def sighting(self) -> Sighting | None:
        environ = self._environ
        host, port = text(environ, "MASTER_ADDR"), text(environ, "MASTER_PORT")
        coordinator = f"{host}:{port}" if host and port else None
        # Other programs use RANK or WORLD_SIZE alone, too; together with one of these they are torch's.
        known = coordinator is not None or text(environ, "TORCHELASTIC_RUN_ID") is not None
        both = text(environ, "RANK") is not None and text(environ, "WORLD_SIZE") is not None
        if not known and not both:
            return None
        names = {"rank": "RANK", "size": "WORLD_SIZE", "local_rank": "LOCAL_RANK", "local_size": "LOCAL_WORLD_SIZE"}
        rank, size = natural(environ, "RANK", self.source), natural(environ, "WORLD_SIZE", self.source, 1)
        return Sighting(
            self.source,
            rank=rank,
            size=size,
            local_rank=natural(environ, "LOCAL_RANK", self.source),
            local_size=natural(environ, "LOCAL_WORLD_SIZE", self.source, 1),
            coordinator=coordinator,
            restart_count=natural(environ, "TORCHELASTIC_RESTART_COUNT", self.source) or 0,
            words={field: f"{name}={environ[name]}" for field, name in names.items() if text(environ, name)},
        )
