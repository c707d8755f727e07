# SPDX-License-Identifier: Apache-2.0
"""Sources whose elements are in memory, so that functions can be tried on them before the iteration."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from distinput.arrow.owned import frozen
from distinput.columns.block import Block
from distinput.columns.column import Column, Ints
from distinput.columns.dense import Dense
from distinput.columns.objects import Arrays, Datasets, Objects
from distinput.columns.picked import picked
from distinput.columns.ragged import Ragged, ragged_spec
from distinput.columns.rows import Stream
from distinput.columns.sizes import MOST_ROWS
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import later
from distinput.plan.check import normalized
from distinput.plan.node import Node
from distinput.run.run import Run
from distinput.values.leaves import shape_of
from distinput.values.shape import TensorShape
from distinput.values.spec import DatasetSpec, LeafSpec, Spec, TensorSpec, merge_shapes

if TYPE_CHECKING:
    from distinput.plan import families
else:
    families = later("distinput.plan.families")  # elements that are datasets are few of those that are held

__all__ = ["InMemory", "Rows", "datasets_spec", "leaf_spec", "rows_from"]


@dataclass(frozen=True, eq=False)
class InMemory(Node):
    """A source with random access whose elements are in memory, or are computed from their position."""

    in_memory: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    view_only: ClassVar[bool] = True

    @abstractmethod
    def rows_of(self, numbers: Sequence[int]) -> Sequence[int] | Ints:
        """The rows that hold one of these numbers; none if the elements are not numbers."""


@dataclass(frozen=True, eq=False)
class Rows(InMemory):
    """The rows of a block that is in memory.

    Shapes: those of the block's rows. State: the next row.

    Args:
      block: the elements.
      description: what to print for them.
      leaves: what is known about the elements beyond these rows, for blocks cut from a stream.
    """

    block: Block
    description: str = ""
    leaves: tuple[LeafSpec, ...] | None = None

    def __post_init__(self) -> None:
        normalized(self, "block", frozen(self.block))  # later passes, and the user, look at the same arrays

    @cached_property
    def spec(self) -> Spec:
        if self.leaves is not None:
            return Spec(self.block.structure, self.leaves)
        return Spec(self.block.structure, tuple([leaf_spec(c) for c in self.block.columnar().columns]))

    @property
    def cardinality(self) -> int:
        return self.block.size

    def arguments(self) -> dict[str, Any]:
        return {"elements": self.description or f"{self.block.size} rows"}

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def start_at(self, row: int, epoch: int) -> State:
        return {"row": row}

    def stream(self, state: State, run: Run) -> Stream:
        for block, end in rows_from(self.block, state["row"]):
            yield block, {"row": end}

    @property
    def random_access(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return picked(self.block, rows)

    def rows_of(self, numbers: Sequence[int]) -> Sequence[int] | Ints:
        leaf = self.spec.leaves[0]
        column = self.block.columnar().columns[0]
        if not isinstance(leaf, TensorSpec) or leaf.shape != () or leaf.dtype.kind not in "iuf":
            return ()
        assert isinstance(column, Dense)
        return np.flatnonzero(np.isin(column.array, numbers))


def rows_from(block: Block, row: int) -> Iterator[tuple[Block, int]]:
    """The rows of a block from `row` on in views of it, and where each ends."""
    if not row and block.size <= MOST_ROWS:
        yield block, block.size
        return
    for first in range(row, block.size, MOST_ROWS):  # views, so their bytes do not matter
        end = min(first + MOST_ROWS, block.size)
        yield block.rows(first, end), end


def leaf_spec(column: Column) -> LeafSpec:
    """The most specific spec that all rows of a column fit."""
    if column.inner is not None:
        return TensorSpec(column.inner, column.dtype)
    if column.ragged_rank is not None:
        return ragged_spec(column)
    if isinstance(column, Ragged):
        return TensorSpec((None, *column.flat.inner), column.dtype)  # also where all lengths are equal, by chance
    if isinstance(column, Datasets):
        return optionals_spec(column.items) if column.optional else datasets_spec(column.items)
    assert isinstance(column, Objects | Arrays)
    shape = shape_of(column.items[0])
    merged: tuple[int | None, ...] | None = shape
    for item in column.items:
        merged = merge_shapes(merged, shape_of(item))
    return TensorSpec(merged, column.dtype)


def optionals_spec(items: Sequence[Any]) -> LeafSpec:
    """The spec of Optionals that are rows of one column.

    Raises:
      InvalidArgumentError: their values differ in structure or dtype.
    """
    merged = items[0].leaf_spec.most_specific_common_supertype([item.leaf_spec for item in items[1:]])
    if merged is None:
        raise InvalidArgumentError("Optionals of one dataset must have values of one structure and dtype")
    return merged  # type: ignore[no-any-return]


def datasets_spec(items: Sequence[Any]) -> DatasetSpec:
    """The spec of datasets, or of tuples of them, that are rows of one column.

    Raises:
      InvalidArgumentError: their elements differ in structure or dtype.
    """
    nodes = [node for item in items for node in (item if isinstance(item, tuple) else (item,))]
    shapes = {(len(item),) if isinstance(item, tuple) else () for item in items}
    shape: tuple[int | None, ...] = shapes.pop() if len(shapes) == 1 else (None,)
    try:
        merged = families.common_spec("a list of datasets", tuple(nodes))
    except TypeError as error:
        raise InvalidArgumentError(str(error)) from None
    return DatasetSpec(merged.nest, TensorShape(shape))
