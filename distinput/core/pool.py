# SPDX-License-Identifier: Apache-2.0
"""A pool of threads that an interrupt of who waits for it cannot bring to a stop.

`concurrent.futures` waits with conditions, which are written in Python: an interrupt in the middle of one leaves a lock behind
that nobody opens, and threads that wait for it for ever, also when the program ends. Here both sides wait in C code.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any, Generic, ParamSpec, TypeVar

from distinput.errors import CancelledError

__all__ = ["Pool", "Task", "mapped"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_PATIENCE = 1.0
"""Seconds for which threads are waited for after an interrupt."""


class Task(Generic[R]):
    """A call that a thread makes.

    Args:
      call: what to call.
    """

    def __init__(self, call: Callable[[], R]) -> None:
        self._call: Callable[[], R] | None = call
        self._claimed, self._running = threading.Lock(), threading.Lock()
        self._running.acquire()  # until there is a result
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
            self._running.release()

    def cancel(self) -> bool:
        """Have it not called; False if it was called before."""
        if self._claimed.acquire(blocking=False):
            self._error, self._call = CancelledError("the task was cancelled before it began"), None
            self._cancelled = True
            self._running.release()
        return self.cancelled()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled

    def done(self) -> bool:
        """Whether `result` need not wait."""
        return not self._running.locked()

    def result(self) -> R:
        """Wait for the call, and return or raise what it did.

        Raises:
          CancelledError: it was not called.
        """
        with self._running:
            pass
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

    >>> pool = Pool(2)
    >>> tasks = [pool.submit(pow, 2, n) for n in range(4)]
    >>> [task.result() for task in tasks]
    [1, 2, 4, 8]
    >>> pool.shutdown()
    """

    def __init__(self, threads: int, name: str = "distinput") -> None:
        self.threads: list[threading.Thread] = []
        """Those that were started."""
        self._most, self._name = threads, name
        self._waiting: SimpleQueue[Task[Any] | None] = SimpleQueue()  # None: a thread ends
        self._under_way: list[Task[Any]] = []
        self._closed = False

    def submit(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Task[R]:
        """Have a thread call a function.

        Raises:
          RuntimeError: the pool was shut down.
        """
        if self._closed:
            raise RuntimeError("a task was given to a pool of threads after shutdown")
        task: Task[R] = Task(lambda: call(*args, **kwargs))
        self._waiting.put(task)
        self._under_way = [each for each in self._under_way if not each.done()]
        self._under_way.append(task)
        if len(self._under_way) > len(self.threads) < self._most:
            thread = threading.Thread(target=_serve, args=(self._waiting,), name=self._name, daemon=True)
            self.threads.append(thread)
            thread.start()
        return task

    def shutdown(self) -> None:
        """Drop the tasks that have not begun, and tell the threads to end; may be called again."""
        self._closed = True
        try:
            while True:
                task = self._waiting.get_nowait()
                if task is not None:
                    task.cancel()
        except Empty:
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
    made: list[Any] = [None] * len(waiting)
    errors: dict[int, BaseException] = {}

    def work() -> None:
        while True:
            try:
                number, item = waiting.popleft()
            except IndexError:
                return
            try:
                made[number] = call(item)
            except BaseException as error:  # noqa: BLE001 - raised below
                errors[number] = error
                waiting.clear()

    pool, patience = Pool(threads, name), _PATIENCE
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
    return made
