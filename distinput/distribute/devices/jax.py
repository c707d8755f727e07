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
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from typing import Any, ClassVar

import numpy as np

from distinput.distribute.devices.threads import FrameworkDevices
from distinput.errors import InvalidArgumentError, importing
from distinput.names.lazy import dataclass
from distinput.values.buffers import FEWEST_BYTES, aligned, copy_of

with importing("backend 'jax': needs JAX, which is not installed ({error}); use `pip install 'distinput[jax]'`"):
    import jax
    import jax.numpy as jnp

# ---- Settings that JAX keeps for each thread, as in `with jax.enable_x64(True):`, carried to the threads of replicas and input
#
# A setting that a program gives by `jax.config.update` belongs to all threads, and is left alone.

_SETTINGS = (
    "debug_infs", "debug_key_reuse", "debug_nans", "default_matmul_precision", "default_prng_impl", "disable_jit",
    "enable_checks", "enable_x64", "log_compiles", "numpy_dtype_promotion", "numpy_rank_promotion",
    "threefry_partitionable",
    "transfer_guard_device_to_device", "transfer_guard_device_to_host", "transfer_guard_host_to_device",
)  # fmt: skip
_MANAGERS: dict[str, Callable[[Any], Any]] = {
    f"jax_{name}": getattr(jax, name) for name in _SETTINGS if hasattr(jax, name) and hasattr(jax.config, f"jax_{name}")
}
"""The context manager of each setting."""


class JaxSettings:
    """The settings of the thread that makes it.

    >>> import threading
    >>> with jax.enable_x64(True):
    ...     settings = JaxSettings()
    >>> with settings.entered():
    ...     print(jax.config.jax_enable_x64)
    True
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        config = jax.config
        self._values = [getattr(config, name) for name in _MANAGERS]

    def entered(self) -> ExitStack:
        """A context manager in which the thread that asks for it has them."""
        config, stack = jax.config, ExitStack()
        for (name, manager), value in zip(_MANAGERS.items(), self._values, strict=True):
            if getattr(config, name) != value:
                stack.enter_context(manager(value))
        return stack

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, to be called on another thread as on this one."""

        def bound(*args: Any) -> Any:
            with self.entered():
                return function(*args)

        return bound


# ---- Arithmetic with arrays of JAX, on the devices where they are: see `ArrayOps`

NARROW: dict[Any, np.dtype[Any]] = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
"""What becomes of dtypes of 64 bits where JAX has none."""

CURE = "call jax.config.update('jax_enable_x64', True) first, or convert the values with astype"


@dataclass(frozen=True, slots=True)
class JaxArrays:
    """Arrays of JAX. Each method is one compiled program, so it costs one dispatch."""

    library: ClassVar[str] = "jax"
    """See `ArrayOps.library`."""

    @staticmethod
    def owns(value: Any) -> bool:
        """True for a `jax.Array` that is not traced."""
        return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)

    @staticmethod
    def array(value: Any) -> Any:
        """See `ArrayOps.array`."""
        if isinstance(value, jax.Array):
            return value
        return jnp.asarray(fitting(value)) if can_hold(value) else np.asarray(value)

    @staticmethod
    def value(array: Any) -> Any:
        """See `ArrayOps.value`."""
        return array

    @staticmethod
    def kind(dtype: Any) -> str:
        """See `ArrayOps.kind`."""
        kind: str = dtype.kind
        if kind != "V":
            return kind
        return "f" if jnp.issubdtype(dtype, jnp.floating) else "i" if jnp.issubdtype(dtype, jnp.signedinteger) else "u"

    @staticmethod
    def name(dtype: Any) -> str:
        """See `ArrayOps.name`."""
        return str(dtype)

    @staticmethod
    def dtype(name: str) -> Any:
        """See `ArrayOps.dtype`."""
        return jnp.dtype(name)

    def wide(self, dtype: Any) -> Any:
        """See `ArrayOps.wide`; where JAX has no 64 bits, integers are added as its float."""
        if self.kind(dtype) == "f" and dtype.itemsize < _FLOAT32.itemsize:
            return _FLOAT32
        if self.kind(dtype) not in "iu":
            return dtype
        if not jax.config.jax_enable_x64:
            return _FLOAT32
        return np.dtype(np.float64 if dtype.itemsize == 8 else np.int64)

    @staticmethod
    def sum(array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
        """See `ArrayOps.sum`."""
        return _sum(_on(array, array.device), axes, dtype)

    def total(self, arrays: Sequence[Any], dtype: Any) -> Any:
        """See `ArrayOps.total`."""
        return _total(self.together(arrays), dtype)

    @staticmethod
    def total_of_devices(arrays: Sequence[Any], dtype: Any) -> None:
        """None: arrays of JAX on single devices are brought to one of them; see `TPUStrategy` for programs over all."""

    def mean(self, total: Any, count: int, dtype: Any) -> Any:
        """See `ArrayOps.mean`."""
        wanted = dtype
        if self.kind(dtype) in "iu":
            wanted = np.dtype(np.float64 if jax.config.jax_enable_x64 else np.float32)
        # Small floats cannot hold large counts, so the quotient is computed in a larger one.
        within = np.dtype(np.float32) if wanted.itemsize < 4 else wanted
        return _quotient(total, jax.device_put(np.asarray(count, within), total.device), wanted)

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        """See `ArrayOps.concatenate`."""
        return _concatenated(self.together(arrays), axis)

    @staticmethod
    def together(arrays: Sequence[Any]) -> Sequence[Any]:
        """See `ArrayOps.together`."""
        device = arrays[0].device
        return tuple([_on(array, device) for array in arrays])

    @staticmethod
    def move(array: Any, device: Any) -> Any:
        """See `ArrayOps.move`."""
        return _on(array, device)

    @staticmethod
    def copy(array: Any, device: Any) -> Any:
        """The array on the device; nobody can write to it."""
        return _put(array, device)

    @staticmethod
    def zeros(shape: Sequence[int], dtype: Any, device: Any) -> Any:
        """See `ArrayOps.zeros`."""
        return jnp.zeros(tuple(shape), dtype, device=device)

    @staticmethod
    def take(array: Any, rows: Any) -> Any:
        """See `ArrayOps.take`."""
        return jnp.take(array, jax.device_put(rows.astype(np.int32), array.device), axis=0)

    @staticmethod
    def to_host(array: Any) -> Any:
        """See `ArrayOps.to_host`."""
        return np.asarray(array)


_FLOAT32 = np.dtype(np.float32)


def _on(array: Any, device: Any) -> Any:
    """The array on a device, and bound to it: programs compute arrays that are not bound on the current device."""
    there = array.committed and array.device == device and array.sharding.memory_kind == device.default_memory().kind
    return array if there else _put(array, device)


def _put(array: Any, device: Any) -> Any:
    """The array in the memory of a device, also where it is in memory of the host that belongs to the device."""
    return jax.device_put(array, jax.sharding.SingleDeviceSharding(device))


@partial(jax.jit, static_argnums=(1, 2))
def _sum(array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
    return jnp.sum(array, axis=axes, dtype=dtype)


@partial(jax.jit, static_argnums=1)
def _total(arrays: Sequence[Any], dtype: Any) -> Any:
    total = arrays[0].astype(dtype)
    for array in arrays[1:]:
        total = total + array.astype(dtype)
    return total


@partial(jax.jit, static_argnums=2)
def _quotient(total: Any, count: Any, dtype: Any) -> Any:
    # By one number for all, JAX would divide by multiplying with its reciprocal, which rounds twice.
    counts = jax.lax.optimization_barrier(jnp.broadcast_to(count, total.shape))
    return (total.astype(count.dtype) / counts).astype(dtype)


@partial(jax.jit, static_argnums=1)
def _concatenated(arrays: Sequence[Any], axis: int) -> Any:
    return jnp.concatenate(arrays, axis=axis)


JAX = JaxArrays()
"""The arrays of JAX."""


def can_hold(value: Any) -> bool:
    """True for numbers and arrays of them, False for text and other objects, which a device cannot hold."""
    if isinstance(value, jax.Array):
        return True
    dtype = getattr(value, "dtype", None)
    if not isinstance(value, np.ndarray | np.generic) or not isinstance(dtype, np.dtype):
        return isinstance(value, bool | int | float | complex)
    return dtype.kind in "biufc" or dtype.isbuiltin == 2  # those of packages, such as bfloat16


def fitting(value: Any, what: str = "the value") -> Any:
    """The value itself, if JAX can hold its integers in the dtype that it would give them.

    Raises:
      InvalidArgumentError: it cannot.
    """
    narrow = NARROW.get(getattr(value, "dtype", None))
    if narrow is None or narrow.kind not in "iu" or jax.config.jax_enable_x64:
        return value
    if isinstance(value, jax.Array) or not np.size(value):
        return value
    limits = np.iinfo(narrow)
    for extreme in (np.min(value), np.max(value)):
        if not limits.min <= extreme <= limits.max:
            raise InvalidArgumentError(
                f"{what} is {value.dtype} and holds {extreme}, which {narrow} cannot hold; {CURE}"
            )
    return value


# ---- Replicas as threads of this process, each on a JAX device of its own


class JaxDevices(FrameworkDevices):
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

    arrays = JAX

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(labels, [_device(label) for label in labels])
        self._on_host = "cpu" in {device.platform for device in self.devices}

    @staticmethod
    def default_labels() -> tuple[str, ...]:
        """The devices used if none is named: all that this process has of the kind that JAX prefers."""
        return tuple([f"{_kind(device)}:{i}" for i, device in enumerate(jax.local_devices())])

    @staticmethod
    def has_gpus() -> bool:
        """True if JAX prefers GPUs in this process."""
        return _kind(jax.local_devices()[0]) == "GPU"

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        """The value as a `jax.Array` on the device, without a copy where JAX can do without; see `Devices.put`.

        Raises:
          InvalidArgumentError: a 64-bit integer does not fit into 32 bits, and JAX is not set to use 64.
        """
        if not can_hold(value):
            return self._threads.put(value, device, owned=owned)
        if not owned and isinstance(value, np.ndarray):
            value = copy_of(value)  # of `may_alias=False` JAX takes no notice
        place = self.devices[device]
        return jax.device_put(prepared(value) if place.platform == "cpu" else fitting(value), place)

    def put_all(self, leaves: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The values of several leaves, one for each device, all put at once, as `put(..., owned=True)` puts each."""
        make = prepared if self._on_host else fitting
        made = [[make(part) if can_hold(part) else _OnHost(part) for part in parts] for parts in leaves]
        numbers = [
            (part, device)
            for parts in made
            for part, device in zip(parts, self.devices, strict=True)
            if type(part) is not _OnHost
        ]
        there = iter(
            jax.device_put([part for part, _ in numbers], [device for _, device in numbers]) if numbers else ()
        )
        return [[part.value if type(part) is _OnHost else next(there) for part in parts] for parts in made]

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
            with settings.entered() if settings and index else nullcontext(), jax.default_device(self.devices[index]):
                return function(*args)

        return self._threads.run(on_device, list(enumerate(per_device_args)))


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
    narrow = None if jax.config.jax_enable_x64 else NARROW.get(value.dtype)
    if narrow is None:
        return aligned(value)
    return copy_of(fitting(value), narrow)


def _kind(device: Any) -> str:
    return str(device.platform).upper()


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
