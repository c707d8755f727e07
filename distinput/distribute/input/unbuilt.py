# SPDX-License-Identifier: Apache-2.0
"""Distributed datasets that are built only at the workers of a parameter-server cluster."""

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any, NoReturn

from distinput.core.state import State
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedDatasetsFromFunction
from distinput.distribute.input.skipped import Ranges

__all__ = ["UnbuiltDataset", "UnbuiltDatasetsFromFunction"]

_UNBUILT = (
    "Cannot get the cardinality of a dataset that is not built: every worker builds this dataset for itself; ask for the "
    "cardinality of the dataset that was distributed"
)


class UnbuiltDataset(DistributedDataset):
    """A distributed dataset that every worker builds for itself; `ParameterServerStrategy` returns it.

    Give it to `ClusterCoordinator.create_per_worker_dataset`; it cannot be iterated on the coordinator.

    Args:
      make: makes the distributed dataset.
    """

    cure = "To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset."

    def __init__(self, make: Callable[[], DistributedDataset]) -> None:
        self._build = make

    @cached_property
    def _here(self) -> DistributedDataset:
        return self._build()

    @property
    def element_spec(self) -> Any:
        """The nest of specs of a worker's step."""
        return self._here.element_spec

    @property
    def cardinality(self) -> int:
        """Not known here.

        Raises:
          ValueError: always.
        """
        raise ValueError(_UNBUILT)

    @property
    def num_steps(self) -> int:
        """Not known here.

        Raises:
          ValueError: always.
        """
        raise ValueError(_UNBUILT)

    def explain(self) -> str:
        """How each worker distributes the dataset over its replicas."""
        return self._here.explain()

    def __iter__(self) -> NoReturn:
        raise ValueError(self.cure)

    def restore(self, state: State, may_differ: str | Collection[str] = (), *, skip: Ranges = ()) -> NoReturn:
        """Not possible here.

        Raises:
          ValueError: always.
        """
        raise ValueError(self.cure)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._build,)  # a worker gets a dataset of its own, not what was made here for the spec

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: made at the workers>"


class UnbuiltDatasetsFromFunction(UnbuiltDataset, DistributedDatasetsFromFunction):
    """The same for datasets from a function."""

    cure = "You need to use this dataset in ClusterCoordinator.create_per_worker_dataset."
