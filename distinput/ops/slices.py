# SPDX-License-Identifier: Apache-2.0
"""`from_tensors` and `from_tensor_slices`: elements that are in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from distinput.core.arrow import NullsError, UnsupportedTypeError, is_arrow, to_column
from distinput.core.arrow_damage import ArrowDamageError
from distinput.core.block import Block, ColumnBlock
from distinput.core.chunked import chunked
from distinput.core.column import Column, Datasets, Dense, Ints, Strings, column_of
from distinput.core.digest import Digest, common_folder, texts_of, word_of
from distinput.core.leaves import STRING, as_leaf, shape_of
from distinput.core.nest import component, structure_of
from distinput.core.row_order import put_in_order
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.sizes import MOST_ROWS
from distinput.core.spec import LeafSpec, Spec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError
from distinput.plan.in_memory import Rows, datasets_spec, rows_from
from distinput.plan.node import Node

if TYPE_CHECKING:
    from distinput.files.facts import Names

__all__ = ["Slices", "SlicesInTurn", "from_tensor_slices", "from_tensors", "rows_node"]

_TOGETHER = 16
"""How many small sources are sent in one block."""


@dataclass(frozen=True, eq=False)
class Slices(Rows):
    """The rows of a block that is in memory.

    Shapes: those of the block's rows. State: the next row.

    Args:
      block: the elements.
      description: what to print for them.
      leaves: what is known of the elements beyond what the rows themselves show, for blocks cut from a stream.

    Source: `tf.data.Dataset.from_tensor_slices`.
    """

    def contents(self) -> dict[str, Any]:
        values, under = Digest(), Digest()
        for column in self.block.columnar().columns:
            if isinstance(column, Strings):
                texts = texts_of(column)
                cut = len(common_folder(texts))
                values.add(column.starts.shape).texts(texts)
                under.add(column.starts.shape).texts([text[cut:] for text in texts])
            else:
                word = _nodes_word(column) if isinstance(column, Datasets) else word_of(column)
                values.add(word)
                under.add(word)
        found = {"values": values.word} if under.word == values.word else {"values": values.word, "under": under.word}
        return found if self.names is None else {**found, **self.names.words}

    def file_facts(self) -> dict[str, Any]:
        return {} if self.names is None else self.names.stamps()

    @cached_property
    def names(self) -> "Names | None":
        """The texts that name files, if the first text of a component is the path of an existing file."""
        from distinput.files.facts import Names

        texts = [
            column for column in self.block.columnar().columns if isinstance(column, Strings) and column.starts.size
        ]
        found = [column for column in texts if Names(column.rows(0, 1)).local]
        if len(found) > 1:
            found = [Strings.of([text for column in found for text in texts_of(column)])]
        return Names(found[0]) if found else None


@dataclass(frozen=True, eq=False)
class SlicesInTurn(Node):
    """The elements of several sources in memory, one source after the other; a `concatenate` of them becomes this.

    State: the row.

    Args:
      sources: at least two.
      common: the spec that all elements fit.
    """

    in_memory: ClassVar[bool] = True
    view_only: ClassVar[bool] = True
    by_element: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    sources: tuple[Slices, ...]
    common: Spec

    @cached_property
    def spec(self) -> Spec:
        return self.common

    def arguments(self) -> dict[str, Any]:
        return {"sources": len(self.sources)}

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @cached_property
    def ends(self) -> Ints:
        """[sources + 1] the number of rows before each source, and of all rows."""
        return np.cumsum([0, *[source.cardinality for source in self.sources]], dtype=np.int64)

    @property
    def cardinality(self) -> int:
        return int(self.ends[-1])

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def start_at(self, row: int, epoch: int) -> State:
        return {"row": row}

    def stream(self, state: State, run: Run) -> Stream:
        parts = self._parts(state["row"])
        for block, end in _together(parts) if run.by_element else parts:
            yield block, {"row": end}

    def _parts(self, row: int) -> Iterator[tuple[Block, int]]:
        """Blocks of the rows from `row` on, of one source each, and where each block ends."""
        first = int(np.searchsorted(self.ends, row, "right")) - 1
        for source, begin in zip(self.sources[first:], self.ends[first:].tolist(), strict=False):
            for block, end in rows_from(source.block, max(0, row - begin)):
                yield block, begin + end

    @property
    def random_access(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        which = np.searchsorted(self.ends, rows, "right") - 1
        used = np.unique(which).tolist() or [0]
        places = [np.flatnonzero(which == number) for number in used]
        parts = [
            self.sources[number].fetch(rows[place] - self.ends[number], epoch)
            for number, place in zip(used, places, strict=True)
        ]
        return put_in_order(parts, places)


def _nodes_word(column: Datasets) -> str:
    def told(item: Any) -> Any:
        return list(map(told, item)) if isinstance(item, tuple | list) else [step.identity for step in item.steps]

    return Digest(8).add(told(column.items)).word


def _together(parts: Iterator[tuple[Block, int]]) -> Iterator[tuple[Block, int]]:
    """The same rows, with several small sources in one block, not copied: a block costs too much for a few rows."""
    while some := list(islice(parts, _TOGETHER)):
        blocks = [block for block, _ in some]
        rows = sum([block.size for block in blocks])
        joined = chunked(blocks, 0, rows) if len(blocks) > 1 and rows <= MOST_ROWS else None
        yield from some if joined is None else [(joined, some[-1][1])]


def from_tensors(tensors: Any) -> Slices:
    """The source of `Dataset.from_tensors`."""
    structure = structure_of(tensors)
    columns = []
    for leaf in structure.flatten(tensors):
        listed = _listed(leaf)
        columns.append(column_of([as_leaf(leaf)]) if listed is None else Datasets([listed], STRING))
    return Slices(ColumnBlock(structure, columns, 1), "1 element")


def from_tensor_slices(tensors: Any) -> Slices:
    """The source of `Dataset.from_tensor_slices`."""
    structure = structure_of(tensors)
    columns: list[Column] = []
    sizes = []
    for leaf, path in zip(structure.flatten(tensors), structure.paths, strict=True):
        if is_arrow(leaf):
            columns.append(_from_arrow(leaf, path or "of the element"))
            sizes.append(len(leaf))
            continue
        listed = _listed(leaf)
        if listed is not None:
            columns.append(Datasets(list(listed), STRING))
            sizes.append(len(listed))
            continue
        value = as_leaf(leaf)
        if isinstance(value, Node) or not shape_of(value):
            raise InvalidArgumentError(
                f"from_tensor_slices: {component(path)} must have a first axis to slice, got "
                f"{'a dataset' if isinstance(value, Node) else 'a scalar'}; use from_tensors for a single element"
            )
        sizes.append(len(value))
        columns.append(_slices_of(value))
    if len(set(sizes)) > 1:
        shown = ", ".join(f"{p}: {n}" for p, n in zip(structure.paths, sizes, strict=True))
        raise InvalidArgumentError(
            f"from_tensor_slices: all components must have the same first dimension, got {shown}"
        )
    if not sizes:
        raise InvalidArgumentError("from_tensor_slices: the element must have at least one component")
    described = ", ".join(f"{'string' if c.dtype == STRING else c.dtype}" for c in columns)
    return Slices(ColumnBlock(structure, columns, sizes[0]), f"{sizes[0]} rows of {described}")


def _listed(leaf: Any) -> tuple[Node, ...] | None:
    """The nodes of a list or array of datasets; None for any other leaf."""
    if not isinstance(leaf, list) and not (isinstance(leaf, np.ndarray) and leaf.dtype == STRING and leaf.ndim == 1):
        return None
    nodes: list[Any] = [getattr(item, "node", item) for item in leaf]
    if not nodes or not any(isinstance(node, Node) for node in nodes):
        return None
    others = [item for item in nodes if not isinstance(item, Node)]
    if others:
        raise InvalidArgumentError(f"a list of datasets must hold nothing else, got {others[0]!r}")
    datasets_spec(nodes)
    return tuple(nodes)


def _from_arrow(array: Any, name: str) -> Column:
    try:
        return to_column(array, name)
    except (NullsError, UnsupportedTypeError) as error:
        raise InvalidArgumentError(f"from_tensor_slices: {error}; fill it, or cast it to another type") from None
    except ArrowDamageError as error:
        raise InvalidArgumentError(f"from_tensor_slices: the array is damaged: {error}") from error


def _slices_of(array: np.ndarray[Any, Any]) -> Column:
    return Strings.of_array(array) if array.dtype == STRING else Dense(array)


def rows_node(block: Block, leaves: tuple[LeafSpec, ...] | None = None) -> Slices:
    """Rows cut from a stream, as a dataset of their own (for `window` and `group_by_window`)."""
    return Slices(block, f"{block.size} rows", leaves)
