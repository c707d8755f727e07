# SPDX-License-Identifier: Apache-2.0
"""`distinput cluster`, `distinput worker` and `distinput input-worker`: processes that a program has work done by."""

import argparse
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distinput.cli.arguments import at_least
from distinput.cli.commands import FINE
from distinput.cluster.cluster_spec import ClusterSpec
from distinput.distribute.cluster_resolver import TFConfigClusterResolver
from distinput.distribute.engines.background import is_loopback
from distinput.distribute.seats.dask import check_installed, chief_address, configured_security, temporary_security
from distinput.distribute.seats.local_cluster import LocalCluster, SeatProcess, run
from distinput.errors import InvalidArgumentError, UnavailableError

# ----------------------------------------------------------------------------
# Clusters on this machine, of a `ParameterServerStrategy` or of `on_workers`, and processes that join others.
# ----------------------------------------------------------------------------


def start_cluster(workers: int, servers: int, address: str, *, inputs: int = 0, tls: bool = False) -> None:
    """Run a cluster on this machine until SIGINT or SIGTERM comes.

    Args:
      workers: how many workers.
      servers: how many parameter servers.
      address: `host:port` of the scheduler; port 0 for any.
      inputs: how many input workers of `on_workers`; then there are no workers and servers.
      tls: whether certificates are made for this cluster; those that Dask's configuration names are taken in any case.

    Raises:
      EngineMissing: `distributed` is not installed, or with `tls` `cryptography`.
    """
    check_installed()
    security = temporary_security() if tls else configured_security()
    seats = f"{_count(workers, 'worker')} and {_count(servers, 'parameter server')}"
    what = _count(inputs, "input worker") if inputs else seats
    with (
        _until_told() as told,
        # All kinds are started again: a program whose parameter server was lost starts anew, and then finds all seats.
        LocalCluster(
            workers, servers, inputs=inputs, address=address, restart=("worker", "ps"), said=_say, security=security
        ) as cluster,
    ):
        cluster.wait()
        _tell(what + " at", cluster, encrypted=security is not None)
        where = f'"{cluster.address}"'
        _say("a program whose pipeline has functions called there:" if inputs else "the program that coordinates them:")
        if tls:
            _say(f"  security = distributed.Security({_certificates(security, cluster.directory)})")
            where = f"distributed.Client({where}, security=security)"
        if inputs:
            _say(f"  dataset = dataset.on_workers({where})")
            _say(f"further input workers: distinput input-worker {cluster.address}")
        else:
            _say(f"  resolver = di.distribute.cluster_resolver.DaskClusterResolver({where})")
            _say("  strategy = di.distribute.ParameterServerStrategy(resolver)")
        _say("Ctrl-C ends the cluster")
        told.wait()
    _say("all processes have ended")


def start_input_workers(scheduler: str, count: int, seconds: float) -> None:
    """Run input workers on this machine until SIGINT or SIGTERM comes; those that end are started again.

    Args:
      scheduler: the address of a Dask scheduler. Where it is on loopback, so are they.
      count: how many.
      seconds: how long to look for the scheduler, at first and when it is lost.

    Raises:
      EngineMissing: `distributed` is not installed.
      UnavailableError: there was no scheduler for so long.
    """
    check_installed()
    no_scheduler = threading.Event()

    def gone() -> None:
        no_scheduler.set()
        told.set()

    with (
        _until_told() as told,
        LocalCluster(
            0, 0, inputs=count, scheduler=scheduler, scheduler_seconds=seconds, said=_say, gone=gone
        ) as cluster,
    ):
        _tell(_count(count, "input worker") + " of", cluster, encrypted=scheduler.startswith("tls://"))
        _say("Ctrl-C ends them")
        told.wait()
    _say("all processes have ended")
    if no_scheduler.is_set():
        raise UnavailableError(f"input-worker: there was no Dask scheduler at {scheduler} for {seconds:g} seconds")


def _tell(what: str, cluster: LocalCluster, *, encrypted: bool) -> None:
    _say(f"{what} {cluster.address}")
    for name in cluster.names:
        _say(f"  {name}: process {cluster.pid(name)}")
    _say(what_is_open(cluster.address, encrypted=encrypted))


@contextmanager
def _until_told() -> Iterator[threading.Event]:
    """What is set when SIGINT or SIGTERM comes."""
    told = threading.Event()
    before = {number: signal.signal(number, lambda *_: told.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def work_as_seat(scheduler: str | None, name: str | None, listen: str, seconds: float) -> None:
    """Be one worker or parameter server of a cluster; this process ends with it.

    Args:
      scheduler: the address of the scheduler; None reads TF_CONFIG.
      name: of the seat, such as "worker-0"; None reads TF_CONFIG.
      listen: `host:port` where this process is reached; empty for any port, or that of TF_CONFIG.
      seconds: how long to look for the scheduler.

    Raises:
      EngineMissing: `distributed` is not installed.
      InvalidArgumentError: TF_CONFIG does not describe a worker or a parameter server.
    """
    check_installed()
    if scheduler is None or name is None:
        scheduler, name, listen = _from_tf_config()
    run(SeatProcess(scheduler, name, listen, seconds))


def _from_tf_config() -> tuple[str, str, str]:
    resolver = TFConfigClusterResolver()
    spec: ClusterSpec = resolver.cluster_spec()
    job, index = resolver.task_type, resolver.task_id
    if job not in ("worker", "ps") or index is None:
        raise InvalidArgumentError(
            '"task" in TF_CONFIG must be a worker or a parameter server, such as {"type": "worker", '
            f'"index": 0}}, got {job!r} {index}; the chief runs your own program, which makes a ParameterServerStrategy'
        )
    address = str(spec.task_address(job, index))
    try:
        socket.getaddrinfo(*address.rpartition(":")[::2])
    except OSError as error:
        raise InvalidArgumentError(
            f"TF_CONFIG gives {job} {index} the address {address!r}, which is unknown here: {error}"
        ) from error
    protocol = "tcp" if configured_security() is None else "tls"
    return f"{protocol}://{chief_address(spec)}", f"{job}-{index}", address


def what_is_open(address: str, *, encrypted: bool) -> str:
    """Who can have functions run at a cluster, in words.

    >>> what_is_open("tcp://127.0.0.1:8786", encrypted=False)
    'open to: every process of this machine, of any user; --tls lets in only who has the certificates'
    """
    if encrypted:
        return "open to: who has the certificates, and nobody else; all connections are encrypted"
    if is_loopback(address.rpartition("://")[2].rpartition(":")[0].strip("[]")):
        return "open to: every process of this machine, of any user; --tls lets in only who has the certificates"
    return (
        "OPEN TO EVERYBODY who reaches this machine at that address: each can have any function run as this user, and nothing "
        "is encrypted; --tls lets in only who has the certificates"
    )


def _certificates(security: Any, directory: str) -> str:
    """Write the certificates of a program to files that only this user can read: the arguments that name them."""
    told = []
    for name in ("tls_ca_file", "tls_client_cert", "tls_client_key"):
        path = os.path.join(directory, f"{name}.pem")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(getattr(security, name))
        told.append(f"{name}={path!r}")
    return ", ".join([*told, "require_encryption=True"])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _say(text: str) -> None:
    print(text, flush=True)


# ----------------------------------------------------------------------------
# `distinput cluster start`.
# ----------------------------------------------------------------------------


def cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput cluster`."""
    actions = parser.add_subparsers(dest="action", metavar="start", required=True)
    start = actions.add_parser(
        "start",
        help="start them, and end them all with Ctrl-C",
        description="Start a scheduler, workers and parameter servers on this machine, as processes that end with this one. "
        "A process that ends is started again. The address that is printed is what the coordinator needs: "
        "DaskClusterResolver(address). With --input-workers it is a cluster for Dataset.on_workers(address) instead. "
        "Needs `pip install 'distinput[dask]'`.",
    )
    start.add_argument("--workers", type=at_least(1), metavar="N", help="how many workers (default: 2)")
    start.add_argument("--ps", type=at_least(1), metavar="N", help="how many parameter servers (default: 1)")
    text = "how many input workers; then there are no workers and no parameter servers"
    start.add_argument("--input-workers", type=at_least(1), metavar="N", help=text)
    text = "where the scheduler listens; port 0 for any (default: %(default)s)"
    start.add_argument("--address", default="127.0.0.1:8786", metavar="HOST:PORT", help=text)

    start.add_argument(
        "--tls",
        action="store_true",
        help="encrypt all connections, and admit only holders of the certificates that are made for this cluster; needs the "
        "package cryptography. Certificates that Dask's configuration names are used without this option",
    )


def cluster_command(given: argparse.Namespace) -> int:
    """Start the cluster and wait for its end."""
    if given.input_workers and (given.workers or given.ps):
        raise InvalidArgumentError("--input-workers starts a cluster without --workers and --ps; leave these out")
    workers, servers = (0, 0) if given.input_workers else (given.workers or 2, given.ps or 1)
    start_cluster(workers, servers, given.address, inputs=given.input_workers or 0, tls=given.tls)
    return FINE


# ----------------------------------------------------------------------------
# `distinput worker`.
# ----------------------------------------------------------------------------


def worker_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput worker`."""
    parser.description = (
        "Run one worker or parameter server, until its coordinator ends. With --tf-config its task and the address of the "
        "coordinator, the task chief, are read from TF_CONFIG. Needs `pip install 'distinput[dask]'`."
    )
    parser.add_argument("--tf-config", action="store_true", help="take the task and all addresses from TF_CONFIG")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="address of a Dask scheduler, such as tcp://host:8786")
    parser.add_argument("--name", type=_seat, metavar="NAME", help="which task this is: worker-0, ps-0 and so on")
    text = "where others reach this process (default: any port)"
    parser.add_argument("--listen", default="", metavar="HOST:PORT", help=text)
    text = "how long to look for the scheduler (default: 600)"
    parser.add_argument("--wait", type=float, default=600.0, metavar="SECONDS", help=text)


def worker_command(given: argparse.Namespace) -> int:
    """Be a worker or a parameter server until the coordinator ends."""
    if given.tf_config == (given.scheduler is not None) or (given.scheduler is None) != (given.name is None):
        raise InvalidArgumentError("give either --tf-config, or --scheduler and --name")
    work_as_seat(given.scheduler, given.name, given.listen, given.wait)
    return FINE


def _seat(text: str) -> str:
    job, _, number = text.partition("-")
    if job not in ("worker", "ps") or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a seat such as worker-0 or ps-0, got {text}")
    return text


# ----------------------------------------------------------------------------
# `distinput input-worker`.
# ----------------------------------------------------------------------------


def input_worker_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput input-worker`."""
    parser.description = (
        "Run input workers on this machine, which call functions of pipelines for Dataset.on_workers(ADDRESS), until Ctrl-C or "
        "SIGTERM. One that ends is started again. Certificates are those of Dask's configuration. Needs "
        "`pip install 'distinput[dask]'`."
    )
    text = "address of a Dask scheduler: tcp://host:8786, or tls://host:8786"
    parser.add_argument("address", metavar="ADDRESS", help=text)
    text = "how many input workers (default: 1)"
    parser.add_argument("--workers", type=at_least(1), default=1, metavar="N", help=text)
    text = "how long to look for the scheduler, also when it was lost (default: 600)"
    parser.add_argument("--wait", type=float, default=600.0, metavar="SECONDS", help=text)


def input_worker_command(given: argparse.Namespace) -> int:
    """Run input workers until they are told to end."""
    if "://" not in given.address:
        raise InvalidArgumentError(
            f"ADDRESS must be that of a Dask scheduler, such as tcp://host:8786, got {given.address}"
        )
    start_input_workers(given.address, given.workers, given.wait)
    return FINE
