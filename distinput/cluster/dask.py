# SPDX-License-Identifier: Apache-2.0
"""A resolver for a running Dask cluster: its workers are the tasks."""

import re
from collections.abc import Mapping
from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import ClusterResolver, with_rpc_layer
from distinput.errors import UnavailableError, importing

_TASK = re.compile(r"(worker|ps)-(\d+)")


class DaskClusterResolver(ClusterResolver):
    """The workers of a running Dask cluster as the tasks of a `ParameterServerStrategy`; this process coordinates them.

    A Dask worker is started under the name of its task: `dask worker SCHEDULER --name worker-0 --nthreads 1`, and a parameter
    server so that nothing restarts it: `dask worker SCHEDULER --name ps-0 --nthreads 1 --no-nanny`. Where the workers have
    other names, as those of a `distributed.LocalCluster`, `num_ps` says how many of them, the last in the order of their names,
    serve parameters.

    Args:
      scheduler: the address of a Dask scheduler such as "tcp://host:8786", or a running `distributed.Client`.
      num_workers: how many workers there are under the names of tasks, where some of them may still have to come; None takes
        those that are there.
      num_ps: how many parameter servers, likewise. Without `num_workers`: how many of the workers that are there, whatever
        their names, serve parameters; None where each has the name of its task.
      security: a `distributed.Security` for a scheduler with TLS; a `Client` brings its own.

    Raises:
      TypeError: `scheduler` is neither an address nor a `Client`.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.DaskClusterResolver("tcp://10.0.0.1:8786")
    >>> resolver.task_type, resolver.master()
    ('chief', 'tcp://10.0.0.1:8786')

    Source: distinput's own.
    """

    source = "dask"
    engine = "dask"
    """The coordinator engine that reaches these tasks."""

    def __init__(
        self, scheduler: Any, *, num_workers: int | None = None, num_ps: int | None = None, security: Any = None
    ) -> None:
        if not isinstance(scheduler, str):
            client = scheduler
            if not hasattr(client, "scheduler_info") or client.scheduler is None:
                raise TypeError(
                    "DaskClusterResolver: needs the address of a scheduler such as 'tcp://host:8786', or a running "
                    f"distributed.Client, got {type(scheduler).__name__}"
                )
            scheduler, security = client.scheduler.address, client.security
        self.scheduler: str = scheduler
        self.security = security
        self._num_ps = num_ps
        self._task_type, self._task_id = "chief", 0
        self._names: dict[str, str] | None = None
        self._addresses: dict[str, str] = {}
        if num_workers is not None:
            if num_workers < 1 or not num_ps or num_ps < 1:
                raise ValueError(
                    f"DaskClusterResolver: with num_workers, there must be at least one worker and one parameter server, got "
                    f"num_workers={num_workers} and num_ps={num_ps}"
                )
            tasks = [*(f"worker-{index}" for index in range(num_workers)), *(f"ps-{index}" for index in range(num_ps))]
            self._names = dict(zip(tasks, tasks, strict=True))

    def cluster_spec(self) -> ClusterSpec:
        """The workers and parameter servers that the scheduler has now; with `num_workers`, without their addresses.

        Raises:
          EngineMissing: `distributed` is not installed.
          UnavailableError: there is no scheduler at the address.
          ValueError: none of its workers has the name of a task.
        """
        jobs: dict[str, list[str]] = {}
        for seat, name in self.names().items():
            jobs.setdefault(seat.partition("-")[0], []).append(self._addresses.get(name, ""))
        return ClusterSpec(jobs)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of the scheduler, or of a task."""
        if task_type is None or task_id is None:
            return self.scheduler
        return with_rpc_layer(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)

    def names(self) -> dict[str, str]:
        """The name of the Dask worker at each seat: "worker-0" and so on, then "ps-0" and so on.

        It is asked for once, so that seats keep their places when workers come and go.
        """
        if self._names is None:
            with connected(self.scheduler, self.security) as client:
                workers = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
            self._addresses = {str(worker["name"]): address for address, worker in workers.items()}
            self._names = seats_of(self._addresses, self._num_ps)
            if not self._names:
                raise ValueError(
                    f"DaskClusterResolver: the scheduler at {self.scheduler} has no worker with the name of a task, only "
                    f"{sorted(self._addresses)}; start workers with --name worker-0, --name ps-0 and so on, or give num_ps"
                )
        return self._names


def connected(scheduler: str, security: Any = None) -> Any:
    """A client of a Dask scheduler, which does not become the one that Dask's functions use by default.

    Args:
      scheduler: its address.
      security: for TLS.

    Raises:
      EngineMissing: `distributed` is not installed.
      UnavailableError: there is no scheduler at the address.
    """
    with importing(
        "Dask clusters need the package distributed, which is not installed; run `pip install 'distinput[dask]'`"
    ):
        # Imported here, since it takes long and few programs need it.
        from distributed import Client
    try:
        return Client(scheduler, security=security, set_as_default=False)
    except OSError as error:
        raise UnavailableError(
            f"there is no Dask scheduler at {scheduler}: {error}; start one, for example with `distinput cluster start`"
        ) from error


def has_ended(client: Any) -> bool:
    """Whether a client of Dask is closed, or will never come back to its scheduler.

    What takes up a connection that was cut ends if the scheduler, which knows only of the one before, sends it more messages
    than one. Then the client says that it is connecting, and nobody works at that.
    """
    listening = client._handle_report_task
    return client.status in ("closing", "closed") or listening is None or listening.done()


def close_client(client: Any, seconds: float = 60.0) -> None:
    """Close a client of Dask, whatever has become of its connection."""
    if has_ended(client):
        client._handle_report_task = None  # whose error would be raised here
    client.close(timeout=seconds)


def seats_of(workers: Mapping[str, str], num_ps: int | None) -> dict[str, str]:
    """Which Dask worker is at which seat.

    >>> seats_of({"worker-1": "b", "ps-0": "c", "worker-0": "a", "other": "d"}, None)
    {'worker-0': 'worker-0', 'worker-1': 'worker-1', 'ps-0': 'ps-0'}
    >>> seats_of({"0": "a", "1": "b", "10": "c"}, 1)
    {'worker-0': '0', 'worker-1': '1', 'ps-0': '10'}
    """
    if num_ps is None:
        found = sorted((m[1] != "worker", int(m[2]), name) for name in workers if (m := _TASK.fullmatch(name)))
        return {name: name for _, _, name in found}
    if not 0 < num_ps < len(workers):
        raise ValueError(
            f"DaskClusterResolver: num_ps must leave at least one of {len(workers)} Dask workers, got {num_ps}"
        )
    names = sorted(workers, key=lambda name: (len(name), name))
    first = len(names) - num_ps
    seats = [*(f"worker-{i}" for i in range(first)), *(f"ps-{i}" for i in range(num_ps))]
    return dict(zip(seats, names, strict=True))
