# SPDX-License-Identifier: Apache-2.0
"""The orders in which the values of replicas are added: floats round differently in each of them.

Pure functions from n arrays of one shape and dtype to their sum; `reduced` makes sums and means of them. The arrays may be on
several devices; the sum is where the first one is.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from distinput.distribute.devices.arrays import NUMPY, ArrayOps
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import check_numbers

__all__ = ["Add", "Array", "in_halves", "in_replica_order", "in_ring", "packed", "reduced"]

Array: TypeAlias = Any
"""An array of NumPy, or of the library of the devices."""
Add: TypeAlias = Callable[[Sequence[Array], ArrayOps], Array]
"""The sum of n arrays `[...]` of one dtype, which it keeps, and of one library."""


def in_replica_order(parts: Sequence[Array], ops: ArrayOps = NUMPY) -> Array:
    """((0 + 1) + 2) + ...

    >>> in_replica_order([np.float32([1]), np.float32([2]), np.float32([3])])
    array([6.], dtype=float32)
    """
    return ops.total(parts, parts[0].dtype)


def in_halves(parts: Sequence[Array], ops: ArrayOps = NUMPY) -> Array:
    """The replicas of the first half among themselves, those of the second, and then the two sums: (0 + 1) + (2 + 3).

    The second half is the larger one if the number of replicas is odd.
    """
    half = len(parts) // 2
    if not half:
        return in_replica_order(parts, ops)
    return in_replica_order([in_replica_order(parts[:half], ops), in_replica_order(parts[half:], ops)], ops)


def in_ring(parts: Sequence[Array], ops: ArrayOps = NUMPY) -> Array:
    """Cut every array into n chunks; chunk c begins at replica c and goes round: c, c + 1, ..., n - 1, 0, ..., c - 1.

    The chunks are those of `numpy.array_split` of the flat array.
    """
    n = len(parts)
    cut = [_split(ops.array(part).reshape(-1), n) for part in parts]
    chunks = [in_replica_order([cut[(c + i) % n][c] for i in range(n)], ops) for c in range(n)]
    return ops.concatenate(chunks, 0).reshape(np.shape(parts[0]))


def _split(flat: Array, n: int) -> list[Array]:
    """The chunks of `numpy.array_split`, of an array of any library."""
    small, larger = divmod(len(flat), n)
    ends = [0, *[(i + 1) * small + min(i + 1, larger) for i in range(n)]]
    return [flat[begin:end] for begin, end in pairwise(ends)]


def reduced(op: ReduceOp, parts: Sequence[Any], add: Add, ops: ArrayOps = NUMPY) -> Any:
    """The sum or mean of the values of n replicas, added by `add`. SUM keeps the dtype; MEAN of integers is float64.

    Raises:
      InvalidArgumentError: shapes or dtypes differ, or a part is not numeric.
    """
    arrays = check_numbers(parts, op, ops)
    first = arrays[0].dtype
    if op is ReduceOp.SUM or len(arrays) == 1:
        return ops.value(add(arrays, ops))
    wide = ops.wide(first)
    if wide != first:
        arrays = [ops.sum(array, (), wide) for array in arrays]
    return ops.mean(add(arrays, ops), len(arrays), first)


def packed(op: ReduceOp, values: Sequence[Sequence[Any]], add: Add, packs: int, ops: ArrayOps = NUMPY) -> list[Any]:
    """As `reduced` of each of several values, laid end to end and cut into `packs` packs that are added one by one.

    Args:
      op: SUM or MEAN.
      values: for each value the arrays of all replicas; values of one dtype share packs.
      add: adds one pack.
      packs: how many packs; 0 adds each value by itself.
      ops: the library of the arrays.
    """
    if not packs:
        return [reduced(op, parts, add, ops) for parts in values]
    checked = [check_numbers(parts, op, ops) for parts in values]
    results: list[Any] = [None] * len(values)
    for dtype in dict.fromkeys(arrays[0].dtype for arrays in checked):
        mine = [i for i, arrays in enumerate(checked) if arrays[0].dtype == dtype]
        replicas = range(len(checked[mine[0]]))
        flat = [ops.concatenate([checked[i][replica].reshape(-1) for i in mine], 0) for replica in replicas]
        pieces = [_split(whole, packs) for whole in flat]
        total = ops.concatenate([reduced(op, [piece[p] for piece in pieces], add, ops) for p in range(packs)], 0)
        at = 0
        for i in mine:
            shape = checked[i][0].shape
            results[i] = ops.value(total[at : at + prod(shape)].reshape(shape))
            at += prod(shape)
    return results
