# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's names of devices, and device objects of JAX and PyTorch, brought to a short form."""

import re
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["device_name", "device_names", "framework_of"]

_NAME = re.compile(r"(?:.*/)?(?:device:)?([A-Za-z_]+)(?::(\d+))?$")


def device_name(name: Any) -> str:
    """The short form of a device's name. Names are labels only, so the device need not exist.

    Args:
      name: the name, or a device object of JAX or PyTorch.

    Raises:
      ValueError: it is not the name of a device.

    >>> from distinput.distribute.device_name import device_name
    >>> device_name("/job:localhost/task:0/device:gpu:1")
    'GPU:1'

    Source: the device strings of `tf.device`.
    """
    owner = framework_of(name)
    if owner is not None:
        return _jax_name(name) if owner == "jax" else _torch_name(name)
    found = _NAME.match(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"not the name of a device: {name!r}; write for example 'CPU:0'")
    return f"{found[1].upper()}:{int(found[2] or 0)}"


def device_names(names: Sequence[Any]) -> tuple[str, ...]:
    """The short forms of several names.

    Raises:
      AssertionError: a device is named twice.
      ValueError: one is not the name of a device.
    """
    made = tuple([device_name(name) for name in ([names] if isinstance(names, str) else names)])
    if len(set(made)) != len(made):
        raise AssertionError(f"No duplicates allowed in `devices` argument: got {list(names)}")
    return made


def framework_of(device: Any) -> str | None:
    """The framework of a device object, "jax" or "torch"; None for a name and everything else."""
    if isinstance(device, str):
        return None
    if type(device).__module__ == "torch" and hasattr(device, "type") and hasattr(device, "index"):
        return "torch"
    return "jax" if hasattr(device, "platform") and hasattr(device, "client") else None


def _jax_name(device: Any) -> str:
    """The kind of a JAX device, and its number among those of its kind in this process.

    Raises:
      ValueError: it belongs to another process.
    """
    here = list(device.client.local_devices())
    if device not in here:
        raise ValueError(f"the device {device} belongs to another process; this one has {here}")
    return f"{str(device.platform).upper()}:{here.index(device)}"


def _torch_name(device: Any) -> str:
    """The kind of a PyTorch device and its number; without a number it is the current one of its kind."""
    number = device.index
    if number is None and device.type != "cpu":
        module = sys.modules["torch"].get_device_module(device.type)
        number = module.current_device() if hasattr(module, "current_device") else 0
    return f"{device.type.upper()}:{number or 0}"
