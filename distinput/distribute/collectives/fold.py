# SPDX-License-Identifier: Apache-2.0
"""Reductions in rank order by NumPy: the reference for `all_reduce` on every engine."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from distinput.distribute.collectives.channel import Array

__all__ = ["OPS", "check_reducible", "fold", "native_view"]

OPS: dict[str, np.ufunc] = {"max": np.maximum, "min": np.minimum, "prod": np.multiply, "sum": np.add}


def check_reducible(dtype: np.dtype[np.generic], op: str) -> None:
    """Raise if `op` is not defined for a dtype.

    Raises:
      ValueError: an unknown operation.
      TypeError: not numbers, or a sum or product of bools.
    """
    if op not in OPS:
        raise ValueError(f"all_reduce: op must be one of {', '.join(sorted(OPS))}, got {op!r}")
    if dtype.kind == "b" and op in ("prod", "sum"):
        raise TypeError(f"all_reduce: op {op!r} needs numbers, got bool; use 'min' (all), 'max' (any), or integers")
    if not _has_loop(dtype, op):
        raise TypeError(f"all_reduce: op {op!r} needs numbers, got {dtype}; use all_gather")


@cache
def _has_loop(dtype: np.dtype[np.generic], op: str) -> bool:
    if dtype.kind not in "biufcV" or dtype.names is not None:
        return False
    one = np.zeros(1, dtype)
    try:
        return bool(OPS[op](one, one).dtype == dtype)
    except TypeError:
        return False


def fold(parts: Sequence[Array], op: str) -> Array:
    """((parts[0] op parts[1]) op parts[2]) ..., element by element, in a fresh array; integers wrap around.

    Args:
      parts: arrays of one shape and dtype, in rank order.
      op: a key of `OPS`.

    >>> fold([np.array([250, 1], "u1"), np.array([10, 2], "u1")], "sum")
    array([4, 3], dtype=uint8)
    """
    shape = parts[0].shape
    result = (
        parts[0].reshape(-1).copy()
    )  # at least one axis, since NumPy scalars warn when they wrap around and arrays do not
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            OPS[op](result, part.reshape(-1), out=result)
    return result.reshape(shape)


def native_view(values: Array, op: str) -> Array:
    """The same bytes as a dtype that more engines support, if reducing that gives the same bytes.

    Sums of unsigned integers are those of signed ones; sums of complex numbers are those of their two parts.

    >>> native_view(np.array([1, 2], "u4"), "sum").dtype
    dtype('int32')
    """
    if values.dtype.kind == "u" and op in ("prod", "sum"):
        return values.view(f"i{values.dtype.itemsize}")
    if values.dtype.kind == "c" and op == "sum":
        return values.view(f"f{values.dtype.itemsize // 2}")
    return values
