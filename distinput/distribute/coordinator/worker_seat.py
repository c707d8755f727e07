# SPDX-License-Identifier: Apache-2.0
"""What lives at the seat of a worker: it runs closures, and knows which worker's closure runs on a thread."""

import dataclasses
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from distinput.columns.state import State
from distinput.distribute.core.contexts import Mode
from distinput.distribute.seats.packing import AsIs
from distinput.distribute.seats.seats import Packing, SeatLost
from distinput.errors import OutOfRangeError, StateError
from distinput.names.lazy import dataclass
from distinput.values.nest import flatten, map_leaves

# ----------------------------------------------------------------------------
# The worker whose closure runs on this thread.
# ----------------------------------------------------------------------------


_worker: ContextVar[tuple[int, Mapping[int, Any]] | None] = ContextVar("current_worker", default=None)
"""The number of the worker, and its per-worker values."""


def experimental_get_current_worker_index() -> int:
    """The number of the worker, from 0, inside a scheduled function or a function that makes a per-worker value.

    A function that makes datasets is also called once on the coordinator if the element spec is asked for; the number is 0
    then.

    Raises:
      RuntimeError: called elsewhere.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=1, num_ps=1)
    >>> coordinator = di.distribute.coordinator.ClusterCoordinator(di.distribute.ParameterServerStrategy(resolver))
    >>> coordinator.schedule(di.distribute.coordinator.experimental_get_current_worker_index).fetch()
    0

    Source: `tf.distribute.coordinator.experimental_get_current_worker_index`.
    """
    worker = _worker.get()
    if worker is None:
        raise RuntimeError(
            "Cannot retrieve the worker index: this code runs on no worker. Call experimental_get_current_worker_index "
            "inside a function given to `ClusterCoordinator.schedule`, `create_per_worker_dataset` or "
            "`create_per_worker_resource`"
        )
    return worker[0]


def is_worker() -> bool:
    """True in the code of a worker."""
    return _worker.get() is not None


def own_value(key: int) -> Any:
    """The per-worker value with this number of the worker whose code runs; None on the coordinator."""
    worker = _worker.get()
    return None if worker is None else worker[1].get(key)


@contextmanager
def as_worker(index: int, values: Mapping[int, Any] | None = None) -> Iterator[None]:
    """Run the block as the code of a worker.

    Args:
      index: its number.
      values: its per-worker values.
    """
    token = _worker.set((index, {} if values is None else values))
    try:
        yield
    finally:
        _worker.reset(token)


# ----------------------------------------------------------------------------
# What lives at the seat of a worker: it runs closures, and holds the worker's own datasets, iterators and resources.
# ----------------------------------------------------------------------------


# ---- Slots stand for per-worker values among the arguments of a closure: every worker puts its own value in their place


class Slot:
    """Stands for a per-worker value among the arguments of a closure.

    Args:
      key: the number of the per-worker value.
    """

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key


def replaced(kinds: tuple[type, ...], value: Any, replace: Callable[[Any], Any]) -> Any:
    """An argument with `replace(leaf)` in place of each leaf of one of the kinds.

    A nest without such leaves is returned as it is, and not rebuilt.

    >>> replaced((bytes,), [1, {"x": b"2"}], int)
    [1, {'x': 2}]
    """
    if isinstance(value, kinds):
        return replace(value)
    if not (isinstance(value, list | tuple | Mapping) or dataclasses.is_dataclass(value)):
        return value
    if not any(isinstance(leaf, kinds) for leaf in flatten(value, lists=True)):
        return value
    return map_leaves(lambda leaf: replace(leaf) if isinstance(leaf, kinds) else leaf, value)


# ---- What is called at the seat

_SLOT = (Slot,)


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments, as they travel to a worker.

    Args:
      strategy: current while the function runs; it arrives as the worker's own strategy.
      function: called with the arguments.
      args: positional arguments.
      kwargs: named arguments.
      keys: the numbers of the per-worker values for which a `Slot` is among the arguments.
    """

    strategy: Any
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    keys: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of a call: a result or an error.

    Args:
      value: the result, if there is no error.
      error: what the function raised.
      server: the parameter server whose loss made the function fail; empty if none.
      states: the positions of those iterators among the arguments whose input is exact, by their numbers.
    """

    value: Any = None
    error: BaseException | None = None
    server: str = ""
    states: Mapping[int, State] | None = None


class WorkerSeat:
    """Runs closures at a worker; its coordinator calls it.

    Args:
      index: the number of the worker.
      packing: how values travel.
    """

    def __init__(self, index: int, packing: Packing) -> None:
        self._index, self._packing = index, packing
        self._made: dict[int, Any] = {}
        self._exact: set[int] = set()
        self._lock = threading.Lock()  # an engine may make several calls at once; closures come one at a time

    def make(self, key: int, packed: Any, exact: bool = False, state: State | None = None) -> Any:
        """Make a per-worker value, unless it is there.

        Args:
          key: its number.
          packed: a packed `Call` that returns the value.
          exact: True for an iterator whose position is part of every outcome.
          state: where an iterator continues, given to the function as `state`; None for its start.

        Returns:
          A packed `CallOutcome`, without the value.
        """

        def made(call: Call) -> CallOutcome:
            kwargs = dict(call.kwargs) if state is None else {**call.kwargs, "state": state}
            value = call.function(*call.args, **kwargs)
            with self._lock:
                self._made[key] = value
                if exact:
                    self._exact.add(key)
            return CallOutcome()

        return self._outcome(packed, made)

    def ping(self) -> None:
        """Do nothing; a caller learns whether the worker is still there."""

    def forget(self, key: int) -> None:
        """Drop a per-worker value that nothing refers to any more."""
        with self._lock:
            self._made.pop(key, None)
            self._exact.discard(key)

    def fetch(self, key: int) -> Any:
        """A packed `CallOutcome` with a per-worker value as it is now."""
        try:
            return self._packing.pack(CallOutcome(self._made[key]))
        except Exception as error:  # noqa: BLE001 - it goes to the coordinator, which raises it
            problem = f"this per-worker value cannot be sent to the coordinator: {type(error).__name__}: {error}"
            return self._packing.pack(CallOutcome(error=TypeError(problem)))

    def run(self, packed: Any) -> Any:
        """Run a closure.

        Args:
          packed: a packed `Call`.

        Returns:
          A packed `CallOutcome`.
        """
        return self._outcome(packed, self._called)

    def _called(self, call: Call) -> CallOutcome:
        if not call.keys:
            return CallOutcome(call.function(*call.args, **call.kwargs))
        args = [replaced(_SLOT, value, self._own) for value in call.args]
        kwargs = {name: replaced(_SLOT, value, self._own) for name, value in call.kwargs.items()}
        try:
            value = call.function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - what it took from its iterators is gone all the same
            return self._failed(error, self._positions(call.keys))
        return CallOutcome(value, states=self._positions(call.keys))

    def _failed(self, error: BaseException, states: Mapping[int, State] | None = None) -> CallOutcome:
        """The outcome of a call that raised."""
        outcome = CallOutcome(error=_told(error), server=_lost_server(error), states=states)
        if not isinstance(self._packing, AsIs):
            _note_lines(error, outcome)
        return outcome

    def _positions(self, keys: Sequence[int]) -> dict[int, State] | None:
        """Where the exact iterators among these per-worker values are."""
        found = {}
        for key in self._exact.intersection(keys):
            with suppress(StateError):  # one that failed half-way has none, and continues from the one before
                found[key] = self._made[key].state()
        return found or None

    def _own(self, slot: Slot) -> Any:
        return self._made[slot.key]

    def _outcome(self, packed: Any, act: Callable[[Call], CallOutcome]) -> Any:
        name = "the function"
        try:
            call: Call = self._packing.unpack(packed)
            name = getattr(call.function, "__qualname__", name)
            with as_worker(self._index, self._made), Mode(call.strategy, None):
                outcome = act(call)
        except BaseException as error:  # noqa: BLE001 - it goes to the coordinator, which raises it
            outcome = self._failed(error)
        try:
            return self._packing.pack(outcome)
        except Exception as error:  # noqa: BLE001 - the same
            what = f"raised {outcome.error!r}" if outcome.error is not None else "returned"
            problem = f"schedule: what {name} {what} cannot be sent to the coordinator: {type(error).__name__}: {error}"
            return self._packing.pack(
                CallOutcome(error=TypeError(problem), server=outcome.server, states=outcome.states)
            )


def _told(error: BaseException) -> BaseException:
    """The error that the coordinator raises."""
    if isinstance(error, StopIteration):
        ended = OutOfRangeError("End of sequence")
        ended.__cause__ = error
        return ended
    return error


def _note_lines(error: BaseException, outcome: CallOutcome) -> None:
    """Keep the lines of the function that raised an error, since a traceback cannot be sent to another process."""
    assert outcome.error is not None
    frames = traceback.extract_tb(error.__traceback__)
    while frames and frames[0].filename == __file__:
        del frames[0]
    if frames and not outcome.server:
        outcome.error.add_note("at the worker:\n" + "".join(traceback.format_list(frames)).rstrip())


def _lost_server(error: BaseException | None) -> str:
    """The parameter server whose loss caused an error, even if the user's function has wrapped that error in its own."""
    for _ in range(10):
        if error is None:
            break
        if isinstance(error, SeatLost) and error.seat.startswith("ps-"):
            return error.seat
        error = error.__cause__ or error.__context__
    return ""
