# SPDX-License-Identifier: Apache-2.0
"""The interface of a backend. Strategies use nothing else of it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Devices"]


class Devices(Protocol):
    """The devices of this process, one for each local replica.

    The rest is optional:

    * `arrays`, the `ArrayOps` of the library whose arrays `put` returns, and `devices`, that library's own device objects in
      replica order: the arithmetic of strategies stays on the devices and returns such arrays. Without them it takes the
      values to the host and returns NumPy arrays.
    * `put_step(leaves)`: the parts of several leaves, one for each device, put all at once; a `PerReplica` for each leaf.
      Without it each part is put by `put(..., owned=True)`. Steps are put ahead, on a thread of the input; when `put_step`
      returns, every stream and thread may use what it put.
    * `bind(function)`: the function, to be called on another thread with the settings that the library keeps for the calling
      one. The thread of the input runs it.
    * `delivered`, a function that is called with each step on the thread that takes it, or None.
    * `variable_value(value, copy)`: what replica number `copy` reads of a variable, for libraries whose functions do not take
      NumPy arrays. It is kept until the variable is written.
    * `default_labels()`, a static method: the labels for a strategy that names no devices.

    Memory of batches is used again as soon as nothing refers to it. So what is put refers to the array that it was made of, or
    has a copy when `put` or `put_step` returns.
    """

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
