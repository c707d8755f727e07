# SPDX-License-Identifier: Apache-2.0
"""A parameter-server cluster on this machine, for tests and for trying programs out."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distinput.cluster.dask import DaskClusterResolver
from distinput.cluster.local import LocalClusterResolver
from distinput.cluster.resolver import ClusterResolver
from distinput.distribute.coordinator import ClusterCoordinator
from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy
from distinput.distribute.seats.local_cluster import LocalCluster

__all__ = ["local_parameter_server_cluster"]


@contextmanager
def local_parameter_server_cluster(
    num_workers: int = 2,
    num_ps: int = 1,
    *,
    engine: str | None = None,
    worker_timeout_seconds: float = 30.0,
    **options: Any,
) -> Iterator[tuple[Any, Any]]:
    """A `ParameterServerStrategy` on this machine, and its `ClusterCoordinator`; both end with the block.

    Where Dask is installed (`pip install distinput[dask]`), each worker and each parameter server is a process of its own, with
    the same `sys.path` as this one; a worker's process that ends is started again. Starting takes about two seconds.

    Args:
      num_workers: how many workers.
      num_ps: how many parameter servers.
      engine: what they run on, such as "dask", "ray", or "threads" for threads of this process; None takes "dask" if it is
        installed, and "threads" otherwise.
      worker_timeout_seconds: how long a worker may stand still before it counts as lost.
      options: for `ParameterServerStrategy`, such as `variable_partitioner`.

    Raises:
      EngineMissing: the engine is not installed.

    >>> import distinput as di
    >>> with di.testing.local_parameter_server_cluster(num_workers=2, engine="threads") as (strategy, coordinator):
    ...     coordinator.schedule(lambda: 1).fetch()
    1

    Source: distinput's own.
    """
    if engine is None:
        engine = "dask" if importlib.util.find_spec("distributed") else "threads"

    @contextmanager
    def opened(resolver: ClusterResolver) -> Iterator[tuple[Any, Any]]:
        made = ParameterServerStrategy(
            resolver, engine=engine, worker_timeout_seconds=worker_timeout_seconds, **options
        )
        with made as strategy:
            yield strategy, ClusterCoordinator(strategy)

    if engine != "dask":
        with opened(LocalClusterResolver(num_workers, num_ps)) as pair:
            yield pair
        return
    with LocalCluster(num_workers, num_ps, worker_timeout_seconds=worker_timeout_seconds) as cluster:
        resolver = DaskClusterResolver(cluster.address, num_workers=num_workers, num_ps=num_ps)
        with opened(resolver) as pair:
            yield pair
