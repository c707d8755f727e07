# SPDX-License-Identifier: Apache-2.0
"""States: plain JSON values that say where a stream stands; and short hashes of values."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from distinput.columns.column import Array, Column, Dense, Ints, Strings
from distinput.columns.ragged import Ragged
from distinput.names.lazy import later
from distinput.values.leaves import without_padding

if TYPE_CHECKING:
    from distinput import url_secrets
else:
    url_secrets = later("distinput.url_secrets")  # few texts are URLs

# ----------------------------------------------------------------------------
# States: plain JSON values that say where a stream stands.
#
# The whole contract: a stream yields `(block, state)`, and whoever starts again with that state receives exactly what would
# have followed. A state holds positions, seeds and counts, never elements; the one exception is the carried value of
# `scan`, which only the user's function can make.
# ----------------------------------------------------------------------------


State = dict[str, Any]

VERSION = 3
"""The version written into every saved state. It is raised when the layout of states changes (`tests/states`)."""

READABLE = (2, 3)
"""The versions that are restored."""

Mark = dict[str, Any]
"""Where a row stands in an input: `{"input": state, "skip": rows to pass over from there}`."""

BOUND = 1 << 62
"""Bound of positions and counts, which go into 64 bits."""


def is_count(value: Any, least: int = 0, most: int = BOUND) -> bool:
    """Whether something in a state is a whole number of these bounds."""
    return type(value) is int and least <= value <= most


def is_mark(value: Any) -> bool:
    """Whether something in a state is a mark: the state of an input, and rows to pass over from there."""
    return isinstance(value, dict) and isinstance(value.get("input"), dict) and is_count(value.get("skip"))


def is_position(value: Any) -> bool:
    """Whether something in a state is a position in a file, or None for the beginning of the next one."""
    return value is None or (isinstance(value, dict) and "row" in value and all(map(is_count, value.values())))


# ----------------------------------------------------------------------------
# Short hashes of values, the same in every process, in bounded time.
#
# Up to `MOST_BYTES` of an array are hashed whole; of a larger one, `_PIECES` pieces at equal distances, its ends included.
# ----------------------------------------------------------------------------


MOST_BYTES = 16 << 20
"""Of an array or of a column of text, hashed whole."""

_PIECES = 256
_MOST_ITEMS = 4096


class Digest:
    """Takes values in and gives a word.

    Args:
      size: bytes of the word, which has two letters for each.
    """

    def __init__(self, size: int = 4) -> None:
        from hashlib import blake2b  # it is for states, which few first batches come with

        self._hash = blake2b(digest_size=size)

    @property
    def word(self) -> str:
        """For what was taken in so far."""
        return self._hash.hexdigest()

    def add(self, *values: Any) -> Self:
        """Take in values whose `repr` says all of them, but for secrets in URLs: with another signature a file is the same."""
        text = repr(values)
        self._hash.update((url_secrets.public_url(text) if "://" in text else text).encode(errors="surrogatepass"))
        return self

    def array(self, array: Array) -> Self:
        """Take in an array of anything but Python objects."""
        self.add(array.dtype.str, array.shape)
        if array.nbytes <= MOST_BYTES:
            self._hash.update(without_padding(array).tobytes())
            return self
        flat: Any = array.reshape(-1) if array.flags.c_contiguous else array.flat
        count = max(1, MOST_BYTES // _PIECES // array.itemsize)
        for start in evenly(array.size - count + 1, _PIECES).tolist():
            self._hash.update(without_padding(np.asarray(flat[start : start + count])).tobytes())
        return self

    def texts(self, texts: Sequence[bytes]) -> Self:
        """Take in texts, in order."""
        self._hash.update(np.fromiter(map(len, texts), np.int64, len(texts)).tobytes())
        self._hash.update(b"".join(texts))
        return self

    def column(self, column: Column) -> Self:
        """Take in the rows of a column."""
        column = column.materialize()
        self.add(type(column).__name__, len(column))
        match column:
            case Dense():
                return self.array(column.array)
            case Strings():
                return self.add(column.starts.shape).texts(texts_of(column))
            case Column(ragged_rank=int()):
                return self.array(np.asarray(column.lengths())).column(column.unstack())
            case Ragged():
                self.array(column.sizes)
                each = int(column.sizes.sum()) // max(1, len(column))
                rows: Iterable[Any] = column.take(_some(len(column), max(1, each))).values()
            case _:
                rows = column.take(evenly(len(column), _MOST_ITEMS)).values()
        for row in rows:
            if isinstance(row, np.ndarray) and row.dtype != object:
                self.array(row)
            elif isinstance(row, np.ndarray):
                self.add(row.shape).texts(row.reshape(-1).tolist())
            else:
                self.add(row)
        return self


def word_of(column: Column) -> str:
    """The hash of a column's rows."""
    return Digest(8).column(column).word


def evenly(size: int, most: int) -> Ints:
    """At most so many of the numbers below `size`, at equal distances, the first and the last included.

    >>> evenly(10, 4).tolist(), evenly(3, 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if size <= most:
        return np.arange(size)
    return np.arange(most) * (size - 1) // (most - 1)


def texts_of(column: Strings) -> list[bytes]:
    """The texts of a column in order, URLs without secrets; of very many or very long ones, those at equal distances."""
    starts, sizes = column.starts.reshape(-1), column.sizes.reshape(-1)
    total = int(sizes.sum())
    if total > MOST_BYTES:
        some = _some(len(sizes), total // len(sizes))
        starts, sizes = starts[some], np.minimum(sizes[some], MOST_BYTES // 16)
    view = memoryview(column.data)  # type: ignore[arg-type]  # numpy's stubs do not name the buffer protocol
    texts = [bytes(view[a : a + n]) for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)]
    return [os.fsencode(url_secrets.public_url(os.fsdecode(text))) if b"://" in text else text for text in texts]


def _some(rows: int, each: int) -> Ints:
    return evenly(rows, max(16, MOST_BYTES // max(64, each)))


def common_folder(names: Sequence[bytes]) -> bytes:
    """What all names begin with, as far as its last `/`.

    >>> common_folder([b"data/a/1.txt", b"data/b.txt"]), common_folder([b"a.txt", b"b.txt"])
    (b'data/', b'')
    """
    if not names:
        return b""
    low, high = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[: low.rfind(b"/", 0, same) + 1]
