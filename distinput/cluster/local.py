# SPDX-License-Identifier: Apache-2.0
"""A resolver for workers and parameter servers that are threads of this process."""

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import ClusterResolver

__all__ = ["LocalClusterResolver"]


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
