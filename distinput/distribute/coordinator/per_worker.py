# SPDX-License-Identifier: Apache-2.0
"""Values that every worker has of its own: resources, datasets and iterators."""

from collections.abc import Callable, Sequence
from typing import Any

from distinput.core.state import State
from distinput.data.dataset import Dataset
from distinput.distribute.coordinator.current_worker import as_worker
from distinput.distribute.coordinator.remote_value import RemoteValue
from distinput.distribute.input.distributed_dataset import DistributedDataset
from distinput.distribute.modes import Mode

__all__ = ["PerWorkerDataset", "PerWorkerIterator", "PerWorkerValues"]


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
        self._spec: Any = None

    @property
    def element_spec(self) -> Any:
        """The nest of specs of an element. A function that makes the dataset is called here for it, as for worker 0."""
        if self._spec is None:
            with as_worker(0), Mode(self._coordinator.strategy, None):
                self._spec = (checked(self._make()).element_spec,)
        return self._spec[0]

    def __iter__(self) -> PerWorkerIterator:
        found = self._coordinator._create(
            PerWorkerIterator, IteratorMaker(self._make), (), {}, name=self._name, exact=self._exact
        )
        assert isinstance(found, PerWorkerIterator)
        return found

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
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __call__(self, state: State | None = None) -> Any:
        """The iterator, from its start or from a state."""
        dataset = checked(self.make())
        build = getattr(dataset, "_build", None)
        if build is not None:
            dataset = build()
        return iter(dataset) if state is None else dataset.restore(state)


def checked(dataset: Any) -> Any:
    """The dataset.

    Raises:
      TypeError: it is none.
    """
    if not isinstance(dataset, Dataset | DistributedDataset) and not hasattr(dataset, "element_spec"):
        raise TypeError(f"create_per_worker_dataset: the function must return a dataset, got {type(dataset).__name__}")
    return dataset
