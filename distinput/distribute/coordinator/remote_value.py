# SPDX-License-Identifier: Apache-2.0
"""The result of a scheduled function, which may not be there yet."""

import threading
from collections.abc import Callable
from typing import Any

from distinput.core.nest import map_leaves

__all__ = ["RemoteValue"]


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
