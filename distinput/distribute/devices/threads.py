# SPDX-License-Identifier: Apache-2.0
"""Replicas as threads of this process, on NumPy arrays: the reference that every other backend equals.

The threads live as long as the devices and wait on a lock in between, so a run costs one hand-over per replica and no
thread start. Replica 0 runs on the caller's own thread.
"""

import os
import threading
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from distinput.core.ending import Ending

__all__ = ["ThreadDevices"]

_STOP_WAIT = 2.0  # seconds that closing waits for threads, which are idle then and so end at once


class ThreadDevices:
    """Devices that are labels: everything lies in host memory.

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
        self._crews = _Crews()

    @property
    def local(self) -> tuple[str, ...]:
        """The devices' names, in replica order."""
        return self._local

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        """The array itself when it is owned, else a copy."""
        return value if owned or not isinstance(value, np.ndarray) else value.copy()

    def get(self, value: Any) -> Any:
        """The array itself."""
        return value

    def run(self, function: Callable[..., Any], per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`function(*args)` once for each device, at the same time; see `Devices.run`."""
        count = len(per_device_args)
        if count == 1:
            return [copy_context().run(function, *per_device_args[0])]
        crew = self._crews.take(len(self._local) - 1)
        try:
            results, failures = crew.run(function, per_device_args)
        except BaseException:  # interrupted while waiting: these threads are still busy, so they are not used again
            crew.stop()
            raise
        self._crews.idle.append(crew)
        if failures:
            try:
                raise failures[0]
            finally:
                failures.clear()  # the traceback refers to this frame, and the frame must not refer back
        return results

    def close(self) -> None:
        """End the idle threads."""
        self._crews.close()

    def __del__(self) -> None:
        self._crews.drop()


class _Work:
    """One run, as the threads see it."""

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
        """The call for one device; never raises."""
        try:
            self.results[index] = self.function(*self.args[index])
        except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
            self.failures.append(error)

    def end(self) -> None:
        """One of the other threads is through."""
        with self.lock:
            self.waiting -= 1
            last = not self.waiting
        if last:
            self.done.release()


class _Member:
    """One thread and the slot through which it gets work. The thread refers to this and to nothing of the devices."""

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
        del job, context, work  # so that an idle thread keeps nothing of the last run alive


class _Crew:
    """The threads of replicas 1, 2, ... for one run at a time; a run inside a merge function takes another crew."""

    __slots__ = ("members", "process")

    def __init__(self, count: int) -> None:
        self.process = os.getpid()
        self.members = [_Member(i + 1) for i in range(count)]

    def run(
        self, function: Callable[..., Any], per_device_args: Sequence[tuple[Any, ...]]
    ) -> tuple[list[Any], list[BaseException]]:
        """The results of all calls, and what was raised, in the order of time."""
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


class _Crews(Ending):
    """The crews that no run uses at the moment."""

    def __init__(self) -> None:
        self.idle: list[_Crew] = []
        self.begun()

    def take(self, count: int) -> _Crew:
        """One of so many threads."""
        try:
            crew = self.idle.pop()
        except IndexError:
            crew = None
        if crew is None or crew.process != os.getpid():  # a forked child has the object, but not the threads
            self.begun()
            crew = _Crew(count)
        return crew

    def end(self, patience: float | None) -> None:
        threads: list[threading.Thread] = []
        while self.idle:
            crew = self.idle.pop()
            if crew.process == os.getpid():
                threads += crew.stop()
        if patience == 0:
            return
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(_STOP_WAIT)
