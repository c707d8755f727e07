# SPDX-License-Identifier: Apache-2.0
"""`distinput cluster start` and `distinput worker`: the processes of a `ParameterServerStrategy`."""

import signal
import socket
import threading

import distinput as di
from distinput.cluster.cluster_spec import ClusterSpec
from distinput.distribute.cluster_resolver import TFConfigClusterResolver
from distinput.distribute.seats.dask import check_installed, chief_address
from distinput.distribute.seats.dask_process import SeatProcess, run
from distinput.distribute.seats.local_cluster import LocalCluster

__all__ = ["start_cluster", "work_as_seat"]


def start_cluster(workers: int, servers: int, address: str) -> None:
    """Run a cluster on this machine until SIGINT or SIGTERM comes.

    Args:
      workers: how many workers.
      servers: how many parameter servers.
      address: `host:port` of the scheduler; port 0 for any.
    """
    told = threading.Event()
    before = {number: signal.signal(number, lambda *_: told.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # All kinds are started again: a program whose parameter server was lost starts anew, and then finds all seats.
        with LocalCluster(workers, servers, address=address, restart=("worker", "ps"), said=_say) as cluster:
            cluster.wait(60.0)
            _say(f"{_count(workers, 'worker')} and {_count(servers, 'parameter server')} at {cluster.address}")
            for name in cluster.names:
                _say(f"  {name}: process {cluster.pid(name)}")
            _say("the program that coordinates them:")
            _say(f'  resolver = di.distribute.cluster_resolver.DaskClusterResolver("{cluster.address}")')
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
    return f"tcp://{chief_address(spec)}", f"{job}-{index}", address


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _say(text: str) -> None:
    print(text, flush=True)
