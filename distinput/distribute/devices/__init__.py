# SPDX-License-Identifier: Apache-2.0
"""What the replicas of one process run on. Strategies ask for a backend by name and see only `Devices`."""

from collections.abc import Sequence
from importlib import import_module

from distinput.distribute.devices.devices import Devices

__all__ = ["BACKENDS", "Devices", "open_devices"]

BACKENDS: dict[str, str] = {
    "threads": "distinput.distribute.devices.threads:ThreadDevices",
}


def open_devices(name: str, labels: Sequence[str]) -> Devices:
    """The devices of a backend, imported on first use.

    Args:
      name: a key of `BACKENDS`.
      labels: one for each local replica, such as "CPU:0".

    Raises:
      ValueError: an unknown backend.
    """
    if name not in BACKENDS:
        raise ValueError(f"unknown backend {name!r}; known are {', '.join(sorted(BACKENDS))}")
    module, cls = BACKENDS[name].split(":")
    devices: Devices = getattr(import_module(module), cls)(labels)
    return devices
