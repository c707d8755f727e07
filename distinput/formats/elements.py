# SPDX-License-Identifier: Apache-2.0
"""Elements of any spec in Arrow IPC files, exactly as they were: what `save`, `snapshot` and a cache on disk write and read."""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from pyarrow import types

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column, Dense, Ints, Strings
from distinput.columns.picked import RowArray
from distinput.columns.python_values import made_json, with_made
from distinput.columns.ragged import Arrays, Datasets, Objects, Ragged, RaggedBatches, column_of_ragged
from distinput.columns.regroup import column_of, loose_rows
from distinput.errors import DataLossError
from distinput.formats.arrow_file import ArrowFile
from distinput.formats.arrow_ipc import ArrowIpc
from distinput.formats.format import Fragment, PlacedBlocks, Position
from distinput.formats.tables import TableFormat
from distinput.names.lazy import dataclass
from distinput.values.leaves import STRING, as_leaf, is_ragged, shape_of, zero
from distinput.values.nest import Structure
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import LeafSpec, OptionalSpec, RaggedTensorSpec, Spec, TensorSpec, no_rows
from distinput.values.spec_json import leaves_of_json, spec_json, spec_of_json

# ----------------------------------------------------------------------------
# Leaves of any dtype and shape as columns that Arrow has types for, and back, exactly.
#
# Each leaf has one of five encodings, which follow from its spec alone:
#
# * `PLAIN`: numbers, text and rows of them whose sizes are known, except for the first. Arrow holds them as they are, in
#   views of the file; a dtype that Arrow lacks (complex numbers, other byte orders, ...) is kept as other numbers of the
#   same bytes.
# * `LISTS`: ragged tensors, as lists of lists.
# * `SHAPED`: arrays of which more sizes are unknown, or of an unknown rank: values and their shape.
# * `SPLIT`: ragged tensors whose values have unknown sizes: values, their shape, and the lengths of the rows.
# * `OPTIONAL`: Optionals: whether there is a value, and the leaves of the value, which stand for nothing where there is none.
# ----------------------------------------------------------------------------


PLAIN, LISTS, SHAPED, SPLIT, OPTIONAL = "plain", "lists", "shaped", "split", "optional"

_INT64 = np.dtype(np.int64)
_TIMES = ("s", "ms", "us", "ns")


def encoding_of(leaf: LeafSpec) -> str:
    """How values of this spec are kept."""
    if isinstance(leaf, OptionalSpec):
        return OPTIONAL
    assert isinstance(leaf, TensorSpec), "datasets are refused"
    shape = leaf.shape
    if leaf.ragged_rank:
        assert shape is not None
        return LISTS if all(shape[leaf.ragged_rank + 1 :]) else SPLIT
    return PLAIN if shape is not None and all(shape[1:]) and shape[:1] != (0,) else SHAPED


def stored_spec(leaf: LeafSpec) -> Any:
    """The spec of what is kept of a leaf: a `TensorSpec` or a dict of them."""
    if isinstance(leaf, OptionalSpec):
        inner = Spec.of(leaf.element_spec).leaves
        return {"present": TensorSpec([], "bool"), **{str(i): stored_spec(each) for i, each in enumerate(inner)}}
    assert isinstance(leaf, TensorSpec), "datasets are refused"
    dtype, more = _stored(leaf.dtype)
    shape = leaf.shape
    match encoding_of(leaf):
        case "plain":
            assert shape is not None
            return TensorSpec((*shape, *more), dtype)
        case "lists":
            assert shape is not None
            rank = leaf.ragged_rank
            assert rank is not None
            return RaggedTensorSpec((None,) * (rank + 1) + (*shape[rank + 1 :], *more), dtype, rank)
        case "shaped":
            return {"shape": TensorSpec([None], np.int64), "values": TensorSpec([None, *more], dtype)}
    splits = RaggedTensorSpec([None, None], np.int64, 1)
    return {"shape": TensorSpec([None], np.int64), "splits": splits, "values": TensorSpec([None, *more], dtype)}


def encoded(column: Column, leaf: LeafSpec) -> Any:
    """The rows of a leaf as they are kept: a column, or a dict of them."""
    if isinstance(leaf, OptionalSpec):
        return _encoded_optionals(list(column.values()), Spec.of(leaf.element_spec))
    assert isinstance(leaf, TensorSpec), "datasets are refused"
    column = column.materialize()
    match encoding_of(leaf):
        case "plain":
            return _as_stored(_joined(column, leaf), leaf.dtype)
        case "lists":
            return _as_stored(column, leaf.dtype)
        case "shaped":
            rows = list(column.values())
            shapes = _spans([np.asarray(shape_of(row), _INT64) for row in rows], _INT64)
            return {"shape": shapes, "values": _as_stored(_spans([_flat(row) for row in rows], leaf.dtype), leaf.dtype)}
    tensors = list(column.values())
    values = [tensor.flat_values for tensor in tensors]
    splits: list[Any] = [_splits(tensor) for tensor in tensors]
    return {
        "shape": _spans([np.asarray(shape_of(value), _INT64) for value in values], _INT64),
        "splits": column_of_ragged(splits) if splits else RaggedBatches(_spans([], _INT64), _NONE, _NONE),
        "values": _as_stored(_spans([_flat(value) for value in values], leaf.dtype), leaf.dtype),
    }


def _encoded_optionals(rows: list[Any], spec: Spec) -> dict[str, Any]:
    present = [row.has_value() for row in rows]
    nothing = [_nothing(leaf) for leaf in spec.leaves]
    values = [
        spec.structure.flatten(row.get_value()) if there else nothing for row, there in zip(rows, present, strict=True)
    ]
    made: dict[str, Any] = {"present": Dense(np.array(present, bool))}
    for i, leaf in enumerate(spec.leaves):
        items = [as_leaf(value[i]) for value in values]
        if isinstance(leaf, RaggedTensorSpec) and leaf.ragged_rank == 0:
            items = [np.asarray(item) for item in items]
        made[str(i)] = encoded(column_of(items, getattr(leaf, "dtype", None)), leaf)
    return made


def _nothing(leaf: LeafSpec) -> Any:
    """What stands for the value that an Optional does not have."""
    if isinstance(leaf, OptionalSpec):
        return leaf.value_type.empty(leaf.element_spec)
    assert isinstance(leaf, TensorSpec), "datasets are refused"
    shape = tuple([size or 0 for size in leaf.shape or ()])
    return no_rows(leaf, shape[1:]) if leaf.ragged_rank else zero(leaf.dtype, shape)


def _decoded_optionals(columns: Any, leaf: OptionalSpec) -> Column:
    spec = Spec.of(leaf.element_spec)
    kept = [decoded(columns[str(i)], each, checked=False) for i, each in enumerate(spec.leaves)]
    present = columns["present"].materialize().array.tolist()
    rows = zip(*[column.values() for column in kept], strict=True) if kept else [()] * len(present)
    items = [
        leaf.value_type(spec.structure.build(row), leaf.element_spec)
        if there
        else leaf.value_type.empty(leaf.element_spec)
        for there, row in zip(present, rows, strict=True)
    ]
    return Datasets(items, STRING)


def decoded(columns: Any, leaf: LeafSpec, checked: bool = True) -> Column:
    """The rows of a leaf from what was kept of them; views where that is possible.

    Args:
      columns: what was kept.
      leaf: the spec.
      checked: whether each row must fit it; what stands for the value of an empty Optional may not.

    Raises:
      DataLossError: shapes and values do not fit each other, or the spec.
    """
    if isinstance(leaf, OptionalSpec):
        return _decoded_optionals(columns, leaf)
    assert isinstance(leaf, TensorSpec), "datasets are refused"
    kind = encoding_of(leaf)
    if kind == PLAIN:
        made = _from_stored(columns, leaf)
        return loose_rows(made) if leaf.ragged_rank == 0 and isinstance(made, Ragged) else made
    if kind == LISTS:
        ragged: Column = _from_stored(columns, leaf)
        if checked:
            _check_lists(ragged, leaf)
        return ragged
    values = _from_stored(columns["values"], leaf)
    shapes = [tuple(shape.tolist()) for shape in columns["shape"].values()]
    try:
        rows = [_shaped(value, shape) for value, shape in zip(values.values(), shapes, strict=True)]
        if kind == SPLIT:
            rows = [_ragged(row, splits) for row, splits in zip(rows, columns["splits"].values(), strict=True)]
    except _MisfitError as error:
        raise DataLossError(f"an array does not fit the shape that is kept with it: {error}") from error
    for row in rows if checked else ():
        if not leaf.fits_value(row):
            raise DataLossError(f"an array has the shape {shape_of(row)}, and the spec says {leaf.shape}")
    return column_of(rows, leaf.dtype) if rows else _no_rows(leaf)


def _check_lists(column: Any, leaf: TensorSpec) -> None:
    """Refuse ragged tensors of which a size that is known is another one.

    Raises:
      DataLossError: there is one.
    """
    assert leaf.shape is not None
    assert leaf.ragged_rank is not None
    for size in leaf.shape[: leaf.ragged_rank + 1]:
        if size is not None and (column.sizes != size).any():
            raise DataLossError(
                f"a ragged tensor has {column.sizes.tolist()[:10]} rows, and the spec says {leaf.shape}"
            )
        column = column.flat


_NONE: Ints = np.empty(0, np.int64)


def _no_rows(leaf: TensorSpec) -> Column:
    if leaf.ragged_rank:
        flat: Any = _spans([], leaf.dtype)
        for _ in range(leaf.ragged_rank):
            flat = RaggedBatches(flat, _NONE, _NONE)
        return flat  # type: ignore[no-any-return]
    return Objects([], leaf.dtype)


def _stored(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """The dtype that a dtype is kept as, and the dimensions that each value has then."""
    if dtype == STRING or dtype.kind == "b":
        return dtype, ()
    if dtype.kind in "iuf" and dtype.itemsize <= 8:
        return dtype.newbyteorder("="), ()
    if dtype.kind in "mM":
        unit, count = np.datetime_data(dtype)
        kept = dtype.newbyteorder("=")
        return (kept if unit in _TIMES and count == 1 else _INT64), ()
    if dtype.kind == "c" and dtype.itemsize <= 16:
        return np.dtype(f"f{dtype.itemsize // 2}"), (2,)
    return np.dtype(np.uint8), (dtype.itemsize,)


def _as_stored(column: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(column, Ragged | RaggedBatches):
        return type(column)(_as_stored(column.flat, dtype), column.starts, column.sizes)
    if not isinstance(column, Dense):
        return column
    array, (kept, more) = column.array, _stored(dtype)
    if array.dtype == kept:
        return column
    if not array.dtype.isnative and array.dtype.kind in "iufcmM":
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.size:
        return Dense(np.empty((*array.shape, *more), kept))
    flat = np.ascontiguousarray(array).reshape(-1)
    return Dense(flat.view(kept).reshape((*array.shape, *more)))


def _from_stored(column: Any, leaf: TensorSpec) -> Any:
    dtype = leaf.dtype
    _, more = _stored(dtype)
    if isinstance(column, Ragged | RaggedBatches):
        return type(column)(_from_stored(column.flat, leaf), column.starts, column.sizes)
    if column.dtype == dtype:
        return column  # it may be lazy, and stays so
    column = column.materialize()
    if not isinstance(column, Dense):
        raise DataLossError(f"a column of {column.dtype} cannot hold {dtype}")
    array = column.array
    shape = array.shape[: array.ndim - len(more)]
    native = dtype.newbyteorder("=") if dtype.kind in "iufcmM" else dtype
    if not array.size:
        return Dense(np.empty(shape, dtype))
    made = np.ascontiguousarray(array).reshape(-1).view(native).reshape(shape)
    return Dense(made if native == dtype and native.isnative == dtype.isnative else made.astype(dtype))


def _joined(column: Column, leaf: TensorSpec) -> Column:
    """Rows side by side, whose first dimension alone may differ."""
    if isinstance(column, Arrays):
        return column.joined()
    if isinstance(column, Objects):
        made = column_of(column.items, leaf.dtype)
        return made.joined() if isinstance(made, Arrays) else made
    return column


def _spans(rows: Iterable[Any], dtype: np.dtype[Any]) -> Ragged:
    """Arrays of one dimension as rows."""
    arrays = list(rows)
    sizes = np.fromiter(map(len, arrays), np.int64, len(arrays))
    if dtype == STRING:
        flat: Dense | Strings = Strings.of([item for array in arrays for item in array.tolist()])
    else:
        flat = Dense(np.concatenate(arrays) if arrays else np.empty(0, dtype))
    return Ragged(flat, np.cumsum(sizes) - sizes, sizes)


def _flat(value: Any) -> Any:
    """All values of an array or scalar, [n]."""
    if isinstance(value, bytes):
        made = np.empty(1, object)
        made[0] = value
        return made
    return np.asarray(value).reshape(-1)


class _MisfitError(Exception):
    """Shapes and values do not fit each other."""


def _shaped(values: Any, shape: tuple[int, ...]) -> Any:
    if any(size < 0 for size in shape) or prod(shape) != len(values):
        raise _MisfitError(f"{len(values)} values of shape {list(shape)}")
    return values.reshape(shape) if shape else values[0]


def _splits(tensor: RaggedTensor) -> RaggedTensor:
    """The row lengths of each level, as the rows of a ragged tensor."""
    levels, at = [], tensor
    while is_ragged(at):
        levels.append(np.asarray(at.row_lengths(), np.int64))
        at = at.values
    return RaggedTensor.from_row_lengths(np.concatenate(levels), [len(level) for level in levels])


def _ragged(values: Any, lengths: RaggedTensor) -> Any:
    for level in reversed(list(lengths)):
        if (level < 0).any() or int(level.sum()) != len(values):
            raise _MisfitError(f"{len(values)} values in rows of {level.tolist()[:10]}")
        values = RaggedTensor.from_row_lengths(values, level)
    return values


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
    maps = lists_fragments = True
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
        spec, leaves, columns = _kept(self.layout, self.given)
        # Equal specs may make different dicts of the same leaves.
        return (spec if self.given is None else self.given), leaves, columns

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

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
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


class _Columns(ArrowIpc):
    """Files of columns without nulls, except in the place of NaT, for which Arrow has no other value."""

    def _converted(self, file: ArrowFile, part: str, batch: Any, rows: range) -> ColumnBlock:
        if not all(map(_is_whole, batch.columns)):
            raise DataLossError(f"{file.path}: damaged: {part} holds nulls, and elements have none")
        return super()._converted(file, part, batch, rows)


def _is_whole(array: Any) -> bool:
    """Whether an array of Arrow has no nulls, at any depth, but those of times."""
    if array.null_count:
        return bool(types.is_temporal(array.type))
    if types.is_struct(array.type):
        return all(map(_is_whole, array.flatten()))
    return not types.is_nested(array.type) or _is_whole(array.flatten())


_ARROW = _Columns()
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
    spec, leaves = spec_of_layout(layout, given), leaves_of_json(json.loads(layout))
    try:
        return spec, leaves, stored(Spec(spec.structure, leaves))
    except RecursionError as error:
        raise DataLossError(f"the spec of the elements is damaged: {error}") from error


def layout_of(spec: Spec) -> str:
    """The layout of elements: their spec, and the text and rows of Python that are made of them.

    Raises:
      InvalidArgumentError: a component is a dataset, or a key of a dict cannot be saved.
    """
    return json.dumps(spec_json(spec, "write", made_json))


def spec_of_layout(layout: str, given: Spec | None = None) -> Spec:
    """The spec of the elements of a layout, with what is made of them.

    Args:
      layout: see `layout_of`.
      given: the spec that they are read as, if it is another one that they fit.

    Raises:
      DataLossError: the layout is damaged.
      InvalidArgumentError: the elements are not as `given` says.
    """
    try:
        value = json.loads(layout)
    except (ValueError, RecursionError) as error:
        raise DataLossError(f"the spec of the elements is damaged: {error}") from error
    return spec_of_json(value, given, with_made)
