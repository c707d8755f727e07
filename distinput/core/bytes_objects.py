# SPDX-License-Identifier: Apache-2.0
"""Python's bytes objects from a buffer, made by Arrow, which is four times as quick as slicing them out one by one."""

from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["bytes_objects", "objects_between"]

_MOST_BETWEEN = 2
"""Bytes between two strings (the end of a line) that may become an object too, which is then passed over."""

_FEW = 64
"""So many places are sliced one by one: Arrow's way begins with the import of pandas, where that is installed."""

Array = np.ndarray[Any, np.dtype[Any]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


def bytes_objects(data: Array, starts: Ints, sizes: Ints) -> Array | None:
    """An object array of bytes: string i is data[starts[i]:starts[i] + sizes[i]].

    Args:
      data: bytes.
      starts: [n].
      sizes: [n].

    Returns:
      [n]; None unless each string begins where the one before it ends, or just behind that, all within the data.

    >>> import numpy as np
    >>> bytes_objects(np.frombuffer(b"ab,,c", np.uint8), np.array([0, 3, 4]), np.array([2, 0, 1]))
    array([b'ab', b'', b'c'], dtype=object)
    """
    count = len(starts)
    if not count:
        return np.empty(0, object)
    side_by_side = np.empty(count + 1, np.int64)
    side_by_side[0] = starts[0]
    ends = np.add(starts, sizes, out=side_by_side[1:])
    if starts[0] < 0 or ends[-1] > len(data) or (sizes < 0).any():
        return None
    if np.array_equal(starts[1:], ends[:-1]):
        return objects_between(data, side_by_side)
    between = starts[1:] - ends[:-1]
    if int(between.max()) > _MOST_BETWEEN or int(between.min()) < 0:
        return None
    # String, what is between, string, ...: Arrow makes objects of pieces that lie side by side. What is between lines is
    # nothing or one letter, and Python has one object for each of these.
    pieces = np.empty((count, 2), np.int64)
    pieces[:, 0], pieces[:, 1] = starts, ends
    return objects_between(data, pieces.reshape(-1))[::2]


def objects_between(data: Array, ends: Ints) -> Array:
    """[n + 1] places -> an object array [n] of the bytes between each and the next, all within the data."""
    if len(ends) <= _FEW:
        made: Array = np.empty(max(0, len(ends) - 1), object)
        whole = data.data
        made[:] = [bytes(whole[start:stop]) for start, stop in pairwise(ends.tolist())]
        return made
    import pyarrow as pa

    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers)
    return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
