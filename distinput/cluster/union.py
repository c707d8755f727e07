# SPDX-License-Identifier: Apache-2.0
"""A resolver that combines several clusters into one."""

from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import ClusterResolver, with_rpc_layer

__all__ = ["UnionResolver"]


class UnionResolver(ClusterResolver):
    """The tasks of several resolvers; everything else is taken from the first one.

    Lists of tasks are concatenated. If one resolver numbers the tasks of a job itself, with gaps, all tasks of that job
    keep their numbers.

    Args:
      *args: the resolvers, at least one.
      **kwargs: `task_type`, `task_id`, `rpc_layer`, which replace those of the first resolver; a `task_id` of 0 counts.

    Raises:
      ValueError: no resolver, or an unknown named argument.
      TypeError: something that is not a resolver.

    >>> import distinput as di
    >>> resolvers = di.distribute.cluster_resolver
    >>> one = resolvers.SimpleClusterResolver(resolvers.ClusterSpec({"worker": ["a:1"]}), task_type="worker", task_id=0)
    >>> two = resolvers.SimpleClusterResolver(resolvers.ClusterSpec({"worker": ["b:1"], "ps": ["c:1"]}))
    >>> resolvers.UnionResolver(one, two).cluster_spec().as_dict()
    {'worker': ['a:1', 'b:1'], 'ps': ['c:1']}

    Source: `tf.distribute.cluster_resolver.UnionResolver`.
    """

    source = "union"

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        self._task_type = kwargs.pop("task_type", None)
        self._task_id = kwargs.pop("task_id", None)
        self._rpc_layer = kwargs.pop("rpc_layer", None)
        if kwargs:
            raise ValueError(
                f"UnionResolver: Unexpected kwargs provided {sorted(kwargs)}; known are task_type, task_id, rpc_layer"
            )
        if not args:
            raise ValueError("UnionResolver: At least one ClusterResolver is required, got none")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(
                    f"UnionResolver: All arguments must be a sub-class of `ClusterResolver`, got "
                    f"{type(resolver).__name__} {resolver!r}"
                )
        self._resolvers = args

    def cluster_spec(self) -> ClusterSpec:
        """The jobs of all resolvers.

        Raises:
          KeyError: two resolvers give the same number to a task of a job that is numbered with gaps.
        """
        specs = [resolver.cluster_spec().as_dict() for resolver in self._resolvers]
        jobs: dict[str, Any] = {}
        for job in dict.fromkeys(job for spec in specs for job in spec):
            parts = [spec[job] for spec in specs if job in spec]
            if all(isinstance(part, list) for part in parts):
                jobs[job] = [address for part in parts for address in part]
                continue
            jobs[job] = {}
            for part in parts:
                tasks = dict(enumerate(part)) if isinstance(part, list) else part
                twice = sorted(jobs[job].keys() & tasks.keys())
                if twice:
                    raise KeyError(
                        f"UnionResolver: Duplicate keys detected when merging two ClusterSpecs: tasks {twice} of job "
                        f"{job!r} are named twice; number them apart"
                    )
                jobs[job].update(tasks)
        return ClusterSpec(jobs)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        if task_type is None or task_id is None:
            return self._resolvers[0].master(rpc_layer=rpc_layer)
        return with_rpc_layer(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self._rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)

    @property
    def environment(self) -> str | None:
        """The environment of the first resolver."""
        return self._resolvers[0].environment

    @property
    def task_type(self) -> str | None:
        """The value given or set, else that of the first resolver."""
        return self._resolvers[0].task_type if self._task_type is None else self._task_type

    @task_type.setter
    def task_type(self, value: str | None) -> None:
        self._task_type = value

    @property
    def task_id(self) -> int | None:
        """The value given or set, else that of the first resolver."""
        return self._resolvers[0].task_id if self._task_id is None else self._task_id

    @task_id.setter
    def task_id(self, value: int | None) -> None:
        self._task_id = value

    @property
    def rpc_layer(self) -> str | None:
        """The value given or set, else that of the first resolver."""
        return self._resolvers[0].rpc_layer if self._rpc_layer is None else self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, value: str | None) -> None:
        self._rpc_layer = value
