# SPDX-License-Identifier: Apache-2.0
"""One device adds the values of all replicas."""

from collections.abc import Callable, Sequence
from typing import Any

from distinput.distribute.communication import CommunicationOptions
from distinput.distribute.cross_device.cross_device_ops import CrossDeviceOps, library_of, mirrored_at
from distinput.distribute.cross_device.orders import in_replica_order, reduced
from distinput.distribute.device_name import device_name
from distinput.distribute.devices.arrays import ArrayOps
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import check_numbers
from distinput.distribute.values import DistributedValues, Mirrored

__all__ = ["ReductionToOneDevice"]


class ReductionToOneDevice(CrossDeviceOps):
    """Adds in replica order, ((0 + 1) + 2) + ..., which is also what strategies do without `cross_device_ops`.

    Args:
      reduce_to_device: the name of the device that adds; None for the first destination. Names are labels only.
      accumulation_fn: called with the list of the replicas' values, `[...] * n`, and returns their sum, `[...]`; None
        for the sum in replica order. A mean divides what it returns by n.

    Raises:
      ValueError: `reduce_to_device` is not the name of a device.
      TypeError: `accumulation_fn` cannot be called.

    >>> import distinput as di
    >>> ops = di.distribute.ReductionToOneDevice(accumulation_fn=lambda values: max(values))
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
    >>> strategy.reduce("SUM", di.distribute.PerReplica([1.0, 3.0]), axis=None)
    np.float64(3.0)

    Source: `tf.distribute.ReductionToOneDevice`.
    """

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[[Sequence[Any]], Any] | None = None
    ) -> None:
        self.reduce_to_device = None if reduce_to_device is None else device_name(reduce_to_device)
        if accumulation_fn is not None and not callable(accumulation_fn):
            raise TypeError(
                f"ReductionToOneDevice: accumulation_fn must be a function of a list of values, got {accumulation_fn!r}"
            )
        self.accumulation_fn = accumulation_fn

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        per_replica_value: DistributedValues,
        destinations: Any,
        options: CommunicationOptions,
    ) -> Mirrored:
        made = self._reduced(reduce_op, per_replica_value.values, library_of(per_replica_value))
        return mirrored_at(made, destinations)

    def _reduced(self, op: ReduceOp, parts: Sequence[Any], ops: ArrayOps) -> Any:
        if self.accumulation_fn is None:
            return reduced(op, parts, in_replica_order, ops)
        arrays = check_numbers(parts, op, ops)
        total = ops.array(self.accumulation_fn([ops.value(array) for array in ops.together(arrays)]))
        return ops.value(total) if op is ReduceOp.SUM else ops.mean(total, len(arrays), arrays[0].dtype)
