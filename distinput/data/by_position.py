# SPDX-License-Identifier: Apache-2.0
"""The keys of `dataset[key]` as positions."""

from operator import index
from typing import Any, SupportsIndex

import numpy as np

from distinput.columns.column import Ints
from distinput.plan.node import INFINITE

__all__ = ["is_integer", "row_of", "rows_of"]


def is_integer(key: Any) -> bool:
    """Whether a key stands for one element: an integer of any kind, or an array [] of one.

    >>> is_integer(3), is_integer(np.array(3)), is_integer(True), is_integer([3])
    (True, True, False, False)
    """
    if type(key) is int:
        return True
    return hasattr(type(key), "__index__") and getattr(key, "ndim", 0) == 0 and not isinstance(key, bool | np.bool_)


def row_of(key: SupportsIndex, size: int) -> int:
    """The position that an integer stands for, from 0 on.

    Args:
      key: the integer.
      size: how many elements there are, or INFINITE.

    Raises:
      IndexError: there is no such element.
      TypeError: it is no integer, or counts from the end of an infinite dataset.
    """
    row = index(key)
    if size == INFINITE:
        _refuse_end(row < 0)
    elif not -size <= row < size:
        raise IndexError(f"dataset[key]: there is no element {row} in a dataset of {size}")
    return row + size if row < 0 else row


def rows_of(key: Any, size: int) -> Ints:
    """The positions that a key stands for, from 0 on.

    Args:
      key: a slice, or a sequence of integers.
      size: how many elements there are, or INFINITE.

    Raises:
      IndexError: there is no such element.
      TypeError: it is something else, or counts from the end of an infinite dataset.

    >>> rows_of(slice(-2, None), 5), rows_of([4, -5], 5)
    (array([3, 4]), array([4, 0]))
    """
    if isinstance(key, slice):
        return _sliced(key, size)
    rows = np.asarray(key) if isinstance(key, np.ndarray | list | tuple | range) else None
    if rows is None or (rows.dtype.kind not in "iu" and rows.size) or rows.ndim != 1:
        raise TypeError(
            f"dataset[key]: the key must be an integer, a slice, or a list or array [n] of integers, got {_short(key)}; use "
            "np.flatnonzero for a mask"
        )
    rows = rows.astype(np.int64)
    if size == INFINITE:
        _refuse_end(bool((rows < 0).any()))
        return rows
    wrong = np.flatnonzero((rows < -size) | (rows >= size))
    if len(wrong):
        raise IndexError(f"dataset[key]: there is no element {rows[wrong[0]]} in a dataset of {size}")
    return np.where(rows < 0, rows + size, rows)


def _sliced(key: slice, size: int) -> Ints:
    if size != INFINITE:
        return np.arange(*key.indices(size))
    first, stop, step = [None if part is None else index(part) for part in (key.start, key.stop, key.step)]
    _refuse_end(stop is None or stop < 0 or (first or 0) < 0 or (step or 1) < 0)
    return np.arange(first or 0, stop, step or 1)


def _refuse_end(counts_from_it: bool) -> None:
    if counts_from_it:
        raise TypeError("dataset[key]: the dataset is infinite and has no end to count from; use positions from 0 on")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
