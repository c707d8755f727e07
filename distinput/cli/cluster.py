# SPDX-License-Identifier: Apache-2.0
"""`distinput cluster` and `distinput worker`: the processes of a `ParameterServerStrategy`."""

import argparse
import os
import signal
import socket
import threading
from typing import Any

import distinput as di
from distinput.cli.arguments import at_least
from distinput.cluster.cluster_spec import ClusterSpec
from distinput.distribute.cluster_resolver import TFConfigClusterResolver
from distinput.distribute.engines.background import is_loopback
from distinput.distribute.seats.dask import check_installed, chief_address, configured_security, temporary_security
from distinput.distribute.seats.local_cluster import LocalCluster, SeatProcess, run
from distinput.errors import InvalidArgumentError

__all__ = [
    "cluster_arguments",
    "cluster_command",
    "start_cluster",
    "what_is_open",
    "work_as_seat",
    "worker_arguments",
    "worker_command",
]


# ----------------------------------------------------------------------------
# `distinput cluster start` and `distinput worker`: the processes of a `ParameterServerStrategy`.
# ----------------------------------------------------------------------------


def start_cluster(workers: int, servers: int, address: str, *, tls: bool = False) -> None:
    """Run a cluster on this machine until SIGINT or SIGTERM comes.

    Args:
      workers: how many workers.
      servers: how many parameter servers.
      address: `host:port` of the scheduler; port 0 for any.
      tls: whether certificates are made for this cluster; those that Dask's configuration names are taken in any case.

    Raises:
      EngineMissing: `distributed` is not installed, or with `tls` `cryptography`.
    """
    check_installed()
    security = temporary_security() if tls else configured_security()
    told = threading.Event()
    before = {number: signal.signal(number, lambda *_: told.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # All kinds are started again: a program whose parameter server was lost starts anew, and then finds all seats.
        with LocalCluster(
            workers, servers, address=address, restart=("worker", "ps"), said=_say, security=security
        ) as cluster:
            cluster.wait(60.0)
            _say(f"{_count(workers, 'worker')} and {_count(servers, 'parameter server')} at {cluster.address}")
            for name in cluster.names:
                _say(f"  {name}: process {cluster.pid(name)}")
            _say(what_is_open(cluster.address, encrypted=security is not None))
            _say("the program that coordinates them:")
            where = f'"{cluster.address}"'
            if tls:
                _say(f"  security = distributed.Security({_certificates(security, cluster.directory)})")
                where = f"distributed.Client({where}, security=security)"
            _say(f"  resolver = di.distribute.cluster_resolver.DaskClusterResolver({where})")
            _say("  strategy = di.distribute.ParameterServerStrategy(resolver)")
            _say("Ctrl-C ends the cluster")
            told.wait()
        _say("all processes have ended")
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
        raise di.errors.InvalidArgumentError(
            '"task" in TF_CONFIG must be a worker or a parameter server, such as {"type": "worker", '
            f'"index": 0}}, got {job!r} {index}; the chief runs your own program, which makes a ParameterServerStrategy'
        )
    address = str(spec.task_address(job, index))
    try:
        socket.getaddrinfo(*address.rpartition(":")[::2])
    except OSError as error:
        raise di.errors.InvalidArgumentError(
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
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    start = actions.add_parser(
        "start",
        help="start them, and end them all with Ctrl-C",
        description="Start a scheduler, workers and parameter servers on this machine, as processes that end with this one. "
        "A process that ends is started again. The address that is printed is what the coordinator needs: "
        "DaskClusterResolver(address). Needs `pip install 'distinput[dask]'`.",
    )
    start.add_argument("--workers", type=at_least(1), default=2, metavar="N", help="workers (default: 2)")
    start.add_argument("--ps", type=at_least(1), default=1, metavar="N", help="parameter servers (default: 1)")
    start.add_argument(
        "--address",
        default="127.0.0.1:8786",
        metavar="HOST:PORT",
        help="where the scheduler listens; port 0 for any (default: 127.0.0.1:8786)",
    )

    start.add_argument(
        "--tls",
        action="store_true",
        help="encrypt all connections, and let in only who has the certificates that are made for this cluster; needs the "
        "package cryptography. Certificates that Dask's configuration names are taken without this",
    )


def cluster_command(given: argparse.Namespace) -> int:
    """Start the cluster and wait for its end."""
    start_cluster(given.workers, given.ps, given.address, tls=given.tls)
    return 0


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
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask scheduler, such as tcp://host:8786")
    parser.add_argument("--name", type=_seat, metavar="NAME", help="worker-0, ps-0 and so on")
    parser.add_argument(
        "--listen", default="", metavar="HOST:PORT", help="where others reach this process (default: any port)"
    )
    parser.add_argument(
        "--wait", type=float, default=600.0, metavar="SECONDS", help="how long to look for the scheduler (default: 600)"
    )


def worker_command(given: argparse.Namespace) -> int:
    """Be a worker or a parameter server until the coordinator ends."""
    if given.tf_config == (given.scheduler is not None) or (given.scheduler is None) != (given.name is None):
        raise InvalidArgumentError("give either --tf-config, or --scheduler and --name")
    work_as_seat(given.scheduler, given.name, given.listen, given.wait)
    return 0


def _seat(text: str) -> str:
    job, _, number = text.partition("-")
    if job not in ("worker", "ps") or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a seat such as worker-0 or ps-0, got {text}")
    return text
