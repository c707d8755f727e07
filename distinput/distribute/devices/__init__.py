# SPDX-License-Identifier: Apache-2.0
"""The devices that the replicas of one process run on. Strategies name a backend and use only its `Devices`."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from distinput.names.registry import Registry

__all__ = ["BACKENDS", "Devices", "OpenDevices", "default_labels", "open_devices", "register_backend"]

# ---- The interface of a backend. Strategies use nothing else of it


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


# ---- The devices that the replicas of one process run on. Strategies name a backend and use only its `Devices`

OpenDevices: TypeAlias = Callable[[Sequence[str]], Devices]
"""A class of devices, or a function that makes them, called with one label per local replica, such as "CPU:0"."""

BACKENDS: Registry[OpenDevices] = Registry(
    "backend",
    {
        "jax": "distinput.distribute.devices.jax:JaxDevices",
        "threads": "distinput.distribute.devices.threads:ThreadDevices",
        "torch": "distinput.distribute.devices.torch:TorchDevices",
    },
)
"""The backends by name; `register_backend` adds one."""


def register_backend(name: str, devices: str | OpenDevices) -> None:
    """Register a backend under a name, for the `backend=` argument of strategies.

    Args:
      name: lower-case letters, digits and underscores.
      devices: a class that implements `Devices` and is made from labels, or `package.module:attribute` of one, which is
        imported when it is first used.

    Raises:
      ValueError: the name or the place is malformed, or another backend has the name.
      TypeError: `devices` can be neither called nor imported.

    >>> from distinput.distribute import MirroredStrategy
    >>> from distinput.distribute.devices.threads import ThreadDevices
    >>> class Counted(ThreadDevices):
    ...     puts = 0
    ...
    ...     def put(self, value, device, *, owned):
    ...         Counted.puts += 1
    ...         return super().put(value, device, owned=owned)
    >>> register_backend("counted", Counted)
    >>> MirroredStrategy(["CPU:0", "CPU:1"], backend="counted").num_replicas_in_sync
    2
    """
    BACKENDS.register(name, devices)


def open_devices(name: str, labels: Sequence[str]) -> Devices:
    """The devices of a backend, imported on first use.

    Args:
      name: one of `BACKENDS`.
      labels: one for each local replica, such as "CPU:0".

    Raises:
      ValueError: an unknown backend.
    """
    return BACKENDS.find(name)(labels)


def default_labels(name: str) -> Sequence[str]:
    """The labels for a strategy that names no devices: what the backend's `default_labels` returns, else one CPU.

    Args:
      name: one of `BACKENDS`.

    Raises:
      ValueError: an unknown backend.
    """
    labels: Callable[[], Sequence[str]] | None = getattr(BACKENDS.find(name), "default_labels", None)
    return ("CPU:0",) if labels is None else labels()
