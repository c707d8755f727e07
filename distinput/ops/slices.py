# SPDX-License-Identifier: Apache-2.0
"""`from_tensors` and `from_tensor_slices`: elements that are in memory."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Column
from distinput.core.dense import Dense
from distinput.core.digest import Digest, common_folder, texts_of, word_of
from distinput.core.leaves import STRING, as_leaf, is_arrow_array, is_ragged, is_table, shape_of
from distinput.core.nest import component, structure_of
from distinput.core.objects import Datasets, column_of
from distinput.core.spec import LeafSpec, array_spec
from distinput.core.strings import Strings
from distinput.errors import InvalidArgumentError
from distinput.plan.check import refuse_sparse
from distinput.plan.in_memory import Rows, datasets_spec, leaf_spec
from distinput.plan.node import Node

if TYPE_CHECKING:
    from distinput.files.facts import Names
    from distinput.files.storage import Storage

__all__ = ["Slices", "from_tensor_slices", "from_tensors", "rows_node"]


@dataclass(frozen=True, eq=False)
class Slices(Rows):
    """The rows of a block that is in memory.

    Shapes: those of the block's rows. State: the next row.

    Args:
      block: the elements.
      description: what to print for them.
      leaves: what is known of the elements beyond what the rows themselves show, for blocks cut from a stream.
      storage: what opens the files that the elements name; it goes where the node is sent, and nothing prints it.

    Source: `tf.data.Dataset.from_tensor_slices`.
    """

    storage: "Storage | None" = field(default=None, kw_only=True, repr=False)

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


def _nodes_word(column: Datasets) -> str:
    def told(item: Any) -> Any:
        return list(map(told, item)) if isinstance(item, tuple | list) else [step.identity for step in item.steps]

    return Digest(8).add(told(column.items)).word


def from_tensors(tensors: Any) -> Slices:
    """The source of `Dataset.from_tensors`."""
    structure = structure_of(tensors)  # in which tables are dicts of arrays
    columns: list[Column] = []
    for leaf in structure.flatten(tensors):
        listed = _listed(leaf)
        if listed is not None:
            columns.append(Datasets([listed], STRING))
            continue
        value = as_leaf(leaf)
        columns.append(column_of([value.copy() if isinstance(value, np.ndarray) else value]))
    return Slices(ColumnBlock(structure, columns, 1), "1 element")


def from_tensor_slices(tensors: Any, who: str = "from_tensor_slices") -> Slices:
    """The source of `Dataset.from_tensor_slices`, for anything but a table alone; `who` is the caller, for errors."""
    tensors = _with_columns(tensors, who)
    structure = structure_of(tensors)
    refuse_sparse(who, structure)
    columns: list[Column] = []
    leaves: dict[int, LeafSpec] = {}  # what columns do not show: whether their rows are those of ragged tensors
    sizes = []
    for leaf, path in zip(structure.flatten(tensors), structure.paths, strict=True):
        if is_arrow_array(leaf):
            leaf = _of_arrow(leaf, path or "of the element", who)
        if isinstance(leaf, Column):
            columns.append(leaf)
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
                f"{who}: {component(path)} must have a first axis to slice, got "
                f"{'a dataset' if isinstance(value, Node) else 'a scalar'}; use from_tensors for a single element"
            )
        sizes.append(len(value))
        columns.append(_slices_of(value))
        if is_ragged(value):
            rows = array_spec(value)
            leaves[len(columns) - 1] = rows.with_shape(rows.shape[1:])  # type: ignore[index]  # its rank is known
    if len(set(sizes)) > 1:
        shown = ", ".join(f"{p}: {n}" for p, n in zip(structure.paths, sizes, strict=True))
        raise InvalidArgumentError(f"{who}: all components must have the same first dimension, got {shown}")
    if not sizes:
        raise InvalidArgumentError(f"{who}: the element must have at least one component")
    described = ", ".join(f"{'string' if c.dtype == STRING else c.dtype}" for c in columns)
    known = tuple([leaves.get(i) or leaf_spec(column) for i, column in enumerate(columns)]) if leaves else None
    return Slices(ColumnBlock(structure, columns, sizes[0]), f"{sizes[0]} rows of {described}", known)


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


def _with_columns(tensors: Any, who: str) -> Any:
    """The same nest with a dict of columns in the place of each table."""
    structure = structure_of(tensors, is_leaf=is_table)
    leaves = structure.flatten(tensors)
    if not any(map(is_table, leaves)):
        return tensors
    return structure.build([_columns(leaf, who) if is_table(leaf) else leaf for leaf in leaves])


def _columns(table: Any, who: str) -> dict[str, Any]:
    """The columns of a table by name; a struct is a dict of columns."""
    from distinput.core.tabular import table_of

    try:
        read = table_of(table)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{who}: {error}") from error
    fields = zip(read.schema, read.columns, strict=True)
    return {field.name: _from_arrow(column, field.name, who, structs=True) for field, column in fields}


def _of_arrow(value: Any, name: str, who: str) -> Any:
    from distinput.core.tabular import arrow_array_of

    return _from_arrow(arrow_array_of(value), name, who)


def _from_arrow(array: Any, name: str, who: str, structs: bool = False) -> Any:
    from distinput.core.arrow import NullsError, UnsupportedTypeError, to_column, to_columns
    from distinput.core.arrow_damage import ArrowDamageError

    try:
        return to_columns(array, name) if structs else to_column(array, name)
    except NullsError as error:
        raise InvalidArgumentError(
            f"{who}: {error}; fill it, or cast it to another type; from_arrow has options for nulls"
        ) from None
    except UnsupportedTypeError as error:
        raise InvalidArgumentError(f"{who}: {error}; fill it, or cast it to another type") from None
    except ArrowDamageError as error:
        raise InvalidArgumentError(f"{who}: the array is damaged: {error}") from error


def _slices_of(array: Any) -> Column:
    if is_ragged(array):
        from distinput.core.ragged_batches import rows_column

        return rows_column(array)
    return Strings.of_array(array) if array.dtype == STRING else Dense(array)


def rows_node(block: Block, leaves: tuple[LeafSpec, ...] | None = None) -> Slices:
    """Rows cut from a stream, as a dataset of their own (for `window` and `group_by_window`)."""
    return Slices(block, f"{block.size} rows", leaves)
