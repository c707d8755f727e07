# SPDX-License-Identifier: Apache-2.0
"""Tasks of a cluster, run from a program, and clusters of local processes."""

import asyncio
import contextlib
import json
import logging
import os
import platform
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any, Never

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.resolver import with_rpc_layer
from distinput.distribute.engines.background import is_loopback
from distinput.distribute.seats.dask import WITHOUT_DASHBOARD, check_installed, chief_address, start_scheduler
from distinput.errors import FailedPreconditionError, UnavailableError
from distinput.kernels.kernel import HelperThread
from distinput.names.lazy import dataclass
from distinput.run.threads import Closing

# ----------------------------------------------------------------------------
# A cluster of processes on this machine: a Dask scheduler in this process, and one process a seat.
# ----------------------------------------------------------------------------


# ---- A process with one seat: a Dask worker without a nanny, with nothing in it that a seat does not need

_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class SeatProcess:
    """What a process needs to take a seat.

    Args:
      scheduler: the address of the Dask scheduler.
      name: of the seat, such as "worker-0", or of an input worker.
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

    The exit status is 0 when it was told to end, or the scheduler ended. Without a scheduler it is 1, and `_NO_SCHEDULER` where
    another process has started this one.
    """
    import dask
    import distributed  # noqa: F401 - sets the levels of its loggers, which are changed here

    # What it says of connections that end is what everybody is told anyway.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if process.parent is not None:
        HelperThread(target=_end_without, args=(process.parent,)).start()
    with dask.config.set(
        {
            # Nothing of ours runs as a Dask task, so there is nothing for the sampling profiler to see.
            "distributed.worker.profile.enabled": False,
            "distributed.worker.daemon": False,
            **WITHOUT_DASHBOARD,
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
        return 1 if process.parent is None else _NO_SCHEDULER
    ended = asyncio.ensure_future(worker.finished())
    await asyncio.wait([ended, asyncio.ensure_future(told.wait())], return_when=asyncio.FIRST_COMPLETED)
    await worker.close(timeout=2)
    return 0


def _end_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def program() -> str:
    """What a new interpreter runs to become a process with one seat: `main`, with the modules that this process finds."""
    return f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"


def main() -> Never:
    """Take the seat that is described in JSON on the standard input."""
    # What takes long to import is imported while the scheduler starts.
    for name in ("distributed", "distinput.ops.piece_lanes"):
        import_module(name)
    told = sys.stdin.read()
    if not told:
        sys.exit(1)
    run(SeatProcess(**json.loads(told)))


# ---- `LocalCluster`

_START_SECONDS = 300.0
"""How long a process may take to start: on a machine that has much to do, imports alone take more than a minute."""
_PATIENCE = 2.0
"""Seconds that a process gets to end by itself."""
_NO_SCHEDULER = 69
"""The exit status, EX_UNAVAILABLE, of a process that found no scheduler: no function ends with that by accident."""
_SOON = 1.0
"""A process that ends sooner than so many seconds after it was started is not started again at once."""


class LocalCluster(Closing):
    """Processes of this machine under the names of seats. Those that end are started again, but for parameter servers.

    The processes end with this one, however it ends.

    Args:
      workers: how many workers.
      servers: how many parameter servers.
      inputs: how many input workers, which have functions of pipelines called; such a cluster has no seats.
      address: `host:port` of the scheduler that is started.
      scheduler: the address of a running one, for input workers; None: one is started.
      scheduler_seconds: how long the processes look for a scheduler that runs elsewhere.
      worker_timeout_seconds: how long a worker may stand still.
      restart: the kinds of seats whose processes are started again when they end, of "worker" and "ps". Input workers are.
      said: told of processes that end and start, in words.
      gone: called when all processes have ended, since they found no scheduler.
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
        inputs: int = 0,
        address: str = "127.0.0.1:0",
        scheduler: str | None = None,
        scheduler_seconds: float = 60.0,
        worker_timeout_seconds: float = 30.0,
        restart: Collection[str] = ("worker",),
        said: Callable[[str], None] = lambda _: None,
        gone: Callable[[], None] = lambda: None,
        security: Any = None,
    ) -> None:
        check_installed()
        self._restart, self._said, self._gone, self._security = {*restart, "input"}, said, gone, security
        self._host = address.rpartition(":")[0] if scheduler is None else ""
        # A scheduler of this process is there as long as this process is, so who looks for it is slow, not wrong: a parameter
        # server that gives up is not started again.
        self._elsewhere = scheduler is not None
        self._seconds = scheduler_seconds if self._elsewhere else _START_SECONDS
        self._lock = threading.Lock()
        self._ending = False
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._threads: list[threading.Thread] = []
        self.directory = tempfile.mkdtemp(prefix="distinput-cluster-")
        """A folder that only this user can read, which goes with the cluster."""
        self._scheduler: Any = None
        try:
            for job, number in (("worker", workers), ("ps", servers), ("input", inputs)):
                self._processes.update({f"{job}-{i}": self._started() for i in range(number)})
            if scheduler is None:
                self._scheduler = start_scheduler(address, worker_timeout_seconds, security, seats=not inputs)
                scheduler = self._scheduler.scheduler_address
            self.address: str = scheduler
            for name, process in self._processes.items():
                self._take_seat(process, name)
            for name in self._processes:
                thread = HelperThread(target=self._attend, args=(name,), name=f"distinput-{name}")
                self._threads.append(thread)
                thread.start()
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> dict[str, str]:
        """The name of the Dask worker at each seat, which is that of the seat."""
        return {name: name for name in self._processes}

    def wait(self, seconds: float = _START_SECONDS) -> None:
        """Return when all processes have come to the scheduler.

        Raises:
          UnavailableError: they did not come in time.
        """
        until = time.monotonic() + seconds
        workers = self._scheduler.scheduler.workers
        # The scheduler's thread changes this table, a dict that is sorted: its own `values` looks up one name after the other.
        while missing := set(self._processes).difference(str(each.name) for each in list(dict.values(workers))):
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
            if thread.is_alive():  # one could not be started
                thread.join()
        if self._scheduler is not None:
            self._scheduler.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _started(self) -> "subprocess.Popen[bytes]":
        """A process that imports what it needs while others start, and waits to be told its seat."""
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
        return subprocess.Popen(
            [sys.executable, *flags, "-c", program()],
            stdin=subprocess.PIPE,
            # Ctrl-C in a terminal goes to all processes of its group; these are told by this one.
            start_new_session=True,
        )

    def _take_seat(self, process: "subprocess.Popen[bytes]", name: str) -> None:
        listen = f"{self._host}:0" if self._host else ""
        tls = None if self._security is None else _arguments(self._security)
        if self._elsewhere:  # where others have the same names, and a process that was lost may not be missed yet
            name = f"{name}-{platform.node()}-{secrets.token_hex(4)}"
        seat = SeatProcess(
            self.address, name, listen, self._seconds, parent=os.getpid(), directory=self.directory, tls=tls
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already, as whoever attends to it will see
            process.stdin.write(json.dumps(asdict(seat)).encode())
            process.stdin.close()

    def _attend(self, name: str) -> None:
        """Wait for the end of a process; start it again if it is a worker."""
        while True:
            process = self._processes[name]
            start = time.monotonic()
            status = process.wait()
            with self._lock:
                if self._ending:
                    return
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            self._said(f"{name}, process {process.pid}, {how}")
            if self._elsewhere and status == _NO_SCHEDULER:
                if all(each.poll() == _NO_SCHEDULER for each in self._processes.values()):
                    self._gone()
                return
            if name.partition("-")[0] not in self._restart:
                return
            time.sleep(max(0.0, start + _SOON - time.monotonic()) if status >= 0 else 0.0)
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


# ----------------------------------------------------------------------------
# A task of a cluster, run from a program: the worker or parameter server of a `ParameterServerStrategy`.
# ----------------------------------------------------------------------------


_SEATS = ("worker", "ps")


@dataclass(frozen=True)
class ServerDef:
    """The cluster, job and task of a `Server`.

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
        """Start the process of the task, unless it runs already.

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
        """Wait until the task has ended. It ends together with its coordinator.

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
