# SPDX-License-Identifier: Apache-2.0
"""Sizes: how many rows a source puts into one block, and how rows are shared out evenly."""

from functools import lru_cache

__all__ = [
    "MOST_BYTES",
    "MOST_ROWS",
    "balanced_slice",
    "balanced_slices",
    "block_rows",
    "gathered_rows",
    "picked_rows",
    "rows_within",
]

MOST_ROWS = 32_768
"""Rows of 8 bytes: they fit into a core's L2 cache, and malloc reuses the memory, whereas larger blocks are fresh pages."""
MOST_BYTES = 4 << 20
"""Bytes of rows that are made, moved or sent together; a single row may have more."""
_FEW_ROWS = 16
"""The fewest rows of a block, as long as they are small, so that Python's cost per block is negligible."""
_BLOCK_BYTES = 1 << 20
_GATHERED_BYTES = 1 << 19
_PICKED_BYTES = 1 << 24


def block_rows(row_bytes: float) -> int:
    """Rows of this many bytes in one block: few enough for a core's cache, enough to make Python's cost vanish.

    >>> block_rows(8), block_rows(100_000), block_rows(1_000_000), block_rows(1_000_000_000)
    (32768, 16, 4, 1)
    """
    return _rows(_BLOCK_BYTES, row_bytes)


def rows_within(rows: int, nbytes: int, most: int = MOST_ROWS) -> int:
    """How many rows may be made, moved or sent together, given the bytes of some that are like them.

    Args:
      rows: how many those are.
      nbytes: what they take together.
      most: never more than so many.

    >>> rows_within(10, 80), rows_within(10, 80, 4096), rows_within(1, 500_000_000)
    (32768, 4096, 1)
    """
    return max(1, min(most, MOST_BYTES * rows // max(1, nbytes)))


def gathered_rows(row_bytes: float, batch: int = 1) -> int:
    """Rows of this many bytes to gather at once: whole batches, in memory that stays in a core's cache from use to use.

    >>> gathered_rows(784), gathered_rows(784, 256), gathered_rows(784, 1000)
    (668, 512, 1000)
    """
    return _whole_batches(_GATHERED_BYTES, row_bytes, batch)


def picked_rows(row_bytes: float, batch: int = 1) -> int:
    """Rows of this many bytes to choose at once, where each batch is only gathered when it is handed out.

    >>> picked_rows(784, 256)
    21248
    """
    return _whole_batches(_PICKED_BYTES, row_bytes, batch)


def _whole_batches(most: int, row_bytes: float, batch: int) -> int:
    rows = _rows(most, row_bytes)
    return max(1, rows // batch) * batch if batch <= MOST_ROWS else rows


def _rows(most: int, row_bytes: float) -> int:
    few = min(_FEW_ROWS, max(1, MOST_BYTES // max(1, row_bytes)))
    return int(max(few, min(MOST_ROWS, most // max(1, row_bytes))))


@lru_cache(maxsize=4096)
def balanced_slices(rows: int, parts: int) -> tuple[slice, ...]:
    """Consecutive slices of `rows` rows whose sizes differ by at most one, the larger ones first.

    >>> [s.stop - s.start for s in balanced_slices(6, 4)]
    [2, 2, 1, 1]
    """
    return tuple([balanced_slice(rows, parts, index) for index in range(parts)])


def balanced_slice(rows: int, parts: int, index: int) -> slice:
    """One of `balanced_slices`, of however many."""
    size, more = divmod(rows, parts)
    return slice(index * size + min(index, more), (index + 1) * size + min(index + 1, more))
