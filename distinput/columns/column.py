# SPDX-License-Identifier: Apache-2.0
"""Columns: one leaf of many consecutive elements.

`Column` is abstract, and every class that can be instantiated is final, so `isinstance` says exactly what a column is:

* `Dense` rows have one shape and lie in one array; `Strings` are byte strings; `Ragged` rows differ in their first dimension;
  `Arrays` are ragged rows too, large ones that a function returned and nobody has copied into one buffer yet; `Datasets` are
  datasets, `RaggedBatches` ragged tensors; `Objects` hold whatever fits none of these (rows that differ in several dimensions).
* What makes columns of another kind of these stands above them: `regroup`.
* A `LazyColumn` (`Picked`, `Padded`) makes its rows when they are asked for. Code that needs them in memory says so with
  `materialize()`; no attribute does it by the way.

Shapes below: n rows, b rows of a batch.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from distinput.values.leaves import Array, Ints

__all__ = ["Array", "Column", "Ints", "LazyColumn", "StackError"]


class StackError(Exception):
    """Rows that were to be stacked differ in shape.

    Attributes:
      group: the first group of rows that cannot be stacked.
      first: the shape of its first row.
      other: the shape of the first row in it with another one.
      row: the place of that row in the group; None: not known.
      where: the component, for messages; empty if it is the whole element.
    """

    group: int = 0
    first: tuple[int, ...] = ()
    other: tuple[int, ...] = ()
    row: int | None = None
    where: str = ""

    @staticmethod
    def of(group: int, first: tuple[int, ...], other: tuple[int, ...], row: int | None = None) -> "StackError":
        """The error about a group of rows."""
        error = StackError(f"first element had shape {list(first)}, another one has {list(other)}")
        error.group, error.first, error.other, error.row = group, first, other, row
        return error


class Column(ABC):
    """One leaf for n rows."""

    __slots__ = ()
    dtype: np.dtype[Any]

    @property
    def ragged_rank(self) -> int | None:
        """How many dimensions of a row differ in length, where rows are ragged tensors; None where they are not."""
        return None

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def inner(self) -> tuple[int, ...] | None:
        """The shape of a row; None where rows may differ in shape."""
        return None

    def materialize(self) -> "Column":
        """The same rows, all of them in memory: the column itself, unless it is a `LazyColumn`."""
        return self

    @abstractmethod
    def row(self, index: int) -> Any:
        """Row `index` as users see it."""

    @abstractmethod
    def values(self) -> Iterator[Any]:
        """All rows as users see them."""

    @property
    def atomic(self) -> bool:
        """True if `values()` yields its next item without running Python code or releasing the GIL on the way."""
        return False

    @abstractmethod
    def rows(self, start: int, stop: int, step: int = 1) -> "Column":
        """Rows start, start + step, ... before stop; a view."""

    @abstractmethod
    def take(self, indices: Ints) -> "Column":
        """The rows at `indices`, in that order."""

    @abstractmethod
    def lengths(self) -> Ints | int | None:
        """First dimension of each row: one number when all agree, None when a row is a scalar."""

    @abstractmethod
    def unstack(self) -> "Column":
        """[n, b, ...] -> [n * b, ...]; the rows of all rows, one after the other."""

    @abstractmethod
    def copied(self) -> "Column":
        """The same rows in memory that nobody else refers to."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory that the rows' values need."""


class SelfGrouped(Column):
    """Rows that need more than one array each, and put themselves into groups."""

    __slots__ = ()

    @abstractmethod
    def grouped_by(self, counts: Ints) -> Column:
        """[n, ...] -> [len(counts), (counts), ...]; consecutive rows, grouped by these counts, which sum to n.

        Raises:
          StackError: rows of one group differ.
        """


class LazyColumn(Column):
    """Rows that are made when they are asked for: by `row` and `values` a few at a time, by `materialize` all at once.

    Rows, groups and orders of them (`rows`, `take`, `grouped`) are lazy again where that is possible. The array that
    `materialize` makes has no other owner, so it costs memory for all rows; call it where all of them are looked at.
    """

    __slots__ = ()

    @abstractmethod
    def materialize(self) -> Column: ...

    def grouped(self, size: int) -> "LazyColumn | None":
        """[n, ...] -> [n / size, size, ...], not made yet; None where the rows must be made first."""
        return None

    def followed_by(self, others: Sequence[Column]) -> "LazyColumn | None":
        """These rows and then those of the others, not made yet; None where each must be made first."""
        return None
