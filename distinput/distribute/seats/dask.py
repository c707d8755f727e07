# SPDX-License-Identifier: Apache-2.0
"""Seats in the processes of a Dask cluster: the tested engine for clusters.

Dask knows which process has which name, starts an actor in each, the `Host` of the seat, and tells of workers that come and
go. Calls go directly from process to process, see `distinput.distribute.seats.remote_seats`: a call through an actor's own
proxy takes milliseconds, one through a socket tenths of them.
"""

import contextlib
import itertools
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.dask import DaskClusterResolver, close_client, connected
from distinput.cluster.resolver import ClusterResolver
from distinput.distribute.seats.links import Address
from distinput.distribute.seats.remote_seats import Host, RemoteSeats
from distinput.distribute.seats.seats import SeatLost
from distinput.errors import InvalidArgumentError, UnavailableError, importing

_START_SECONDS = 600.0
"""How long the coordinator waits for the other tasks of TF_CONFIG, which other machines may start much later."""
_RUNNING_SECONDS = 60.0
"""How long it waits for those of a running cluster."""
_LOOK_SECONDS = 1.0
"""How often the scheduler is asked for its workers while one is missing."""
_FORGIVEN = 4
"""A worker that stands still is lost to the coordinator first; after so many times its patience the scheduler drops it, so that
another process can take the name."""


def open_seats(resolver: ClusterResolver, *, worker_timeout_seconds: float) -> RemoteSeats:
    """The seats of a Dask cluster; see `distinput.distribute.seats`.

    Args:
      resolver: a `DaskClusterResolver` for a cluster that is running. With any other, such as one that reads TF_CONFIG, this
        process becomes the scheduler, at the address of the task "chief", and waits for the others, which
        `distinput worker --tf-config` starts.
      worker_timeout_seconds: how long a worker may stand still.

    Raises:
      EngineMissing: `distributed` is not installed.
      InvalidArgumentError: the resolver has no address of this process.
      UnavailableError: not all tasks came, or the address of the coordinator is not one of this machine.
    """
    check_installed()
    if isinstance(resolver, DaskClusterResolver):
        directory = DaskDirectory(resolver.scheduler, resolver.names(), resolver.security)
        return RemoteSeats(directory, worker_timeout_seconds, _RUNNING_SECONDS)
    spec = resolver.cluster_spec()
    security = configured_security()
    scheduler = start_scheduler(chief_address(spec), worker_timeout_seconds, security)
    try:
        names = {seat: seat for job in ("worker", "ps") for seat in _tasks(spec, job)}
        directory = DaskDirectory(scheduler.scheduler_address, names, security, scheduler.close)
    except BaseException:
        scheduler.close()
        raise
    return RemoteSeats(directory, worker_timeout_seconds, _START_SECONDS)


def check_installed() -> None:
    """Raise if `distributed` is not installed.

    Raises:
      EngineMissing: the message says what to install.
    """
    with importing(
        "the coordinator engine 'dask' needs the package distributed, which is not installed; run "
        "`pip install 'distinput[dask]'`, or use engine='threads', which runs all workers in this process"
    ):
        import_module("distributed")


def chief_address(spec: ClusterSpec) -> str:
    """`host:port` of the coordinator.

    Raises:
      InvalidArgumentError: the cluster has no task "chief".
    """
    if "chief" not in spec.jobs:
        raise InvalidArgumentError(
            "the coordinator engine 'dask' needs the address of the coordinator, where the workers find it: add a task to "
            '"cluster" in TF_CONFIG, such as "chief": ["host:port"], and set "task" to {"type": "chief", "index": 0} for the '
            f"coordinator; got the jobs {list(spec.jobs)}"
        )
    return str(spec.task_address("chief", 0))


def _tasks(spec: ClusterSpec, job: str) -> list[str]:
    return [f"{job}-{index}" for index in spec.task_indices(job)] if job in spec.jobs else []


def configured_security() -> Any:
    """Dask's `Security` with the certificates that Dask's configuration names; None if it names none."""
    from distributed import Security

    found = Security()
    return found if found.tls_ca_file else None


def temporary_security() -> Any:
    """Certificates for one cluster.

    Raises:
      EngineMissing: `cryptography` is not installed.
    """
    from distributed import Security

    with importing(
        "cluster start --tls makes certificates with the package cryptography, which is not installed; run `pip install "
        "'distinput[tls]'`, or name certificates of your own in Dask's configuration, distributed.comm.tls"
    ):
        return Security.temporary()


WITHOUT_DASHBOARD = {"distributed.admin.tick.interval": "2s", "distributed.admin.system-monitor.interval": "5s"}
"""Of Dask, which looks at its loop and at the machine for a dashboard, fifty and two times a second."""


def start_scheduler(address: str, worker_timeout_seconds: float, security: Any = None, *, seats: bool = True) -> Any:
    """A Dask scheduler in this process.

    Args:
      address: `host:port` where it listens; port 0 for any.
      worker_timeout_seconds: how long the coordinator lets a worker stand still.
      security: Dask's `Security`, with certificates; None: connections are not encrypted, and everybody may open them.
      seats: whether its workers have seats. Otherwise it gives a call up when eleven workers
        were lost that had it.

    Raises:
      UnavailableError: it cannot listen there.
    """
    import dask
    from distributed import LocalCluster

    logging.getLogger("distributed.scheduler").addFilter(_is_news)
    logging.getLogger("distributed.batched").setLevel(logging.WARNING)  # that the other end has closed is no news
    host, _, port = address.rpartition(":")
    try:
        with dask.config.set(WITHOUT_DASHBOARD):
            cluster = LocalCluster(
                n_workers=0,
                processes=True,
                threads_per_worker=1,
                host=host.removeprefix("[").removesuffix("]"),
                scheduler_port=int(port),
                dashboard_address=f"{host}:0",  # any port, so that several clusters fit on one machine
                protocol="tcp" if security is None else "tls",
                security=security,
                # A worker that dies takes the actor of its seat with it, again and again over the days; no fault of the actor.
                # Dask counts a loss against all calls that wait at a worker: with its own 3, bad luck would look like a bad
                # function.
                scheduler_kwargs={
                    "worker_ttl": f"{_FORGIVEN * worker_timeout_seconds}s",
                    "allowed_failures": 1_000_000_000 if seats else 10,
                    "dashboard": False,
                },
            )
    except (OSError, RuntimeError) as error:
        raise UnavailableError(
            f"the coordinator engine 'dask' cannot listen at {address}: {error}; it must be an address of this machine, at a "
            'port that is free: that of the task "chief" where the cluster is described by its tasks'
        ) from error
    # Nobody asks this object of its workers, and it could not be closed after the loss of one that it was not told of.
    cluster._update_worker_status = lambda _op, _msg: None
    return cluster


def _is_news(record: logging.LogRecord) -> bool:
    """False for the complaint that a program which has ended cannot be told that it has ended."""
    return not record.getMessage().startswith("Closed comm")


class DaskHost(Host):
    """The host of a seat, as a Dask actor. It tells the coordinator where it listens by an event.

    Args:
      seat: the name of the seat.
      cluster: the number of the cluster.
      secret: what opens connections within it.
      topic: of the event.
      key: of the actor, by which the coordinator knows it.
    """

    def __init__(self, seat: str, cluster: str, secret: bytes, topic: str, key: str) -> None:
        from distributed import get_worker
        from distributed.comm import get_address_host

        worker = get_worker()
        interface = get_address_host(worker.address).removeprefix("[").removesuffix("]")
        listen = worker.security.get_listen_args("worker").get("ssl_context")
        super().__init__(
            seat,
            cluster,
            secret,
            interface,
            wrap=_wrapping(worker.security, "worker"),
            listen=None
            if listen is None
            else partial(listen.wrap_socket, server_side=True, do_handshake_on_connect=False),
        )
        worker.log_event(topic, {"key": key, "address": list(self.address)})


def _wrapping(security: Any, role: str) -> Callable[[socket.socket, str], socket.socket] | None:
    context = None if security is None else security.get_connection_args(role).get("ssl_context")
    if context is None:
        return None

    def wrap(connection: socket.socket, host: str) -> socket.socket:
        encrypted: socket.socket = context.wrap_socket(connection, server_hostname=host)
        return encrypted

    return wrap


class DaskDirectory:
    """Which Dask worker is at which seat; see `SeatDirectory`.

    Args:
      scheduler: its address.
      names: of the Dask worker at each seat.
      security: for TLS.
      close: called at last.
    """

    def __init__(
        self, scheduler: str, names: dict[str, str], security: Any = None, close: Callable[[], None] = lambda: None
    ) -> None:
        self.workers = tuple(seat for seat in names if seat.startswith("worker-"))
        self.servers = tuple(seat for seat in names if seat.startswith("ps-"))
        self._names, self._security, self._close = names, security, close
        self._changed = threading.Condition()
        self._present: dict[str, str] = {}  # name -> address of the Dask workers there are
        # Addresses of workers that are gone, of which a look that began before may still tell.
        self._left: set[str] = set()
        self._hosts: dict[str, Address] = {}
        self._actors: dict[str, Any] = {}  # the actor at each seat; without the reference Dask would drop it
        self._gone: Callable[[str], None] = lambda _: None
        self._closed = False
        self._numbers = itertools.count()
        self._topic = f"distinput-{secrets.token_hex(4)}"
        # Not the user's own client, whose subscriptions to events are the user's.
        self._client = connected(scheduler, security)
        self._client.subscribe_topic(self._topic, self._on_host)
        self._client.subscribe_topic("all", self._on_event)
        self._client.sync(self._look)

    def open_host(self, seat: str, cluster: str, secret: bytes, until: float) -> Address:
        """Start a host at a seat; see `SeatDirectory`."""
        name = self._names[seat]
        worker: str = self._await(lambda: self._present.get(name), seat, until)
        key = f"distinput-{seat}-{cluster}-{next(self._numbers)}"
        actor = self._client.submit(
            DaskHost, seat, cluster, secret, self._topic, key,
            actor=True, key=key, workers=[worker], allow_other_workers=False, pure=False,
        )  # fmt: skip
        with self._changed:
            self._actors[seat] = actor
        actor.add_done_callback(self._on_done)
        self._await(
            lambda: key in self._hosts or actor.status == "error" or self._present.get(name) != worker, seat, until
        )
        with self._changed:
            address = self._hosts.pop(key, None)
        if address is not None:
            return address
        if actor.status == "error":
            raise _actor_error(actor, seat)
        raise ConnectionError(f"{seat}: the Dask worker {worker} has left")

    def watch(self, gone: Callable[[str], None]) -> None:
        """Have a function told of workers that left; see `SeatDirectory`."""
        self._gone = gone

    def encryption(self) -> Callable[[socket.socket, str], socket.socket] | None:
        """What encrypts connections; see `SeatDirectory`."""
        return _wrapping(self._security, "client")

    def close(self) -> None:
        """Leave the cluster; end the scheduler if it was started here."""
        with self._changed:
            self._closed = True
            self._actors.clear()
            self._changed.notify_all()
        if self._client.status == "running":
            # First, or the scheduler tries to tell this client that it has gone.
            self._client.unsubscribe_topic("all")
        close_client(self._client, 5)
        self._close()

    def _await(self, ready: Callable[[], Any], seat: str, until: float) -> Any:
        """What `ready` returns once that is true.

        The scheduler is asked again and again meanwhile: it tells nobody of a worker that came or went after it was asked, and
        before the subscription to its events, which takes another way, had reached it.
        """
        while True:
            rest = until - time.monotonic()
            with self._changed:
                got = self._changed.wait_for(lambda: self._closed or ready(), max(0.0, min(rest, _LOOK_SECONDS)))
                if self._closed:
                    raise SeatLost(seat, "the cluster was closed", started=False)
            if got:
                return got
            if rest <= 0:
                raise TimeoutError(f"{seat} did not come")
            with contextlib.suppress(OSError, TimeoutError):  # the scheduler is gone, or this client is being closed
                self._client.sync(self._look, callback_timeout=max(_LOOK_SECONDS, rest))

    # ---- events, on the thread of the client

    async def _look(self) -> None:
        """Note which workers there are."""
        scheduler = self._client.scheduler
        if scheduler is None:
            raise ConnectionError("the client of the scheduler is closed")
        workers = (await scheduler.identity(n_workers=-1))["workers"]
        with self._changed:
            self._present = {str(w["name"]): address for address, w in workers.items() if address not in self._left}
            self._changed.notify_all()

    async def _on_event(self, event: tuple[float, Any]) -> None:
        what = event[1]
        action = what.get("action") if isinstance(what, dict) else None
        if action == "add-worker":
            self._left.discard(what["worker"])
            with contextlib.suppress(OSError):  # the scheduler is gone, or this client is being closed
                await self._look()
        elif action == "remove-worker":
            with self._changed:
                self._left.add(what["worker"])
                left = [name for name, address in self._present.items() if address == what["worker"]]
                for name in left:
                    del self._present[name]
                self._changed.notify_all()
            for seat, name in self._names.items():
                if name in left:
                    self._gone(seat)

    def _on_host(self, event: tuple[float, Any]) -> None:
        with self._changed:
            host, port = event[1]["address"]
            self._hosts[event[1]["key"]] = (host, port)
            self._changed.notify_all()

    def _on_done(self, _: Any) -> None:
        with self._changed:
            self._changed.notify_all()


def _actor_error(actor: Any, seat: str) -> Exception:
    error = actor.exception()
    error.add_note(f"while the host of {seat} was started there; the same distinput must be installed at every worker")
    return error  # type: ignore[no-any-return]
