# SPDX-License-Identifier: Apache-2.0
"""The threads of one run: a pool that an interrupt cannot stop, how what runs in the background ends, and cores."""

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from functools import cache
from itertools import count
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar
from weakref import WeakSet

from distinput.errors import CancelledError, FailedPreconditionError
from distinput.names.lazy import dataclass, later, library

if TYPE_CHECKING:
    import queue
    from queue import SimpleQueue

    from distinput.kernels import kernel
else:
    queue = library("queue")  # few passes have threads
    kernel = later("distinput.kernels.kernel")

# ----------------------------------------------------------------------------
# How something that runs in the background ends: when it is closed, when it is dropped, or with the program.
#
# Python may run a finalizer on any thread, also on one that the finalizer would have to wait for. So what is dropped is
# told to end, and nobody waits for it. What is still open when the program ends is ended first, while every module can be
# used.
# ----------------------------------------------------------------------------


_PATIENCE = 1.0
"""Seconds that the end of the program waits for a thread that is in the middle of a user's function."""

_open: "WeakSet[Ending]" = WeakSet()


class Closing(ABC):
    """Something that a `with` statement closes."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """End it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Ending(ABC):
    """Something to be ended once. What refers to it may be dropped; its threads may refer to it.

    Subclasses call `begun()` when there is something to end.
    """

    __slots__ = ("__weakref__", "_ended", "_process")

    def begun(self) -> None:
        """There is something to end from now on."""
        _watch()
        self._ended = False
        self._process = os.getpid()
        _open.add(self)

    def close(self, patience: float | None = None) -> None:
        """End it, and wait until its threads and processes are gone; may be called again.

        Args:
          patience: as for `end`.
        """
        self.end(patience)
        self._ended = True  # not before: what an interrupt leaves open is ended when it is dropped

    def drop(self) -> None:
        """End it without waiting; for finalizers, which may run on any thread and at any time."""
        if self._ended or self._process != os.getpid():  # a fork has the object, but not its threads
            return
        self._ended = True
        self.end(0.0)

    @abstractmethod
    def end(self, patience: float | None) -> None:
        """End it; may be called again.

        Args:
          patience: seconds to wait for threads and processes to be gone; None: as long as it takes.
        """


@cache
def _watch() -> None:
    """Have everything ended before the program takes its modules apart, and before Python waits for threads."""
    import atexit

    try:
        getattr(threading, "_register_atexit", atexit.register)(_end_program)
    except RuntimeError:  # Python waits for this thread already: the program has come to its end
        atexit.register(_end_program)


_over = threading.Event()


def _end_program() -> None:
    _over.set()
    _end_all()


def check_goes_on() -> None:
    """Refuse to end a loop in silence that ends with the program, where somebody may wait for what it does.

    Raises:
      CancelledError: it does.
    """
    if _over.is_set() and (lane() or not threading.current_thread().daemon):
        raise CancelledError(
            "this loop ends before its data does, since the main thread of the program has come to its end; have that wait "
            "for the thread of the loop: thread.join()"
        )


def _end_all() -> None:
    left = [each for each in list(_open) if not each._ended and each._process == os.getpid()]
    for each in left:
        each._ended = True  # before any ends: it may be what another one reads
    for each in left:
        with suppress(Exception):  # one that cannot be ended, as a user's function may have it, keeps no other
            each.end(_PATIENCE)


# ----------------------------------------------------------------------------
# Lanes: which calls come one after the other, because one thread makes them.
# ----------------------------------------------------------------------------


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_lane, _lanes = threading.local(), count(1)


def lane() -> int:
    """Which thread of the library this is, among all that there were; 0 on threads of the program.

    Those that iterate take their turns: there is one lane for them all.
    """
    found: int = getattr(_lane, "number", 0)
    return found


def in_lane(call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function on a thread that works for the library, beside others."""
    if not lane():
        _lane.number = next(_lanes)
    return call(*args, **kwargs)


# ----------------------------------------------------------------------------
# A pool of threads that an interrupt of who waits for it cannot bring to a stop.
#
# `concurrent.futures` waits with conditions, which are written in Python: an interrupt in the middle of one leaves a lock
# behind that nobody opens, and threads that wait for it for ever, also when the program ends. Here both sides wait in C
# code.
# ----------------------------------------------------------------------------


class Task(Generic[R]):
    """A call that a thread makes.

    Args:
      call: what to call.
    """

    def __init__(self, call: Callable[[], R]) -> None:
        self._call: Callable[[], R] | None = call
        self._claimed, self.running = threading.Lock(), threading.Lock()
        self.running.acquire()  # until there is a result
        self._value: Any = None
        self._error: BaseException | None = None
        self._cancelled = False

    def run(self) -> None:
        """Make the call, unless it was cancelled."""
        if self._claimed.acquire(blocking=False):
            call, self._call = self._call, None
            assert call is not None, "only who has claimed it takes it"
            try:
                self._value = call()
            except BaseException as error:  # noqa: BLE001 - raised by `result`
                self._error = error
            del call
            self.running.release()
            del self  # as in `result`

    def cancel(self) -> bool:
        """Have it not called; False if it was called before."""
        if self._claimed.acquire(blocking=False):
            self._cancelled, self._call = True, None
            self.running.release()
        return self.cancelled()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled

    def done(self) -> bool:
        """Whether `result` need not wait."""
        return not self.running.locked()

    def result(self) -> R:
        """Wait for the call, and return or raise what it did.

        Raises:
          CancelledError: it was not called.
        """
        with self.running:
            pass
        if self._cancelled:
            raise CancelledError("the iteration was closed: the task was cancelled before it began")
        if self._error is None:
            value: R = self._value
            return value
        try:
            raise self._error
        finally:
            del self  # the traceback refers to this frame, and the frame must not refer back


class Pool:
    """Threads for calls, started as they are needed.

    Args:
      threads: the most there are.
      name: of each.
      context: the values of context variables that calls see, such as those of `np.errstate`; None: an empty one.

    >>> pool = Pool(2)
    >>> tasks = [pool.submit(pow, 2, n) for n in range(4)]
    >>> [task.result() for task in tasks]
    [1, 2, 4, 8]
    >>> pool.shutdown()
    """

    def __init__(self, threads: int, name: str = "distinput", context: Context | None = None) -> None:
        self.threads: list[threading.Thread] = []
        """Those that were started."""
        self._context = Context() if context is None else context
        self._most, self._name = threads, name
        self._waiting: SimpleQueue[Task[Any] | None] = queue.SimpleQueue()  # None: a thread ends
        self._under_way: list[threading.Lock] = []  # of tasks, whose results are not kept by it
        self._looked = 0  # how many of them were under way when that was looked at last
        self._closed = False

    def submit(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Task[R]:
        """Have a thread call a function.

        Raises:
          CancelledError: the pool was shut down, as it is when the iteration is closed.
          RuntimeError: no thread can be started; the next call tries again.
        """
        if self._closed:
            raise CancelledError("the iteration was closed: a task was given to a pool of threads after shutdown")
        task: Task[R] = Task(lambda: call(*args, **kwargs))
        self._under_way.append(task.running)
        self._waiting.put(task)
        full = len(self.threads) >= self._most
        # Where no thread can be added, looking at all tasks again and again would cost more than a call.
        if len(self._under_way) > (2 * self._looked if full else len(self.threads)):
            self._under_way = [each for each in self._under_way if each.locked()]
            self._looked = len(self._under_way)
        if len(self._under_way) > len(self.threads) and not full:
            serve = self._context.copy().run  # two threads cannot run in one
            thread = kernel.HelperThread(target=serve, args=(in_lane, _serve, self._waiting), name=self._name)
            self.threads.append(thread)
            try:
                thread.start()
            except RuntimeError:  # there are as many threads as there may be
                self.threads.remove(thread)
                task.cancel()
                raise
        if self._closed:  # meanwhile, by another thread, which did not know of this task and this thread
            self.shutdown()
        return task

    def grow(self, threads: int) -> None:
        """Allow for so many threads from now on, if there may be fewer."""
        self._most = max(self._most, threads)

    def shutdown(self) -> None:
        """Drop the tasks that have not begun, and tell the threads to end; may be called again."""
        self._closed = True
        try:
            while True:
                task = self._waiting.get_nowait()
                if task is not None:
                    task.cancel()
        except queue.Empty:
            pass
        for _ in self.threads:
            self._waiting.put(None)


def _serve(waiting: "SimpleQueue[Task[Any] | None]") -> None:
    while True:
        task = waiting.get()
        if task is None:
            return
        task.run()
        del task


def mapped(call: Callable[[T], R], items: Iterable[T], threads: int, name: str = "distinput") -> list[R]:
    """`call(item)` for each item, several at a time, in the order of the items.

    After an error nothing more is begun, and what is under way is waited for; the error raised is that of the first item.

    >>> mapped(len, ["a", "bc"], 2)
    [1, 2]
    """
    waiting = deque(enumerate(items))
    results: list[Any] = [None] * len(waiting)
    errors: dict[int, BaseException] = {}

    def work() -> None:
        while True:
            try:
                number, item = waiting.popleft()
            except IndexError:
                return
            try:
                results[number] = call(item)
            except BaseException as error:  # noqa: BLE001 - raised below
                errors[number] = error
                waiting.clear()

    pool, patience = Pool(threads, name, copy_context()), _PATIENCE
    try:
        tasks = [pool.submit(work) for _ in range(min(threads, len(waiting)))]
        for task in tasks:
            task.result()
        patience = -1
    finally:
        waiting.clear()
        pool.shutdown()
        for thread in pool.threads:
            if thread.is_alive():
                thread.join(None if patience < 0 else patience)
    if errors:
        raise errors.pop(min(errors))
    return results


# ----------------------------------------------------------------------------
# The threads of one run. A stream tells its threads to end and does not wait for them; closing the run waits for all.
#
# A stream that nobody refers to any more is closed by Python's garbage collector, on any thread, also on one of the
# stream's own. So nothing here waits but `join`, which is called by whoever closes an iteration, and never by a finalizer.
# ----------------------------------------------------------------------------


class Threads:
    """Thread pools, and single threads, each with a function that tells it to end.

    Their calls see the context variables of the program where the run began, as they would in its own thread.
    """

    def __init__(self) -> None:
        self._context = copy_context()
        self._pools: list[Pool] = []
        self._shared: dict[str, Pool] = {}
        self._single: list[tuple[threading.Thread, Callable[[], None]]] = []
        self._ended = False
        self._process = os.getpid()
        # The garbage collector may end a stream while its own thread is in here.
        self._lock = threading.RLock()

    @contextmanager
    def pool(self, threads: int) -> Iterator[Pool]:
        """A thread pool for one stream. When the stream ends, it takes no more tasks, and drops those not begun."""
        made = Pool(threads, context=self._context)
        with self._lock:
            shared = self._shared.values()
            self._pools = [pool for pool in self._pools if pool in shared or _alive(pool)]
            self._pools.append(made)
        try:
            yield made
        finally:
            made.shutdown()

    def shared_pool(self, work: str, threads: int) -> Pool:
        """A thread pool for all streams that do a kind of work, with as many threads as the stream needs that needs most.

        It ends with the run. A stream that ends cancels those of its tasks that have not begun.
        """
        with self._lock:
            pool = self._shared.get(work)
            if pool is None:
                pool = self._shared[work] = Pool(threads, context=self._context)
                self._pools.append(pool)
                if self._ended:  # a thread of the run was slow to hear of it
                    pool.shutdown()
            pool.grow(threads)
            return pool

    @property
    def context(self) -> Context:
        """Context variables for one more thread."""
        return self._context.copy()

    def check_process(self) -> None:
        """Refuse to wait for threads that stayed in another process.

        Raises:
          FailedPreconditionError: there are some, and this process is a fork.
        """
        if self._single or (self._pools and any(pool.threads for pool in self._pools)):
            check_process(self._process)

    @contextmanager
    def beside(self, thread: threading.Thread, end: Callable[[], None]) -> Iterator[None]:
        """A thread for one stream, started here; `end` tells it to end when the stream does."""
        try:
            with self._lock:
                self._single = [each for each in self._single if each[0].is_alive()]
                self._single.append((thread, end))
                thread.start()
            yield
        finally:
            end()

    @property
    def alive(self) -> bool:
        """Whether any has not ended."""
        with self._lock:
            return any(map(_alive, self._pools)) or any(thread.is_alive() for thread, _ in self._single)

    def end(self) -> None:
        """Tell all threads to end."""
        with self._lock:
            self._ended = True
            pools, single = list(self._pools), list(self._single)
        for _, end in reversed(single):
            end()
        for pool in pools:
            pool.shutdown()

    def join(self, patience: float | None) -> None:
        """Wait until all threads have ended, except the one that calls this.

        Args:
          patience: the most seconds for all together; None: as long as it takes.
        """
        with self._lock:
            pools, self._pools = self._pools, []
            single, self._single = self._single, []
        if patience == 0:
            return
        until = None if patience is None else monotonic() + patience
        for thread in [*[thread for thread, _ in single], *[thread for pool in pools for thread in pool.threads]]:
            # One is not alive if an interrupt came while it was started.
            if thread.is_alive() and thread.ident != threading.get_ident():
                thread.join(None if until is None else max(0.0, until - monotonic()))


def _alive(pool: Pool) -> bool:
    return any(thread.is_alive() for thread in pool.threads)


def check_process(process: int) -> None:
    """Refuse what needs threads or workers of another process, of which this one is a fork.

    Args:
      process: the number of the one that has begun them.

    Raises:
      FailedPreconditionError: it is not this one.
    """
    if process != os.getpid():
        raise FailedPreconditionError(
            f"this iteration was begun in process {process}, and this is a fork of it, which has none of its threads; iterate "
            "the dataset, or what state() gave, in each process anew"
        )


_LOADED_IN = os.getpid()


def check_threads(executor: Any) -> None:
    """Refuse an executor or a client of Dask whose threads stayed in the process of which this is a fork: nobody answers.

    Raises:
      FailedPreconditionError: it was in use when this process was forked.
    """
    if os.getpid() == _LOADED_IN:
        return
    loop = getattr(getattr(getattr(executor, "_client", executor), "loop", None), "asyncio_loop", None)  # of Dask
    # Of Python, and of loky.
    threads = [*getattr(executor, "_threads", ()), getattr(executor, "_executor_manager_thread", None)]
    there = [thread.is_alive() for thread in threads if isinstance(thread, threading.Thread)]
    if (number := getattr(loop, "_thread_id", None)) is not None:
        there.append(number in [thread.ident for thread in threading.enumerate()])
    if there and not any(there):
        raise FailedPreconditionError(
            f"this process is a fork, which has none of the threads of {executor!r:.200}; make another one in each process "
            "(`map` takes a function that makes one), or name a service: 'processes:4', or the address of a scheduler"
        )


# ----------------------------------------------------------------------------
# The cores that this process may use.
# ----------------------------------------------------------------------------


def cores() -> int:
    """The cores that this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


CGROUP = "/sys/fs/cgroup"
"""Where Linux has the limits of a container."""


def memory(cgroup: str | os.PathLike[str] = CGROUP) -> int | None:
    """Bytes of memory that this process may use, of the machine or of its container; None if it is not known.

    Source: memory.max of Linux, Documentation/admin-guide/cgroup-v2.rst.
    """
    limits = [int(word) for word in limit_words(cgroup, "memory.max") if word.isdigit()]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=None)


def free_memory(cgroup: str | os.PathLike[str] = CGROUP) -> int | None:
    """Bytes of memory that could be taken now, of the machine or of its container; None if it is not known.

    What the system keeps of files, and gives back when it is asked, counts as free.

    Source: MemAvailable in /proc/meminfo, memory.current and memory.stat of Linux, Documentation/admin-guide/cgroup-v2.rst.
    """
    machine, most, used, stat = [
        limit_words(*names)
        for names in (("/proc", "meminfo"), *[(cgroup, f"memory.{name}") for name in ("max", "current", "stat")])
    ]
    free = [int(machine[machine.index("MemAvailable:") + 1]) << 10] if "MemAvailable:" in machine else []
    if used and most and most[0].isdigit():
        files = int(stat[stat.index("inactive_file") + 1]) if "inactive_file" in stat else 0
        free.append(max(0, int(most[0]) - int(used[0]) + files))
    return min(free, default=None)


def limit_words(cgroup: str | os.PathLike[str], name: str) -> list[str]:
    """The words of a file with a limit; none where there is no such file."""
    try:
        with open(os.path.join(cgroup, name), encoding="ascii") as file:
            return file.read().split()
    except (OSError, UnicodeDecodeError):
        return []


# ----------------------------------------------------------------------------
# The worker processes of PyTorch's DataLoader, seen from inside one of them; PyTorch is never imported for this.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class LoaderWorker:
    """A process that a DataLoader reads in.

    Args:
      number: which of them this is, from 0.
      count: how many the DataLoader has.
      lasts: True if it lives for all epochs (`persistent_workers=True`); otherwise every epoch has new workers.
      draw: a number that all workers of an epoch share and that PyTorch draws anew for each, as `torch.manual_seed` has it.
    """

    number: int
    count: int
    lasts: bool
    draw: int


def loader_worker() -> LoaderWorker | None:
    """The DataLoader worker that this process is; None in any other process."""
    ask = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
    info = None if ask is None else ask()
    if info is None:
        return None
    return LoaderWorker(int(info.id), int(info.num_workers), _lasts(), int(info.seed) - int(info.id))


def _lasts() -> bool:
    """Read from the loop that every such process runs, since PyTorch tells it nowhere else."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_worker_loop":
        frame = frame.f_back
    return frame is not None and bool(frame.f_locals.get("persistent_workers", False))
