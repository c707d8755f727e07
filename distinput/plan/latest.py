# SPDX-License-Identifier: Apache-2.0
"""What a frozen node computes anew for each pass, and keeps for the latest one."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Latest"]

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Latest(Generic[_Key, _Value]):
    """The value for the key that was asked for last.

    A node holds one in a `cached_property`, so that its fields stay frozen. Passes follow one another, so one value is enough.

    >>> squares = Latest()
    >>> squares.of(3, lambda: 3**2), squares.of(3, lambda: 1 / 0), squares.of(4, lambda: 4**2)
    (9, 9, 16)
    """

    def __init__(self) -> None:
        self._kept: tuple[_Key, _Value] | None = None

    def of(self, key: _Key, compute: Callable[[], _Value]) -> _Value:
        """The value for `key`; `compute` is called where the key is not that of the last call."""
        kept = self._kept
        if kept is None or (kept[0] is not key and kept[0] != key):  # a long tuple of names is not compared with itself
            kept = self._kept = key, compute()
        return kept[1]
