# SPDX-License-Identifier: Apache-2.0
"""A resolver for the cluster described by the variable TF_CONFIG."""

import json
from dataclasses import replace
from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import ClusterResolver, Environ, current, with_rpc_layer
from distinput.cluster.topology import Sighting


class TFConfigClusterResolver(ClusterResolver):
    """Reads the JSON in TF_CONFIG, again at every access.

    Args:
      task_type: replaces `task.type`.
      task_id: replaces `task.index`.
      rpc_layer: replaces `rpc_layer`.
      environment: the value of `environment`.
      environ: the variables to read; those of the process by default.

    Raises:
      ValueError: on access, TF_CONFIG is malformed.

    >>> import json, os
    >>> import distinput as di
    >>> config = {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}
    >>> resolver = di.distribute.cluster_resolver.TFConfigClusterResolver(environ={"TF_CONFIG": json.dumps(config)})
    >>> resolver.task_type, resolver.task_id, resolver.master()
    ('worker', 1, 'b:2')

    Source: `tf.distribute.cluster_resolver.TFConfigClusterResolver`.
    """

    source = "tf_config"

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
        *,
        environ: Environ | None = None,
    ) -> None:
        self._task_type, self._task_id, self._rpc_layer = task_type, task_id, rpc_layer
        self._environment, self._given = environment, environ

    def _found_task_type(self) -> str | None:
        value = self._task().get("type")
        return None if value is None else str(value)

    def _found_task_id(self) -> int | None:
        value = self._task().get("index")
        try:
            return None if value is None else int(value)
        except (TypeError, ValueError):
            raise ValueError(f"TF_CONFIG: task.index must be an integer, got {value!r}") from None

    def _found_rpc_layer(self) -> str | None:
        value = self._config().get("rpc_layer")
        return None if value is None else str(value)

    def cluster_spec(self) -> ClusterSpec:
        cluster = self._config().get("cluster", {})
        try:
            return ClusterSpec(cluster)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"TF_CONFIG: cluster must be an object from job names to addresses, got {cluster!r}: {error}"
            ) from error

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        config = self._config()
        if "session_master" in config:
            return str(config["session_master"])
        spec = self.cluster_spec()
        # No other task to connect to.
        if not spec or (len(spec.jobs) == 1 and len(spec.job_tasks(spec.jobs[0])) == 1):
            return ""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        # A missing type or id raises from the look-up: "No such job in cluster: None".
        address = spec.task_address(task_type, task_id)  # type: ignore[arg-type]
        return with_rpc_layer(address, rpc_layer or self.rpc_layer)

    def sighting(self) -> Sighting | None:
        found = super().sighting()
        if found is None:
            return None
        cluster, task = json.dumps(found.jobs and found.jobs.as_dict()), json.dumps(self._task())
        words = {"size": f"cluster={cluster}", "jobs": f"cluster={cluster}", "task": f"task={task}"}
        return replace(found, words=words)

    def _config(self) -> dict[str, Any]:
        text = current(self._given).get("TF_CONFIG") or "{}"
        try:
            config = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"TF_CONFIG: must be JSON, got {text!r}: {error}") from error
        if not isinstance(config, dict):
            raise ValueError(  # noqa: TRY004 -- the text is malformed; all its faults are ValueErrors
                'TF_CONFIG: must be a JSON object such as {"cluster": {"worker": ["host:port"]}, "task": {"type": '
                f'"worker", "index": 0}}}}, got {text!r}'
            )
        return config

    def _task(self) -> dict[str, Any]:
        task = self._config().get("task", {})
        if not isinstance(task, dict):
            raise ValueError(  # noqa: TRY004 -- as above
                f'TF_CONFIG: task must be an object such as {{"type": "worker", "index": 0}}, got {task!r}'
            )
        return task
