# SPDX-License-Identifier: Apache-2.0
"""How many parts a variable is split into, by its shape and dtype: the names of `tf.distribute.experimental.partitioners`.

A partitioner is called with a shape and a dtype and returns the number of parts along each axis. Variables are split along
their first axis only.
"""

from collections.abc import Sequence
from math import ceil, floor, prod
from typing import Any

import numpy as np

from distinput.values.leaves import as_dtype

__all__ = ["FixedShardsPartitioner", "MaxSizePartitioner", "MinSizePartitioner", "Partitioner"]


class Partitioner:
    """The base class of partitioners; any function of a shape and a dtype will do as well.

    Source: `tf.distribute.experimental.partitioners.Partitioner`.
    """

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """The number of parts along each axis.

        Args:
          shape: the shape of the variable.
          dtype: its dtype.
          axis: the axis to split along.
        """
        raise NotImplementedError(f"{type(self).__name__}: define __call__(shape, dtype, axis=0)")


class FixedShardsPartitioner(Partitioner):
    """Split into a fixed number of parts, but not into more than there are rows.

    Args:
      num_shards: how many.

    >>> import distinput as di
    >>> di.distribute.experimental.partitioners.FixedShardsPartitioner(num_shards=2)([10, 3], "float32")
    [2, 1]

    Source: `tf.distribute.experimental.partitioners.FixedShardsPartitioner`.
    """

    def __init__(self, num_shards: int) -> None:
        self._num_shards = num_shards

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """The number of parts along each axis; see `Partitioner`."""
        return _along(shape, axis, min(self._num_shards, shape[axis]))


class MinSizePartitioner(Partitioner):
    """Split into parts of about `min_shard_bytes`: as many as there are such portions, the last one perhaps smaller.

    Args:
      min_shard_bytes: bytes of a part.
      max_shards: the largest number of parts.
      bytes_per_string: how long a string is, for variables of strings.

    Raises:
      ValueError: a number is not positive.

    >>> import distinput as di
    >>> di.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=4, max_shards=2)([6, 1], "float32")
    [2, 1]

    Source: `tf.distribute.experimental.partitioners.MinSizePartitioner`.
    """

    def __init__(self, min_shard_bytes: int = 256 << 10, max_shards: int = 1, bytes_per_string: int = 16) -> None:
        _positive(min_shard_bytes=min_shard_bytes, max_shards=max_shards, bytes_per_string=bytes_per_string)
        self._min_shard_bytes, self._max_shards, self._bytes_per_string = min_shard_bytes, max_shards, bytes_per_string

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """The number of parts along each axis; see `Partitioner`."""
        if axis >= len(shape):
            raise ValueError(f"Cannot partition variable along axis {axis} when shape is only {list(shape)}")
        portions = prod(shape) * _item_bytes(dtype, self._bytes_per_string) / self._min_shard_bytes
        return _along(shape, axis, max(1, min(shape[axis], self._max_shards, ceil(portions))))


class MaxSizePartitioner(Partitioner):
    """Split into as few parts as possible, each with as many whole rows as `max_shard_bytes` hold, and at least one.

    Args:
      max_shard_bytes: the largest number of bytes of a part.
      max_shards: the largest number of parts, which may make parts larger; None for no limit.
      bytes_per_string: how long a string is, for variables of strings.

    Raises:
      ValueError: a number is not positive.

    >>> import distinput as di
    >>> di.distribute.experimental.partitioners.MaxSizePartitioner(max_shard_bytes=4)([6, 1], "float32")
    [6, 1]

    Source: `tf.distribute.experimental.partitioners.MaxSizePartitioner`.
    """

    def __init__(self, max_shard_bytes: int, max_shards: int | None = None, bytes_per_string: int = 16) -> None:
        _positive(max_shard_bytes=max_shard_bytes, max_shards=max_shards or 1, bytes_per_string=bytes_per_string)
        self._max_shard_bytes, self._max_shards, self._bytes_per_string = max_shard_bytes, max_shards, bytes_per_string

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """The number of parts along each axis; see `Partitioner`."""
        rows = shape[axis]
        if not rows:
            return _along(shape, axis, 1)
        row_bytes = prod(shape) / rows * _item_bytes(dtype, self._bytes_per_string)
        rows_of_a_part = max(1, floor(self._max_shard_bytes / row_bytes)) if row_bytes else rows
        parts = ceil(rows / rows_of_a_part)
        return _along(shape, axis, min(self._max_shards, parts) if self._max_shards else parts)


def _along(shape: Sequence[int], axis: int, parts: int) -> list[int]:
    found = [1] * len(shape)
    found[axis] = parts
    return found


def _item_bytes(dtype: Any, bytes_per_string: int) -> int:
    found: np.dtype[Any] = as_dtype(dtype)
    return bytes_per_string if found.kind in "OSU" else found.itemsize


def _positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"Argument `{name}` must be positive. Received: {number}")
