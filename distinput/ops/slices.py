# SPDX-License-Identifier: Apache-2.0
"""`from_tensors` and `from_tensor_slices`: elements that are in memory, of one source or of several in turn."""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from distinput.arrow.adopt import adopt, arrow_array_of, is_arrow_array, is_table, library_of, look_of, table_of
from distinput.columns.block import MOST_ROWS, Block, ColumnBlock
from distinput.columns.column import Column, Dense, Ints, Strings, array_column
from distinput.columns.ragged import Datasets, rows_column
from distinput.columns.regroup import column_of
from distinput.columns.rows import Stream, chunked
from distinput.columns.state import Digest, State, common_folder, texts_of, word_of
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.names.lazy import dataclass, later
from distinput.plan.families import Rows, datasets_spec, leaf_spec, rows_from
from distinput.plan.node import Node
from distinput.run.run import Run
from distinput.values.leaves import STRING, as_eager_leaf, as_leaf, as_leaves, is_ragged, shape_of
from distinput.values.nest import Structure, component, structure_of
from distinput.values.spec import LeafSpec, Spec, array_spec, dense_shape_spec

if TYPE_CHECKING:
    from distinput.arrow import arrow
    from distinput.columns import picked, sparse_rows
    from distinput.files import manifest
    from distinput.files.manifest import NamesFingerprint
    from distinput.files.mounts import Storage
else:
    manifest = later("distinput.files.manifest")  # what names of files say is for states
    sparse_rows = later("distinput.columns.sparse_rows")  # few elements are sparse
    picked = later("distinput.columns.picked")  # and few are reached by position
    arrow = later("distinput.arrow.arrow")  # arrays of Arrow are few of those that are sliced


# ----------------------------------------------------------------------------
# `from_tensors` and `from_tensor_slices`: elements that are in memory.
# ----------------------------------------------------------------------------


_COPIED_BYTES = 1 << 20
"""Up to this size arrays are copied when a dataset is made of them, since programs fill small ones again."""

_MANY_ROWS = 64
"""From this many rows on, looking at the arrays costs less than fetching does."""


@dataclass(frozen=True, eq=False)
class Slices(Rows):
    """The rows of a block that is in memory.

    Shapes: those of the block's rows. State: the next row.

    Args:
      block: the elements.
      description: what to print for them.
      leaves: what is known of the elements beyond what the rows themselves show, for blocks cut from a stream.
      storage: what opens the files that the elements name; it goes where the node is sent, and nothing prints it.
      looks: how the memory of some columns, which the user may still write to, looked when the dataset was made.

    Source: `tf.data.Dataset.from_tensor_slices`.
    """

    storage: "Storage | None" = field(default=None, kw_only=True, repr=False)
    looks: dict[int, bytes] = field(default_factory=dict, kw_only=True, repr=False)

    def stream(self, state: State, run: Run) -> Stream:
        self.check()
        yield from super().stream(state, run)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        if len(rows) >= _MANY_ROWS:
            self.check()
        return super().fetch(rows, epoch)

    def check(self) -> None:
        """Refuse an array that was changed after the dataset was made of it.

        Raises:
          FailedPreconditionError: one was, as far as a few of its values tell.
        """
        for place, look in self.looks.items():
            array = _memory_of(self.block.columnar().columns[place])
            if array is not None and look_of(array) != look:
                raise FailedPreconditionError(
                    f"from_tensor_slices: {component(self.block.structure.paths[place])} was changed after the dataset was "
                    f"made of it; an array of more than {_COPIED_BYTES >> 20} MiB is not copied: give a copy, or make the "
                    "dataset again"
                )

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

    @cached_property
    def file_of_each(self) -> tuple[str, ...]:
        """The file that each element names; empty: they name none, or each of them several."""
        names = self.names
        return () if names is None or names.words["files"] != self.block.size else names.paths()

    def place_of(self, state: State, ahead: int) -> dict[str, Any] | None:
        row = state["row"] + ahead
        return {"file": self.file_of_each[row], "row": 0} if 0 <= row < len(self.file_of_each) else None

    def file_facts(self) -> dict[str, Any]:
        return {} if self.names is None else self.names.stamps()

    @cached_property
    def names(self) -> "NamesFingerprint | None":
        """The texts that name files, if the first text of a component is the path of an existing file."""
        texts = [
            column for column in self.block.columnar().columns if isinstance(column, Strings) and column.starts.size
        ]
        found = [column for column in texts if manifest.NamesFingerprint(column.rows(0, 1)).local]
        if len(found) > 1:
            found = [Strings.of([text for column in found for text in texts_of(column)])]
        return manifest.NamesFingerprint(found[0]) if found else None


def _nodes_word(column: Datasets) -> str:
    def told(item: Any) -> Any:
        if getattr(item, "is_optional", False):
            value = item.get_value() if item.has_value() else ()
            leaves = as_leaves(structure_of(value).flatten(value), structure_of(value).paths)
            words = [word_of(column_of([leaf])) for leaf in leaves]
            return ["Optional", repr(item.element_spec), item.has_value(), *words]
        return list(map(told, item)) if isinstance(item, tuple | list) else [step.identity for step in item.steps]

    return Digest(8).add(told(column.items)).word


def from_tensors(tensors: Any) -> Slices:
    """The source of `Dataset.from_tensors`."""
    tensors = adopt(tensors)
    structure = structure_of(tensors)
    columns: list[Column] = []
    for leaf in structure.flatten(tensors):
        listed = _listed(leaf)
        if listed is not None:
            columns.append(Datasets([listed], STRING))
            continue
        value = as_eager_leaf(leaf)
        columns.append(column_of([value.copy() if isinstance(value, np.ndarray) or is_ragged(value) else value]))
    made = Slices(ColumnBlock(structure, columns, 1), "1 element")
    return replace(made, leaves=_with_sizes(structure, columns, made.spec.leaves)) if structure.sparse else made


def _with_sizes(structure: Structure, columns: Sequence[Column], leaves: tuple[LeafSpec, ...]) -> tuple[LeafSpec, ...]:
    """The specs, with the sizes that sparse tensors have."""
    known = list(leaves)
    for first in structure.sparse:
        sizes = {tuple(shape.tolist()) for shape in columns[first + 2].values()}
        if len(sizes) == 1:
            known[first + 2] = dense_shape_spec(sizes.pop())
    return tuple(known)


def from_tensor_slices(tensors: Any, who: str = "from_tensor_slices") -> Slices:
    """The source of `Dataset.from_tensor_slices`, for anything but a table alone; `who` is the caller, for errors."""
    given, (tensors, structure) = tensors, _with_columns(tensors, who)
    columns: list[Column] = []
    others = given is not tensors  # tables, which pandas or polars may hold
    leaves: dict[int, LeafSpec] = {}  # what columns do not show: whether their rows are those of ragged tensors
    sizes = []
    members = structure.folded
    for leaf, path in zip(members.flatten(tensors), members.paths, strict=True):
        if is_arrow_array(leaf):
            others = others or library_of(type(leaf)) != "pyarrow"
            leaf = _from_arrow(arrow_array_of(leaf), path or "value", who)
        if getattr(leaf, "is_sparse", False):
            columns += _rows_of_sparse(leaf, path, who).columns
            leaves[len(columns) - 1] = dense_shape_spec(leaf.shape[1:])
        elif isinstance(leaf, Column):
            columns.append(leaf)
        elif (listed := _listed(leaf)) is not None:
            columns.append(Datasets(list(listed), STRING))
        else:
            value = as_eager_leaf(leaf)
            held = getattr(value, "nest_leaf", False)
            if held or not shape_of(value):
                raise InvalidArgumentError(
                    f"{who}: {component(path)} must have a first axis to slice, got "
                    f"{value.leaf_spec.called if held else 'a scalar'}; use from_tensors for a single element"
                )
            columns.append(rows_of(value))
            if is_ragged(value):
                rows = array_spec(value)
                leaves[len(columns) - 1] = rows.with_shape(rows.shape[1:])  # type: ignore[index]  # its rank is known
        sizes.append(len(columns[-1]))
    if len(set(sizes)) > 1:
        shown = ", ".join(f"{p}: {n}" for p, n in zip(members.paths, sizes, strict=True))
        raise InvalidArgumentError(f"{who}: all components must have the same first dimension, got {shown}")
    if not sizes:
        raise InvalidArgumentError(f"{who}: the element must have at least one component")
    described = ", ".join(f"{'string' if c.dtype == STRING else c.dtype}" for c in columns)
    known = tuple([leaves.get(i) or leaf_spec(column) for i, column in enumerate(columns)]) if leaves else None
    block = ColumnBlock(structure, columns, sizes[0])
    return slices_of(block, f"{sizes[0]} rows of {described}", known, others=others)


def _rows_of_sparse(leaf: Any, path: str, who: str) -> Any:
    """The rows of a sparse tensor, as a column."""
    try:
        return sparse_rows.SparseRows(*[column_of([as_leaf(part)]) for part in leaf]).unstack()
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{who}: {component(path)}: {error}") from None


def slices_of(
    block: ColumnBlock,
    description: str,
    leaves: tuple[LeafSpec, ...] | None = None,
    name: str | None = None,
    *,
    others: bool = False,
) -> Slices:
    """The rows of a block whose memory the user may write to: what is small is copied, a change of the rest is noticed.

    Args:
      block: the elements.
      description: what to print for them.
      leaves: what is known of the elements beyond what the rows themselves show.
      name: a label.
      others: whether another library may write to memory that is read-only here.
    """
    memory = {place: array for place, column in enumerate(block.columns) if (array := _memory_of(column)) is not None}
    large = {place: look_of(array) for place, array in memory.items() if array.nbytes > _COPIED_BYTES}
    columns = [
        column.copied() if place in memory and place not in large and (others or _may_change(memory[place])) else column
        for place, column in enumerate(block.columns)
    ]
    return Slices(ColumnBlock(block.structure, columns, block.size), description, leaves, looks=large, name=name)


def _may_change(array: Any) -> bool:
    """Whether somebody can write to the memory of an array, as far as NumPy knows."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


def _memory_of(column: Any) -> Any:
    """The array in which the numbers of a column are; None for text and for objects."""
    while hasattr(column, "flat"):
        column = column.flat
    return column.array if isinstance(column, Dense) else None


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


def _with_columns(tensors: Any, who: str) -> tuple[Any, Structure]:
    """The same nest with a dict of columns in the place of each table, and of each array of structs; and its structure."""
    structure = structure_of(tensors, is_leaf=is_table)
    leaves = structure.flatten(tensors)
    columns, parts = [], []
    for leaf, path in zip(leaves, structure.paths, strict=True):
        kind = None
        if is_table(leaf):
            leaf, kind = _columns(leaf, who)
        elif is_arrow_array(leaf) and path:
            array = arrow_array_of(leaf)
            kind = array.type
            leaf = _from_arrow(array, path, who, structs=True) if arrow.has_structs(kind) else leaf
        columns.append(leaf)
        parts.append(structure_of(leaf) if kind is None else arrow.as_told(structure_of(leaf), kind))
    if all(new is old for new, old in zip(columns, leaves, strict=True)):
        return tensors, structure.graft(parts)
    return structure.build(columns), structure.graft(parts)


def _columns(table: Any, who: str) -> tuple[dict[str, Any], Any]:
    """The columns of a table by name, and the type of a row; a struct is a dict of columns."""
    try:
        read = table_of(table)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{who}: {error}") from error
    fields = zip(read.schema, read.columns, strict=True)
    made = {field.name: _from_arrow(column, field.name, who, structs=True) for field, column in fields}
    return made, arrow.pa.struct(list(read.schema))


def _from_arrow(array: Any, name: str, who: str, structs: bool = False) -> Any:
    try:
        return arrow.to_columns(array, name) if structs else arrow.to_column(array, name)
    except arrow.NullsError as error:
        raise InvalidArgumentError(
            f"{who}: {error}; fill it, or cast it to another type; from_arrow has options for nulls"
        ) from None
    except arrow.UnsupportedTypeError as error:
        named = arrow.has_structs(array.type) and not structs
        cure = "give it a name, as in {'rows': array}" if named else "cast it to another type"
        raise InvalidArgumentError(f"{who}: {error}; {cure}") from None
    except arrow.ArrowDamageError as error:
        raise InvalidArgumentError(f"{who}: the array is damaged: {error}") from error


def rows_of(value: Any) -> Column:
    """The rows of an array or of a ragged tensor."""
    return rows_column(value) if is_ragged(value) else array_column(value)


def rows_node(block: Block, leaves: tuple[LeafSpec, ...] | None = None) -> Slices:
    """Rows cut from a stream, as a dataset of their own (for `window` and `group_by_window`)."""
    return Slices(block, f"{block.size} rows", leaves)


# ----------------------------------------------------------------------------
# Several sources in memory as one step; a rewrite makes it of `concatenate`.
# ----------------------------------------------------------------------------


_FIRST_TOGETHER, _TOGETHER = 16, 128
"""How many small sources are sent in the first block, so that it comes soon, and in each later one."""


@dataclass(frozen=True, eq=False)
class SlicesInTurn(Node):
    """The elements of several sources in memory, one source after the other; a `concatenate` of them becomes this.

    State: the row.

    Args:
      sources: at least two.
      common: the spec that all elements fit.
    """

    in_memory: ClassVar[bool] = True
    view_only = by_element = harmless = True
    random_access: ClassVar[bool] = True
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
            if source.looks:
                source.check()
            for block, end in rows_from(source.block.built_as(self.common.structure), max(0, row - begin)):
                yield block, begin + end

    def fetch(self, rows: Ints, epoch: int) -> Block:
        which = np.searchsorted(self.ends, rows, "right") - 1
        places = picked.places_of_each(which) or {0: which}
        parts = [self.sources[n].fetch(rows[place] - self.ends[n], epoch) for n, place in places.items()]
        return picked.put_in_order(parts, list(places.values())).built_as(self.common.structure)


def _together(parts: Iterator[tuple[Block, int]]) -> Iterator[tuple[Block, int]]:
    """The same rows, with several small sources in one block, not copied: a block costs too much for a few rows."""
    most = _FIRST_TOGETHER
    while some := list(islice(parts, most)):
        most = _TOGETHER
        blocks = [block for block, _ in some]
        rows = sum([block.size for block in blocks])
        joined = chunked(blocks, 0, rows) if len(blocks) > 1 and rows <= MOST_ROWS else None
        yield from some if joined is None else [(joined, some[-1][1])]
