# SPDX-License-Identifier: Apache-2.0
"""The devices that the replicas of one process run on. Strategies name a backend and use only its `Devices`."""

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from distinput.errors import EngineMissing
from distinput.names.lazy import Registry, library

glob, util = library("glob"), library("importlib.util")  # whoever names devices has no need of them

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

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        """A host array on device number `device`.

        Args:
          value: an array, scalar or bytes.
          device: index into `local`.
          owned: True if nobody writes to the array any more, so it may be used without a copy.
        """

    def get(self, value: Any) -> Any:
        """The array copied back to the host; it may be a read-only view."""

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

    def close(self) -> None:
        """Release threads, processes and memory; devices that are used again take new ones."""


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


# ----------------------------------------------------------------------------
# Names of devices, brought to a short form, and the backend that they belong to, where the program does not say.
# ----------------------------------------------------------------------------


# ---- TensorFlow's names of devices, and device objects of JAX and PyTorch, brought to a short form

_NAME = r"(?:.*/)?(?:device:)?([A-Za-z_]+)(?::(\d+))?$"


def device_name(name: Any) -> str:
    """The short form of a device's name. Names are labels only, so the device need not exist.

    Args:
      name: the name, or a device object of JAX or PyTorch.

    Raises:
      ValueError: it is not the name of a device.

    >>> from distinput.distribute.devices import device_name
    >>> device_name("/job:localhost/task:0/device:gpu:1")
    'GPU:1'

    Source: the device strings of `tf.device`.
    """
    owner = framework_of(name)
    if owner is not None:
        return _jax_name(name) if owner == "jax" else _torch_name(name)
    found = re.match(_NAME, name) if isinstance(name, str) else None
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
      TypeError: a number of devices was given.
      ValueError: a name is not the name of a device, devices belong to several frameworks or not to the backend, or both
        frameworks could provide the GPUs.

    >>> from distinput.distribute.devices import chosen_devices
    >>> chosen_devices(["cpu:0", "cpu:1"], None), chosen_devices(["JAX:1"], None)
    ((('CPU:0', 'CPU:1'), 'threads'), (('JAX:1',), 'jax'))
    """
    alone = framework_of(devices) is not None or (isinstance(devices, str) and devices)
    if hasattr(devices, "__index__"):
        names = [f"CPU:{number}" for number in range(devices)]
        raise TypeError(f"devices: expected a name for each replica, such as {names or ['CPU:0']}, got {devices}")
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
        return labels, _framework_with_gpus() or _without_gpus(labels)
    return labels, next(iter(found), "threads")


def _framework_with_gpus() -> str | None:
    """The framework that has GPUs in this process; None if there is none.

    Raises:
      ValueError: there are two.
    """
    if sys.platform == "linux" and not any(map(glob.glob, _GPU_FILES)):
        return None  # so that nothing is imported, which takes seconds
    imported = [name for name in _FRAMEWORKS if name in sys.modules]
    others = [name for name in _FRAMEWORKS if name not in imported and util.find_spec(name)]
    found = list(filter(_has_gpus, imported)) or list(filter(_has_gpus, others))
    if len(found) > 1:
        raise ValueError(
            "devices: JAX and PyTorch both have GPUs here; write backend='jax' or backend='torch', or backend='threads' for "
            "NumPy arrays on the host"
        )
    return found[0] if found else None


def _without_gpus(labels: Sequence[str]) -> str:
    """The backend where no framework has a GPU; programs run there as well, and a log says on what."""
    import logging  # takes long, and most programs need none of it

    logging.getLogger("distinput").warning(
        "devices: no framework here has a GPU; threads of the CPU, with NumPy arrays, take the place of %s",
        ", ".join(labels),
    )
    return "threads"


def _has_gpus(framework: str) -> bool:
    try:
        made: Any = BACKENDS.find(framework)
    except EngineMissing:  # it is there, but cannot be imported
        return False
    return bool(made.has_gpus())
