# SPDX-License-Identifier: Apache-2.0
"""Tiny blocks, so that a few elements cross many block borders."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from distinput.columns import block

# Module constants that say how many rows are handled at once, or from how many bytes on something counts as large.
_ROWS = (
    "BLOCK_ROWS", "FEWEST_BYTES", "GROUP_BYTES", "MOST_ROWS", "WIDE_BYTES", "_CHUNK", "_FRESH_BYTES", "_LARGE_BYTES",
    "_LARGE_ROW", "_MOST",
)  # fmt: skip
_SECONDS = ("PACE_SECONDS",)


@contextmanager
def small_blocks(rows: int) -> Iterator[None]:
    """Make sources yield blocks of at most `rows` elements, and ops with Python functions send each element at once.

    For tests: results and states must not depend on it.

    >>> import distinput as di
    >>> with small_blocks(2), di.data.Dataset.range(5).iter_blocks() as blocks:
    ...     print([len(block) for block in blocks])
    [2, 2, 1]
    """
    whole = block.block_rows
    changes: list[tuple[Any, str, Any]] = []
    for name, module in sys.modules.copy().items():  # other threads may import meanwhile
        if not name.startswith("distinput.") or name.startswith("distinput.testing"):
            continue
        names = vars(module)
        changes += [(module, key, rows) for key in _ROWS if isinstance(names.get(key), int)]
        changes += [(module, key, -1.0) for key in _SECONDS if key in names]
        changes += [(module, key, lambda _: rows) for key in names if names[key] is whole]
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(mock.patch.object(*change))
        yield
