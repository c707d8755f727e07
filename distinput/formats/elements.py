# SPDX-License-Identifier: Apache-2.0
"""Elements of any spec in Arrow IPC files, exactly as they were: what `save`, `snapshot` and a cache on disk write and read."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Column, Ints
from distinput.core.dense import Dense
from distinput.core.nest import Structure
from distinput.core.picked import RowArray
from distinput.core.spec import LeafSpec, Spec, TensorSpec
from distinput.core.spec_json import leaves_of_json, spec_of_json
from distinput.errors import DataLossError
from distinput.formats.arrow_ipc import ArrowIpc
from distinput.formats.format import Fragment, Position
from distinput.formats.leaf_encoding import PLAIN, decoded, encoded, encoding_of, stored_spec
from distinput.formats.table_format import TableFormat

__all__ = ["Elements", "column_names", "stored", "stored_block", "stored_elements"]


@dataclass(frozen=True)
class Elements(TableFormat):
    """Elements that `Dataset.save` or the writer "elements" wrote.

    Args:
      layout: the spec of the elements as JSON, as the manifest of the files has it.
      given: the spec that they are read as, if it is another one that they fit.

    Raises:
      DataLossError: `layout` is damaged.
    """

    name: ClassVar[str] = "elements"
    spec_from_file: ClassVar[bool] = False
    maps: ClassVar[bool] = True
    lists_fragments: ClassVar[bool] = True
    layout: str
    given: Spec | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.layout, str):
            raise DataLossError(f"elements: the layout must be JSON as text, got {self.layout!r:.80}")

    def spec(self, path: str | None) -> Spec:
        return self._kept[0]

    def spec_of(self, path: str) -> Spec:
        return self.spec(path)

    def check_spec(self, path: str, spec: Spec) -> None:
        """Reject a file whose columns are not those of the spec.

        Raises:
          DataLossError: they are not.
        """
        found, wanted = _ARROW.spec_of(path), self._kept[2]
        if found != wanted:
            raise DataLossError(
                f"{path}: has the columns {found.nest}, and must have {wanted.nest}; it is another file"
            )

    @property
    def _kept(self) -> "_Kept":
        return _kept(self.layout, self.given)

    def rows(self, path: str) -> int | None:
        return _ARROW.rows(path)

    def gathers(self, path: str) -> bool:
        return self._views and _ARROW.gathers(path)

    @property
    def _views(self) -> bool:
        """True if every leaf is kept as its own dtype, so that rows in a mapped file need no conversion."""
        leaves = self._kept[1]
        return bool(leaves) and all(
            isinstance(leaf, TensorSpec)
            and encoding_of(leaf) == PLAIN
            and leaf.dtype == stored_spec(leaf).dtype
            and leaf.ragged_rank is None
            for leaf in leaves
        )

    def sources(self, path: str) -> Sequence[RowArray] | None:
        found = _ARROW.sources(path) if self._views else None
        return None if found is None else [found[place] for place in _places(self.spec(None).structure)]

    def fragments(self, path: str) -> list[Fragment]:
        return _ARROW.fragments(path)

    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        self.check_spec(path, self.spec(path))
        for block, after in _ARROW.read_groups(path, position, size, given):
            yield self._elements(path, block), after

    def fetch(self, path: str, rows: Ints) -> Block:
        self.check_spec(path, self.spec(path))
        return self._elements(path, _ARROW.fetch(path, rows))

    def _elements(self, path: str, block: Block) -> ColumnBlock:
        try:
            return stored_elements(block.columnar(), self.spec(None).structure, self._kept[1])
        except DataLossError as error:
            raise DataLossError(f"{path}: damaged: {error}") from error


_ARROW = ArrowIpc()
_NO_LEAVES = "rows"
"""The column that counts elements without any component."""


def stored(spec: Spec) -> Spec:
    """The spec of the columns that elements are kept in."""
    names = column_names(spec.structure)
    if not names:
        return Spec.of({_NO_LEAVES: TensorSpec([], "bool")})
    return Spec.of({name: stored_spec(leaf) for name, leaf in zip(names, spec.leaves, strict=True)})


def stored_block(block: Block, spec: Spec) -> ColumnBlock:
    """Elements as they are kept."""
    made: dict[str, Any] = {}
    columns = block.columnar().columns
    names = column_names(spec.structure)
    for name, column, leaf in zip(names, columns, spec.leaves, strict=True):
        made[name] = encoded(column, leaf)
    if not names:
        made[_NO_LEAVES] = Dense(np.ones(block.size, bool))
    structure = stored(spec).structure
    return ColumnBlock(structure, structure.flatten(made), block.size)


def stored_elements(block: ColumnBlock, structure: Structure, leaves: Sequence[LeafSpec]) -> ColumnBlock:
    """Elements from what was kept of them.

    Args:
      block: what was kept.
      structure: of the elements.
      leaves: as they were when they were written.

    Raises:
      DataLossError: that is inconsistent.
    """
    kept = block.structure.build(list(block.columns))
    columns: list[Column] = [
        decoded(kept[name], leaf) for name, leaf in zip(column_names(structure), leaves, strict=True)
    ]
    return ColumnBlock(structure, columns, block.size)


def column_names(structure: Structure) -> tuple[str, ...]:
    """A name for the column of each leaf: its key where there are keys of one level, else its path."""
    if structure.is_leaf:
        return ("value",)
    if len(structure.keys) == structure.num_leaves and all(isinstance(key, str) and key for key in structure.keys):
        return tuple(structure.keys)
    return structure.paths


def _places(structure: Structure) -> list[int]:
    """For each leaf, the number of its column among those that are kept, if each leaf has one."""
    names = column_names(structure)
    order = sorted(names)
    return [order.index(name) for name in names]


_Kept = tuple[Spec, tuple[LeafSpec, ...], Spec]
"""The spec of the elements, their leaves as they were written, and the spec of the columns."""


@lru_cache(maxsize=256)
def _kept(layout: str, given: Spec | None) -> _Kept:
    try:
        value = json.loads(layout)
    except (ValueError, RecursionError) as error:
        raise DataLossError(f"the spec of the elements is damaged: {error}") from error
    spec, leaves = spec_of_json(value, given), leaves_of_json(value)
    return spec, leaves, stored(Spec(spec.structure, leaves))
