# SPDX-License-Identifier: Apache-2.0
"""Dispatches functions to workers, and keeps going when workers are lost."""

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeAlias, TypeVar

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.distribute.coordinator.closures import (
    LIMIT,
    Closure,
    ClosureQueue,
    Lane,
    Patience,
    RemoteValue,
    Resource,
    Resources,
    ResourceValue,
)
from distinput.distribute.coordinator.per_worker import Given, PerWorkerDataset, PerWorkerValues
from distinput.distribute.coordinator.servers import server_lost
from distinput.distribute.coordinator.worker_seat import Call, Slot, is_worker, replaced
from distinput.distribute.input.distributed_dataset import DistributedDataset
from distinput.distribute.seats.seats import Packing, Seats
from distinput.run.threads import Closing, Ending
from distinput.values.nest import map_leaves

P = TypeVar("P", bound=PerWorkerValues)
Filled: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

_LOOK = 0.05
"""Seconds between two looks whether a lane that is waited for has lost its worker."""

_REMOTE = (RemoteValue, PerWorkerValues)


class ClusterCoordinator(Closing):
    """Schedules functions on the workers of a `ParameterServerStrategy`; there is one coordinator for each strategy.

    A scheduled function runs on whichever worker is free. If the worker is lost meanwhile, the function runs again on
    another one, so it may have begun more than once; the lost worker takes part again when it is back and its datasets are
    made again. If a parameter server is lost, every further call raises `UnavailableError`.

    Use it in a `with` block, or call `close`; a coordinator that nothing refers to ends by itself.

    Args:
      strategy: a `ParameterServerStrategy`. Constructing a coordinator for it again returns the same object.
      max_retries: how often a function may be run again because its worker was lost.
      worker_return_seconds: how long a lost worker is waited for.
      queue_limit: how many functions may wait to be run; then `schedule` blocks.

    Raises:
      ValueError: the strategy is of another kind, or a limit is out of range.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=2, num_ps=1)
    >>> strategy = di.distribute.ParameterServerStrategy(resolver)
    >>> coordinator = di.distribute.coordinator.ClusterCoordinator(strategy)
    >>> with strategy.scope():
    ...     total = di.Variable(0)
    >>> dataset = coordinator.create_per_worker_dataset(lambda: di.data.Dataset.range(4).repeat())
    >>> def step(iterator):
    ...     total.assign_add(next(iterator))
    >>> iterator = iter(dataset)
    >>> for _ in range(10):
    ...     _ = coordinator.schedule(step, args=(iterator,))
    >>> coordinator.join()
    >>> coordinator.done()
    True
    >>> coordinator.close()

    Source: `tf.distribute.coordinator.ClusterCoordinator`.
    """

    _strategy: Any
    _packing: Packing
    _crew: "_Crew"
    _queue: ClosureQueue
    _resources: Resources

    # All is done here, since `__init__` would be called for the object that is there already, too.
    def __new__(
        cls,
        strategy: Any,
        *,
        max_retries: int = 3,
        worker_return_seconds: float = 3600.0,
        queue_limit: int = LIMIT,
    ) -> Self:
        """The coordinator of the strategy, or a new one."""
        if not hasattr(strategy, "_coordinator"):
            raise ValueError(
                "Only `tf.distribute.ParameterServerStrategy` is supported to work with "
                f"`tf.distribute.coordinator.ClusterCoordinator`, got {type(strategy).__name__}"
            )
        with _making:
            known: Self | None = strategy._coordinator()
            if known is not None:
                return known
            if strategy._seats is None:
                raise ValueError(
                    "ClusterCoordinator: functions are scheduled by the coordinator alone, not at a worker"
                )
            made = super().__new__(cls)
            made._strategy, made._packing = strategy, strategy._seats.packing
            made._crew = _Crew(strategy._seats, queue_limit, Patience(max_retries, worker_return_seconds))
            made._queue, made._resources = made._crew.queue, made._crew.resources
            made._crew.start()
            strategy._coordinator = weakref.ref(made)
            return made

    @property
    def strategy(self) -> Any:
        """The strategy.

        Source: `tf.distribute.coordinator.ClusterCoordinator.strategy`.
        """
        return self._strategy

    def schedule(
        self, fn: Callable[..., Any], args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
    ) -> RemoteValue:
        """Schedule a function to be called on a worker. Returns at once, unless too many functions wait already.

        Functions start in the order in which they were scheduled. Each runs in the strategy's cross-replica context.

        Args:
          fn: any function that can be sent to a worker; with cloudpickle these are also lambdas and inner functions. What
            it refers to is copied when it is scheduled, except for variables, which it reads and writes at their servers.
            Workers that are threads share everything instead.
          args: positional arguments, each any nest. The worker's own part takes the place of per-worker values.
          kwargs: named arguments.

        Returns:
          The result to come.

        Raises:
          ValueError: `fn` cannot be called, or a `RemoteValue` is among the arguments.
          TypeError: `args` are not several arguments, or `kwargs` have no names; the function or an argument cannot be sent
            to a worker.
          UnavailableError: a parameter server was lost.
          FailedPreconditionError: the coordinator was closed.
          BaseException: the first error of a function scheduled before, when no function is running any more. Functions that
            were waiting are cancelled then, and this one is not scheduled. Further calls do not raise it again.

        Source: `tf.distribute.coordinator.ClusterCoordinator.schedule`.
        """
        if not callable(fn):
            raise ValueError(  # noqa: TRY004 - the type that TensorFlow raises
                f"Function passed to `ClusterCoordinator.schedule` must be a callable object, got {type(fn).__name__}"
            )
        _check_arguments(args, kwargs)
        given, keys = self._filled(() if args is None else tuple(args), dict(kwargs or {}))
        name = _name(fn)
        call = Call(self._strategy, fn, given[0], given[1], keys)
        # What the function refers to, such as variables and iterators, is kept until it has run, since bytes keep nothing.
        closure = Closure(name, self._packed(call, f"schedule: {name}"), keys, (self, call, args, kwargs))
        self._queue.put(closure)
        return closure.result

    def join(self) -> None:
        """Wait until all functions that were scheduled before have finished.

        Raises:
          RuntimeError: called in a scheduled function, which would wait for itself.
          UnavailableError: a parameter server was lost.
          BaseException: as `schedule`.

        Source: `tf.distribute.coordinator.ClusterCoordinator.join`.
        """
        if is_worker():
            raise RuntimeError(
                "ClusterCoordinator.join: a scheduled function cannot wait for all scheduled functions, since it is one of "
                "them; call join where functions are scheduled"
            )
        self._queue.join()

    def done(self) -> bool:
        """True if all scheduled functions have finished.

        Raises:
          UnavailableError: a parameter server was lost.
          BaseException: as `schedule`.

        Source: `tf.distribute.coordinator.ClusterCoordinator.done`.
        """
        return self._queue.done()

    def fetch(self, val: Any) -> Any:
        """The nest with the results in place of its remote values, waiting for those that are not there yet.

        Args:
          val: any nest. Per-worker values become a tuple with the part of each worker.

        Raises:
          CancelledError: a function was cancelled.
          BaseException: what a function raised.

        >>> import distinput as di
        >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=1, num_ps=1)
        >>> coordinator = di.distribute.coordinator.ClusterCoordinator(di.distribute.ParameterServerStrategy(resolver))
        >>> coordinator.fetch({"a": coordinator.schedule(lambda: 1), "b": 2})
        {'a': 1, 'b': 2}

        Source: `tf.distribute.coordinator.ClusterCoordinator.fetch`.
        """
        return map_leaves(_fetched, val)

    def create_per_worker_dataset(self, dataset_fn: Any, *, exact_input: bool = False) -> PerWorkerDataset:
        """A dataset at each worker. Every worker iterates over all of it, at its own pace.

        Make an iterator with `iter`, and give it to scheduled functions as an argument; `next` there takes an element. At
        its end a function fails with `OutOfRangeError`, unless it catches `StopIteration`.

        Args:
          dataset_fn: a dataset, a distributed dataset of the strategy, or a function that returns one, called at each
            worker; `experimental_get_current_worker_index` there tells which one it is.
          exact_input: True if an iterator whose worker was lost continues after the last function that finished there, so
            that no element is skipped or given to two functions that finish; False to start again, as TensorFlow does.
            The position travels with every result.

        Raises:
          ValueError: neither a dataset nor a function.

        Source: `tf.distribute.coordinator.ClusterCoordinator.create_per_worker_dataset`.
        """
        if isinstance(dataset_fn, Dataset | DistributedDataset) or hasattr(dataset_fn, "element_spec"):
            return PerWorkerDataset(self, Given(dataset_fn), "a dataset", exact=exact_input)
        if not callable(dataset_fn):
            raise ValueError(  # noqa: TRY004 - the type that TensorFlow raises
                "Unexpected dataset type! create_per_worker_dataset needs a dataset, a distributed dataset, or a function "
                f"that returns one, got {type(dataset_fn).__name__}"
            )
        return PerWorkerDataset(self, dataset_fn, _name(dataset_fn), exact=exact_input)

    def create_per_worker_resource(
        self, fn: Callable[..., Any], args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
    ) -> PerWorkerValues:
        """A value at each worker, made there now, and made again after the worker was lost.

        Args:
          fn: called at each worker.
          args: its positional arguments.
          kwargs: its named arguments.

        Returns:
          The values; give them to scheduled functions as an argument. A function whose part could not be made fails with
          the error of `fn`.

        Raises:
          ValueError: `fn` cannot be called, or remote or per-worker values are among the arguments.
          TypeError: the function or an argument cannot be sent to a worker.

        Source: `tf.distribute.coordinator.ClusterCoordinator`, where it has no public name.
        """
        if not callable(fn):
            raise ValueError(  # noqa: TRY004 - as `schedule`
                f"create_per_worker_resource: fn must be a callable object, got {type(fn).__name__}"
            )
        return self._create(PerWorkerValues, fn, () if args is None else tuple(args), dict(kwargs or {}))

    def close(self) -> None:
        """Cancel the functions that wait, wait for those that run, and end the threads. Closing again does nothing."""
        self._crew.close()
        if self._strategy._coordinator() is self:
            self._strategy._coordinator = no_coordinator

    def __del__(self) -> None:
        crew = getattr(self, "_crew", None)
        if crew is not None:
            crew.drop()

    def __repr__(self) -> str:
        return f"ClusterCoordinator({self._strategy!r})"

    def __reduce__(self) -> Any:
        raise TypeError(
            "a ClusterCoordinator cannot be sent to a worker: functions are scheduled by the coordinator alone"
        )

    # ---- per-worker values

    def _create(
        self,
        kind: type[P],
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        name: str = "",
        exact: bool = False,
    ) -> P:
        """Per-worker values of a kind."""
        given, keys = self._filled(args, kwargs)
        if keys:
            raise ValueError(
                "create_per_worker_resource: a per-worker value cannot be an argument; make both in one function"
            )
        made = kind([ResourceValue() for _ in self._crew.lanes])
        self._place(made, Call(self._strategy, fn, *given), name or _name(fn), exact=exact)
        return made

    def _place(
        self,
        made: PerWorkerValues,
        call: Call,
        name: str,
        *,
        exact: bool = False,
        states: Mapping[int, State | None] | None = None,
    ) -> None:
        """Let each worker make its part of these values, which replaces the part that it had."""
        resources, before = self._resources, made._key
        key = resources.add(Resource(name, self._packed(call, f"a per-worker value of {name}"), exact, states))
        made._key, made._owner, made._call = key, self, call
        for lane, value in zip(self._crew.lanes, made._values, strict=True):
            value._read = partial(lane.read, key)  # type: ignore[attr-defined]
        weakref.finalize(made, resources.drop, key).atexit = False
        if before is not None:
            resources.drop(before)
        self._crew.tell()

    def _go_on(self, iterator: PerWorkerValues, make: Any, states: Mapping[int, State | None]) -> None:
        """Make the iterators of all workers anew, each at its position."""
        assert iterator._key is not None
        name = self._resources.all()[iterator._key].name
        self._place(iterator, Call(self._strategy, make, (), {}), name, exact=True, states=states)

    def _filled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Filled, tuple[int, ...]]:
        """The arguments with a slot in place of each per-worker value, and the numbers of these values.

        Raises:
          ValueError: a remote value is among the arguments.
        """
        keys: dict[int, None] = {}

        def slot(value: RemoteValue | PerWorkerValues) -> Slot:
            if isinstance(value, RemoteValue):
                raise ValueError(  # noqa: TRY004 - the type that TensorFlow raises
                    "`tf.distribute.experimental.coordinator.RemoteValue` used as an input to scheduled function is not "
                    "yet supported. Fetch it first"
                )
            key = value._key
            if value._owner is not self or key is None:
                raise ValueError(
                    f"schedule: {value!r} does not belong to this coordinator; make it with create_per_worker_dataset or "
                    "create_per_worker_resource"
                )
            keys[key] = None
            return Slot(key)

        given = tuple([replaced(_REMOTE, value, slot) for value in args])
        named = {name: replaced(_REMOTE, value, slot) for name, value in kwargs.items()}
        return (given, named), tuple(keys)

    def _packed(self, call: Call, what: str) -> Any:
        try:
            return self._packing.pack(call)
        except ImportError:
            raise
        except Exception as error:
            raise TypeError(
                f"{what} cannot be sent to a worker: {type(error).__name__}: {error}. Make what cannot be pickled, such as "
                "files, locks and connections, inside the function, or with create_per_worker_resource"
            ) from error


_making = threading.RLock()


def no_coordinator() -> None:
    """Stands for the weak reference in a strategy that has no coordinator."""


class _Crew(Ending):
    """The threads of a coordinator, and what they share. It does not refer to the coordinator."""

    def __init__(self, seats: Seats, limit: int, patience: Patience) -> None:
        count = len(seats.workers)
        self.queue = ClosureQueue(count, limit)
        self.resources = Resources()
        self.lanes = [Lane(index, seats, self.queue, self.resources, patience) for index in range(count)]
        self._seats = seats

    def start(self) -> None:
        """Start the threads."""
        self.begun()
        crew = weakref.ref(self)
        self._seats.watch(lambda seat: _lost(crew, seat))
        for lane in self.lanes:
            lane.thread.start()

    def tell(self) -> None:
        """Make all lanes create new per-worker values now."""
        for index in range(len(self.lanes)):
            self.queue.tell(index)

    def lost(self, seat: str) -> None:
        """Note that the engine has lost a seat."""
        if seat in self._seats.servers:
            self.queue.fail_for_good(lambda: server_lost(seat))
        else:
            self.lanes[self._seats.workers.index(seat)].lost()

    def end(self, patience: float | None) -> None:
        self.queue.close()
        until = None if patience is None else time.monotonic() + patience
        for lane in self.lanes:
            if lane.thread is threading.current_thread():
                continue
            # A lane that waits for its worker to come back, perhaps for an hour, is left to end when the seats are closed.
            while lane.thread.is_alive() and not lane.waits_for_worker and (until is None or time.monotonic() < until):
                lane.thread.join(_LOOK if until is None else min(_LOOK, until - time.monotonic()))


def _lost(crew: "weakref.ref[_Crew]", seat: str) -> None:
    found = crew()
    if found is not None:
        found.lost(seat)


def _fetched(value: Any) -> Any:
    if isinstance(value, RemoteValue):
        return value.fetch()
    if isinstance(value, PerWorkerValues):
        return tuple(part.fetch() for part in value._values)
    return value


def _name(fn: Any) -> str:
    return str(getattr(fn, "__qualname__", type(fn).__name__))


def _check_arguments(args: Any, kwargs: Any) -> None:
    """Refuse what would be spread into other arguments than were meant.

    Raises:
      TypeError: `args` are not several arguments, or `kwargs` are no dict.
    """
    if args is not None and (isinstance(args, str | bytes | Mapping) or not isinstance(args, Iterable)):
        raise TypeError(
            f"ClusterCoordinator.schedule: args must be a tuple or list, got {args!r:.80} ({type(args).__name__}); write "
            "args=(x,) for one argument"
        )
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError(
            "ClusterCoordinator.schedule: kwargs must be a dict from names to arguments, got "
            f"{kwargs!r:.80} ({type(kwargs).__name__})"
        )
