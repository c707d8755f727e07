# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of a strategy that was given `cross_device_ops`."""

from collections.abc import Sequence
from itertools import compress
from typing import Any

from distinput.distribute.arithmetic import Arithmetic
from distinput.distribute.communication import CommunicationOptions
from distinput.distribute.cross_device.cross_device_ops import CrossDeviceOps, OnDevices
from distinput.distribute.devices.arrays import NUMPY, ArrayOps
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import mean_of_rows, row_sums
from distinput.distribute.values import DistributedValues, PerReplica

__all__ = ["OpsArithmetic"]


class OpsArithmetic(Arithmetic):
    """`reduce` and its counterparts by a `CrossDeviceOps`; exact sums and concatenations stay as they are.

    Args:
      ops: adds the values of replicas.
      devices: those of this process's replicas.
    """

    def __init__(self, ops: CrossDeviceOps, devices: Any) -> None:
        super().__init__(None, devices)
        self.ops = ops

    def reduce(
        self,
        op: ReduceOp,
        parts: Sequence[Any],
        axis: Any,
        *,
        deterministic: bool = False,
        present: Sequence[bool] | None = None,
        call: str = "reduce",
        name: str = "",
    ) -> Any:
        if deterministic:
            return super().reduce(op, parts, axis, deterministic=True, present=present, call=call, name=name)
        kept = parts if present is None else tuple(compress(parts, present))
        ops = self._library(kept)
        if ops is None:
            return self._added(op, kept, axis, NUMPY)
        return ops.move(self._added(op, [ops.array(part) for part in kept], axis, ops), self._devices.devices[0])

    def _added(self, op: ReduceOp, parts: Sequence[Any], axis: Any, ops: ArrayOps) -> Any:
        if axis is None:
            return self._reduced(op, parts)
        sums, counts, dtype = row_sums(op, parts, axis, ops)
        total = self._reduced(ReduceOp.SUM, sums)
        return total if op is ReduceOp.SUM else mean_of_rows(total, sum(counts), dtype, ops)

    def reduce_each(
        self,
        op: ReduceOp,
        given: Sequence[tuple[Sequence[Any], str]],
        *,
        name: str = "",
        options: CommunicationOptions | None = None,
    ) -> list[Any]:
        values = [self._value(parts) for parts, _ in given]
        return [_local(made) for made in self.ops.batch_reduce(op, [(value, value) for value in values], options)]

    def _reduced(self, op: ReduceOp, parts: Sequence[Any]) -> Any:
        value = self._value(parts)
        return _local(self.ops.reduce(op, value, value))

    def _value(self, parts: Sequence[Any]) -> PerReplica:
        ops = self._library(parts)
        return PerReplica(parts) if ops is None else OnDevices(parts, ops)


def _local(made: Any) -> Any:
    """The copy of this process; users' classes may return it bare."""
    return made.values[0] if isinstance(made, DistributedValues) else made
