# SPDX-License-Identifier: Apache-2.0
"""Names of devices, brought to a short form, and the backend that they belong to, where the program does not say."""

import re
import sys
from collections.abc import Sequence
from glob import glob
from importlib.util import find_spec
from typing import Any

from distinput.distribute.devices import BACKENDS, default_labels
from distinput.errors import EngineMissing

__all__ = ["chosen_devices", "device_name", "device_names", "framework_of"]

# ---- TensorFlow's names of devices, and device objects of JAX and PyTorch, brought to a short form

_NAME = re.compile(r"(?:.*/)?(?:device:)?([A-Za-z_]+)(?::(\d+))?$")


def device_name(name: Any) -> str:
    """The short form of a device's name. Names are labels only, so the device need not exist.

    Args:
      name: the name, or a device object of JAX or PyTorch.

    Raises:
      ValueError: it is not the name of a device.

    >>> from distinput.distribute.devices.names import device_name
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


# ---- Which backend a strategy's devices belong to, where the program does not say

_NAMED = {"CUDA": "torch", "JAX": "jax", "MPS": "torch", "TORCH": "torch"}
"""Kinds of devices whose name only one framework uses."""

_FRAMEWORKS = {"jax": "JAX", "torch": "PyTorch"}

_GPU_FILES = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg")
"""The device files of GPUs on Linux: NVIDIA's, AMD's, and those of the host of a Windows subsystem."""


def chosen_devices(
    devices: Any, backend: str | None, default: Sequence[str] | None = None
) -> tuple[tuple[str, ...], str]:
    """The labels of a strategy's devices, and its backend.

    Without `backend`, device objects of JAX or PyTorch choose that framework, as do names that only it uses: "JAX:0",
    "cuda:0", "mps", "TORCH:0". "GPU:0" chooses the framework that has GPUs here: one that is imported, else one that is
    installed. All other names are labels for replicas on threads, and so is "GPU:0" where no framework has a GPU.

    Args:
      devices: one or several names or device objects; None or empty for the default.
      backend: its name, None to choose.
      default: the labels if no devices are given; None for those of the backend.

    Raises:
      AssertionError: a device is named twice.
      ValueError: a name is not the name of a device, devices belong to several frameworks or not to the backend, or both
        frameworks could provide the GPUs.

    >>> from distinput.distribute.devices.names import chosen_devices
    >>> chosen_devices(["cpu:0", "cpu:1"], None), chosen_devices(["JAX:1"], None)
    ((('CPU:0', 'CPU:1'), 'threads'), (('JAX:1',), 'jax'))
    """
    alone = framework_of(devices) is not None or (isinstance(devices, str) and devices)
    given = [devices] if alone else list(devices or ())
    if not given:
        backend = backend or "threads"
        return tuple(default_labels(backend) if default is None else default), backend
    labels = device_names(given)
    owners = {owner: device for device in given if (owner := framework_of(device)) is not None}
    if backend is not None:
        for owner, device in owners.items():
            if backend in _FRAMEWORKS and owner != backend:
                raise ValueError(
                    f"devices: {device!r} is a device of {_FRAMEWORKS[owner]}, but backend={backend!r} was given; write "
                    f"backend={owner!r}, or leave it out"
                )
        return labels, backend
    named = {_NAMED[kind]: label for label in labels if (kind := label.partition(":")[0]) in _NAMED}
    found = {**named, **owners}
    if len(found) > 1:
        raise ValueError(
            f"devices: all replicas must run on one framework, got {found['jax']!r} of JAX and {found['torch']!r} of PyTorch"
        )
    if not found and any(label.startswith("GPU:") for label in labels):
        return labels, _framework_with_gpus() or "threads"
    return labels, next(iter(found), "threads")


def _framework_with_gpus() -> str | None:
    """The framework that has GPUs in this process; None if there is none.

    Raises:
      ValueError: there are two.
    """
    if sys.platform == "linux" and not any(map(glob, _GPU_FILES)):
        return None  # so that nothing is imported, which takes seconds
    imported = [name for name in _FRAMEWORKS if name in sys.modules]
    others = [name for name in _FRAMEWORKS if name not in imported and find_spec(name)]
    found = list(filter(_has_gpus, imported)) or list(filter(_has_gpus, others))
    if len(found) > 1:
        raise ValueError(
            "devices: JAX and PyTorch both have GPUs here; write backend='jax' or backend='torch', or backend='threads' for "
            "NumPy arrays on the host"
        )
    return found[0] if found else None


def _has_gpus(framework: str) -> bool:
    try:
        made: Any = BACKENDS.find(framework)
    except EngineMissing:  # it is there, but cannot be imported
        return False
    return bool(made.has_gpus())
