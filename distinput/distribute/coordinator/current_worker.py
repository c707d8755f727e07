# SPDX-License-Identifier: Apache-2.0
"""The worker whose closure runs on this thread."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["as_worker", "experimental_get_current_worker_index", "is_worker", "own_value"]

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
