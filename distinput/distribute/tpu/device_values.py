# SPDX-License-Identifier: Apache-2.0
"""A per-replica value that is one array over all devices, split into components when somebody asks for them."""

from collections.abc import Sequence
from typing import Any

from distinput.distribute.devices.pytrees import register_pytree
from distinput.distribute.tpu.mesh import ReplicaMesh
from distinput.distribute.values import PerReplica

__all__ = ["DeviceValues"]


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
