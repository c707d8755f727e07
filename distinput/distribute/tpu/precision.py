# SPDX-License-Identifier: Apache-2.0
"""Host arrays as JAX holds them: without `jax_enable_x64` it has no 64-bit numbers, and none may be lost silently."""

import warnings
from typing import Any

import jax
import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.values.buffers import copy_of

__all__ = ["as_device_array"]

_NARROW = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
_CURE = "call jax.config.update('jax_enable_x64', True) first, or convert the values with astype"


class _Warned:
    """Whether the warning about rounded floats has been given."""

    floats = False


def as_device_array(value: Any, what: str, who: str = "run") -> Any:
    """A number or NumPy array with a dtype that JAX keeps.

    Where JAX has no 64-bit numbers, integers of 64 bits become integers of 32 bits, which must be able to hold them, and
    floats are rounded, with a warning the first time.

    Args:
      value: a Python number, a NumPy scalar or a NumPy array.
      what: what the value is, for messages.
      who: what puts it on a device, for messages.

    Raises:
      InvalidArgumentError: a number that 32 bits cannot hold, or a value that is no number.

    >>> from distinput.distribute.tpu.precision import as_device_array
    >>> as_device_array(np.array([1, 2**31 - 1]), "x").dtype
    dtype('int32')
    """
    array = _plain(value)
    if array.dtype.kind not in "biufc" and not _is_extended(array.dtype):
        kind = "text" if array.dtype.kind in "SUO" else str(array.dtype)
        raise InvalidArgumentError(
            f"{who}: {what} must be numbers to be put on a device, got {kind}; convert it in the dataset"
            + (", or make the strategy with compile=False" if who == "run" else "")
        )
    narrow = _NARROW.get(array.dtype)
    if narrow is None or jax.config.jax_enable_x64:
        return array
    if array.dtype.kind in "iu":
        return _narrowed_integers(array, narrow, f"{who}: {what}")
    with np.errstate(over="ignore"):
        made = copy_of(array, narrow)
    if not np.array_equal(np.isfinite(made), np.isfinite(array)):
        raise InvalidArgumentError(f"{who}: {what} has {array.dtype} numbers too large for {narrow}; {_CURE}")
    if not _Warned.floats and not np.array_equal(made, array, equal_nan=True):
        _Warned.floats = True
        warnings.warn(
            f"{what} is {array.dtype} and is rounded to {narrow}, because JAX computes in 32 bits here; {_CURE}. This is "
            "said once",
            stacklevel=2,
        )
    return made


def _plain(value: Any) -> Any:
    """The value as an array; Python numbers become int32 or float32, as everywhere."""
    if isinstance(value, bool):
        return np.asarray(value)
    if isinstance(value, int):
        return np.asarray(value, np.int32 if -(2**31) <= value < 2**31 else np.int64)
    if isinstance(value, float):
        return np.asarray(value, np.float32)
    if isinstance(value, complex):
        return np.asarray(value, np.complex64)
    return np.asarray(value)


def _is_extended(dtype: np.dtype[Any]) -> bool:
    """True for the number types that come with JAX, such as bfloat16."""
    return (
        dtype.kind == "V" and dtype.names is None and dtype.subdtype is None and jax.dtypes.issubdtype(dtype, np.number)
    )


def _narrowed_integers(array: Any, narrow: np.dtype[Any], what: str) -> Any:
    if array.size:
        low, high, limits = array.min(), array.max(), np.iinfo(narrow)
        if low < limits.min or high > limits.max:
            worst = low if low < limits.min else high
            raise InvalidArgumentError(
                f"{what} is {array.dtype} and holds {worst}, which {narrow} cannot hold; {_CURE}"
            )
    return copy_of(array, narrow)
