# SPDX-License-Identifier: Apache-2.0
"""The interface of a backend. Strategies use nothing else of it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Devices"]


class Devices(Protocol):
    """The devices of this process, one for each local replica."""

    host_memory: bool
    """True if a host array needs no `put`, because the device can read it where it is."""

    @property
    def local(self) -> tuple[str, ...]:
        """The devices' names, in replica order."""
        ...

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        """A host array on device number `device`.

        Args:
          value: an array, scalar or bytes.
          device: index into `local`.
          owned: True if nobody writes to the array any more, so it may be used without a copy.
        """
        ...

    def get(self, value: Any) -> Any:
        """The array copied back to the host; it may be a read-only view."""
        ...

    def run(self, function: Callable[..., Any], per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call `function(*args)` for every device at the same time, so that the calls may wait for each other.

        The first call is made on the calling thread. All calls see the context variables (so NumPy's error state too)
        of the caller. Returns when all have ended.

        Args:
          function: the function to call.
          per_device_args: the arguments for each device, at most as many as there are devices.

        Raises:
          BaseException: the error of the call that failed first.
        """
        ...

    def close(self) -> None:
        """Release threads, processes and memory; devices that are used again take new ones."""
        ...
