# SPDX-License-Identifier: Apache-2.0
"""Seats in Ray actors: one process each, started by Ray on this machine or on those of a running Ray cluster.

Ray starts an actor again when its process has ended, for workers; that of a parameter server is not started again. As on Dask,
calls go directly from process to process, see `distinput.distribute.seats.remote_seats`.
"""

import contextlib
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from importlib import import_module

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import ClusterResolver
from distinput.distribute.seats.links import Address
from distinput.distribute.seats.remote_seats import Host, RemoteSeats
from distinput.distribute.seats.seats import SeatLost
from distinput.errors import importing

_START_SECONDS = 120.0
_PAUSE = 0.1


def open_seats(resolver: ClusterResolver, *, worker_timeout_seconds: float) -> RemoteSeats:
    """A Ray actor for each worker and parameter server; see `distinput.distribute.seats`.

    Args:
      resolver: says how many there are; their addresses are Ray's. If the program has not called `ray.init`, Ray is started
        on this machine, and ended when the seats are closed.
      worker_timeout_seconds: how long a worker may stand still.

    Raises:
      EngineMissing: `ray` is not installed.
      UnavailableError: Ray had no room for all actors.
    """
    with importing(
        "the coordinator engine 'ray' needs the package ray, which is not installed; run "
        "`pip install 'distinput[ray]'`, or use engine='threads', which runs all workers in this process"
    ):
        import_module("ray")
    return RemoteSeats(RayDirectory(resolver.cluster_spec()), worker_timeout_seconds, _START_SECONDS)


class RaySeat:
    """What Ray keeps in the process of a seat: starts hosts there.

    Args:
      seat: the name of the seat.
    """

    def __init__(self, seat: str) -> None:
        self._seat = seat

    def open_host(self, cluster: str, secret: bytes) -> Address:
        """Start a host; where it listens."""
        import ray

        return Host(self._seat, cluster, secret, ray.util.get_node_ip_address()).address


class RayDirectory:
    """Which Ray actor is at which seat; see `SeatDirectory`.

    Args:
      spec: how many tasks "worker" and "ps" there are.
    """

    def __init__(self, spec: ClusterSpec) -> None:
        import ray

        self._ray = ray
        self._closed = False
        workers, servers = (spec.num_tasks(job) if job in spec.jobs else 0 for job in ("worker", "ps"))
        self.workers = tuple(f"worker-{index}" for index in range(workers))
        self.servers = tuple(f"ps-{index}" for index in range(servers))
        self._started = not ray.is_initialized()
        if self._started:
            # Actors that wait for work need no core of their own, so a machine with few of them holds any cluster.
            ray.init(
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}},
            )
        remote, cluster = ray.remote(RaySeat), secrets.token_hex(4)
        self._actors = {
            # A worker comes back as often as it takes; several calls at once, since one may wait for a process that is frozen.
            seat: remote.options(
                name=f"distinput-{cluster}-{seat}",  # for those who look at Ray's list of actors
                num_cpus=0,
                max_restarts=-1 if seat in self.workers else 0,
                max_concurrency=4,
            ).remote(seat)
            for seat in (*self.workers, *self.servers)
        }

    def open_host(self, seat: str, cluster: str, secret: bytes, until: float) -> Address:
        """Start a host at a seat; see `SeatDirectory`."""
        errors = self._ray.exceptions
        while True:
            if self._closed:
                raise SeatLost(seat, "the cluster was closed", started=False)
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{seat} did not come")
            asked = self._actors[seat].open_host.remote(cluster, secret)
            try:
                host, port = self._ray.get(asked, timeout=min(left, 5.0))
                return host, port
            except errors.RayActorError:  # its process has ended, and Ray may start another one
                time.sleep(_PAUSE)
            except errors.GetTimeoutError:
                continue

    def watch(self, gone: Callable[[str], None]) -> None:
        """Ray tells nobody of actors that end; the connections to their hosts do."""

    def encryption(self) -> Callable[[socket.socket, str], socket.socket] | None:
        """None: Ray's own certificates are for gRPC."""
        return None

    def close(self) -> None:
        """End the actors; end Ray if it was started here."""
        self._closed = True
        if self._started:
            self._ray.shutdown()
            return
        for actor in self._actors.values():
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor)
