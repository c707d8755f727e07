# SPDX-License-Identifier: Apache-2.0
"""The devices that the replicas of one process run on. Strategies name a backend and use only its `Devices`."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from distinput.core.registry import Registry
from distinput.distribute.devices.devices import Devices

__all__ = ["BACKENDS", "Devices", "OpenDevices", "default_labels", "open_devices", "register_backend"]

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
