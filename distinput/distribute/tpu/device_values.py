# SPDX-License-Identifier: Apache-2.0
"""A per-replica value that is one array over all devices, split into components when somebody asks for them."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from distinput.distribute.core.values import PerReplica
from distinput.distribute.devices.jax import JaxDevices, can_hold
from distinput.distribute.devices.pytrees import register_pytree
from distinput.distribute.tpu.mesh import ReplicaMesh, as_device_array
from distinput.values.buffers import aligned, empty

__all__ = ["DeviceValues", "MeshDevices", "joined", "local_parts"]

# ---- A per-replica value that is one array over all devices, split into components when somebody asks for them


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
        """The shape of each component, rows that are no data included."""
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

Array = np.ndarray[Any, np.dtype[Any]]

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
        if not all(can_hold(part) and np.shape(part) == np.shape(first) for part in parts) or isinstance(
            first, jax.Array
        ):
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
    address: int = array.__array_interface__["data"][0]
    return address
