# SPDX-License-Identifier: Apache-2.0
"""Scheduled functions: the result that may not be there yet, the closure that has it until then, and the queue of all of them.

The states of a queue: open; failed, from the first error of a closure until a caller has raised it; lost for good, when a
parameter server is gone; closed. Only an open queue gives out closures.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from distinput.errors import CancelledError, FailedPreconditionError, UnavailableError
from distinput.values.nest import map_leaves

__all__ = ["LIMIT", "Closure", "ClosureQueue", "RemoteValue"]

# ---- The result of a scheduled function, which may not be there yet, and the closure that has it until then

# ---- The result of a scheduled function, which may not be there yet


class RemoteValue:
    """The result of a scheduled function; `ClusterCoordinator.schedule` returns it at once.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=1, num_ps=1)
    >>> coordinator = di.distribute.coordinator.ClusterCoordinator(di.distribute.ParameterServerStrategy(resolver))
    >>> coordinator.schedule(lambda x: x + 1, args=(1,)).fetch()
    2

    Source: `tf.distribute.coordinator.RemoteValue`.
    """

    def __init__(self) -> None:
        self._settled = threading.Event()
        self._value: Any = None
        self._error: BaseException | None = None

    def get(self, timeout: float | None = None) -> Any:
        """Wait for the function, and return its result as it is.

        Args:
          timeout: the longest time to wait, in seconds; None for no limit.

        Raises:
          CancelledError: the function was cancelled, because another one had failed or the coordinator was closed.
          UnavailableError: a parameter server was lost.
          TimeoutError: no result in time.
          BaseException: what the function raised.

        Source: `tf.distribute.coordinator.RemoteValue.get`.
        """
        if not self._settled.wait(timeout):
            raise TimeoutError(f"RemoteValue: no result within {timeout} seconds")
        if self._error is not None:
            raise self._error
        return self._value

    def fetch(self, timeout: float | None = None) -> Any:
        """The same as `get`, with NumPy values in place of leaves that have a method `numpy`, such as variables.

        Source: `tf.distribute.coordinator.RemoteValue.fetch`.
        """
        value = self.get(timeout)
        return value.numpy() if hasattr(value, "numpy") else map_leaves(_as_numpy, value)

    def _set(self, value: Any) -> None:
        """Settle it with the result."""
        self._value = value
        self._settled.set()

    def _fail(self, error: BaseException) -> None:
        """Settle it with an error."""
        self._error = error
        self._settled.set()

    def __repr__(self) -> str:
        if not self._settled.is_set():
            return "<RemoteValue: not ready>"
        return f"<RemoteValue: {self._value!r}>" if self._error is None else f"<RemoteValue: {self._error!r}>"


class ResourceValue(RemoteValue):
    """One worker's part of a per-worker value. It is at the worker, and read anew whenever it is asked for.

    Args:
      read: reads the value; called with a timeout.
    """

    def __init__(self, read: Callable[[float | None], Any]) -> None:
        super().__init__()
        self._read = read

    def get(self, timeout: float | None = None) -> Any:
        """The value as it is now; see `RemoteValue.get`."""
        return self._read(timeout)

    def __repr__(self) -> str:
        return "<RemoteValue: at a worker>"


def _as_numpy(leaf: Any) -> Any:
    return leaf.numpy() if hasattr(leaf, "numpy") else leaf


# ---- A scheduled function with its arguments, until it has a result


class Closure:
    """A scheduled function, packed once for any number of attempts.

    Args:
      name: the name of the function, for messages.
      packed: the packed `Call`.
      keys: the numbers of the per-worker values among its arguments.
      keep: kept alive until there is a result: the coordinator, and what the function refers to.
    """

    __slots__ = ("epoch", "keep", "keys", "lost", "name", "packed", "result")

    def __init__(self, name: str, packed: Any, keys: tuple[int, ...] = (), keep: Any = None) -> None:
        self.name, self.packed, self.keys, self.keep = name, packed, keys, keep
        self.result = RemoteValue()
        self.lost: list[str] = []
        """The workers that were lost while they ran it."""
        self.epoch = 0

    def cancel(self, reason: str) -> None:
        """Settle it without running it."""
        self.result._fail(
            CancelledError(
                f"The corresponding function is cancelled. Please reschedule the function. ({self.name}: {reason})"
            )
        )
        self.keep = None


# ---- The queue of closures: their order, the limit on their number, and what the first error does to the others

LIMIT = 256 * 1024
"""The largest number of closures that wait, as in TensorFlow; then `put` blocks."""


class ClosureQueue:
    """Closures between the threads that schedule and the lanes that run them.

    Args:
      lanes: how many lanes take closures.
      limit: how many closures may wait.
    """

    def __init__(self, lanes: int = 1, limit: int = LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"ClusterCoordinator: queue_limit must be at least 1, got {limit}")
        self._lanes, self._limit = lanes, limit
        lock = threading.RLock()  # a coordinator may be garbage-collected, and so close the queue, at any point
        self._work = threading.Condition(lock)  # lanes wait here
        self._progress = threading.Condition(lock)  # callers wait here
        self._waiting: deque[Closure] = deque()
        self._running = 0
        self._epoch = 0
        self._open: Counter[int] = (
            Counter()
        )  # closures without a result, counted by how many `join` calls came before them
        self._error: BaseException | None = None
        self._lost: Callable[[], BaseException] | None = None
        self._news: set[int] = set()
        self.closed = False
        self.put_backs = 0

    # ---- callers

    def put(self, closure: Closure) -> None:
        """Add a closure at the end; blocks while the queue is full.

        Raises:
          FailedPreconditionError: the queue is closed.
          BaseException: the error of an earlier closure. Then this one was not added.
        """
        with self._progress:
            while True:
                self._raise_error()
                if len(self._waiting) < self._limit:
                    break
                self._progress.wait()
            closure.epoch = self._epoch
            self._open[self._epoch] += 1
            self._waiting.append(closure)
            self._work.notify()

    def join(self) -> None:
        """Wait until all closures that were put before have a result.

        Raises:
          BaseException: the first error of a closure, when no closure is running any more.
        """
        with self._progress:
            epoch = self._epoch
            self._epoch += 1  # closures that are put from now on are not waited for
            while True:
                self._raise_error()
                if not any(number <= epoch for number in self._open):
                    return
                self._progress.wait()

    def done(self) -> bool:
        """True if no closure is waiting or running.

        Raises:
          BaseException: as `join`.
        """
        with self._progress:
            self._raise_error()
            return not self._open

    def close(self, reason: str = "the coordinator was closed") -> None:
        """Cancel the closures that wait, and let the lanes end."""
        with self._progress:
            self.closed = True
            self._cancel(reason)
            self._work.notify_all()
            self._progress.notify_all()

    def _raise_error(self) -> None:
        """Raise the error that there is, and be open again; the lock is held."""
        if self._lost is not None:
            raise self._lost()
        while self._error is not None and self._running and self._lost is None and not self.closed:
            self._progress.wait()
        if self._lost is not None:
            raise self._lost()
        if self._error is not None:
            error, self._error = self._error, None
            self._work.notify_all()
            try:
                raise error
            finally:
                del error  # a traceback must not refer to itself
        if self.closed:
            raise FailedPreconditionError("ClusterCoordinator: it was closed; make another one of the strategy")

    # ---- lanes

    def take(self, lane: int) -> Closure | None:
        """Wait for a closure to run.

        Args:
          lane: the number of the worker.

        Returns:
          None if the queue is closed, or there is news for the lane.
        """
        with self._work:
            while True:
                if self.closed:
                    return None
                if lane in self._news:
                    self._news.discard(lane)
                    if self._waiting:
                        self._work.notify()  # another lane takes what this one leaves
                    return None
                if self._waiting and self._error is None and self._lost is None:
                    if len(self._waiting) == self._limit:
                        self._progress.notify_all()
                    self._running += 1
                    return self._waiting.popleft()
                self._work.wait()

    def tell(self, lane: int) -> None:
        """Make a lane return from `take`, because it has something to do before its next closure."""
        with self._work:
            self._news.add(lane)
            self._work.notify_all()

    def finish(self, closure: Closure, error: BaseException | None = None) -> None:
        """Note that a closure that was taken has a result, or failed."""
        with self._progress:
            self._running -= 1
            if error is not None and self._error is None and self._lost is None:
                self._error = error
                self._cancel(f"another function failed with {type(error).__name__}")
            self._settle(closure)
            if error is not None or not self._running:
                self._progress.notify_all()

    def put_back(self, closure: Closure) -> None:
        """Put a closure that was taken back at the front, since its worker was lost."""
        with self._progress:
            self._running -= 1
            self.put_backs += 1
            if self._error is not None or self._lost is not None or self.closed:
                closure.cancel("another function failed, and its worker was lost")
                self._settle(closure)
            else:
                self._waiting.appendleft(closure)
                self._work.notify()
            if not self._running:
                self._progress.notify_all()

    def lane_ended(self, reason: str) -> None:
        """Note that a lane has given up its worker. When no lane is left, all calls raise `UnavailableError`."""
        with self._progress:
            self._lanes -= 1
            none_left = not self._lanes
        if none_left:
            self.fail_for_good(lambda: UnavailableError(f"no worker is left; the last one: {reason}"))

    def fail_for_good(self, error: Callable[[], BaseException]) -> None:
        """Make all calls raise from now on, and cancel the closures that wait.

        Args:
          error: makes the error, anew for each call.
        """
        with self._progress:
            if self._lost is None:
                self._lost = error
                self._cancel(str(error()))
            self._progress.notify_all()

    # ---- both; the lock is held

    def _cancel(self, reason: str) -> None:
        while self._waiting:
            closure = self._waiting.popleft()
            closure.cancel(reason)
            self._settle(closure)

    def _settle(self, closure: Closure) -> None:
        left = self._open[closure.epoch] - 1
        if left:
            self._open[closure.epoch] = left
        else:
            del self._open[closure.epoch]
            self._progress.notify_all()
