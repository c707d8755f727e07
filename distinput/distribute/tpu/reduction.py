# SPDX-License-Identifier: Apache-2.0
"""`reduce` and `gather` of values that are one array over all devices, computed there."""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from distinput.distribute.core.reducer import LocalReducer
from distinput.distribute.core.reduction import ReduceOp, check_axis
from distinput.distribute.tpu.device_values import DeviceValues
from distinput.distribute.tpu.mesh import ReplicaMesh, in_turn
from distinput.errors import UnimplementedError

__all__ = ["DeviceReducer", "gather_on_devices", "reduce_on_devices"]


class DeviceReducer(LocalReducer):
    """Computes with parts that stand for arrays while a function is traced; with arrays, as on the host.

    Args:
      devices: those of this process's replicas; None if there is no context to copy results for.
      alone: False if other processes have replicas too, whose parts are not at hand.
    """

    def __init__(self, devices: Any = None, *, alone: bool = True) -> None:
        super().__init__(devices)
        self.arrays = None  # what compiled programs return is added as one array; the rest is taken to the host
        self._alone = alone

    def reduce(self, op: ReduceOp, parts: Sequence[Any], axis: Any, **named: Any) -> Any:
        """The sum or mean over all replicas; see `Reducer.reduce`."""
        if not any(isinstance(part, jax.core.Tracer) for part in parts):
            self._check("reduce")
            return super().reduce(op, parts, axis, **named)
        arrays = [jnp.asarray(part) for part in parts]
        dtype, items = arrays[0].dtype, len(arrays)
        if axis is not None:
            axes = [check_axis(axis, array.ndim) for array in arrays]
            shapes = [[array.shape[a] for a in over] for array, over in zip(arrays, axes, strict=True)]
            items = sum([prod(sizes) for sizes in shapes])
        if op is ReduceOp.MEAN and jnp.issubdtype(dtype, jnp.integer):
            dtype = jnp.dtype(jnp.float64 if jax.config.jax_enable_x64 else jnp.float32)
        arrays = [array.astype(dtype) for array in arrays]
        if axis is not None:
            arrays = [array.sum(over, dtype=dtype) for array, over in zip(arrays, axes, strict=True)]
        total = sum(arrays[1:], arrays[0])
        return total if op is ReduceOp.SUM else total / jnp.asarray(items, dtype)

    def gather(self, parts: Sequence[Any], axis: Any, **named: Any) -> Any:
        """The values of all replicas, one after the other; see `Reducer.gather`."""
        if not any(isinstance(part, jax.core.Tracer) for part in parts):
            self._check("gather")
            return super().gather(parts, axis, **named)
        return jnp.concatenate([jnp.asarray(part) for part in parts], axis)

    def _check(self, what: str) -> None:
        """Check that all parts are at hand.

        Raises:
          UnimplementedError: other processes have some of them.
        """
        if not self._alone:
            raise UnimplementedError(
                f"{what}: this would need the values of replicas in other processes on the host; compute it inside `run`, with "
                f"all_{what}, or {what} floats that `run` returned along their first axis"
            )


def reduce_on_devices(mesh: ReplicaMesh, op: ReduceOp, value: Any, axis: Any) -> Any:
    """The sum or mean over all replicas, on every device; None for what the host has to compute.

    The host computes what has rows that do not count, and means of integers, which are float64 as everywhere.

    Args:
      mesh: the devices.
      op: SUM or MEAN.
      value: any value.
      axis: as in `Strategy.reduce`.
    """
    if not isinstance(value, DeviceValues) or not value.is_on(mesh) or value.rows is not None:
        return None
    dtype = value.whole.dtype
    if not jnp.issubdtype(dtype, jnp.number) or (op is ReduceOp.MEAN and jnp.issubdtype(dtype, jnp.integer)):
        return None
    axes = None if axis is None else check_axis(axis, len(value.part_shape))
    return in_turn(mesh, lambda: _reduction(mesh, op, axes, value.scalar)(value.whole))


@lru_cache(maxsize=256)
def _reduction(mesh: ReplicaMesh, op: ReduceOp, axes: tuple[int, ...] | None, scalar: bool) -> Any:
    replicas = mesh.replicas

    def total(whole: Any) -> Any:
        parts = whole if scalar else whole.reshape(replicas, whole.shape[0] // replicas, *whole.shape[1:])
        over = (0, *[axis + 1 for axis in axes or ()])
        summed = parts.sum(over, dtype=parts.dtype)
        if op is ReduceOp.SUM:
            return summed
        items = 1
        for axis in over:
            items *= parts.shape[axis]
        return summed / jnp.asarray(items, summed.dtype)

    return jax.jit(total, out_shardings=mesh.replicated)


def gather_on_devices(mesh: ReplicaMesh, value: Any, axis: Any) -> Any:
    """The components one after the other along the first axis, as one array over all devices; None for other values."""
    if not isinstance(value, DeviceValues) or not value.is_on(mesh) or value.rows is not None or value.scalar:
        return None
    return value.whole if axis in (0, -value.whole.ndim) else None
