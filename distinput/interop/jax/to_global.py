# SPDX-License-Identifier: Apache-2.0
"""`interop.jax.to_global`: the parts of replicas as global arrays."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from distinput.core.nest import component
from distinput.distribute.core.values import DistributedValues, replica_leaves
from distinput.distribute.tpu.device_values import DeviceValues
from distinput.distribute.tpu.precision import as_device_array
from distinput.interop.jax.placement import put_pieces
from distinput.interop.jax.rows import device_rows, pieces_of

__all__ = ["to_global"]

_WHO = "interop.jax.to_global"


def to_global(step: Any, sharding: Any) -> Any:
    """A step of a distributed dataset, or what `Strategy.run` returned, as global `jax.Array`s.

    The parts of the replicas become the rows of one array, in replica order. A part that is on the right device stays there.
    Nothing is exchanged between processes: each one gives the rows that its devices hold.

    Shapes: parts `[n, ...]` of R replicas become `[R * n, ...]`, scalars `[R]`. A leaf that is no distributed value holds
    the rows of this process; a scalar is copied to all devices.

    Args:
      step: a nest of `PerReplica` leaves, or of plain arrays.
      sharding: a `jax.sharding.NamedSharding` for all leaves, or a nest of them with the structure of `step`.

    Raises:
      TypeError: no sharding.
      ValueError: the parts have different shapes, or cannot be divided as the sharding says.

    >>> import distinput as di
    >>> import jax
    >>> from jax.sharding import NamedSharding, PartitionSpec
    >>> sharding = NamedSharding(jax.make_mesh((1,), ("data",)), PartitionSpec("data"))
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> for step in strategy.experimental_distribute_dataset(di.data.Dataset.range(8).batch(4)):
    ...     print(di.interop.jax.to_global(step, sharding))
    [0 1 2 3]
    [4 5 6 7]
    """
    structure, leaves = replica_leaves(step)
    if isinstance(sharding, jax.sharding.Sharding):
        shardings = [sharding] * len(leaves)
    else:
        try:
            shardings = structure.flatten(sharding)
        except TypeError:
            shardings = []
        if not shardings or not all(isinstance(each, jax.sharding.Sharding) for each in shardings):
            raise TypeError(
                f"{_WHO}: sharding must be a jax.sharding.NamedSharding, or a nest of them with the structure of the step, "
                f"{structure}, got {sharding!r}"
            )
    return structure.build(
        [
            _leaf(leaf, each, component(path))
            for leaf, each, path in zip(leaves, shardings, structure.paths, strict=True)
        ]
    )


def _leaf(leaf: Any, sharding: Any, name: str) -> Any:
    if isinstance(leaf, DeviceValues) and not leaf.scalar and leaf.rows is None:
        whole = leaf.whole
        if whole.sharding.is_equivalent_to(sharding, whole.ndim):
            return whole
    parts = list(leaf.values) if isinstance(leaf, DistributedValues) else [leaf]
    parts = [part if isinstance(part, jax.Array) else as_device_array(part, name, _WHO) for part in parts]
    if len({part.shape for part in parts}) > 1:
        raise ValueError(
            f"{_WHO}: the parts of {name} must have the same shape, got {', '.join(str(list(part.shape)) for part in parts)}; "
            "distribute the dataset with InputOptions(tail='pad') or tail='drop'"
        )
    if not parts[0].shape:
        if not isinstance(leaf, DistributedValues):
            return _everywhere(parts[0], sharding)
        parts = [part.reshape(1) for part in parts]
    size = parts[0].shape[0]
    rows, starts = _places(sharding, len(parts), size, parts[0].ndim, name)
    return put_pieces(f"{_WHO}: {name}", [parts], [sharding], size, starts, rows)[0]


def _everywhere(value: Any, sharding: Any) -> Any:
    if isinstance(sharding, NamedSharding):
        sharding = NamedSharding(sharding.mesh, PartitionSpec())
    host = np.asarray(value)
    return jax.make_array_from_callback((), sharding, lambda _: host)


def _places(sharding: Any, count: int, size: int, dimensions: int, name: str) -> tuple[int, Sequence[int]]:
    """The rows of the global array, and the first row of each of this process's `count` parts of `size` rows."""
    if sharding.is_fully_addressable:
        return count * size, [part * size for part in range(count)]
    # Where the rows of this process are: as shares of the whole, told by an array that every sharding can divide.
    nominal = len(sharding.device_set)
    held = device_rows(sharding, (nominal, *[None] * (dimensions - 1)), f"{_WHO}: {name}")
    pieces = pieces_of(held.values(), nominal)
    own, each = pieces.count, count // pieces.count
    if count % own or sum(stop - first for first, stop in set(held.values())) < own * pieces.size:
        raise ValueError(
            f"{_WHO}: {name} has {count} parts on this process, whose devices hold {own} separate parts of the rows; make the "
            "mesh of the devices in replica order"
        )
    rows = each * size  # of a piece
    starts = [start // pieces.size * rows for start in pieces.starts]
    return rows * pieces.assignment.pieces, [start + part * size for start in starts for part in range(each)]
