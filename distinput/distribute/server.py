# SPDX-License-Identifier: Apache-2.0
"""A task of a cluster, run from a program: the worker or parameter server of a `ParameterServerStrategy`."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import with_rpc_layer
from distinput.distribute.seats.dask import check_installed, chief_address
from distinput.distribute.seats.local_cluster import SeatProcess, program
from distinput.errors import FailedPreconditionError

__all__ = ["Server", "ServerDef"]

_SEATS = ("worker", "ps")


@dataclass(frozen=True)
class ServerDef:
    """What a `Server` is.

    Args:
      cluster: all tasks.
      job_name: the job of this one.
      task_index: its number in the job.
      protocol: written before addresses.

    Source: `tf.train.ServerDef`.
    """

    cluster: ClusterSpec
    job_name: str
    task_index: int
    protocol: str


class Server:
    """One task of a cluster, which a program starts and waits for.

    A worker or parameter server is a process of its own, the same that `distinput worker --tf-config` is: it looks for the
    coordinator at the address of the task "chief", and ends with it, or with this program. Any other task is the program
    itself, so there is nothing to start or to wait for.

    Args:
      server_or_cluster_def: a `ClusterSpec`, what one is made of, or a `ServerDef`.
      job_name: the job of the task; None for the only one.
      task_index: its number; None for the only one.
      protocol: written before addresses; None for "grpc", TensorFlow's word.
      config: accepted for compatibility with TensorFlow, and ignored.
      start: start it at once.

    Raises:
      ValueError: the job or the number is needed, or there is no such task.
      TypeError: this describes no cluster.
      EngineMissing: `distributed` is not installed.
      InvalidArgumentError: a worker or parameter server, and the cluster has no task "chief".

    >>> import distinput as di
    >>> server = di.distribute.Server({"worker": ["a:1", "b:1"], "chief": ["c:1"]}, "worker", 1, start=False)
    >>> server.target
    'grpc://b:1'

    Source: `tf.distribute.Server`.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        self._def = _server_def(server_or_cluster_def, job_name, task_index, protocol)
        self._process: subprocess.Popen[bytes] | None = None
        if start:
            self.start()

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> "Server":
        """The only task of a cluster on this machine, which is this program.

        Source: `tf.distribute.Server.create_local_server`.
        """
        return Server({"localhost": ["localhost:0"]}, config=config, start=start)

    @property
    def server_def(self) -> ServerDef:
        """The cluster, and which task this is.

        Source: `tf.distribute.Server.server_def`.
        """
        return self._def

    @property
    def target(self) -> str:
        """The address of the task, with its protocol.

        Source: `tf.distribute.Server.target`.
        """
        own = self._def
        return with_rpc_layer(own.cluster.task_address(own.job_name, own.task_index), own.protocol)

    def start(self) -> None:
        """Start the process of the task; one that was started goes on.

        Source: `tf.distribute.Server.start`.
        """
        own = self._def
        if own.job_name not in _SEATS or self._process is not None:
            return
        check_installed()
        process = SeatProcess(
            f"tcp://{chief_address(own.cluster)}",
            f"{own.job_name}-{own.task_index}",
            listen=own.cluster.task_address(own.job_name, own.task_index),
            parent=os.getpid(),
        )
        self._process = subprocess.Popen([sys.executable, "-c", program()], stdin=subprocess.PIPE)
        with self._process.stdin as told:  # type: ignore[union-attr]
            told.write(json.dumps(asdict(process)).encode())

    def join(self) -> None:
        """Wait until the task has ended, which it does with its coordinator.

        Raises:
          FailedPreconditionError: the task was not started, or ended by an error.

        Source: `tf.distribute.Server.join`.
        """
        if self._def.job_name not in _SEATS:
            return
        who = f"{self._def.job_name}-{self._def.task_index}"
        if self._process is None:
            raise FailedPreconditionError(f"Server: {who} was not started; call start()")
        status = self._process.wait()
        if status > 0:
            raise FailedPreconditionError(f"Server: the process of {who} ended with status {status}; it has said why")

    def __repr__(self) -> str:
        return f"Server({self._def.job_name} {self._def.task_index}, {self.target})"


def _server_def(given: Any, job_name: str | None, task_index: int | None, protocol: str | None) -> ServerDef:
    if isinstance(given, ServerDef):
        changes: dict[str, Any] = {"job_name": job_name, "task_index": task_index, "protocol": protocol}
        definition = replace(given, **{name: value for name, value in changes.items() if value is not None})
    else:
        try:
            cluster = ClusterSpec(given)
        except TypeError as error:
            raise TypeError(
                f"Could not convert `server_or_cluster_def` to a ServerDef or ClusterSpec, got {given!r}: {error}"
            ) from error
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError(f"Must specify an explicit `job_name`, one of {cluster.jobs}")
            job_name = cluster.jobs[0]
        if task_index is None:
            indices = cluster.task_indices(job_name)
            if len(indices) != 1:
                raise ValueError(f"Must specify an explicit `task_index`, one of {indices} of job {job_name!r}")
            task_index = indices[0]
        definition = ServerDef(cluster, job_name, task_index, protocol or "grpc")
    definition.cluster.task_address(definition.job_name, definition.task_index)  # raises if there is no such task
    return definition
