# SPDX-License-Identifier: Apache-2.0
"""`select`: some of the components of dicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from distinput.columns.block import Block, ColumnBlock, Failure
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.plan.check import normalized
from distinput.plan.families import OneForOne
from distinput.plan.node import Node
from distinput.run.run import Run
from distinput.values.spec import Spec

__all__ = ["Select"]


@dataclass(frozen=True, eq=False)
class Select(OneForOne):
    """Keep these components of elements that are dicts, in this order.

    Parquet and Arrow files are read without the other columns, whose nulls and damage are then no errors.

    Shapes: dicts with these keys. Order: unchanged. State: that of the input.

    Args:
      columns: names of components, at least one.

    Raises:
      InvalidArgumentError: elements have no such component, or `columns` is one name, empty, or names one twice.
      TypeError: elements are no dicts.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices({"x": [1, 2], "y": [3, 4], "z": [5, 6]})
    >>> ds.select(["z", "x"]).to_list()
    [{'z': 5, 'x': 1}, {'z': 6, 'x': 2}]

    Source: `datasets.Dataset.select_columns`.
    """

    tolerant: ClassVar[bool] = True
    passes_states: ClassVar[bool] = True
    keeps_batches: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    view_only: ClassVar[bool] = True
    columns: Sequence[str]

    def __post_init__(self) -> None:
        if isinstance(self.columns, str | bytes):
            raise InvalidArgumentError(f"select: columns must be a list of names, got {self.columns!r}")
        normalized(self, "columns", tuple(self.columns))
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InvalidArgumentError(
                f"select: columns must be at least one name, each once, got {list(self.columns)}"
            )

    def added(self) -> Node:
        if self.input.known_spec is not None:
            _ = self.spec
        return self

    @cached_property
    def spec(self) -> Spec:
        given = self.input.spec
        structure = given.structure
        if structure.kind != "dict":
            raise TypeError(f"select: elements must be dicts, got {given.nest}; use map to choose from other nests")
        for name in self.columns:
            if name not in structure.keys:
                raise InvalidArgumentError(
                    f"select: elements have no component {name!r}; they have {', '.join(map(str, structure.keys))}"
                )
        nest = given.nest
        return Spec.of({name: nest[name] for name in self.columns})

    @cached_property
    def _places(self) -> list[int]:
        """The places of the leaves that are kept, in the order of the spec."""
        structure = self.input.spec.structure
        first, spans = 0, {}
        for key, child in zip(structure.keys, structure.children, strict=True):
            spans[key] = range(first, first + child.num_leaves)
            first += child.num_leaves
        return [place for key in self.spec.structure.keys for place in spans[key]]

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, epoch)

    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state, run):
            yield (block if type(block) is Failure else self._selected(block)), after

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._selected(self.input.fetch(rows, epoch))

    def _selected(self, block: Block) -> Block:
        columns = block.columnar().columns
        kept = [columns[place] for place in self._places] if columns else []
        return ColumnBlock(self.spec.structure, kept, block.size)
