# SPDX-License-Identifier: Apache-2.0
"""A cluster of processes on this machine: a Dask scheduler in this process, and one process a seat."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import Any, Self

from distinput.distribute.seats.dask import check_installed, start_scheduler
from distinput.distribute.seats.dask_process import SeatProcess
from distinput.errors import UnavailableError

__all__ = ["LocalCluster"]

_PATIENCE = 2.0
"""Seconds that a process gets to end by itself."""
_SOON = 1.0
"""A process that ends sooner than so many seconds after it was started is not started again at once."""


class LocalCluster:
    """Processes of this machine under the names of seats. Those that end are started again, but for parameter servers.

    The processes end with this one, however it ends.

    Args:
      workers: how many workers.
      servers: how many parameter servers.
      address: `host:port` of the scheduler.
      worker_timeout_seconds: how long a worker may stand still.
      restart: the kinds of seats whose processes are started again when they end, of "worker" and "ps".
      said: told of processes that end and start, in words.
      security: Dask's `Security`, with certificates of which all processes get those that they need; None: connections are
        not encrypted, and everybody who reaches a port may have functions run.

    Raises:
      EngineMissing: `distributed` is not installed.
      OSError: the address is taken.
    """

    def __init__(
        self,
        workers: int,
        servers: int,
        *,
        address: str = "127.0.0.1:0",
        worker_timeout_seconds: float = 30.0,
        restart: Collection[str] = ("worker",),
        said: Callable[[str], None] = lambda _: None,
        security: Any = None,
    ) -> None:
        check_installed()
        self._restart, self._said, self._security = restart, said, security
        self._host = address.rpartition(":")[0]
        self._lock = threading.Lock()
        self._ending = False
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[threading.Thread] = []
        self._directory = tempfile.mkdtemp(prefix="distinput-cluster-")
        self._scheduler: Any = None
        try:
            for name in (*(f"worker-{i}" for i in range(workers)), *(f"ps-{i}" for i in range(servers))):
                self._processes[name] = self._started()
            self._scheduler = start_scheduler(address, worker_timeout_seconds, security)
            self.address: str = self._scheduler.scheduler_address
            for name, process in self._processes.items():
                self._take_seat(process, name)
            for name in self._processes:
                thread = threading.Thread(target=self._attend, args=(name,), name=f"distinput-{name}", daemon=True)
                self._threads.append(thread)
                thread.start()
        except BaseException:
            self.close()
            raise

    @property
    def directory(self) -> str:
        """A folder that only this user can read, which goes with the cluster."""
        return self._directory

    @property
    def names(self) -> dict[str, str]:
        """The name of the Dask worker at each seat, which is that of the seat."""
        return {name: name for name in self._processes}

    def wait(self, seconds: float) -> None:
        """Return when all processes have come to the scheduler.

        Raises:
          UnavailableError: they did not come in time.
        """
        until = time.monotonic() + seconds
        while missing := set(self._processes).difference(
            str(worker.name) for worker in list(self._scheduler.scheduler.workers.values())
        ):
            if time.monotonic() > until:
                raise UnavailableError(
                    f"the cluster: {', '.join(sorted(missing))} did not start within {seconds:g} seconds"
                )
            time.sleep(0.01)

    def pid(self, name: str) -> int:
        """The number of the process at a seat now."""
        with self._lock:
            return self._processes[name].pid

    def close(self) -> None:
        """End all processes, and wait until they have ended."""
        with self._lock:
            if self._ending:
                return
            self._ending = True
            processes = list(self._processes.values())
        for process in processes:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.terminate()
            # One that was stopped cannot end.
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
        until = time.monotonic() + _PATIENCE
        for process in processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for thread in self._threads:
            thread.join()
        if self._scheduler is not None:
            self._scheduler.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> "subprocess.Popen[bytes]":
        """A process that imports what it needs while others start, and waits to be told its seat."""
        work = "from distinput.distribute.seats import dask_process; dask_process.main()"
        program = f"import sys; sys.path[:] = {sys.path!r}; {work}"
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
        return subprocess.Popen(
            [sys.executable, *flags, "-c", program],
            stdin=subprocess.PIPE,
            # Ctrl-C in a terminal goes to all processes of its group; these are told by this one.
            start_new_session=True,
        )

    def _take_seat(self, process: "subprocess.Popen[bytes]", name: str) -> None:
        listen = f"{self._host}:0" if self._host else ""
        tls = None if self._security is None else _arguments(self._security)
        seat = SeatProcess(self.address, name, listen, parent=os.getpid(), directory=self._directory, tls=tls)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already, as whoever attends to it will see
            process.stdin.write(json.dumps(asdict(seat)).encode())
            process.stdin.close()

    def _attend(self, name: str) -> None:
        """Wait for the end of a process; start it again if it is a worker."""
        while True:
            process = self._processes[name]
            began = time.monotonic()
            status = process.wait()
            with self._lock:
                if self._ending:
                    return
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            self._said(f"{name}, process {process.pid}, {how}")
            if name.partition("-")[0] not in self._restart:
                return
            time.sleep(max(0.0, began + _SOON - time.monotonic()) if status >= 0 else 0.0)
            with self._lock:
                if self._ending:
                    return
                self._processes[name] = self._started()
                self._take_seat(self._processes[name], name)
            self._said(f"{name} was started again, as process {self._processes[name].pid}")


def _arguments(security: Any) -> dict[str, Any]:
    """What Dask's `Security` was made of, for a worker."""
    names = ("tls_ca_file", "tls_worker_cert", "tls_worker_key", "require_encryption")
    return {name: getattr(security, name) for name in names}
