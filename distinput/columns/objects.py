# SPDX-License-Identifier: Apache-2.0
"""Rows that are Python objects, and the best column for values as Python has them."""

from collections.abc import Iterator
from math import prod
from typing import Any, final

import numpy as np

from distinput.columns.column import Column, Ints
from distinput.columns.dense import Dense
from distinput.columns.ragged import Ragged
from distinput.columns.strings import Strings
from distinput.values.buffers import empty
from distinput.values.leaves import STRING, dtype_of, is_ragged, shape_of

__all__ = ["Arrays", "Datasets", "Objects", "column_of_arrays"]

_LARGE_ROW = 512
"""From this average size of a row on, copying it costs more than a Python object does."""


class _Items(Column):
    """Rows that are one Python object each."""

    __slots__ = ("dtype", "items")

    def __init__(self, items: list[Any], dtype: np.dtype[Any]) -> None:
        self.items = items
        self.dtype = dtype

    def __len__(self) -> int:
        return len(self.items)

    def row(self, index: int) -> Any:
        return self.items[index]

    @property
    def atomic(self) -> bool:
        return True

    def values(self) -> Iterator[Any]:
        return iter(self.items)

    @property
    def nbytes(self) -> int:
        return sum(getattr(item, "nbytes", 0) or (len(item) if isinstance(item, bytes) else 64) for item in self.items)


@final
class Objects(_Items):
    """Rows of any kind, one Python object each."""

    __slots__ = ()

    def rows(self, start: int, stop: int, step: int = 1) -> "Objects":
        return Objects(self.items[start:stop:step], self.dtype)

    def take(self, indices: Ints) -> "Objects":
        items = self.items
        return Objects([items[i] for i in indices.tolist()], self.dtype)

    def lengths(self) -> Ints | int | None:
        if any(not shape_of(item) for item in self.items):
            return None
        return np.fromiter((shape_of(item)[0] for item in self.items), np.int64, len(self.items))

    def unstack(self) -> Column:
        return column_of_arrays([row for item in self.items for row in item], self.dtype)

    def copied(self) -> Column:
        return Objects([item.copy() if isinstance(item, np.ndarray) else item for item in self.items], self.dtype)


@final
class Arrays(_Items):
    """Rows that differ in their first dimension, each an array of its own; they are copied once, to their final place."""

    __slots__ = ()

    def rows(self, start: int, stop: int, step: int = 1) -> "Arrays":
        return Arrays(self.items[start:stop:step], self.dtype)

    def take(self, indices: Ints) -> "Arrays":
        items = self.items
        return Arrays([items[i] for i in indices.tolist()], self.dtype)

    def lengths(self) -> Ints:
        return np.fromiter(map(len, self.items), np.int64, len(self.items))

    def unstack(self) -> Column:
        return self.joined().unstack()

    def copied(self) -> Ragged:
        return self.joined()

    def joined(self) -> Ragged:
        """The same rows side by side."""
        sizes = self.lengths()
        if not self.items:
            return Ragged(Dense(np.empty(0, self.dtype)), sizes, sizes)
        flat = empty((int(sizes.sum()), *self.items[0].shape[1:]), self.dtype)
        np.concatenate(self.items, out=flat)
        return Ragged(Dense(flat), np.cumsum(sizes) - sizes, sizes)


@final
class Datasets(_Items):
    """Rows that hold elements: datasets and lists of them, as nodes and tuples of nodes, shown as handles; or Optionals."""

    __slots__ = ()

    @property
    def optional(self) -> bool:
        """Whether the rows are Optionals."""
        return bool(self.items) and getattr(self.items[0], "is_optional", False)

    def row(self, index: int) -> Any:
        return _shown(self.items[index])

    @property
    def atomic(self) -> bool:
        return False

    def values(self) -> Iterator[Any]:
        return map(_shown, self.items)

    def rows(self, start: int, stop: int, step: int = 1) -> "Datasets":
        return Datasets(self.items[start:stop:step], self.dtype)

    def take(self, indices: Ints) -> "Datasets":
        return Datasets([self.items[i] for i in indices.tolist()], self.dtype)

    def copied(self) -> "Datasets":
        return self

    def lengths(self) -> Ints | int | None:
        if any(not isinstance(item, tuple) for item in self.items):
            return None
        return np.fromiter(map(len, self.items), np.int64, len(self.items))

    def unstack(self) -> "Datasets":
        return Datasets([node for item in self.items for node in item], self.dtype)


NO_ROWS = {
    False: "a component that is a dataset cannot be batched; flat_map or zip it first",
    True: "a component that is an Optional cannot be batched; map it to its value, get_value(), first",
}


def _shown(item: Any) -> Any:
    """A dataset as its handle; a list of them as an array [n] of handles."""
    if not isinstance(item, tuple):
        return item.to_user()
    handles = np.empty(len(item), object)
    handles[:] = [node.to_user() for node in item]
    return handles


def column_of_arrays(items: list[Any], dtype: np.dtype[Any] | None = None) -> Column:
    """The best column for leaf values of one dtype that are no ragged tensors. A single array is not copied.

    Raises:
      TypeError: the values differ in dtype.
    """
    if not items:
        return Dense(np.empty(0, dtype)) if dtype is not None and dtype != STRING else Strings.of([])
    first = items[0]
    alike = len(set(map(type, items))) == 1
    if alike and isinstance(first, bytes):
        return Strings.of(items)
    if getattr(first, "nest_leaf", False):
        return Datasets(items, STRING)
    dtype = dtype_of(first)
    for other in {item.dtype for item in items} if alike else set(map(dtype_of, items)):
        if other != dtype:
            raise TypeError(f"the elements differ in dtype: {dtype} and {other}")
    if not alike and not all(isinstance(item, np.ndarray) for item in items):
        if any(map(is_ragged, items)):
            raise TypeError("the elements differ: some are ragged tensors, some are not")
        return Objects(items, dtype)  # scalars beside arrays
    if isinstance(first, np.generic):
        return Dense(np.array(items, dtype))
    shapes = {item.shape for item in items}
    if len(shapes) == 1:
        if dtype == STRING:
            return Strings.of_array(first[None] if len(items) == 1 else np.stack(items))
        if len(items) == 1 and type(first) is np.ndarray and first.flags.c_contiguous:
            return Dense(first[None])
        return Dense(np.array(items, dtype))
    if len({shape[1:] for shape in shapes}) == 1 and all(shapes):
        rows = Arrays(items, dtype)
        if dtype != STRING:
            each = prod(first.shape[1:]) * dtype.itemsize
            return rows if sum(map(len, items)) * each >= _LARGE_ROW * len(items) else rows.joined()
        sizes = rows.lengths()
        return Ragged(Strings.of_array(np.concatenate(items)), np.cumsum(sizes) - sizes, sizes)
    return Objects(items, dtype)
