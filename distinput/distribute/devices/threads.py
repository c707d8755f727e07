# SPDX-License-Identifier: Apache-2.0
"""Replicas as threads of this process, on NumPy arrays: the reference backend, whose results all others must equal.

The threads live as long as the devices and wait on a lock between runs, so a run starts no threads; it only wakes one
per replica. Replica 0 runs on the caller's own thread.
"""

import os
import threading
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from distinput.distribute.core.values import PerReplica
from distinput.run.threads import Ending
from distinput.values.leaves import is_ragged

_STOP_WAIT = 2.0  # seconds that closing waits for each thread; threads are idle by then, so they end at once


class ThreadDevices:
    """Devices that are mere labels: all arrays are in host memory.

    Args:
      labels: a name for each replica.

    >>> from distinput.distribute.devices.threads import ThreadDevices
    >>> ThreadDevices(["CPU:0", "CPU:1"]).run(lambda a, b: a + b, [(1, 2), (3, 4)])
    [3, 7]

    Source: the meaning is that of the replica threads of `tf.distribute.MirroredStrategy`, which here really run at the
    same time.
    """

    host_memory = True

    def __init__(self, labels: Sequence[str]) -> None:
        self._local = tuple(labels)
        self._idle = _IdleThreads()

    @property  # which a class of your own may say in another way
    def local(self) -> tuple[str, ...]:
        """The devices' names, in replica order."""
        return self._local

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        """The array itself if it is owned, else a copy."""
        return value if owned or not (isinstance(value, np.ndarray) or is_ragged(value)) else value.copy()

    def get(self, value: Any) -> Any:
        """The array itself."""
        return value

    def run(self, function: Callable[..., Any], per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call `function(*args)` for every device at the same time; see `Devices.run`."""
        count = len(per_device_args)
        if count == 1:
            return [copy_context().run(function, *per_device_args[0])]
        threads = self._idle.take(len(self._local) - 1)
        try:
            results, failures = threads.run(function, per_device_args)
        except BaseException:  # interrupted while waiting: these threads are still busy, so they are not used again
            threads.stop()
            raise
        self._idle.idle.append(threads)
        if failures:
            try:
                raise failures[0]
            finally:
                failures.clear()  # the traceback refers to this frame, and the frame must not refer back
        return results

    def close(self) -> None:
        """End the idle threads."""
        self._idle.close()

    def __del__(self) -> None:
        self._idle.drop()


class FrameworkDevices:
    """Devices of another library, each with a thread on which a replica runs; the base of those of JAX and PyTorch.

    Args:
      labels: a name for each replica.
      devices: the library's own device objects, in the same order.

    Raises:
      ValueError: a device that replicas cannot share is named twice.
    """

    host_memory = False
    arrays: Any
    """The `ArrayOps` of the library."""

    def __init__(self, labels: Sequence[str], devices: Sequence[Any]) -> None:
        self.local, self.devices = tuple(labels), tuple(devices)
        for i, device in enumerate(devices):
            first = devices.index(device)
            if first < i and not self._is_shared(device):
                library = self.arrays.library
                raise ValueError(f"backend {library!r}: {labels[first]} and {labels[i]} are the same device")
        self._threads = ThreadDevices(labels)

    def _is_shared(self, device: Any) -> bool:
        """Whether several replicas may be on a device."""
        del device
        return False

    def put_all(self, leaves: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The values of several leaves, one for each device, all put at once."""
        raise NotImplementedError

    def put_step(self, leaves: Sequence[Sequence[Any]]) -> list[PerReplica]:
        """The values of several leaves, one for each device, as a step has them; nobody writes to them any more."""
        return [PerReplica(parts) for parts in self.put_all(leaves)]

    def close(self) -> None:
        """End the idle threads."""
        self._threads.close()


class _Work:
    """The shared data of one run: the function, its arguments, and the results and errors of its calls."""

    __slots__ = ("args", "done", "failures", "function", "lock", "results", "waiting")

    def __init__(self, function: Callable[..., Any], args: Sequence[tuple[Any, ...]]) -> None:
        self.function, self.args = function, args
        self.results: list[Any] = [None] * len(args)
        self.failures: list[BaseException] = []
        self.waiting = len(args) - 1
        self.lock = allocate_lock()
        self.done = allocate_lock()
        self.done.acquire()

    def call(self, index: int) -> None:
        """Make the call for one device; never raises, but for an interrupt of the caller's own thread."""
        try:
            self.results[index] = self.function(*self.args[index])
        except BaseException as error:
            self.failures.append(error)
            if index == 0 and isinstance(error, KeyboardInterrupt):
                raise

    def end(self) -> None:
        """Note that one of the other threads has finished."""
        with self.lock:
            self.waiting -= 1
            last = not self.waiting
        if last:
            self.done.release()


class _Member:
    """A thread and the slot through which it gets work. The thread refers to this alone, not to the devices."""

    __slots__ = ("index", "job", "thread", "wake")

    def __init__(self, index: int) -> None:
        self.index = index
        self.job: tuple[Any, _Work] | None = None
        self.wake = allocate_lock()
        self.wake.acquire()
        self.thread = threading.Thread(target=_serve, args=(self,), name=f"distinput-replica-{index}", daemon=True)
        self.thread.start()


def _serve(member: _Member) -> None:
    wake = member.wake
    while True:
        wake.acquire()
        job = member.job
        if job is None:
            return
        context, work = job
        member.job = None
        context.run(work.call, member.index)
        work.end()
        del job, context, work  # so that an idle thread keeps no object of the last run alive


class _ReplicaThreads:
    """The threads of replicas 1, 2, ... for one run at a time; a run inside a merge function uses another group."""

    __slots__ = ("members", "process")

    def __init__(self, count: int) -> None:
        self.process = os.getpid()
        self.members: list[_Member] = []
        try:
            for i in range(count):
                self.members.append(_Member(i + 1))
        except RuntimeError:  # there are as many threads as there may be
            self.stop()
            raise

    def run(
        self, function: Callable[..., Any], per_device_args: Sequence[tuple[Any, ...]]
    ) -> tuple[list[Any], list[BaseException]]:
        """The results of all calls, and the errors raised, in order of time."""
        work = _Work(function, per_device_args)
        for member in self.members[: len(per_device_args) - 1]:
            member.job = (copy_context(), work)
            member.wake.release()
        copy_context().run(work.call, 0)
        work.done.acquire()
        return work.results, work.failures

    def stop(self) -> list[threading.Thread]:
        """Tell the threads to end as soon as they are idle."""
        for member in self.members:
            member.job = None
            if member.wake.locked():
                member.wake.release()
        return [member.thread for member in self.members]


class _IdleThreads(Ending):
    """The groups of threads that are idle."""

    def __init__(self) -> None:
        self.idle: list[_ReplicaThreads] = []
        self.begun()

    def take(self, count: int) -> _ReplicaThreads:
        """An idle group, or a new one of `count` threads."""
        try:
            group = self.idle.pop()
        except IndexError:
            group = None
        if group is None or group.process != os.getpid():  # a forked child inherits the object, but not the threads
            self.begun()
            group = _ReplicaThreads(count)
        return group

    def end(self, patience: float | None) -> None:
        threads: list[threading.Thread] = []
        while self.idle:
            group = self.idle.pop()
            if group.process == os.getpid():
                threads += group.stop()
        if patience == 0:
            return
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(_STOP_WAIT)
