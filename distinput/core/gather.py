# SPDX-License-Identifier: Apache-2.0
"""Rows of an array in any order, in memory that is used again."""

from typing import Any

import numpy as np

from distinput.core.buffers import empty_like_rows
from distinput.kernels.gather import gather_rows

__all__ = ["check_rows", "take_rows"]

_WIDE_BYTES = 64
"""A row from which on asking memory ahead of time is quicker than NumPy's own loop."""

Array = np.ndarray[Any, np.dtype[Any]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


def check_rows(rows: Ints, count: int) -> None:
    """Refuse rows that are not there.

    Raises:
      IndexError: one is not from 0 to before `count`.
    """
    if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= count):
        raise IndexError(f"rows must be from 0 to {count - 1}, got {rows.tolist()!s:.80}")


def take_rows(array: Array, rows: Ints) -> Array:
    """[n, ...] -> [len(rows), ...]: row rows[i] of a C-contiguous array, each from 0 to before n.

    Raises:
      IndexError: a row is not there.

    >>> take_rows(np.arange(6).reshape(3, 2), np.array([2, 0])).tolist()
    [[4, 5], [0, 1]]
    """
    check_rows(rows, len(array))
    out = empty_like_rows(len(rows), array)
    width = out.nbytes // len(rows) if len(rows) else 0
    if width < _WIDE_BYTES or array.dtype.hasobject:
        return array.take(rows, 0, out=out, mode="clip") if len(array) else out  # raise would copy once more
    gather_rows(array.reshape(-1).view(np.uint8), rows * width, width, out.reshape(-1).view(np.uint8))
    return out
