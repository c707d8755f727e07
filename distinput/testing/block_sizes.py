# SPDX-License-Identifier: Apache-2.0
"""Tiny blocks, so that a few elements cross many block borders."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

# Module constants that say how many rows are handled at once, or from how many bytes on something counts as large.
_ROWS = (
    "BLOCK_ROWS", "FEWEST_BYTES", "GROUP_BYTES", "MOST_ROWS", "WIDE_BYTES", "_CHUNK", "_FRESH_BYTES", "_LARGE_BYTES",
    "_LARGE_ROW", "_MOST",
)  # fmt: skip
_SECONDS = ("PACE_SECONDS",)
_WHOLE = "block_rows"  # the function that says it for rows of a size

_SIZES: dict[str, tuple[int, tuple[str, ...]]] = {}
"""Of each module, how many names it had when it was looked at, and those of them that are changed: there are many modules."""


def _sizes(module: ModuleType) -> tuple[str, ...]:
    """The names of a module that are changed."""
    names = vars(module)
    count, sizes = _SIZES.get(module.__name__, (0, ()))
    if count != len(names):  # it was still being imported, or is another one of that name
        sizes = tuple([key for key in _ROWS if isinstance(names.get(key), int)])
        sizes += tuple([key for key in (*_SECONDS, _WHOLE) if key in names])
        _SIZES[module.__name__] = len(names), sizes
    return sizes


@contextmanager
def small_blocks(rows: int) -> Iterator[None]:
    """Make sources yield blocks of at most `rows` elements, and ops with Python functions send each element at once.

    For tests: results and states must not depend on it.

    >>> import distinput as di
    >>> with small_blocks(2), di.data.Dataset.range(5).iter_blocks() as blocks:
    ...     print([len(block) for block in blocks])
    [2, 2, 1]
    """
    small: dict[str, Any] = {**dict.fromkeys(_ROWS, rows), **dict.fromkeys(_SECONDS, -1.0), _WHOLE: lambda _: rows}
    usual: list[tuple[ModuleType, str, Any]] = []
    for name, module in sys.modules.copy().items():  # other threads may import meanwhile
        if name.startswith("distinput.") and not name.startswith("distinput.testing"):
            usual += [(module, key, vars(module)[key]) for key in _sizes(module)]
    try:
        for module, key, _ in usual:
            setattr(module, key, small[key])
        yield
    finally:
        for module, key, value in reversed(usual):
            setattr(module, key, value)
