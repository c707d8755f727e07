# SPDX-License-Identifier: Apache-2.0
"""Scheduled functions: closures, results that may not be there yet, and the lane that runs them at one worker."""

import itertools
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from distinput.columns.state import State
from distinput.distribute.coordinator.servers import server_lost
from distinput.distribute.coordinator.worker_seat import CallOutcome, WorkerSeat
from distinput.distribute.seats.seats import Placed, SeatLost, Seats
from distinput.errors import AbortedError, CancelledError, FailedPreconditionError, UnavailableError
from distinput.kernels.kernel import HelperThread
from distinput.names.lazy import dataclass
from distinput.values.nest import map_leaves

# ----------------------------------------------------------------------------
# Scheduled functions: the result that may not be there yet, the closure that has it until then, and the queue of all of
# them.
#
# The states of a queue: open; failed, from the first error of a closure until a caller has raised it; lost for good, when a
# parameter server is gone; closed. Only an open queue gives out closures.
# ----------------------------------------------------------------------------


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
        if hasattr(value, "numpy"):
            return value.numpy()
        return map_leaves(lambda leaf: leaf.numpy() if hasattr(leaf, "numpy") else leaf, value)

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
    """One worker's part of a per-worker value. It is at the worker, and read anew whenever it is asked for."""

    _read: Callable[[float | None], Any]
    """Reads the value; called with a timeout."""

    def get(self, timeout: float | None = None) -> Any:
        """The value as it is now; see `RemoteValue.get`."""
        return self._read(timeout)

    def __repr__(self) -> str:
        return "<RemoteValue: at a worker>"


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
        text = f"The corresponding function is cancelled. Please reschedule the function. ({self.name}: {reason})"
        self.result._fail(CancelledError(text))
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
        # Closures without a result, counted by how many `join` calls came before them.
        self._open: Counter[int] = Counter()
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
            self._raise_error()
            while len(self._waiting) >= self._limit:
                self._progress.wait()
                self._raise_error()
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
            self._raise_error()
            while any(number <= epoch for number in self._open):
                self._progress.wait()
                self._raise_error()

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


# ----------------------------------------------------------------------------
# A lane runs closures at one worker, one after the other, on a thread of the coordinator.
#
# A lane refers to the queue and to the seats, but not to the coordinator, so that a coordinator that is forgotten can be
# garbage-collected while its lanes wait.
# ----------------------------------------------------------------------------


# ---- The per-worker values of a coordinator: how each is made, and the position of each worker's iterator


class Resource:
    """How a per-worker value is made at a worker, and made again when the worker comes back.

    Args:
      name: the name of the function that makes it, for messages.
      packed: the packed `Call` that makes it.
      exact: True for an iterator that continues where it was when its worker was lost.
      states: where the iterators of workers begin; those of the others at the start.
    """

    __slots__ = ("exact", "name", "packed", "states")

    def __init__(
        self, name: str, packed: Any, exact: bool = False, states: Mapping[int, State | None] | None = None
    ) -> None:
        self.name, self.packed, self.exact = name, packed, exact
        self.states = {worker: state for worker, state in (states or {}).items() if state is not None}
        """The position of each worker's iterator after the last closure that finished there."""


class Resources:
    """All per-worker values that something refers to, by number."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # `drop` may be called by a garbage collection inside of `add`
        self._numbers = itertools.count()
        self._all: dict[int, Resource] = {}
        self.version = 0
        """Changes whenever a value is added or dropped."""

    def add(self, resource: Resource) -> int:
        """Add a value; its number."""
        with self._lock:
            key = next(self._numbers)
            self._all[key] = resource
            self.version += 1
            return key

    def drop(self, key: int) -> None:
        """Drop a value that nothing refers to any more; workers drop it before their next closure."""
        with self._lock:
            self._all.pop(key, None)
            self.version += 1

    def all(self) -> Mapping[int, Resource]:
        """The values there are now."""
        with self._lock:
            return dict(self._all)


# ---- The lane of one worker

_log = logging.getLogger(__name__)

_PAUSE = 0.02
"""Seconds between attempts to use a seat that the engine reports as back and then refuses."""


@dataclass(frozen=True)
class Patience:
    """The limits of retries and of waiting for lost workers.

    Args:
      max_retries: how often a function may be run again because its worker was lost.
      worker_return_seconds: how long a lost worker is waited for.
    """

    max_retries: int = 3
    worker_return_seconds: float = 3600.0

    def __post_init__(self) -> None:
        if self.max_retries < 0:
            raise ValueError(f"ClusterCoordinator: max_retries must be at least 0, got {self.max_retries}")
        if self.worker_return_seconds < 0:
            raise ValueError(
                f"ClusterCoordinator: worker_return_seconds must be at least 0, got {self.worker_return_seconds}"
            )


class Lane:
    """Runs closures at one worker.

    Args:
      index: the number of the worker.
      seats: the seats of the cluster.
      queue: where closures come from.
      resources: the per-worker values, which are made at the worker before its next closure.
      patience: the limits of retries and waiting.
    """

    def __init__(self, index: int, seats: Seats, queue: ClosureQueue, resources: Resources, patience: Patience) -> None:
        self._index, self._seats, self._queue = index, seats, queue
        self._resources, self._patience = resources, patience
        self._name = seats.workers[index]
        self._packing = seats.packing
        self._placed: Placed | None = None
        self._made: dict[int, BaseException | None] = {}  # the values made at this seat, or why one could not be made
        self._version = -1
        self._doubted = False
        self._given_up = ""
        self.waits_for_worker = False
        """True while the worker is away; the engine ends the wait when the seats are closed."""
        self._changed = threading.Condition()
        self.thread = HelperThread(target=self._serve, name=f"distinput-{self._name}")

    def lost(self) -> None:
        """Note that the engine has lost the worker; called on any thread, perhaps after the worker is back."""
        self._doubted = True
        self._queue.tell(self._index)

    def read(self, key: int, timeout: float | None) -> Any:
        """This worker's own part of a per-worker value, as it is now; called on any thread.

        Raises:
          TimeoutError: it was not made in time.
          UnavailableError: the worker is gone.
          BaseException: what the function that makes it raised.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else end - time.monotonic()
            with self._changed:
                if not self._changed.wait_for(
                    lambda: self._given_up or (self._placed is not None and key in self._made), left
                ):
                    raise TimeoutError(f"{self._name}: the per-worker value was not made within {timeout} seconds")
                if self._given_up:
                    raise UnavailableError(f"{self._name}: {self._given_up}")
                placed, error = self._placed, self._made[key]
            if error is not None:
                raise error
            try:
                assert placed is not None
                outcome = self._unpacked(placed.call("fetch", key, timeout=timeout))
            except SeatLost:
                with self._changed:
                    if self._placed is placed:
                        self._placed = None
                self._queue.tell(self._index)
                continue
            if outcome.error is not None:
                raise outcome.error
            return outcome.value

    # ---- the lane's own thread

    def _serve(self) -> None:
        try:
            while not self._queue.closed and (placed := self._ready()) is not None:
                closure = self._queue.take(self._index)
                if closure is not None:
                    self._run(placed, closure)
                    del closure  # so that a waiting lane keeps no argument or result alive
        except BaseException as error:  # a defect of ours or of an engine: nobody must wait for this lane for ever
            reason = f"{self._name}: the coordinator's thread for it failed with {type(error).__name__}: {error}"
            self._queue.fail_for_good(lambda: UnavailableError(reason))
            raise
        finally:
            with self._changed:
                self._given_up = self._given_up or "the coordinator was closed"
                self._changed.notify_all()

    def _ready(self) -> Placed | None:
        """The seat, with all per-worker values made there; None if it will not come back."""
        while not self._queue.closed:
            try:
                placed = self._placed
                if placed is None:
                    self._doubted = False
                    make = partial(WorkerSeat, self._index, self._packing)
                    placed = self._seats.place(self._name, make)
                    with self._changed:
                        self._placed, self._version = placed, -1
                        self._made.clear()
                elif self._doubted:
                    self._doubted = False
                    placed.call("ping")
                if self._version != self._resources.version:
                    self._make(placed)
            except SeatLost as loss:
                if not self._wait_back(loss):
                    return None
            else:
                return placed
        return None

    def _wait_back(self, loss: SeatLost) -> bool:
        """Wait for a lost seat; False if it will not come back."""
        with self._changed:
            self._placed = None
        _log.info("%s; waiting for it to come back", loss)
        self.waits_for_worker = True
        try:
            self._seats.wait_back(self._name, self._patience.worker_return_seconds)
        except SeatLost as closed:
            self._given_up = str(closed)
            return False
        except TimeoutError as late:
            self._given_up = str(late)
            _log.warning("ClusterCoordinator: %s; the coordinator no longer waits for it", late)
            self._queue.lane_ended(f"{late}")
            return False
        finally:
            self.waits_for_worker = False
        if self._placed is None:
            time.sleep(_PAUSE)
        return True

    def _make(self, placed: Placed) -> None:
        """Make the per-worker values that are not there yet, and drop those that nothing refers to."""
        version = self._resources.version
        wanted = self._resources.all()
        for key in [key for key in self._made if key not in wanted]:
            placed.call("forget", key)
            with self._changed:
                del self._made[key]
        for key, resource in wanted.items():
            if key in self._made:
                continue
            state = resource.states.get(self._index)
            outcome = self._unpacked(placed.call("make", key, resource.packed, resource.exact, state))
            if outcome.server:
                self._queue.fail_for_good(partial(server_lost, outcome.server))
            if outcome.error is not None:
                outcome.error.add_note(f"while {resource.name} made a per-worker value on {self._name}")
            with self._changed:
                self._made[key] = outcome.error
                self._changed.notify_all()
        self._version = version

    def _unpacked(self, packed: Any) -> CallOutcome:
        outcome: CallOutcome = self._packing.unpack(packed)
        return outcome

    def _run(self, placed: Placed, closure: Closure) -> None:
        """Run a closure, and settle it or put it back."""
        error = next((e for key in closure.keys if (e := self._made.get(key)) is not None), None)
        if error is None:
            try:
                outcome = self._unpacked(placed.call("run", closure.packed))
            except SeatLost as loss:
                self._put_back(closure, loss)
                return
            except Exception as failure:  # noqa: BLE001 - the engine could not send it, or the result could not be read
                outcome = CallOutcome(error=failure)
            self._keep(outcome.states)
            if outcome.server:
                self._queue.fail_for_good(partial(server_lost, outcome.server))
                error = server_lost(outcome.server)
                error.__cause__ = outcome.error
            elif outcome.error is not None:
                error = outcome.error
                error.add_note(f"in {closure.name} on {self._name}")
        if error is not None:
            self._fail(closure, error)
            return
        closure.result._set(outcome.value)
        closure.keep = None
        self._queue.finish(closure)

    def _keep(self, states: Mapping[int, State] | None) -> None:
        """Keep the positions of this worker's iterators, for the next life of its seat."""
        if states:
            known = self._resources.all()
            for key, state in states.items():
                if key in known:
                    known[key].states[self._index] = state

    def _fail(self, closure: Closure, error: BaseException) -> None:
        closure.result._fail(error)
        closure.keep = None
        self._queue.finish(closure, error)

    def _put_back(self, closure: Closure, loss: SeatLost) -> None:
        with self._changed:
            self._placed = None
        if loss.started:
            closure.lost.append(loss.seat)
        if len(closure.lost) <= self._patience.max_retries:
            _log.info("%s; %s is run again", loss, closure.name)
            self._queue.put_back(closure)
            return
        self._fail(
            closure,
            AbortedError(
                f"schedule: {closure.name} lost its worker {len(closure.lost)} times ({', '.join(closure.lost)}); it "
                f"probably ends the process that runs it, for example by using too much memory. It is not run again, "
                f"since max_retries is {self._patience.max_retries}"
            ),
        )
