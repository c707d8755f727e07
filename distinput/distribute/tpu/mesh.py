# SPDX-License-Identifier: Apache-2.0
"""The mesh of JAX devices that replicas run on, and host arrays as JAX holds them."""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Event, Lock
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from distinput.distribute.core.values import PerReplica
from distinput.distribute.devices import device_name
from distinput.distribute.devices.jax import CURE, NARROW, JaxDevices, can_hold, fitting
from distinput.distribute.devices.pytrees import register_pytree
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.values.buffers import Array, aligned, copy_of, empty

# ----------------------------------------------------------------------------
# Host arrays as JAX holds them: without `jax_enable_x64` it has no 64-bit numbers, and none may be lost silently.
# ----------------------------------------------------------------------------


_warned = Event()
"""Set once the warning about rounded floats has been given."""


def as_device_array(value: Any, what: str, who: str = "run") -> Any:
    """A number or NumPy array with a dtype that JAX keeps.

    Where JAX has no 64-bit numbers, integers of 64 bits become integers of 32 bits, which must be able to hold them, and
    floats are rounded, with a warning the first time.

    Args:
      value: a Python number, a NumPy scalar or a NumPy array.
      what: what the value is, for messages.
      who: what puts it on a device, for messages.

    Raises:
      InvalidArgumentError: a number that 32 bits cannot hold, or a value that is not a number.

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
    narrow = NARROW.get(array.dtype)
    if narrow is None or jax.config.jax_enable_x64:
        return array
    if array.dtype.kind in "iu":
        return copy_of(fitting(array, f"{who}: {what}"), narrow)
    with np.errstate(over="ignore"):
        made = copy_of(array, narrow)
    if not np.array_equal(np.isfinite(made), np.isfinite(array)):
        raise InvalidArgumentError(f"{who}: {what} has {array.dtype} numbers too large for {narrow}; {CURE}")
    if not _warned.is_set() and not np.array_equal(made, array, equal_nan=True):
        _warned.set()
        warnings.warn(
            f"{what} is {array.dtype} and is rounded to {narrow}, because JAX computes in 32 bits here; {CURE}. This is "
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


# ----------------------------------------------------------------------------
# The mesh of JAX devices that replicas run on: one row of cores for each replica.
# ----------------------------------------------------------------------------


REPLICA = "replica"
"""The axis of the mesh along which batches are divided."""
CORE = "core"
"""The axis of the mesh along which one replica divides its work among its cores; see `ReplicaMesh.core_axes`."""


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
            raise ValueError(f"TPUStrategy: no device may be given twice, got {list(map(str, devices.flat))}")
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
        return tuple([device_name(self.devices[i, 0]) for i in self.local])

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


# ----------------------------------------------------------------------------
# A per-replica value that is one array over all devices, split into components when somebody asks for them.
# ----------------------------------------------------------------------------


class DeviceValues(PerReplica):
    """A `PerReplica` whose components lie one after the other in one array over the replicas' devices.

    Args:
      whole: `[replicas * n, ...]`, its first axis divided among the replicas of `mesh`; `[replicas]` for scalars.
      mesh: the devices.
      scalar: True if each component is a scalar.
      rows: how many of the n rows of each component of this process are data; None for all of them.
    """

    __slots__ = ("_mesh", "_parts", "rows", "scalar", "whole")

    def __init__(self, whole: Any, mesh: ReplicaMesh, *, scalar: bool, rows: Sequence[int] | None = None) -> None:
        self.whole, self.scalar, self.rows = whole, scalar, rows
        self._mesh = mesh
        self._parts: tuple[Any, ...] | None = None

    @property
    def values(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The components in replica order, each on its replica's device."""
        if self._parts is None:
            parts = local_parts(self.whole, self._mesh)
            if self.scalar:
                parts = [part.reshape(()) for part in parts]
            elif self.rows is not None:
                parts = [part[:rows] for part, rows in zip(parts, self.rows, strict=True)]
            self._parts = tuple(parts)
        return self._parts

    def is_on(self, mesh: ReplicaMesh) -> bool:
        """True if the array lies on the devices of this mesh."""
        return mesh is self._mesh

    @property
    def count(self) -> int:
        """The number of replicas of this process."""
        return len(self._mesh.local)

    @property
    def part_shape(self) -> tuple[int, ...]:
        """The shape of each component, rows that are not data included."""
        shape: tuple[int, ...] = self.whole.shape
        return () if self.scalar else (shape[0] // self._mesh.replicas, *shape[1:])

    def _of_numbers(self) -> bool:
        return False  # arrays, which need not be split to say so

    def __repr__(self) -> str:
        return repr(PerReplica(self.values))

    def __reduce__(self) -> tuple[Any, ...]:
        return PerReplica, (self.values,)


def local_parts(whole: Any, mesh: ReplicaMesh) -> list[Any]:
    """The shards of an array divided among the replicas, one for each replica of this process, in replica order."""
    first = {mesh.devices[replica, 0]: place for place, replica in enumerate(mesh.local)}
    parts: list[Any] = [None] * len(first)
    for shard in whole.addressable_shards:
        place = first.get(shard.device)
        if place is not None:
            parts[place] = shard.data
    return parts


register_pytree(DeviceValues, PerReplica)

# ---- Puts the steps of input on the devices of a mesh: one array for all replicas, as compiled programs take it


_COPIED_BYTES = 1 << 18
"""Parts that lie apart are copied together up to this size, which takes less time than to put each of them."""


class MeshDevices(JaxDevices):
    """JAX devices in a mesh. Parts of one shape are put as one array, which takes half the time of one put for each.

    Args:
      mesh: the devices.
      labels: for each replica of this process the name of its first core.
    """

    def __init__(self, mesh: ReplicaMesh, labels: Sequence[str]) -> None:
        super().__init__(labels)
        self._mesh = mesh
        local = mesh.local
        self._consecutive = local == tuple(range(local[0], local[0] + len(local)))

    def put_step(self, leaves: Sequence[Sequence[Any]]) -> list[PerReplica]:
        """The values of several leaves, one for each replica of this process, as a step has them.

        Returns:
          `DeviceValues`, or `PerReplica` where the parts differ in shape, as at the end of an epoch.
        """
        return [self._put_leaf(parts) for parts in leaves]

    def _put_leaf(self, parts: Sequence[Any]) -> PerReplica:
        first = parts[0]
        alike = all(can_hold(part) and np.shape(part) == np.shape(first) for part in parts)
        if isinstance(first, jax.Array) or not alike:
            return PerReplica(self.put_all([parts])[0])
        if not np.shape(first):
            return DeviceValues(self._placed(np.stack(parts)), self._mesh, scalar=True)
        whole = joined(parts)
        size = len(parts) * first.nbytes
        if whole is None and size <= _COPIED_BYTES:
            whole = np.concatenate(parts, out=empty((len(parts) * len(first), *first.shape[1:]), first.dtype))
        if whole is not None and self._consecutive:
            return DeviceValues(self._placed(whole), self._mesh, scalar=False)
        return DeviceValues(
            self._mesh.assemble([self._ready(part) for part in parts], first.shape), self._mesh, scalar=False
        )

    def _placed(self, whole: Array) -> Any:
        """The rows of this process's replicas as a part of the array over all devices."""
        mesh = self._mesh
        if len(mesh.local) == mesh.replicas:
            return jax.device_put(self._ready(whole), mesh.per_replica)
        rows = len(whole) // len(mesh.local) * mesh.replicas
        return jax.make_array_from_process_local_data(mesh.per_replica, self._ready(whole), (rows, *whole.shape[1:]))

    def _ready(self, array: Any) -> Any:
        """The array with a dtype that JAX keeps, in memory that a device on the CPU can use as it is."""
        made = as_device_array(array, "a component of a step")
        return aligned(made) if self._on_host else made


def joined(parts: Sequence[Array]) -> Array | None:
    """Arrays that lie one after the other in the same memory, as one array `[parts * n, ...]`; None if they do not.

    >>> whole = np.arange(6)
    >>> joined([whole[:3], whole[3:]]).tolist(), joined([whole[:2], whole[4:]])
    ([0, 1, 2, 3, 4, 5], None)
    """
    first = parts[0]
    if not isinstance(first, np.ndarray) or not first.nbytes:
        return None
    shape, dtype, base, size = first.shape, first.dtype, first.base, first.nbytes
    if not isinstance(base, np.ndarray) or not base.flags.c_contiguous:
        return None
    address = _address(first)
    for i, part in enumerate(parts):
        there = part.base is base and part.dtype == dtype and part.shape == shape and part.flags.c_contiguous
        if not there or _address(part) != address + i * size:
            return None
    whole: Array = np.ndarray((len(parts) * shape[0], *shape[1:]), dtype, base, address - _address(base))
    return whole


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
