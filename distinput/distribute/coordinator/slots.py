# SPDX-License-Identifier: Apache-2.0
"""Slots stand for per-worker values among the arguments of a closure: every worker puts its own value in their place."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from distinput.core.nest import flatten, map_leaves

__all__ = ["Slot", "replaced"]


class Slot:
    """Stands for a per-worker value among the arguments of a closure.

    Args:
      key: the number of the per-worker value.
    """

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key


def replaced(kinds: tuple[type, ...], value: Any, replace: Callable[[Any], Any]) -> Any:
    """An argument with `replace(leaf)` in place of each leaf of one of the kinds.

    A nest without such leaves is returned as it is, and not rebuilt.

    >>> replaced((bytes,), [1, {"x": b"2"}], int)
    [1, {'x': 2}]
    """
    if isinstance(value, kinds):
        return replace(value)
    if not (isinstance(value, list | tuple | Mapping) or dataclasses.is_dataclass(value)):
        return value
    if not any(isinstance(leaf, kinds) for leaf in flatten(value, lists=True)):
        return value
    return map_leaves(lambda leaf: replace(leaf) if isinstance(leaf, kinds) else leaf, value)
