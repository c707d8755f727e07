# SPDX-License-Identifier: Apache-2.0
"""Rows in any order: of an array, in memory that is used again; and of several blocks, put in order."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.buffers import empty
from distinput.core.column import Column, Dense, Ints, concat_columns
from distinput.kernels.gather import gather_rows

__all__ = ["check_rows", "put_in_order", "take_rows"]

_WIDE_BYTES = 64
"""A row from which on asking memory ahead of time is quicker than NumPy's own loop."""

_BYTE = np.dtype(np.uint8)
Array = np.ndarray[Any, np.dtype[Any]]


def check_rows(rows: Ints, count: int) -> None:
    """Refuse rows that are not there.

    Raises:
      IndexError: one is not from 0 to before `count`.
    """
    if len(rows) and int(rows.view(np.uint64).max()) >= count:  # negative ones are huge without their sign
        raise IndexError(f"rows must be from 0 to {count - 1}, got {rows.tolist()!s:.80}")


def take_rows(array: Array, rows: Ints) -> Array:
    """[n, ...] -> [len(rows), ...]: row rows[i] of a C-contiguous array, each from 0 to before n.

    Raises:
      IndexError: a row is not there.

    >>> take_rows(np.arange(6).reshape(3, 2), np.array([2, 0])).tolist()
    [[4, 5], [0, 1]]
    """
    count = len(rows)
    check_rows(rows, len(array))
    out = empty((count, *array.shape[1:]), array.dtype)
    width = out.nbytes // count if count else 0
    if width < _WIDE_BYTES:
        return array.take(rows, 0, out=out, mode="clip") if count else out  # "raise", the default, would copy once more
    gather_rows(_bytes_of(array), rows * width, width, _bytes_of(out))
    return out


def _bytes_of(array: Array) -> Array:
    return array.reshape(-1).view(_BYTE)


def put_in_order(blocks: Sequence[Block], places: Sequence[Ints]) -> Block:
    """Elements of several blocks as one: element i of blocks[k] becomes element places[k][i].

    Args:
      blocks: at least one, all of one structure.
      places: for each block as many as it has elements; together 0, 1, 2, ... in any order.

    >>> from distinput.core.nest import LEAF
    >>> blocks = [Block.of_elements(LEAF, [1, 2]), Block.of_elements(LEAF, [3])]
    >>> list(put_in_order(blocks, [np.array([2, 0]), np.array([1])]).elements())
    [np.int32(2), np.int32(3), np.int32(1)]
    """
    if len(blocks) == 1 and (np.diff(places[0]) == 1).all():
        return blocks[0]
    size = sum(block.size for block in blocks)
    columns = [_in_order(parts, places, size) for parts in zip(*[block.columns for block in blocks], strict=True)]
    return Block(blocks[0].structure, columns, size)


def _in_order(parts: Sequence[Column], places: Sequence[Ints], size: int) -> Column:
    arrays = [part.array for part in parts if isinstance(part, Dense)]
    if len(arrays) == len(parts) and len({(array.dtype, array.shape[1:]) for array in arrays}) == 1:
        out = empty((size, *arrays[0].shape[1:]), arrays[0].dtype)
        for array, place in zip(arrays, places, strict=True):
            out[place] = array
        return Dense(out)
    back = np.empty(size, np.int64)
    back[np.concatenate(places)] = np.arange(size)
    return concat_columns(parts).take(back)
