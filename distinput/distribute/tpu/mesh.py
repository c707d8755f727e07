# SPDX-License-Identifier: Apache-2.0
"""The mesh of JAX devices that replicas run on, and host arrays as JAX holds them."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from distinput.errors import InvalidArgumentError
from distinput.values.buffers import copy_of

__all__ = ["CORE", "REPLICA", "ReplicaMesh", "as_device_array", "device_label", "in_turn"]


# ----------------------------------------------------------------------------
# Host arrays as JAX holds them: without `jax_enable_x64` it has no 64-bit numbers, and none may be lost silently.
# ----------------------------------------------------------------------------


_NARROW = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
_CURE = "call jax.config.update('jax_enable_x64', True) first, or convert the values with astype"


class _Warned:
    """Whether the warning about rounded floats has been given."""

    floats = False


def as_device_array(value: Any, what: str, who: str = "run") -> Any:
    """A number or NumPy array with a dtype that JAX keeps.

    Where JAX has no 64-bit numbers, integers of 64 bits become integers of 32 bits, which must be able to hold them, and
    floats are rounded, with a warning the first time.

    Args:
      value: a Python number, a NumPy scalar or a NumPy array.
      what: what the value is, for messages.
      who: what puts it on a device, for messages.

    Raises:
      InvalidArgumentError: a number that 32 bits cannot hold, or a value that is no number.

    >>> from distinput.distribute.tpu.mesh import as_device_array
    >>> as_device_array(np.array([1, 2**31 - 1]), "x").dtype
    dtype('int32')
    """
    array = _plain(value)
    if array.dtype.kind not in "biufc" and not _is_extended(array.dtype):
        kind = "text" if array.dtype.kind in "SUO" else str(array.dtype)
        raise InvalidArgumentError(
            f"{who}: {what} must be numbers to be put on a device, got {kind}; convert it in the dataset"
            + (", or make the strategy with compile=False" if who == "run" else "")
        )
    narrow = _NARROW.get(array.dtype)
    if narrow is None or jax.config.jax_enable_x64:
        return array
    if array.dtype.kind in "iu":
        return _narrowed_integers(array, narrow, f"{who}: {what}")
    with np.errstate(over="ignore"):
        made = copy_of(array, narrow)
    if not np.array_equal(np.isfinite(made), np.isfinite(array)):
        raise InvalidArgumentError(f"{who}: {what} has {array.dtype} numbers too large for {narrow}; {_CURE}")
    if not _Warned.floats and not np.array_equal(made, array, equal_nan=True):
        _Warned.floats = True
        warnings.warn(
            f"{what} is {array.dtype} and is rounded to {narrow}, because JAX computes in 32 bits here; {_CURE}. This is "
            "said once",
            stacklevel=2,
        )
    return made


def _plain(value: Any) -> Any:
    """The value as an array; Python numbers become int32 or float32, as everywhere."""
    if isinstance(value, bool):
        return np.asarray(value)
    if isinstance(value, int):
        return np.asarray(value, np.int32 if -(2**31) <= value < 2**31 else np.int64)
    if isinstance(value, float):
        return np.asarray(value, np.float32)
    if isinstance(value, complex):
        return np.asarray(value, np.complex64)
    return np.asarray(value)


def _is_extended(dtype: np.dtype[Any]) -> bool:
    """True for the number types that come with JAX, such as bfloat16."""
    return (
        dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and jax.dtypes.issubdtype(dtype, np.number)
    )


def _narrowed_integers(array: Any, narrow: np.dtype[Any], what: str) -> Any:
    if array.size:
        low, high, limits = array.min(), array.max(), np.iinfo(narrow)
        if low < limits.min or high > limits.max:
            worst = low if low < limits.min else high
            raise InvalidArgumentError(
                f"{what} is {array.dtype} and holds {worst}, which {narrow} cannot hold; {_CURE}"
            )
    return copy_of(array, narrow)


# ----------------------------------------------------------------------------
# The mesh of JAX devices that replicas run on: one row of cores for each replica.
# ----------------------------------------------------------------------------


# ---- The mesh of JAX devices that replicas run on: one row of cores for each replica

REPLICA = "replica"
"""The axis of the mesh along which batches are divided."""
CORE = "core"
"""The axis of the mesh along which one replica divides its work among its cores; see `ReplicaMesh.core_axes`."""


def device_label(device: Any) -> str:
    """The short name of a JAX device, such as "TPU:0" or "CPU:3"."""
    return f"{str(device.platform).upper()}:{device.id}"


@dataclass(frozen=True, eq=False)
class ReplicaMesh:
    """JAX devices in rows: row r holds the cores of replica r.

    Args:
      devices: an array of JAX devices `[replicas, cores per replica]`, in replica order.

    Raises:
      ValueError: the array has no device or is not two-dimensional, a device is given twice, or the cores of one replica
        belong to several processes.

    >>> from distinput.distribute.tpu.mesh import ReplicaMesh
    >>> mesh = ReplicaMesh.of()
    >>> mesh.mesh.axis_names
    ('replica', 'core')

    Source: `tf.tpu.experimental.DeviceAssignment`, whose replicas have one or more logical cores.
    """

    devices: Any

    def __post_init__(self) -> None:
        devices = np.asarray(self.devices, dtype=object)
        if devices.ndim != 2 or not devices.size:
            raise ValueError(
                f"TPUStrategy: devices must be an array [replicas, cores per replica], got shape {list(devices.shape)}"
            )
        if len(set(devices.flat)) != devices.size:
            raise ValueError(
                f"TPUStrategy: no device may be given twice, got {[device_label(device) for device in devices.flat]}"
            )
        for replica, row in enumerate(devices):
            if len({device.process_index for device in row}) > 1:
                raise ValueError(
                    f"TPUStrategy: all cores of a replica must belong to one process, got those of replica {replica} on "
                    f"processes {sorted({device.process_index for device in row})}"
                )
        object.__setattr__(self, "devices", devices)

    @classmethod
    def of(cls, devices: Sequence[Any] | None = None, cores_per_replica: int = 1) -> "ReplicaMesh":
        """The mesh of these devices, taken in order.

        Args:
          devices: JAX devices; None for all of `jax.devices()`: TPUs if there are any, else what JAX has.
          cores_per_replica: how many devices, one after the other, belong to each replica.

        Raises:
          ValueError: the devices cannot be divided into replicas of that many cores.
        """
        found = list(jax.devices() if devices is None else devices)
        if cores_per_replica < 1 or len(found) % cores_per_replica:
            raise ValueError(
                f"TPUStrategy: {len(found)} devices cannot be divided into replicas of {cores_per_replica} cores each"
            )
        grid = np.empty(len(found), dtype=object)
        grid[:] = found
        return cls(grid.reshape(-1, cores_per_replica))

    @property
    def replicas(self) -> int:
        """The number of replicas over all processes."""
        return int(self.devices.shape[0])

    @property
    def cores(self) -> int:
        """The number of cores of each replica."""
        return int(self.devices.shape[1])

    @cached_property
    def core_axes(self) -> dict[str, int]:
        """The axes along which a replica divides its work, with their sizes, which are prime: their product is `cores`.

        One axis "core" for 1, 2, 3, 5, ... cores, else "core0", "core1", ...: an array that is split among 8 cores, 2 ways
        along one dimension and 4 ways along another, needs an axis for each factor.
        """
        factors = _prime_factors(self.cores) or [1]
        if len(factors) == 1:
            return {CORE: factors[0]}
        return {f"{CORE}{i}": factor for i, factor in enumerate(factors)}

    @cached_property
    def mesh(self) -> Mesh:
        """The `jax.sharding.Mesh` with the axes "replica" and those of the cores."""
        axes = self.core_axes
        return Mesh(self.devices.reshape(self.replicas, *axes.values()), (REPLICA, *axes))

    @cached_property
    def per_replica(self) -> NamedSharding:
        """The sharding of an array whose first axis is divided among the replicas: `[replicas * n, ...]`."""
        return NamedSharding(self.mesh, PartitionSpec(REPLICA))

    @cached_property
    def replicated(self) -> NamedSharding:
        """The sharding of an array that every device holds as a whole."""
        return NamedSharding(self.mesh, PartitionSpec())

    @cached_property
    def local(self) -> tuple[int, ...]:
        """The numbers of the replicas whose cores belong to this process, in replica order."""
        process = jax.process_index()
        return tuple([i for i, row in enumerate(self.devices) if row[0].process_index == process])

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of the first core of each replica of this process."""
        return tuple([device_label(self.devices[i, 0]) for i in self.local])

    def assemble(self, parts: Sequence[Any], shape: Sequence[int]) -> Any:
        """One global array whose first axis is divided among the replicas, made from parts without a copy on the host.

        Args:
          parts: for each replica of this process its part, `[n, ...]`, all of one shape and dtype; an array on the
            replica's first core stays where it is.
          shape: the shape of a part.
        """
        places = [(part, device) for r, part in zip(self.local, parts, strict=True) for device in self.devices[r]]
        pieces = jax.device_put([part for part, _ in places], [device for _, device in places])
        whole = (self.replicas * shape[0], *shape[1:])
        return jax.make_array_from_single_device_arrays(whole, self.per_replica, pieces)


def _prime_factors(number: int) -> list[int]:
    """The prime factors of a number, smallest first.

    >>> _prime_factors(12), _prime_factors(1)
    ([2, 2, 3], [])
    """
    found, factor = [], 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return found


# ---- Programs that meet between devices are started one after the other where devices share threads
#
# The devices of a CPU run on one pool of threads, and a device that waits for the others keeps its thread. Two programs that do
# not depend on each other could so use up all threads while one device has not begun: neither would ever end. On accelerators
# each device takes its programs in order, and nothing is waited for.

T = TypeVar("T")

_lock = Lock()
_last: list[Any] = []


def in_turn(mesh: ReplicaMesh, start: Callable[[], T]) -> T:
    """Start a program when the one before has ended, if its devices are those of a CPU.

    Args:
      mesh: the devices.
      start: starts the program and returns its results, which need not be there yet.
    """
    if mesh.devices.size == 1 or mesh.devices[0, 0].platform != "cpu":
        return start()
    with _lock:
        for array in _last:
            if not array.is_deleted():
                array.block_until_ready()
        _last.clear()
        made = start()
        # One result is enough to wait for all devices, and the smallest keeps the least memory in use.
        arrays = [x for x in jax.tree.leaves(made) if isinstance(x, jax.Array)]
        if arrays:
            _last.append(min(arrays, key=lambda x: x.nbytes))
    return made
