# SPDX-License-Identifier: Apache-2.0
"""The mesh of JAX devices that replicas run on: one row of cores for each replica."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

__all__ = ["CORE", "REPLICA", "ReplicaMesh", "device_label", "in_turn"]

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
