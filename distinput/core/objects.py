# SPDX-License-Identifier: Apache-2.0
"""Rows that are Python objects, and the best column for values as Python has them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any, final

import numpy as np

from distinput.core.buffers import empty
from distinput.core.column import Array, Column, Ints, StackError
from distinput.core.dense import Dense
from distinput.core.leaves import STRING, dtype_of, is_ragged, shape_of
from distinput.core.ragged import Ragged
from distinput.core.spec import LeafSpec
from distinput.core.stated import as_stated
from distinput.core.strings import Strings

__all__ = ["Arrays", "Datasets", "Objects", "column_of", "column_of_values"]

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

    def stack(self, size: int) -> Column:
        parts = []
        for group in range(len(self.items) // size):
            members = self.items[group * size : (group + 1) * size]
            first = shape_of(members[0])
            for row, member in enumerate(members):
                if shape_of(member) != first:
                    raise StackError.of(group, first, shape_of(member), row)
            parts.append(np.array(members, self.dtype) if self.dtype != STRING else _stack_objects(members))
        return column_of(parts) if parts else Objects([], self.dtype)

    def lengths(self) -> Ints | int | None:
        if any(not shape_of(item) for item in self.items):
            return None
        return np.fromiter((shape_of(item)[0] for item in self.items), np.int64, len(self.items))

    def unstack(self) -> Column:
        return column_of([row for item in self.items for row in item], self.dtype)

    def split(self, counts: Ints) -> Column:
        ends = np.cumsum(counts).tolist()
        parts: list[Any] = []
        for a, b in pairwise([0, *ends]):
            members = self.items[a:b]
            for row, member in enumerate(members):
                if shape_of(member) != shape_of(members[0]):
                    raise StackError.of(len(parts), shape_of(members[0]), shape_of(member), row)
            if not members:
                parts.append(np.empty((0,), self.dtype))
            else:
                parts.append(np.array(members, self.dtype) if self.dtype != STRING else _stack_objects(members))
        return column_of(parts, self.dtype)

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

    def stack(self, size: int) -> Column:
        return Objects(self.items, self.dtype).stack(size)

    def unstack(self) -> Column:
        return self.joined().unstack()

    def split(self, counts: Ints) -> Column:
        return Objects(self.items, self.dtype).split(counts)

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

    def stack(self, size: int) -> Column:
        raise TypeError(_NO_ROWS[self.optional])

    def split(self, counts: Ints) -> Column:
        raise TypeError(_NO_ROWS[self.optional])

    def copied(self) -> "Datasets":
        return self

    def lengths(self) -> Ints | int | None:
        if any(not isinstance(item, tuple) for item in self.items):
            return None
        return np.fromiter(map(len, self.items), np.int64, len(self.items))

    def unstack(self) -> "Datasets":
        return Datasets([node for item in self.items for node in item], self.dtype)


_NO_ROWS = {
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


def column_of_values(values: Sequence[Any], said: LeafSpec | None = None) -> Column:
    """The best column for values as users write them, which must be of one dtype.

    Args:
      values: of any kind.
      said: what somebody has stated of them, which numbers and lists of Python become.

    Raises:
      TypeError: a value cannot be an array, or dtypes differ.
    """
    kinds = set(map(type, values))
    if len(kinds) == 1:  # nearly always; then the values need not be looked at one by one
        (kind,) = kinds
        if issubclass(kind, np.number | np.bool_):
            return Dense(np.array(values, kind))
        if kind is np.ndarray:
            first = values[0]
            if first.dtype.kind not in "SUOT" and first.ndim:
                return column_of(list(values))
        elif kind is bytes:
            return Strings.of(values)
    return column_of([as_stated(value, said) for value in values])


def column_of(items: list[Any], dtype: np.dtype[Any] | None = None) -> Column:
    """The best column for leaf values (see `values.as_leaf`) of one dtype. A single array is not copied.

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
    if is_ragged(first):
        from distinput.core.ragged_batches import column_of_ragged

        return column_of_ragged(items)
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


def _stack_objects(members: list[Any]) -> Array:
    """Equal-shaped object values -> one object array [len, ...]."""
    out = np.empty((len(members), *shape_of(members[0])), dtype=object)
    for i, member in enumerate(members):
        out[i] = member
    return out
