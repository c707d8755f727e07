# SPDX-License-Identifier: Apache-2.0
"""Values that every worker has of its own: resources, datasets, iterators and variables."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.distribute.coordinator.closures import RemoteValue
from distinput.distribute.coordinator.worker_seat import as_worker, own_value
from distinput.distribute.core.contexts import Mode
from distinput.distribute.input.distributed_dataset import DistributedDataset
from distinput.distribute.variables.policy import VariablePolicy
from distinput.distribute.variables.store import HostStore
from distinput.distribute.variables.variable import Variable
from distinput.errors import FailedPreconditionError, StateError
from distinput.values.leaves import TensorShape

# ---- Values that every worker has of its own: resources, datasets and iterators

_WORKERS = "workers"
"""The member of a state with the positions of the workers, in their order."""


class PerWorkerValues:
    """A value at each worker. As an argument of a scheduled function, the part of the worker that runs it takes its place.

    `ClusterCoordinator.create_per_worker_resource` makes them, and `iter` of a per-worker dataset.

    Args:
      values: a `RemoteValue` for each worker.

    Raises:
      AssertionError: something else is among the values.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=2, num_ps=1)
    >>> coordinator = di.distribute.coordinator.ClusterCoordinator(di.distribute.ParameterServerStrategy(resolver))
    >>> lists = coordinator.create_per_worker_resource(list)
    >>> coordinator.schedule(lambda mine: mine.append(1), args=(lists,)).fetch()
    >>> sorted(coordinator.fetch(lists))
    [[], [1]]

    Source: `tf.distribute.coordinator.PerWorkerValue`.
    """

    _key: int | None = None
    _owner: Any = None
    _call: Any = None  # kept, since what it refers to, such as variables, is needed when the values are made again

    def __init__(self, values: Sequence[RemoteValue]) -> None:
        for value in values:
            if not isinstance(value, RemoteValue):
                raise AssertionError(  # noqa: TRY004 - the type that TensorFlow raises
                    f"`PerWorkerValues` should only take `RemoteValue`s, got {type(value).__name__}; make them with "
                    "`ClusterCoordinator.create_per_worker_resource`"
                )
        self._values = tuple(values)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._values)} workers>"


class PerWorkerIterator(PerWorkerValues):
    """An iterator at each worker; `iter` of a per-worker dataset makes it. Take elements inside scheduled functions.

    Source: the iterators of `tf.distribute.coordinator.ClusterCoordinator.create_per_worker_dataset`.
    """

    def __iter__(self) -> "PerWorkerIterator":
        return self

    def __next__(self) -> Any:
        return self.get_next()

    def get_next(self, name: str | None = None) -> Any:
        """Never returns: only a worker has an iterator.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            "Iterating over an `AsyncDistributedIterator` is not supported right now: each worker has an iterator of its "
            "own. Call next inside a function given to `ClusterCoordinator.schedule`, with this iterator as an argument"
        )


class ExactPerWorkerIterator(PerWorkerIterator):
    """An iterator at each worker whose position the coordinator knows (`exact_input=True`).

    A checkpoint saves it beside the variables, so that a coordinator that is started again continues with exactly the elements
    that no finished function had taken.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=1, num_ps=1)
    >>> coordinator = di.distribute.coordinator.ClusterCoordinator(di.distribute.ParameterServerStrategy(resolver))
    >>> dataset = coordinator.create_per_worker_dataset(di.data.Dataset.range(9), exact_input=True)
    >>> iterator = iter(dataset)
    >>> [int(x) for x in coordinator.fetch([coordinator.schedule(next, args=(iterator,)) for _ in range(3)])]
    [0, 1, 2]
    >>> state = iterator.state()
    >>> int(coordinator.schedule(next, args=(dataset.restore(state),)).fetch())
    3
    """

    def state(self) -> State:
        """The positions of all workers, after the last function that finished at each: small JSON.

        Raises:
          FailedPreconditionError: functions wait or run; `join` first, so that the positions belong to the variables.
          BaseException: the error of a function that failed, as `ClusterCoordinator.done`.
        """
        positions = self._positions("state")
        return {_WORKERS: [positions.get(worker) for worker in range(len(self._values))]}

    def load_state_dict(self, state: State, may_differ: str | Collection[str] = ()) -> None:
        """Go on from these positions, at every worker.

        Args:
          state: a result of `state`, of this iterator or of one in another process.
          may_differ: as for `Dataset.restore`.

        Raises:
          StateError: it is no such state, or of another number of workers. Where a worker finds that it is of another
            pipeline, the next functions that use the iterator there fail with this error.
          FailedPreconditionError: functions wait or run.
        """
        positions = state.get(_WORKERS) if isinstance(state, dict) else None
        if not isinstance(positions, list) or not all(one is None or isinstance(one, dict) for one in positions):
            raise StateError(
                "restore: this is not a state of a per-worker iterator; save one with state() of an iterator whose dataset was "
                "made with exact_input=True"
            )
        if len(positions) != len(self._values):
            raise StateError(
                f"restore: the state has the positions of {len(positions)} workers, and the cluster has {len(self._values)}; "
                "each worker reads a dataset of its own, so start as many workers"
            )
        self._positions("load_state_dict")
        make = self._call.function.make
        self._owner._go_on(self, IteratorMaker(make, may_differ), dict(enumerate(positions)))

    def _positions(self, what: str) -> dict[int, State]:
        if not self._owner.done():
            raise FailedPreconditionError(
                f"{what}: functions wait or run, and may take elements; call coordinator.join() first"
            )
        found: dict[int, State] = self._owner._resources.all()[self._key].states
        return dict(found)


class PerWorkerDataset:
    """A dataset at each worker; `ClusterCoordinator.create_per_worker_dataset` makes it.

    Args:
      coordinator: its coordinator.
      make: makes a worker's dataset, there.
      name: the name of the function that the user gave, for messages.
      exact: True if an iterator continues where it was when its worker was lost.
    """

    def __init__(self, coordinator: Any, make: Callable[[], Any], name: str, *, exact: bool) -> None:
        self._coordinator, self._make, self._name, self._exact = coordinator, make, name, exact

    @cached_property
    def element_spec(self) -> Any:
        """The nest of specs of an element. A function that makes the dataset is called here for it, as for worker 0."""
        with as_worker(0), Mode(self._coordinator.strategy, None):
            return checked(self._make()).element_spec

    def __iter__(self) -> PerWorkerIterator:
        kind = ExactPerWorkerIterator if self._exact else PerWorkerIterator
        found = self._coordinator._create(kind, IteratorMaker(self._make), (), {}, name=self._name, exact=self._exact)
        assert isinstance(found, PerWorkerIterator)
        return found

    def restore(self, state: State, may_differ: str | Collection[str] = ()) -> ExactPerWorkerIterator:
        """An iterator that continues at every worker where another one was.

        Args:
          state: a result of `state` of an iterator of this dataset, or of the same one of another process.
          may_differ: as for `Dataset.restore`.

        Raises:
          StateError: as `ExactPerWorkerIterator.load_state_dict`.
          FailedPreconditionError: the dataset was made without `exact_input=True`.
        """
        iterator = iter(self)
        if not isinstance(iterator, ExactPerWorkerIterator):
            raise FailedPreconditionError(
                "restore: the positions of this dataset are not kept; make it with create_per_worker_dataset(..., "
                "exact_input=True)"
            )
        iterator.load_state_dict(state, may_differ)
        return iterator

    def __repr__(self) -> str:
        return f"<PerWorkerDataset of {self._name}>"


class Given:
    """Returns a dataset that the user made on the coordinator.

    Args:
      dataset: a dataset, distributed or not.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __call__(self) -> Any:
        """The dataset, in a handle of its own: with a shuffle, a worker's first pass is everywhere the first one."""
        return Dataset(self.dataset.node) if isinstance(self.dataset, Dataset) else self.dataset


class IteratorMaker:
    """Makes a worker's iterator, there.

    Args:
      make: makes its dataset.
      may_differ: as for `Dataset.restore`.
    """

    def __init__(self, make: Callable[[], Any], may_differ: str | Collection[str] = ()) -> None:
        self.make, self.may_differ = make, may_differ

    def __call__(self, state: State | None = None) -> Any:
        """The iterator, from its start or from a state."""
        dataset = checked(self.make())
        build = getattr(dataset, "_build", None)
        if build is not None:
            dataset = build()
        return iter(dataset) if state is None else dataset.restore(state, self.may_differ)


def checked(dataset: Any) -> Any:
    """The dataset.

    Raises:
      TypeError: it is none.
    """
    if not isinstance(dataset, Dataset | DistributedDataset) and not hasattr(dataset, "element_spec"):
        raise TypeError(f"create_per_worker_dataset: the function must return a dataset, got {type(dataset).__name__}")
    return dataset


# ---- A variable of which every worker has one of its own


class OwnStore(HostStore):
    """A worker's own value. Sent to the coordinator, it arrives as its value."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return np.asarray, (self.read(0),)


class PerWorkerVariable(Variable):
    """A variable of which every worker has one of its own; `ParameterServerStrategy.per_worker_variable` makes it.

    Inside a scheduled function it is the worker's own, elsewhere the coordinator's. Nothing keeps them equal. When a worker
    is lost, its value is lost; a new one starts with the initial value.

    Args:
      store: the coordinator's own value.
      values: the workers' values.
      key: their number.
      policy: what the user asked for.
      name: the name.
      strategy: the strategy that it belongs to.

    Source: the `per_worker_variable` of `tf.distribute.ParameterServerStrategy`.
    """

    _values: PerWorkerValues | None
    _own: HostStore | None

    def __init__(
        self,
        store: HostStore | None,
        values: PerWorkerValues | None,
        key: int,
        policy: VariablePolicy,
        name: str,
        strategy: Any,
        facts: tuple[np.dtype[Any], tuple[int, ...]],
    ) -> None:
        self._own, self._values, self._key = store, values, key
        self._policy, self._name, self._strategy, self._facts = policy, name, strategy, facts
        self._shape = TensorShape(facts[1])

    @property
    def _store(self) -> HostStore:  # type: ignore[override]  # which one it is depends on the thread
        store = own_value(self._key)
        if store is None:
            store = self._own
        if store is None:
            raise RuntimeError(f"{self._name}: a per-worker variable is used inside scheduled functions")
        assert isinstance(store, HostStore)
        return store

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._facts[0]

    def read_all(self) -> list[Any]:
        """The values of all workers, in their order; waits for values that are still being made.

        Raises:
          RuntimeError: called at a worker.
        """
        if self._values is None:
            raise RuntimeError(f"{self._name}: read_all is called on the coordinator")
        found = [value.get() for value in self._values._values]
        return [np.array(value.read(0) if isinstance(value, HostStore) else value)[()] for value in found]

    def _here(self) -> Any:
        return self._store.read(0)[()]

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        self._write_copy(0, kind, value, key)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return PerWorkerVariable, (None, None, self._key, self._policy, self._name, self._strategy, self._facts)


class MakeOwn:
    """Makes a worker's own value, there.

    Args:
      make_value: makes the initial value.
    """

    def __init__(self, make_value: Callable[[], Any]) -> None:
        self.make_value = make_value

    def __call__(self) -> OwnStore:
        """The value."""
        return OwnStore(self.make_value(), ["/device:CPU:0"])
