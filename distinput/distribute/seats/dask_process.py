# SPDX-License-Identifier: Apache-2.0
"""A process with one seat: a Dask worker without a nanny, with nothing in it that a seat does not need."""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Never

from distinput.distribute.engines.address import is_loopback

__all__ = ["SeatProcess", "main", "run", "where_to_listen"]

_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class SeatProcess:
    """What a process needs to take a seat.

    Args:
      scheduler: the address of the Dask scheduler.
      name: of the seat, such as "worker-0".
      listen: `host:port` where the Dask worker listens; empty for any port.
      death_seconds: how long to look for the scheduler.
      parent: the number of the process without which this one ends; None for none.
      directory: for Dask's own files.
      tls: the arguments of Dask's `Security`; None: those of Dask's configuration.
    """

    scheduler: str
    name: str
    listen: str = ""
    death_seconds: float = 60.0
    parent: int | None = None
    directory: str | None = None
    tls: dict[str, Any] | None = None


def run(process: SeatProcess) -> Never:
    """Take the seat until the scheduler is gone, or SIGTERM or SIGINT comes; then end this process.

    The exit status is 0 when it was told to end, or the scheduler ended; 1 when there was no scheduler.
    """
    import dask
    import distributed  # noqa: F401 - sets the levels of its loggers, which are changed here

    # What it says of connections that end is what everybody is told anyway.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if process.parent is not None:
        threading.Thread(target=_end_without, args=(process.parent,), daemon=True).start()
    with dask.config.set(
        {
            # Nothing of ours runs as a Dask task, so there is nothing for the sampling profiler to see.
            "distributed.worker.profile.enabled": False,
            "distributed.worker.daemon": False,
        }
    ):
        status = asyncio.run(_work(process))
    sys.stdout.flush()
    sys.stderr.flush()
    # A function of the user may still be running on a thread; nobody waits for its result.
    os._exit(status)


def where_to_listen(process: SeatProcess) -> dict[str, Any]:
    """Where the Dask worker listens: at any address only if the scheduler is on another machine and nobody says where.

    >>> where_to_listen(SeatProcess("tcp://127.0.0.1:8786", "ps-0"))
    {'host': '127.0.0.1', 'port': 0}
    >>> where_to_listen(SeatProcess("tcp://host0:8786", "ps-0"))
    {}
    >>> where_to_listen(SeatProcess("tcp://host0:8786", "ps-0", "host1:2222"))
    {'host': 'host1', 'port': 2222}
    """
    host, _, port = process.listen.rpartition(":")
    if process.listen:
        return {"host": host.strip("[]"), "port": int(port)}
    scheduler = process.scheduler.rpartition("://")[2].rpartition(":")[0].strip("[]")
    return {"host": scheduler, "port": 0} if is_loopback(scheduler) else {}


async def _work(process: SeatProcess) -> int:
    from distributed import Security, Worker

    listen = where_to_listen(process)
    worker = Worker(
        process.scheduler,
        nthreads=1,
        name=process.name,
        memory_limit=0,
        dashboard=False,
        death_timeout=process.death_seconds,
        local_directory=process.directory,
        security=None if process.tls is None else Security(**process.tls),
        **listen,
    )
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    try:
        await worker
    except Exception as error:  # noqa: BLE001 - said in one line; Dask's own traceback helps nobody
        print(f"distinput: {process.name}: no scheduler at {process.scheduler}: {error}", file=sys.stderr)
        return 1
    ended = asyncio.ensure_future(worker.finished())
    await asyncio.wait([ended, asyncio.ensure_future(told.wait())], return_when=asyncio.FIRST_COMPLETED)
    await worker.close(timeout=2)
    return 0


def _end_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def main() -> Never:
    """Take the seat that is described in JSON on the standard input."""
    # What takes long to import is imported while the scheduler starts.
    import_module("distributed")
    told = sys.stdin.read()
    if not told:
        sys.exit(1)
    run(SeatProcess(**json.loads(told)))
