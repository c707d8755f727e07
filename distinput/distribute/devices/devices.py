# SPDX-License-Identifier: Apache-2.0
"""The facets that a backend may offer. Strategies use these and nothing else of an engine."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Devices"]


class Devices(Protocol):
    """The devices of this process, one for each local replica."""

    host_memory: bool
    """True when a host array needs no `put`, because it already lies where the device reads it."""

    @property
    def local(self) -> tuple[str, ...]:
        """The devices' names, in replica order."""
        ...

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        """A host array on device number `device`.

        Args:
          value: an array, scalar or bytes.
          device: index into `local`.
          owned: nobody writes to the array any more, so it may be used without a copy.
        """
        ...

    def get(self, value: Any) -> Any:
        """The array back on the host; it may be a read-only view."""
        ...

    def run(self, function: Callable[..., Any], per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`function(*args)` once for each device, at the same time, so that the calls may wait for each other.

        The first call is made on the calling thread. All calls see the context variables (so NumPy's error state too)
        of the caller. Returns when all have ended.

        Args:
          function: what to call.
          per_device_args: the arguments for each device, at most as many as there are devices.

        Raises:
          BaseException: what the first failing call, in the order of time, raised.
        """
        ...

    def close(self) -> None:
        """Give back threads, processes and memory; the devices can be used again and take new ones then."""
        ...
