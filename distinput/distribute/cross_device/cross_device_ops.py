# SPDX-License-Identifier: Apache-2.0
"""The base class of what adds the values of replicas; users derive their own from it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.distribute.arithmetic import Arithmetic
from distinput.distribute.communication import CommunicationOptions
from distinput.distribute.devices.arrays import NUMPY, ArrayOps
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.sliced_values import has_slices, reduce_slices
from distinput.distribute.values import DistributedValues, Mirrored, PerReplica

__all__ = ["CrossDeviceOps", "OnDevices", "library_of", "mirrored_at"]


class OnDevices(PerReplica):
    """A `PerReplica` of arrays that are on devices.

    Args:
      values: the components in replica order.
      ops: the library of the arrays.
    """

    __slots__ = ("ops",)

    def __init__(self, values: Sequence[Any], ops: ArrayOps) -> None:
        super().__init__(values)
        self.ops = ops


def library_of(*values: DistributedValues) -> ArrayOps:
    """The library that adds these values: that of the devices where one of them is on devices, else NumPy."""
    return next((value.ops for value in values if isinstance(value, OnDevices)), NUMPY)


class CrossDeviceOps:
    """Decides how the values of the replicas of one process are added; give one to `MirroredStrategy`.

    Derive your own and define `reduce_implementation`; `Strategy.reduce`, `ReplicaContext.all_reduce` and the
    aggregation of variables call it. With an axis, `Strategy.reduce` first sums over the rows of each replica, and gives
    these sums to it. The rows of `IndexedSlices` are put one after the other, without it.

    >>> import distinput as di
    >>> import numpy as np
    >>> class Loud(di.distribute.ReductionToOneDevice):
    ...     def reduce_implementation(self, reduce_op, per_replica_value, destinations, options):
    ...         print(reduce_op.name, "of", len(per_replica_value.values))
    ...         return super().reduce_implementation(reduce_op, per_replica_value, destinations, options)
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=Loud())
    >>> int(strategy.reduce("SUM", di.distribute.PerReplica([np.int32(1), np.int32(2)]), axis=None))
    SUM of 2
    3

    Source: `tf.distribute.CrossDeviceOps`.
    """

    def reduce(
        self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: CommunicationOptions | None = None
    ) -> Mirrored:
        """The sum or mean of a value, a copy for each destination; calls `reduce_implementation` if there is something to add.

        Args:
          reduce_op: "SUM", "MEAN" or a `ReduceOp`.
          per_replica_value: a distributed value; anything else counts as the value of the only replica.
          destinations: who gets a copy: a device name or a list of them, or a distributed value, whose replicas do.
          options: handed on.

        Raises:
          ValueError: an unknown reduce_op, or no destinations.

        Source: `tf.distribute.CrossDeviceOps.reduce`.
        """
        op, value = ReduceOp.of(reduce_op), _distributed(per_replica_value)
        _copies(destinations)
        if has_slices(value.values):
            return _slices_at(op, value, destinations)
        if len(value.values) == 1:
            return mirrored_at(_copy(value), destinations)
        return self.reduce_implementation(op, value, destinations, options or CommunicationOptions())

    def batch_reduce(
        self,
        reduce_op: Any,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: CommunicationOptions | None = None,
    ) -> list[Mirrored]:
        """`reduce` of several values at once; calls `batch_reduce_implementation`.

        Args:
          reduce_op: "SUM", "MEAN" or a `ReduceOp`.
          value_destination_pairs: (value, destinations) for each value, as for `reduce`.
          options: handed on.

        Raises:
          ValueError: an unknown reduce_op, or no destinations.

        Source: `tf.distribute.CrossDeviceOps.batch_reduce`.
        """
        op = ReduceOp.of(reduce_op)
        pairs = [(_distributed(value), where) for value, where in value_destination_pairs]
        for _, where in pairs:
            _copies(where)
        dense = [(value, where) for value, where in pairs if not has_slices(value.values)]
        made = iter(self._batch(op, dense, options or CommunicationOptions()) if dense else ())
        return [_slices_at(op, *pair) if has_slices(pair[0].values) else next(made) for pair in pairs]

    def _batch(
        self, op: ReduceOp, pairs: Sequence[tuple[DistributedValues, Any]], options: CommunicationOptions
    ) -> list[Mirrored]:
        if all(len(value.values) == 1 for value, _ in pairs):
            return [mirrored_at(_copy(value), where) for value, where in pairs]
        return self.batch_reduce_implementation(op, pairs, options)

    def broadcast(self, tensor: Any, destinations: Any) -> Mirrored:
        """A copy of an array for each destination; calls `broadcast_implementation`.

        Raises:
          ValueError: no destinations.

        Source: `tf.distribute.CrossDeviceOps.broadcast`.
        """
        _copies(destinations)
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        per_replica_value: DistributedValues,
        destinations: Any,
        options: CommunicationOptions,
    ) -> Mirrored:
        """Add the components of one value; define this.

        Raises:
          NotImplementedError: a derived class does not define it.

        Source: `tf.distribute.CrossDeviceOps.reduce_implementation`.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: define reduce_implementation(reduce_op, per_replica_value, destinations, options)"
        )

    def batch_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        value_destination_pairs: Sequence[tuple[DistributedValues, Any]],
        options: CommunicationOptions,
    ) -> list[Mirrored]:
        """Add the components of several values; here one after the other, by `reduce_implementation`.

        Source: `tf.distribute.CrossDeviceOps.batch_reduce_implementation`, which every class has to define there.
        """
        return [
            self.reduce_implementation(reduce_op, value, where, options) for value, where in value_destination_pairs
        ]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Mirrored:
        """Copy one array for each destination.

        Source: `tf.distribute.CrossDeviceOps.broadcast_implementation`.
        """
        return mirrored_at(np.array(tensor)[()], destinations)


def mirrored_at(value: Any, destinations: Any) -> Mirrored:
    """One value for each destination. The destinations share an array: nobody may modify it.

    Raises:
      ValueError: no destinations.
    """
    return Mirrored([value] * _copies(destinations))


def _slices_at(op: ReduceOp, value: DistributedValues, destinations: Any) -> Mirrored:
    return mirrored_at(reduce_slices(Arithmetic(), op, value.values, None, call="reduce"), destinations)


def _copy(value: DistributedValues) -> Any:
    """A copy of the component of the only replica."""
    if isinstance(value, OnDevices):
        return value.ops.total(value.values, value.values[0].dtype)
    return np.array(value.values[0])[()]


def _copies(destinations: Any) -> int:
    """How many destinations there are."""
    if isinstance(destinations, DistributedValues):
        return len(destinations.values)
    if destinations is None or (isinstance(destinations, list | tuple | str) and not destinations):
        raise ValueError(
            f"destinations can not be empty: name a device, or give the distributed value whose replicas want the "
            f"result, got {destinations!r}"
        )
    return len(destinations) if isinstance(destinations, list | tuple) else 1


def _distributed(value: Any) -> DistributedValues:
    return value if isinstance(value, DistributedValues) else PerReplica([value])
