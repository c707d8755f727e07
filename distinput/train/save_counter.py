# SPDX-License-Identifier: Apache-2.0
"""The counter of the saves of a checkpoint."""

from typing import Any

import numpy as np

from distinput.distribute.core.values import LocalOperators

__all__ = ["SaveCounter"]


class SaveCounter(LocalOperators):
    """A whole number with the methods of a variable that users of `save_counter` call; it belongs to no strategy.

    >>> counter = SaveCounter()
    >>> _ = counter.assign_add(1)
    >>> int(counter), counter.numpy(), counter + 1
    (1, np.int64(1), np.int64(2))
    """

    dtype = np.dtype(np.int64)
    shape = ()
    name = "save_counter"

    def __init__(self) -> None:
        self._value = np.int64(0)

    @property
    def values(self) -> tuple[np.int64]:  # type: ignore[override]
        """The value, as operators look for it."""
        return (self._value,)

    def numpy(self) -> np.int64:
        """The value."""
        return self._value

    value = read_value = numpy

    def assign(self, value: Any) -> "SaveCounter":
        """Set the value."""
        self._value = np.int64(value)
        return self

    def assign_add(self, delta: Any) -> "SaveCounter":
        """Add to the value."""
        return self.assign(self._value + int(delta))

    def assign_sub(self, delta: Any) -> "SaveCounter":
        """Subtract from the value."""
        return self.assign(self._value - int(delta))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self._value, dtype)

    def __format__(self, how: str) -> str:
        return format(int(self._value), how)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<save_counter {int(self._value)}>"
