# SPDX-License-Identifier: Apache-2.0
"""Tiny blocks, so that a few elements cross many block borders."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

# Module constants that say how many rows are handled at once, or from how many bytes on something counts as large.
_ROWS = (
    "BLOCK_ROWS", "FEWEST_BYTES", "GROUP_BYTES", "MOST_ROWS", "WIDE_BYTES", "_CHUNK", "_FRESH_BYTES", "_LARGE_BYTES",
    "_LARGE_ROW", "_MOST", "_MOST_QUICK",
)  # fmt: skip


@contextmanager
def small_blocks(rows: int) -> Iterator[None]:
    """Make sources yield blocks of at most `rows` elements, and ops with Python functions send each element at once.

    For tests: results and states must not depend on it.

    >>> import distinput as di
    >>> with small_blocks(2), di.data.Dataset.range(5).iter_blocks() as blocks:
    ...     print([len(block) for block in blocks])
    [2, 2, 1]
    """
    small: dict[str, Any] = dict.fromkeys(_ROWS, rows)
    small |= {"PACE_SECONDS": -1.0, "block_rows": lambda _: rows}
    usual: list[tuple[dict[str, Any], str, Any]] = []
    for name, module in sys.modules.copy().items():  # other threads may import meanwhile
        if name.startswith("distinput.") and not name.startswith("distinput.testing"):
            names = vars(module)
            there = small.keys() & names.keys()
            usual += [(names, key, names[key]) for key in there if isinstance(names[key], int | float | FunctionType)]
    try:
        for names, key, _ in usual:
            names[key] = small[key]
        yield
    finally:
        for names, key, value in usual:
            names[key] = value
