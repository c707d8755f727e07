# SPDX-License-Identifier: Apache-2.0
"""Blocks: many consecutive elements, one column for each leaf.

`Block` is abstract, and every class that can be instantiated is final. A `ColumnBlock` has its columns; others make them when
they are asked for: `ChunkedBlock` joins the rows of several blocks, `CopyingBlock` copies. So columns are reached in two ways,
and the code that needs them says which: `columnar()` may join or copy rows and leaves lazy columns lazy, `materialize()` brings
all rows into memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

from distinput.columns.column import Column, Ints, LazyColumn, StackError
from distinput.columns.regroup import column_of, column_of_values, joined_columns, split, stack
from distinput.names.lazy import later
from distinput.values.buffers import copy_of
from distinput.values.nest import Structure, component
from distinput.values.spec import Spec
from distinput.values.stated import leaves_for

if TYPE_CHECKING:
    from distinput.columns import sparse_rows
else:
    sparse_rows = later("distinput.columns.sparse_rows")  # few elements are sparse

__all__ = ["Block", "ColumnBlock", "concat_blocks", "stack_prefix"]


class Block(ABC):
    """n elements of one structure.

    Attributes:
      structure: the nest of an element.
      size: the number of elements.
    """

    __slots__ = ("size", "structure")
    structure: Structure
    size: int

    @staticmethod
    def of(structure: Structure, elements: Sequence[Sequence[Any]]) -> "ColumnBlock":
        """From the flattened leaves of each element."""
        columns = [column_of(list(leaves)) for leaves in zip(*elements, strict=True)] if elements else []
        return ColumnBlock(structure, columns, len(elements))

    @staticmethod
    def of_elements(structure: Structure, elements: Sequence[Any], said: Spec | None = None) -> "ColumnBlock":
        """From elements as users write them.

        Args:
          structure: that of all elements.
          elements: at least one.
          said: what somebody has stated of them; numbers and lists of Python become that.

        Raises:
          TypeError: an element has another structure, or a leaf cannot be an array.
        """
        stated = leaves_for(structure, said) or (None,) * structure.num_leaves
        if structure.is_leaf:
            return ColumnBlock(structure, [column_of_values(elements, stated[0])], len(elements))
        rows: Sequence[Any] = elements
        if not structure.is_flat_tuple or not all(type(e) is tuple and len(e) == len(stated) for e in elements):
            rows = [structure.flatten(element) for element in elements]
        columns = [column_of_values(*each) for each in zip(zip(*rows, strict=True), stated, strict=True)]
        return ColumnBlock(structure, columns, len(elements))

    def __len__(self) -> int:
        return self.size

    @abstractmethod
    def columnar(self) -> "ColumnBlock":
        """The same elements with a column for each leaf, which may be lazy; the block itself if it has columns."""

    def materialize(self) -> "ColumnBlock":
        """The same elements with all rows in memory: no column is a `LazyColumn`."""
        return self.columnar().materialize()

    def built_as(self, structure: Structure) -> "Block":
        """The same elements with the keys of dicts in the order that they have in an equal structure."""
        if self.structure is structure or self.structure.form == structure.form or self.structure != structure:
            return self
        return ColumnBlock(structure, self.columnar().columns, self.size)

    @abstractmethod
    def rows(self, start: int, stop: int, step: int = 1) -> "Block":
        """Elements start, start + step, ... before stop; views."""

    def take(self, indices: Ints) -> "Block":
        """The elements at `indices`, in that order."""
        return self.columnar().take(indices)

    @abstractmethod
    def row(self, index: int) -> Any:
        """Element `index` as users see it."""

    @abstractmethod
    def elements(self) -> Iterator[Any]:
        """All elements as users see them."""

    @property
    def atomic(self) -> bool:
        """Whether several threads may take from `elements()` at a time; see `Column.atomic`."""
        return False

    def shared_parts(self) -> Iterator[Iterator[Any]] | None:
        """All elements in iterators, from each of which several threads may take at a time; None if they may not.

        Only one thread at a time may ask for the next of these iterators.
        """
        return iter((self.elements(),)) if self.atomic else None

    def copies(self) -> Iterator[Any]:
        """All elements as users see them, each copied when it is reached to memory that nobody else refers to."""
        if self.structure.is_leaf:
            return map(copy_of, self.elements())
        build, flatten = self.structure.build, self.structure.flatten
        return (build([copy_of(leaf) for leaf in flatten(element)]) for element in self.elements())

    def stack(self, size: int) -> "Block":
        """Elements [n] -> n / size batches of `size` elements; n must be a multiple of size.

        Raises:
          StackError: elements of one batch differ in shape.
        """
        return self.columnar().stack(size)

    def split(self, counts: Ints) -> "Block":
        """Consecutive elements grouped by `counts`, which sum to n, into len(counts) batches."""
        return self.columnar().split(counts)

    def unstack(self) -> "Block":
        """The rows of all elements as elements; all elements must have the same number of rows."""
        return self.columnar().unstack()

    @abstractmethod
    def copied(self) -> "ColumnBlock":
        """The same elements in memory that nobody else refers to."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory that the elements need."""


@final
class ColumnBlock(Block):
    """n elements of one structure as columns.

    Args:
      structure: the nest of an element.
      columns: one for each leaf, all with `size` rows.
      size: the number of elements.

    >>> from distinput.values.nest import LEAF
    >>> Block.of_elements(LEAF, [[1, 2], [3, 4]]).unstack().columns[0].array.tolist()
    [1, 2, 3, 4]
    """

    __slots__ = ("columns",)

    def __init__(self, structure: Structure, columns: Sequence[Column], size: int) -> None:
        self.structure, self.columns, self.size = structure, columns, size

    def columnar(self) -> "ColumnBlock":
        return self

    def materialize(self) -> "ColumnBlock":
        for column in self.columns:
            if isinstance(column, LazyColumn):
                return ColumnBlock(self.structure, [c.materialize() for c in self.columns], self.size)
        return self

    def rows(self, start: int, stop: int, step: int = 1) -> "ColumnBlock":
        stop = min(stop, self.size)
        size = max(0, -(-(stop - start) // step))
        if size == self.size and step == 1:
            return self
        return ColumnBlock(self.structure, [c.rows(start, stop, step) for c in self.columns], size)

    def take(self, indices: Ints) -> "ColumnBlock":
        return ColumnBlock(self.structure, [c.take(indices) for c in self.columns], len(indices))

    def row(self, index: int) -> Any:
        if self.structure.is_leaf:
            return self.columns[0].row(index)
        return self.structure.build([c.row(index) for c in self.columns])

    def elements(self) -> Iterator[Any]:
        if self.structure.is_leaf:
            return self.columns[0].values()
        if self.structure.is_flat_tuple:
            return zip(*[c.values() for c in self.columns], strict=True)
        if not self.columns:
            return iter([self.structure.build([])] * self.size)
        return map(self.structure.build, zip(*[c.values() for c in self.columns], strict=True))

    @property
    def atomic(self) -> bool:
        return all(column.atomic for column in self.columns)

    def stack(self, size: int) -> "ColumnBlock":
        return ColumnBlock(self.structure, self._of_each(lambda column: stack(column, size)), self.size // size)

    def split(self, counts: Ints) -> "ColumnBlock":
        return ColumnBlock(self.structure, self._of_each(lambda column: split(column, counts)), len(counts))

    def _of_each(self, grouped: Callable[[Column], Column]) -> list[Column]:
        """Each column with its rows put into groups; an error says which column it is."""
        made: list[Column] = []
        block = self.folded()
        try:
            made.extend(map(grouped, block.columns))  # keeps what was made before an error
        except StackError as error:
            path = block.structure.paths[len(made)]
            error.where = f" in {component(path)}" if path else ""
            raise
        return made if block is self else self._unfolded(made)

    def unstack(self) -> "ColumnBlock":
        block = self.folded()
        columns = [column.unstack() for column in block.columns]
        size = len(columns[0])
        return ColumnBlock(self.structure, columns if block is self else self._unfolded(columns), size)

    def folded(self) -> "ColumnBlock":
        """The same elements with one column for each sparse tensor, instead of three."""
        structure = self.structure
        if not structure.sparse or not self.size:
            return self
        return ColumnBlock(structure.folded, sparse_rows.folded(structure, self.columns), self.size)

    def _unfolded(self, columns: Sequence[Column]) -> list[Column]:
        return sparse_rows.unfolded(columns)

    def copied(self) -> "ColumnBlock":
        return ColumnBlock(self.structure, [column.copied() for column in self.columns], self.size)

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns)


def concat_blocks(blocks: Sequence[Block]) -> Block:
    """The elements of all blocks, one after the other; copies unless there is only one."""
    blocks = [b for b in blocks if b.size] or list(blocks[:1])
    first = blocks[0]
    if len(blocks) == 1:
        return first
    columns = [joined_columns(parts) for parts in zip(*[b.columnar().columns for b in blocks], strict=True)]
    return ColumnBlock(first.structure, columns, sum(b.size for b in blocks))


def stack_prefix(block: Block, size: int) -> tuple[Block, StackError | None]:
    """As many batches as can be stacked, and the error of the first one that cannot."""
    try:
        return block.stack(size), None
    except StackError as error:
        if error.group == 0:
            return block.rows(0, 0), error
        first = error
    # Each column may fail at another batch, so the earliest one is looked for by cutting down to the group before.
    made, earlier = stack_prefix(block.rows(0, first.group * size), size)
    return made, earlier or first
