# SPDX-License-Identifier: Apache-2.0
"""Arithmetic with arrays of JAX, on the devices where they are: see `devices.arrays`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from distinput.errors import InvalidArgumentError

__all__ = ["JAX", "JaxArrays", "can_hold", "fitting"]

_NARROW = {np.dtype(np.int64): np.dtype(np.int32), np.dtype(np.uint64): np.dtype(np.uint32)}


@dataclass(frozen=True, slots=True)
class JaxArrays:
    """Arrays of JAX. Each method is one compiled program, so it costs one dispatch."""

    library: ClassVar[str] = "jax"
    """See `ArrayOps.library`."""

    @staticmethod
    def owns(value: Any) -> bool:
        """True for a `jax.Array` that is not traced."""
        return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)

    @staticmethod
    def array(value: Any) -> Any:
        """See `ArrayOps.array`."""
        if isinstance(value, jax.Array):
            return value
        return jnp.asarray(fitting(value)) if can_hold(value) else np.asarray(value)

    @staticmethod
    def value(array: Any) -> Any:
        """See `ArrayOps.value`."""
        return array

    @staticmethod
    def kind(dtype: Any) -> str:
        """See `ArrayOps.kind`."""
        kind: str = dtype.kind
        if kind != "V":
            return kind
        return "f" if jnp.issubdtype(dtype, jnp.floating) else "i" if jnp.issubdtype(dtype, jnp.signedinteger) else "u"

    @staticmethod
    def name(dtype: Any) -> str:
        """See `ArrayOps.name`."""
        return str(dtype)

    @staticmethod
    def dtype(name: str) -> Any:
        """See `ArrayOps.dtype`."""
        return jnp.dtype(name)

    def wide(self, dtype: Any) -> Any:
        """64 bits for integers; where JAX has none, its float, which loses digits but does not wrap around."""
        if self.kind(dtype) not in "iu":
            return dtype
        if not jax.config.jax_enable_x64:
            return _FLOAT32
        return np.dtype(np.int64 if self.kind(dtype) == "i" else np.uint64)

    @staticmethod
    def sum(array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
        """See `ArrayOps.sum`."""
        return _sum(_on(array, array.device), axes, dtype)

    def total(self, arrays: Sequence[Any], dtype: Any) -> Any:
        """See `ArrayOps.total`."""
        return _total(self.together(arrays), dtype)

    def mean(self, total: Any, count: int, dtype: Any) -> Any:
        """See `ArrayOps.mean`."""
        wanted = dtype
        if self.kind(dtype) in "iu":
            wanted = np.dtype(np.float64 if jax.config.jax_enable_x64 else np.float32)
        # Small floats cannot hold large counts, so the quotient is computed in a larger one.
        within = np.dtype(np.float32) if wanted.itemsize < 4 else wanted
        return _quotient(total, jax.device_put(np.asarray(count, within), total.device), wanted)

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        """See `ArrayOps.concatenate`."""
        return _concatenated(self.together(arrays), axis)

    @staticmethod
    def together(arrays: Sequence[Any]) -> Sequence[Any]:
        """See `ArrayOps.together`."""
        device = arrays[0].device
        return tuple([_on(array, device) for array in arrays])

    @staticmethod
    def move(array: Any, device: Any) -> Any:
        """See `ArrayOps.move`."""
        return _on(array, device)

    @staticmethod
    def copy(array: Any, device: Any) -> Any:
        """The array on the device; nobody can write to it."""
        return jax.device_put(array, device)

    @staticmethod
    def zeros(shape: Sequence[int], dtype: Any, device: Any) -> Any:
        """See `ArrayOps.zeros`."""
        return jnp.zeros(tuple(shape), dtype, device=device)

    @staticmethod
    def take(array: Any, rows: Any) -> Any:
        """See `ArrayOps.take`."""
        return jnp.take(array, jax.device_put(rows.astype(np.int32), array.device), axis=0)

    @staticmethod
    def to_host(array: Any) -> Any:
        """See `ArrayOps.to_host`."""
        return np.asarray(array)


_FLOAT32 = np.dtype(np.float32)


def _on(array: Any, device: Any) -> Any:
    """The array on a device, and bound to it: programs compute arrays that are not bound on the current device."""
    return array if array.committed and array.device == device else jax.device_put(array, device)


@partial(jax.jit, static_argnums=(1, 2))
def _sum(array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
    return jnp.sum(array, axis=axes, dtype=dtype)


@partial(jax.jit, static_argnums=1)
def _total(arrays: Sequence[Any], dtype: Any) -> Any:
    total = arrays[0].astype(dtype)
    for array in arrays[1:]:
        total = total + array.astype(dtype)
    return total


@partial(jax.jit, static_argnums=2)
def _quotient(total: Any, count: Any, dtype: Any) -> Any:
    # By one number for all, JAX would divide by multiplying with its reciprocal, which rounds twice.
    counts = jax.lax.optimization_barrier(jnp.broadcast_to(count, total.shape))
    return (total.astype(count.dtype) / counts).astype(dtype)


@partial(jax.jit, static_argnums=1)
def _concatenated(arrays: Sequence[Any], axis: int) -> Any:
    return jnp.concatenate(arrays, axis=axis)


JAX = JaxArrays()
"""The arrays of JAX."""


def can_hold(value: Any) -> bool:
    """True for numbers and arrays of them, False for text and other objects, which a device cannot hold."""
    if isinstance(value, jax.Array):
        return True
    dtype = getattr(value, "dtype", None)
    if not isinstance(value, np.ndarray | np.generic) or not isinstance(dtype, np.dtype):
        return isinstance(value, bool | int | float | complex)
    return dtype.kind in "biufc" or dtype.isbuiltin == 2  # those of packages, such as bfloat16


def fitting(value: Any) -> Any:
    """The value itself, if JAX can hold its integers in the dtype that it would give them.

    Raises:
      InvalidArgumentError: it cannot.
    """
    dtype = getattr(value, "dtype", None)
    if dtype not in _NARROW or jax.config.jax_enable_x64 or isinstance(value, jax.Array) or not np.size(value):
        return value
    narrow = np.iinfo(_NARROW[dtype])
    for extreme in (np.min(value), np.max(value)):
        if not narrow.min <= extreme <= narrow.max:
            raise InvalidArgumentError(
                f"the value is {dtype} and holds {extreme}, which {narrow.dtype} cannot hold; call "
                "jax.config.update('jax_enable_x64', True) first, or convert the values with astype"
            )
    return value
