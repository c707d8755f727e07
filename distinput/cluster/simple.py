# SPDX-License-Identifier: Apache-2.0
"""A resolver for a cluster that the program itself describes."""

from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import ClusterResolver, with_rpc_layer

__all__ = ["SimpleClusterResolver"]


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
        self._cluster_spec = cluster_spec
        self._master = master
        self._task_type = task_type
        self._task_id = task_id
        self._environment = environment
        self._accelerators = num_accelerators
        self._rpc_layer = rpc_layer

    @property
    def environment(self) -> str:
        """The cluster given when the resolver was made."""
        return self._environment

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
