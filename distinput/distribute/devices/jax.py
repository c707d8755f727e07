# SPDX-License-Identifier: Apache-2.0
"""Replicas as threads of this process, each on a JAX device of its own.

Functions run eagerly: JAX computes on the replica's device unless the function names another one.

JAX uses host memory without a copy where it can, and looks at it later than it seems: an array on a CPU device may be
the NumPy array that it was made of. It holds a reference to that memory as long as it needs it, and buffers of this
library are used again only when nobody refers to them. So a batch may be put without a copy, and is never overwritten.

It can do so only with memory that begins at a multiple of 64 bytes; anything else it copies into fresh memory, which takes
several times as long as copying it into one of our buffers first. So that is done here.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np

from distinput.core.buffers import FEWEST_BYTES, aligned, copy_of
from distinput.distribute.devices.threads import ThreadDevices
from distinput.distribute.values import PerReplica
from distinput.errors import EngineMissing

try:
    import jax

    from distinput.distribute.devices.jax_arrays import JAX, can_hold, fitting
    from distinput.distribute.devices.jax_settings import JaxSettings
except ImportError as error:
    raise EngineMissing(
        f"backend 'jax': needs JAX, which is not installed ({error}); use `pip install 'distinput[jax]'`"
    ) from error

__all__ = ["JaxDevices", "can_hold", "fitting", "prepared"]

_NARROW = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}


class JaxDevices:
    """JAX devices of this process, one for each replica; replicas run eagerly, on a thread each.

    Text and other values that are not numbers stay on the host. As everywhere in JAX, 64-bit values become 32-bit ones
    unless 64 bits are enabled; an integer that does not fit is an error. Where the caller of `run` has settings of JAX for its
    own thread, as in `with jax.enable_x64(True):`, all replicas have them.

    Args:
      labels: a name for each replica: "TPU:0", "GPU:0" or "CPU:0" for the first device of that kind of this process,
        "JAX:0" for the first of the kind that JAX prefers.

    Raises:
      EngineMissing: JAX is not installed.
      ValueError: JAX has no such device, or a device is named twice.

    >>> from distinput.distribute.devices.jax import JaxDevices
    >>> devices = JaxDevices(["JAX:0"])
    >>> int(devices.run(lambda x: x + 1, [(devices.put(np.arange(3), 0, owned=True),)])[0].sum())
    6

    Source: the meaning is that of the replica threads of `tf.distribute.MirroredStrategy`.
    """

    host_memory = False
    arrays = JAX

    def __init__(self, labels: Sequence[str]) -> None:
        self._devices = _devices(labels)
        self._on_host = "cpu" in {device.platform for device in self._devices}
        self._threads = ThreadDevices(labels)

    @staticmethod
    def default_labels() -> tuple[str, ...]:
        """The devices used if none is named: all that this process has of the kind that JAX prefers."""
        return tuple([f"{_kind(device)}:{i}" for i, device in enumerate(jax.local_devices())])

    @staticmethod
    def has_gpus() -> bool:
        """True if JAX prefers GPUs in this process."""
        return _kind(jax.local_devices()[0]) == "GPU"

    @property
    def local(self) -> tuple[str, ...]:
        """The devices' names, in replica order."""
        return self._threads.local

    @property
    def devices(self) -> tuple[Any, ...]:
        """The JAX devices, in replica order."""
        return self._devices

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        """The value as a `jax.Array` on the device, without a copy where JAX can do without; see `Devices.put`.

        Raises:
          InvalidArgumentError: a 64-bit integer does not fit into 32 bits, and JAX is not set to use 64.
        """
        if not can_hold(value):
            return self._threads.put(value, device, owned=owned)
        if not owned and isinstance(value, np.ndarray):
            value = copy_of(value)  # of `may_alias=False` JAX takes no notice
        place = self._devices[device]
        return jax.device_put(prepared(value) if place.platform == "cpu" else fitting(value), place)

    def put_all(self, leaves: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The values of several leaves, one for each device, all put at once, as `put(..., owned=True)` puts each."""
        make = prepared if self._on_host else fitting
        made = [[make(part) if can_hold(part) else _OnHost(part) for part in parts] for parts in leaves]
        numbers = [
            (part, device)
            for parts in made
            for part, device in zip(parts, self._devices, strict=True)
            if type(part) is not _OnHost
        ]
        there = iter(
            jax.device_put([part for part, _ in numbers], [device for _, device in numbers]) if numbers else ()
        )
        return [[part.value if type(part) is _OnHost else next(there) for part in parts] for parts in made]

    def put_step(self, leaves: Sequence[Sequence[Any]]) -> list[PerReplica]:
        """The values of several leaves, one for each device, as a step has them; nobody writes to them any more."""
        return [PerReplica(parts) for parts in self.put_all(leaves)]

    def get(self, value: Any) -> Any:
        """A NumPy array of the values of a `jax.Array`, which may be a read-only view; anything else itself."""
        return np.asarray(value) if isinstance(value, jax.Array) else value

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, to be called on another thread with the settings of JAX that this thread has."""
        return JaxSettings().bind(function)

    def run(self, function: Callable[..., Any], per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call `function(*args)` for every device at the same time, where JAX computes on it; see `Devices.run`."""
        settings = JaxSettings() if len(per_device_args) > 1 else None

        def on_device(index: int, args: tuple[Any, ...]) -> Any:
            with settings.entered() if settings and index else nullcontext(), jax.default_device(self._devices[index]):
                return function(*args)

        return self._threads.run(on_device, list(enumerate(per_device_args)))

    def close(self) -> None:
        """End the idle threads."""
        self._threads.close()


class _OnHost:
    """Marks a value of a step that stays on the host."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def prepared(value: Any) -> Any:
    """The value itself, or a copy whose memory a JAX device on the CPU can use as it is.

    Small values are returned unchanged: JAX copies them in no time.

    Raises:
      InvalidArgumentError: JAX cannot hold its integers, as `fitting` says.
    """
    if type(value) is not np.ndarray or value.nbytes < FEWEST_BYTES:
        return fitting(value)
    narrow = None if jax.config.jax_enable_x64 else _NARROW.get(value.dtype)
    if narrow is None:
        return aligned(value)
    return copy_of(fitting(value), narrow)


def _kind(device: Any) -> str:
    return str(device.platform).upper()


def _devices(labels: Sequence[str]) -> tuple[Any, ...]:
    found = [_device(label) for label in labels]
    for i, device in enumerate(found):
        if device in found[:i]:
            raise ValueError(f"backend 'jax': {labels[found.index(device)]} and {labels[i]} are the same device")
    return tuple(found)


def _device(label: str) -> Any:
    kind, _, number = label.partition(":")
    preferred = jax.local_devices()
    table = {"JAX": preferred, _kind(preferred[0]): preferred}
    if "GPU" in table:
        table["CUDA"] = preferred
    with suppress(RuntimeError):  # JAX_PLATFORMS may leave CPUs out
        table.setdefault("CPU", jax.local_devices(backend="cpu"))
    place = int(number) if number.isdigit() else -1
    if kind not in table or not 0 <= place < len(table[kind]):
        there = ", ".join([f"{name}:0 to {name}:{len(devices) - 1}" for name, devices in table.items()])
        raise ValueError(
            f"backend 'jax': JAX has no device {label!r} in this process; it has {there}. For more CPU devices set "
            "XLA_FLAGS=--xla_force_host_platform_device_count=8 before JAX is first used"
        )
    return table[kind][place]
