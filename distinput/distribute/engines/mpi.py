# SPDX-License-Identifier: Apache-2.0
"""MPI through mpi4py: the lightest engine, started by mpiexec.

MPI has no timeouts and waits by spinning, so every wait here polls, with short sleeps in between. After a timeout the
operation is still under way, and MPI would deliver its messages to the next one. So the group cannot be used any more, and
when such a process exits the job is ended, because MPI_Finalize would wait forever.

A process that dies takes the whole job with it, unless mpiexec is told otherwise (`--with-ft ulfm` of Open MPI).
"""

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from distinput.distribute.collectives.channel import Array, Bytes, ChannelLost
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.engines import MPIEXEC
from distinput.distribute.engines.background import check_rank_and_size
from distinput.errors import CollectiveTimeout, EngineMissing, importing

_EXACT = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_DTYPES = _EXACT | {"float32", "float64"}
_SPIN = 100e-6  # seconds of polling without sleeping: the others have usually come
_SLEEPS = (20e-6, 1e-3)  # the shortest and the longest sleep between two polls; in between an eighth of the time waited
_EXIT_GRACE = 1.0  # seconds that a process with operations under way leaves the others to report before it ends the job
_EXIT_STEP = 0.3  # seconds more for each rank, since mpiexec may crash when several processes end the job at once
_FINALIZE_SECONDS = 10  # a process that lost another one is killed if MPI_Finalize takes longer


def _mpi() -> Any:
    with importing(
        "engine 'mpi': needs mpi4py and an MPI library, which are not installed ({error}); "
        "use `pip install 'distinput[mpi]'` and start the program with mpiexec",
        (ImportError, RuntimeError),
    ):
        return import_module("mpi4py.MPI")


def open_group(rank: int | None, size: int | None, address: str | None, *, timeout: float, name: str) -> Collectives:
    """The group of all processes that mpiexec started; see `open_collectives`. The address is not needed."""
    del address
    mpi = _mpi()
    world = mpi.COMM_WORLD
    if world.size == 1 and size not in (None, 1) and not any(name in os.environ for name in MPIEXEC):
        raise EngineMissing(
            f"engine 'mpi': mpi4py is installed, but mpiexec did not start this process, which should be one of {size}; use "
            f"`mpiexec -n {size} python ...`, or the engine 'torch', which needs no launcher"
        )
    check_rank_and_size("engine 'mpi': mpiexec started this process", (rank, size), (world.rank, world.size))
    return group_of(world, timeout=timeout, name=name)


def group_of(comm: Any, *, timeout: float = 60.0, name: str = "distinput") -> Collectives:
    """The group of the processes of a communicator of mpi4py; all of them call this.

    The communicator is duplicated, so calls of the program on it do not interfere.

    Args:
      comm: an `mpi4py.MPI.Intracomm`, such as `COMM_WORLD` or a part of it that `Split` made.
      timeout: seconds to wait for the others, here and in each call of the group.
      name: shown in messages; groups that are open at the same time have different ones.

    Raises:
      EngineMissing: mpi4py is not installed.
      ValueError: MPI was started without MPI_THREAD_MULTIPLE.
      CollectiveTimeout: the others did not come.

    Example: `MultiWorkerMirroredStrategy(devices=["CPU:0"], collectives=group_of(comm))` trains on a part of a job.
    """
    mpi = _mpi()
    if mpi.Query_thread() < mpi.THREAD_MULTIPLE and comm.size > 1:
        raise ValueError("engine 'mpi': needs MPI_THREAD_MULTIPLE; leave mpi4py.rc.thread_level at its default")
    try:
        statuses = _duplicate(comm, timeout)
        channel = MpiChannel(comm, _MpiBoard(mpi, statuses), timeout)
    except ChannelLost as error:
        raise CollectiveTimeout(
            f"engine 'mpi': rank {comm.rank} of {comm.size} did not meet the others: {error}"
        ) from error
    return Collectives(channel, name, timeout)


_lost: list[str] = []
"""What MPI reported when it lost another process, in jobs that go on after that."""

_under_way: dict[int, "_Request"] = {}
"""All operations that are not complete; MPI writes to their arrays, so they have to stay alive."""


def _leave() -> None:
    """End the job if MPI_Finalize would hang; runs before it."""
    world = _mpi().COMM_WORLD
    deadline = time.monotonic() + _EXIT_GRACE + _EXIT_STEP * min(world.rank, 10)
    while not all(request.quietly_done() for request in list(_under_way.values())):
        if time.monotonic() > deadline:
            world.Abort(1)
        time.sleep(0.01)
    if _lost and threading.current_thread() is threading.main_thread():
        # MPI_Finalize may, though seldom, wait forever for a process that has died; an alarm of the system ends that.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_FINALIZE_SECONDS)


class _Request:
    """One operation under way."""

    def __init__(self, request: Any, value: Callable[[], Any], *buffers: Array) -> None:
        self._request, self._value, self._buffers = request, value, buffers
        if not _under_way:
            atexit.unregister(_leave)
            atexit.register(_leave)
        _under_way[id(self)] = self

    def _test(self) -> bool:
        if self._request is None:
            return True
        try:
            done = bool(self._request.Test())
        except Exception as error:
            self._end()
            _lost.append(str(error))
            raise ChannelLost(str(error)) from error
        if done:
            self._end()
        return done

    def _end(self) -> None:
        self._request = None
        _under_way.pop(id(self), None)

    def quietly_done(self) -> bool:
        """Whether MPI has completed it, or failed to."""
        try:
            return self._test()
        except ChannelLost:
            return True

    def wait(self, seconds: float) -> bool:
        begin = time.monotonic()
        while not self._test():
            spent = time.monotonic() - begin
            if spent >= seconds:
                return False
            if spent < _SPIN:
                os.sched_yield()
            else:
                time.sleep(min(max(_SLEEPS[0], spent / 8), _SLEEPS[1], seconds - spent))
        return True

    def value(self) -> Any:
        return self._value()


def _duplicate(comm: Any, timeout: float) -> Any:
    new, request = _call(comm.Idup)
    if not _Request(request, lambda: None).wait(timeout):
        raise ChannelLost(f"they did not come within {timeout:g} s")
    return new


def _call(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        raise ChannelLost(str(error)) from error


class _MpiBoard:
    """Statuses as messages to all others, on a communicator of their own."""

    host_rank = None

    def __init__(self, mpi: Any, comm: Any) -> None:
        self._mpi, self._comm = mpi, comm
        self._statuses: dict[int, str] = {}
        self._sent: list[tuple[Any, Bytes]] = []
        self._lock = threading.Lock()
        self._others = [rank for rank in range(comm.size) if rank != comm.rank]

    def publish(self, status: str) -> None:
        data = np.frombuffer(status.encode(), np.uint8).copy()
        with self._lock:
            self._sent = [(request, data) for request, data in self._sent if not self._complete(request)]
            for rank in self._others:
                with suppress(Exception):  # a dead worker does not need it
                    self._sent.append((self._comm.Isend(data, rank), data))

    @staticmethod
    def _complete(request: Any) -> bool:
        try:
            return bool(request.Test())
        except Exception:  # noqa: BLE001 - the receiver is dead
            return True

    def read(self) -> Mapping[int, str]:
        arrived = self._mpi.Status()
        with self._lock:
            for rank in self._others:
                with suppress(Exception):  # a dead worker publishes nothing
                    while self._comm.Iprobe(rank, self._mpi.ANY_TAG, arrived):
                        data = np.empty(arrived.Get_count(self._mpi.BYTE), np.uint8)
                        self._comm.Recv(data, rank)
                        self._statuses[rank] = data.tobytes().decode()
            return dict(self._statuses)

    def close(self) -> None:
        pass


class MpiChannel:
    """Two communicators, one for calls and one for agreements.

    Args:
      comm: the communicator to duplicate; all its processes take part.
      status_board: shared with the channels of the same origin.
      timeout: seconds to wait for the others.
    """

    reducible: Mapping[str, frozenset[str]] = {"max": _EXACT, "min": _EXACT, "prod": _DTYPES, "sum": _DTYPES}
    post_is_cheap = True

    def __init__(self, comm: Any, status_board: _MpiBoard, timeout: float) -> None:
        mpi = _mpi()
        self.rank, self.size, self.status_board = comm.rank, comm.size, status_board
        self._operations = {"max": mpi.MAX, "min": mpi.MIN, "prod": mpi.PROD, "sum": mpi.SUM}
        self._calls, self._agreements = _duplicate(comm, timeout), _duplicate(comm, timeout)

    def all_gather(self, mine: Bytes) -> _Request:
        """[n] of every worker -> [size, n]."""
        rows = np.empty((self.size, len(mine)), np.uint8)
        return _Request(_call(self._calls.Iallgather, mine, rows), lambda: rows, mine)

    def all_gather_uneven(self, mine: Bytes, sizes: Sequence[int]) -> _Request:
        """[sizes[rank]] of every worker -> list of [sizes[i]]."""
        ends = np.cumsum(sizes).tolist()
        whole = np.empty(ends[-1], np.uint8)
        starts = [0, *ends[:-1]]
        request = _call(self._calls.Iallgatherv, mine, [whole, list(sizes), starts, _mpi().BYTE])
        return _Request(request, lambda: [whole[a:b] for a, b in zip(starts, ends, strict=True)], mine)

    def broadcast(self, values: Bytes, root: int) -> _Request:
        """[n] of the root -> [n]."""
        return _Request(_call(self._calls.Ibcast, values, root), lambda: values)

    def _reduce(self, comm: Any, values: Array, op: str) -> _Request:
        mine, result = values.copy(), np.empty_like(values)
        return _Request(_call(comm.Iallreduce, mine, result, self._operations[op]), lambda: result, mine)

    def all_reduce(self, values: Array, op: str) -> _Request:
        """[n] of every worker -> [n]."""
        return self._reduce(self._calls, values, op)

    def post_sum(self, values: Array) -> _Request:
        """int64 [n] of every worker, summed."""
        return self._reduce(self._agreements, values, "sum")

    def dup(self, name: str, timeout: float) -> "MpiChannel":
        """Another pair of communicators."""
        return MpiChannel(self._calls, self.status_board, timeout)

    def close(self, *, broken: bool) -> None:
        """Drop the communicators. Freeing them needs a call of all workers, so MPI_Finalize does that."""
        self._calls = self._agreements = None
