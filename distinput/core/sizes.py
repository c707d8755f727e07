# SPDX-License-Identifier: Apache-2.0
"""Sizes: how many rows a source puts into one block, and how rows are shared out evenly."""

from functools import lru_cache

__all__ = ["MOST_ROWS", "balanced_slice", "balanced_slices", "block_rows", "gathered_rows", "picked_rows"]

MOST_ROWS = 32_768
"""Of 8 bytes: they fit into a core's second cache, and malloc hands them out again where larger ones are fresh pages."""
_BLOCK_BYTES = 1 << 20
_GATHERED_BYTES = 1 << 19
_PICKED_BYTES = 1 << 24


def block_rows(row_bytes: float) -> int:
    """Rows of this many bytes in one block: few enough for a core's cache, enough to make Python's cost vanish.

    >>> block_rows(8), block_rows(1_000_000)
    (32768, 16)
    """
    return int(max(16, min(MOST_ROWS, _BLOCK_BYTES // max(1, row_bytes))))


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
    rows = int(max(16, min(MOST_ROWS, most // max(1, row_bytes))))
    return max(1, rows // batch) * batch if batch <= MOST_ROWS else rows


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
