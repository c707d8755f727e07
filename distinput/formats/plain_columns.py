# SPDX-License-Identifier: Apache-2.0
"""The columns that kernels write: one buffer for all of them, and what is made of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.core.buffers import empty
from distinput.core.column import Column
from distinput.core.dense import Dense
from distinput.core.strings import Strings
from distinput.kernels.plain_csv import AS_WRITTEN, FLOAT32, FLOAT64, INT32, INT64, LEFT_OUT, TEXT
from distinput.kernels.plain_json import TRUTH, WIDTHS

__all__ = ["PlainColumns", "as_inferred"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_DTYPES: dict[int, np.dtype[Any]] = {
    INT64: np.dtype(np.int64),
    FLOAT64: np.dtype(np.float64),
    FLOAT32: np.dtype(np.float32),
    INT32: np.dtype(np.int32),
    TRUTH: np.dtype(np.bool_),
}
_BYTE = np.dtype(np.uint8)


def as_inferred(kind: int, inferred: bool) -> int:
    """A kind of column, with `AS_WRITTEN` if it is one of numbers that nobody stated."""
    return kind + AS_WRITTEN if inferred and LEFT_OUT < kind < TEXT else kind


class PlainColumns:
    """Room for columns of so many rows.

    Args:
      kinds: of the columns, `LEFT_OUT` for what is not read; see `kernels.plain_json`.
      count: how many rows there are.

    >>> room = PlainColumns([INT64, LEFT_OUT, TEXT], 3)
    >>> room.places, room.out.size
    ([0, 24, 24], 72)
    """

    def __init__(self, kinds: Sequence[int], count: int) -> None:
        self.places: list[int] = []
        size, kinds = 0, [kind % AS_WRITTEN for kind in kinds]
        for kind in kinds:
            self.places.append(size)
            size += -(-WIDTHS[kind] * count // 8) * 8
        self.out = empty((size,), _BYTE)
        self._kinds, self._count = kinds, count

    def made(self, text: Bytes) -> list[Column | None]:
        """The columns, None for what is left out; `text` is what starts of text refer to."""
        return [self._column(kind, place, text) for kind, place in zip(self._kinds, self.places, strict=True)]

    def _column(self, kind: int, place: int, text: Bytes) -> Column | None:
        if kind == TEXT:
            # The text is copied, so that neither the numbers around it nor the buffer of the file stay in memory.
            return Strings(text, *np.ndarray((2, self._count), np.int64, self.out, place)).compact()
        return None if kind == LEFT_OUT else Dense(np.ndarray((self._count,), _DTYPES[kind], self.out, place))
