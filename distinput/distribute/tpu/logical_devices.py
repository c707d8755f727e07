# SPDX-License-Identifier: Apache-2.0
"""The logical devices of a replica: several cores that share its work.

In a compiled run an annotation becomes a constraint on how the compiler divides an array among the cores of a replica.
Values never change: outside of a run, and where functions run eagerly, an annotation is checked and the value returned.
"""

from collections.abc import Sequence
from operator import index
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, PartitionSpec

from distinput.core.nest import map_leaves
from distinput.distribute.tpu.mesh import REPLICA, ReplicaMesh
from distinput.distribute.values import DistributedValues

__all__ = ["LogicalDevices"]


class LogicalDevices:
    """The methods of a strategy whose replicas have several cores; the strategy sets its mesh."""

    _mesh: ReplicaMesh
    _spmd: bool = False

    def experimental_assign_to_logical_device(self, tensor: Any, logical_device_id: int) -> Any:
        """Say that one core of the replica computes with this array.

        All cores of a replica run the same program here, so each of them holds and computes the array. This checks the
        number of the core and returns the same values.

        Args:
          tensor: the array, or a nest of arrays.
          logical_device_id: the number of a core of the replica.

        Raises:
          ValueError: there is no such core, or the strategy was made with `experimental_spmd_xla_partitioning=True`.

        Source: `tf.distribute.TPUStrategy.experimental_assign_to_logical_device`.
        """
        if self._spmd:
            raise ValueError(
                "Cannot assign a tensor to a logical device in SPMD mode. To disable SPMD, Please construct the TPUStrategy "
                "with `experimental_spmd_xla_partitioning=False`"
            )
        cores = self._mesh.cores
        if not 0 <= index(logical_device_id) < cores:
            raise ValueError(
                "`logical_core_id` to assign must be lower then total number of logical devices per replica. Received "
                f"logical device id {logical_device_id} but there are only total of {cores} logical devices in replica."
            )
        return self._everywhere("experimental_assign_to_logical_device", tensor)

    def experimental_split_to_logical_devices(self, tensor: Any, partition_dimensions: Sequence[int]) -> Any:
        """Split an array among the cores of the replica.

        Args:
          tensor: the array, `[d0, d1, ...]`.
          partition_dimensions: into how many equal parts each dimension is split; their product is the number of cores of
            a replica.

        Raises:
          TypeError: a number of parts is not an integer.
          ValueError: not one number for each dimension, one that does not divide its dimension, or another product.

        >>> import numpy as np
        >>> from distinput.distribute.tpu.mesh import ReplicaMesh
        >>> class Mine(LogicalDevices):
        ...     _mesh = ReplicaMesh.of(jax.devices(), cores_per_replica=1)
        >>> Mine().experimental_split_to_logical_devices(np.zeros((2, 4)), [1, 1]).shape
        (2, 4)

        Source: `tf.distribute.TPUStrategy.experimental_split_to_logical_devices`.
        """
        _check_single("experimental_split_to_logical_devices", tensor)
        shape, parts = np.shape(tensor), tuple([index(part) for part in partition_dimensions])
        if len(shape) != len(parts):
            raise ValueError(
                f"Length of `partition_dimensions` must equal to the rank of `tensor.shape` ({len(shape)}). Received "
                f"len(partition_dimensions)={len(parts)}."
            )
        for i, (size, part) in enumerate(zip(shape, parts, strict=True)):
            if part < 1:
                raise ValueError(f"`partition_dimensions[{i}]` must be at least 1. Received: {part}.")
            if size % part:
                raise ValueError(
                    f"Tensor shape at `partition_dimensions[{i}]` must be divisible by corresponding value specified by "
                    f"`partition_dimensions` ({part}). Received: {size}."
                )
        cores, product = self._mesh.cores, int(np.prod(parts, dtype=np.int64))
        if product != cores:
            raise ValueError(
                f"The product of `partition_dimensions` should be the same as the number of logical devices (={cores}). "
                f"Received `partition_dimensions`={list(parts)},and their product is {product}."
            )
        return _constrained(self._mesh, tensor, _spec(self._mesh, parts))

    def experimental_replicate_to_logical_devices(self, tensor: Any) -> Any:
        """Let every core of the replica hold the whole array.

        Args:
          tensor: the array, or a nest of arrays.

        Source: `tf.distribute.TPUStrategy.experimental_replicate_to_logical_devices`.
        """
        return self._everywhere("experimental_replicate_to_logical_devices", tensor)

    def _everywhere(self, what: str, tensor: Any) -> Any:
        def leaf(value: Any) -> Any:
            _check_single(what, value)
            return _constrained(self._mesh, value, PartitionSpec())

        return map_leaves(leaf, tensor, lists=True)


def _check_single(what: str, value: Any) -> None:
    if isinstance(value, DistributedValues) and not value.passed_whole:
        raise TypeError(
            f"{what}: needs the array of one replica, got a {type(value).__name__}; call it inside the function given to run"
        )


def _constrained(mesh: ReplicaMesh, value: Any, spec: PartitionSpec) -> Any:
    """The value; while it is traced, with a constraint on how the cores of a replica hold it."""
    if mesh.cores == 1 or not isinstance(value, jax.core.Tracer):
        return value
    # Replicas are apart from each other inside of the program; only cores are left to the compiler.
    inside = mesh.mesh.abstract_mesh.update_axis_types({REPLICA: AxisType.Manual})
    with jax.sharding.use_abstract_mesh(inside):
        return jax.lax.with_sharding_constraint(value, spec)


def _spec(mesh: ReplicaMesh, parts: Sequence[int]) -> PartitionSpec:
    """Which axes of the mesh split each dimension. Sizes of axes are prime, so those that a number needs are there."""
    left = [(name, size) for name, size in mesh.core_axes.items() if size > 1]
    axes: list[tuple[str, ...]] = []
    for part in parts:
        mine = []
        for name, size in list(left):
            if part % size == 0:
                mine.append(name)
                left.remove((name, size))
                part //= size
        axes.append(tuple(mine))
    return PartitionSpec(*[names or None for names in axes])
