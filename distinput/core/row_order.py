# SPDX-License-Identifier: Apache-2.0
"""The order of rows: checks of row numbers, and rows of several blocks put in order."""

from collections.abc import Sequence

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.buffers import empty
from distinput.core.column import Column, Ints
from distinput.core.dense import Dense
from distinput.core.picked import in_order
from distinput.core.regroup import concat_columns

__all__ = ["check_rows", "put_in_order"]


def check_rows(rows: Ints, count: int) -> None:
    """Refuse row numbers that do not exist.

    Raises:
      IndexError: one is negative, or not less than `count`.
    """
    if len(rows) and int(rows.view(np.uint64).max()) >= count:  # negative ones are huge without their sign
        raise IndexError(f"rows must be from 0 to {count - 1}, got {rows.tolist()!s:.80}")


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
    columns = [
        _in_order(parts, places, size) for parts in zip(*[block.columnar().columns for block in blocks], strict=True)
    ]
    return ColumnBlock(blocks[0].structure, columns, size)


def _in_order(parts: Sequence[Column], places: Sequence[Ints], size: int) -> Column:
    picked = in_order(parts, places, size)
    if picked is not None:
        return picked
    parts = [part.materialize() for part in parts]
    arrays = [part.array for part in parts if isinstance(part, Dense)]
    if len(arrays) == len(parts) and len({(array.dtype, array.shape[1:]) for array in arrays}) == 1:
        out = empty((size, *arrays[0].shape[1:]), arrays[0].dtype)
        for array, place in zip(arrays, places, strict=True):
            out[place] = array
        return Dense(out)
    back = np.empty(size, np.int64)
    back[np.concatenate(places)] = np.arange(size)
    return concat_columns(parts).take(back)
