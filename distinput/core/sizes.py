# SPDX-License-Identifier: Apache-2.0
"""How many rows a source puts into one block: few enough to stay in a core's cache, enough to make Python's cost vanish."""

__all__ = ["MOST_ROWS", "block_rows"]

MOST_ROWS = 16_384
_BLOCK_BYTES = 1 << 20


def block_rows(row_bytes: float) -> int:
    """Rows of this many bytes in one block.

    >>> block_rows(8), block_rows(1_000_000)
    (16384, 16)
    """
    return int(max(16, min(MOST_ROWS, _BLOCK_BYTES // max(1, row_bytes))))
