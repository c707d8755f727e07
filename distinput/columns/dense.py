# SPDX-License-Identifier: Apache-2.0
"""Rows of one shape, in one array."""

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from distinput.columns.column import Array, Column, Ints
from distinput.values.buffers import empty

__all__ = ["Dense"]

_LARGE_BYTES = 1 << 20
"""From this many bytes on, rows are gathered into pooled memory."""


@final
class Dense(Column):
    """Rows of one shape: `array` [n, ...]."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Of the values."""
        return self.array.dtype

    @property
    def inner(self) -> tuple[int, ...]:
        """The shape of a row."""
        shape: tuple[int, ...] = self.array.shape
        return shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def row(self, index: int) -> Any:
        return self.array[index]

    @property
    def atomic(self) -> bool:
        return True

    def values(self) -> Iterator[Any]:
        return iter(self.array)

    def rows(self, start: int, stop: int, step: int = 1) -> "Dense":
        return Dense(self.array[start:stop:step])

    def take(self, indices: Ints) -> "Dense":
        array = self.array
        count = len(indices)
        # Negative indices are huge ones without their sign.
        if count * array.strides[0] < _LARGE_BYTES or int(indices.view(np.uint64).max()) >= len(array):
            return Dense(array.take(indices, 0))  # which raises an error where an index is too large
        # With the bounds known, "clip" lets NumPy write to `out` at once; the default would fill a buffer first.
        return Dense(array.take(indices, 0, out=empty((count, *array.shape[1:]), array.dtype), mode="clip"))

    def whole(self) -> Array:
        """All rows as one array."""
        return self.array

    def reshape(self, shape: tuple[int, ...]) -> "Dense":
        """The same values laid out in another shape."""
        return Dense(self.array.reshape(shape))

    def lengths(self) -> int | None:
        return self.array.shape[1] if self.array.ndim > 1 else None

    def unstack(self) -> "Dense":
        if len(self.array) == 1:
            return Dense(self.array[0])
        n, b, *rest = self.array.shape
        return Dense(self.array.reshape(n * b, *rest))

    def copied(self) -> "Dense":
        out = empty(self.array.shape, self.array.dtype)
        np.copyto(out, self.array)
        return Dense(out)

    @property
    def nbytes(self) -> int:
        return self.array.nbytes
