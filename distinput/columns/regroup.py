# SPDX-License-Identifier: Apache-2.0
"""Columns of columns: values and rows put into groups, columns put one after the other, and taken apart again."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.columns.column import Array, Column, Dense, Ints, LazyColumn, SelfGrouped, StackError, Strings
from distinput.columns.ragged import (
    NO_ROWS,
    Arrays,
    Datasets,
    Objects,
    Ragged,
    RaggedBatches,
    Views,
    batches_of,
    column_of_arrays,
    column_of_ragged,
)
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import later
from distinput.values.buffers import empty
from distinput.values.leaves import (
    STRING,
    as_leaf,
    as_wide_leaf,
    cast_within,
    is_ragged,
    is_short_int,
    members_of,
    shape_of,
)
from distinput.values.spec import ElementsSpec, LeafSpec, Spec

if TYPE_CHECKING:
    from distinput.values import ragged_tensor
else:
    ragged_tensor = later("distinput.values.ragged_tensor")  # few elements are ragged

# ----------------------------------------------------------------------------
# Values of Python where somebody has stated what they are: numbers and lists have no dtype of their own, and take that one.
# ----------------------------------------------------------------------------


_BECOMES: dict[type, str] = {bool: "b", int: "iufc", float: "fc", complex: "c"}
"""The kinds of dtypes that a number of Python may become: an integer any number, a float no integer."""

_OF_PACKAGES = 2
"""`isbuiltin` of dtypes that a package has added."""


def as_nest(result: Any, said: Spec | None) -> Any:
    """What a function returned, with a tuple in the place of a list, unless an array is stated there.

    Source: the convention of `tf.data.Dataset.map`.
    """
    return tuple(result) if type(result) is list and (said is None or not said.structure.is_leaf) else result


def leaves_for(structure: Any, said: Spec | None) -> tuple[LeafSpec, ...] | None:
    """What is stated of the leaves of a nest; None if nothing is, or of another nest."""
    return said.leaves if said is not None and len(said.leaves) == structure.num_leaves else None


def as_stated(value: Any, leaf: LeafSpec | None, *, cast: bool = False) -> Any:
    """A value as a leaf, as `as_leaf` makes it, with the stated dtype where the value has none of its own.

    An empty list has no rank of its own either.

    Args:
      value: as users write it.
      leaf: what is stated; None: nothing.
      cast: a number of Python that the dtype does not take is an error (a float for integers, say), and True is 1;
        otherwise it keeps its own dtype.

    Raises:
      TypeError: the value cannot be an array, or no ragged tensor where one is stated, or `cast` refuses it.
      InvalidArgumentError: an integer does not fit into the dtype.

    >>> from distinput.values.spec import TensorSpec
    >>> as_stated([], TensorSpec([None, 2], "int64")).shape, as_stated(1, TensorSpec([], "float64"))
    ((0, 2), np.float64(1.0))
    """
    if leaf is None or isinstance(leaf, ElementsSpec):
        return as_leaf(value)
    listed = isinstance(value, list | tuple | range)
    if leaf.ragged_rank and listed:
        return ragged_tensor.RaggedTensor.from_list(value, leaf.dtype, leaf.ragged_rank)
    members = members_of(value) if listed else [value]
    if not members:
        return _empty(value, leaf)
    kinds = {next((base for base in _BECOMES if issubclass(kind, base)), None) for kind in set(map(type, members))}
    if None in kinds or leaf.dtype == STRING or (cast and any(isinstance(member, np.generic) for member in members)):
        wide = as_wide_leaf(value)
        return wide if cast or getattr(wide, "dtype", None) == leaf.dtype else as_leaf(value)
    short = is_short_int(leaf.dtype)
    own = "i" if short else leaf.dtype.kind
    added = leaf.dtype.isbuiltin == _OF_PACKAGES and not short
    became = {kind: _BECOMES[kind] if not cast or kind is not bool else "biufc" for kind in kinds if kind is not None}
    changed = [] if added else [kind for kind, those in became.items() if own not in those]
    if changed and cast:
        raise TypeError(f"{changed[0].__name__} becomes no {leaf.dtype}; state {changed[0].__name__}, or convert it")
    if changed:
        return as_leaf(value)
    try:
        with np.errstate(over="ignore"):
            made = cast_within(np.array(value), leaf.dtype) if short else np.array(value, leaf.dtype)
    except OverflowError:
        wrong = next(x for x in members if not _holds(leaf.dtype, x))
        raise InvalidArgumentError(
            f"the integer {wrong} does not fit into {leaf.dtype}, which is stated; state a wider dtype"
        ) from None
    except ValueError:  # lists of several lengths, say
        return as_leaf(value)
    if cast and own not in "biu" and not np.isfinite(made).all():
        cast_within(np.array(value, np.complex128 if complex in kinds else np.float64), leaf.dtype)
    return made if made.ndim else made[()]


def _holds(dtype: Any, number: Any) -> bool:
    try:
        np.array(number, dtype)
    except OverflowError:
        return False
    return True


def _empty(value: Any, leaf: Any) -> Any:
    """Lists without a member."""
    made = np.array(value, leaf.dtype)
    missing = [] if leaf.shape is None else list(leaf.shape)[made.ndim :]
    return made.reshape(made.shape + tuple([size or 0 for size in missing]))


# ----------------------------------------------------------------------------
# Columns of columns: rows put into groups, columns put one after the other, and the best column for values.
#
# The result may be of another kind than what it is made of: groups of equally long rows are dense, of others ragged; what
# fits no array is objects. So these functions stand above the kinds, and know all of them.
# ----------------------------------------------------------------------------


_FRESH_BYTES = 1 << 17
"""From this size on the allocator asks for fresh pages; smaller memory it recycles by itself."""


def column_of(items: list[Any], dtype: np.dtype[Any] | None = None) -> Column:
    """The best column for leaf values (see `as_leaf`) of one dtype. A single array is not copied.

    Raises:
      TypeError: the values differ in dtype.
    """
    return column_of_ragged(items) if items and is_ragged(items[0]) else column_of_arrays(items, dtype)


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
                return column_of_arrays(list(values))
        elif kind is bytes:
            return Strings.of(values)
        elif hasattr(kind, "__arrow_c_stream__") and hasattr(kind, "columns"):  # of which NumPy would make one array
            raise TypeError(f"cannot make an array of a {kind.__name__}, which is a table; adopt it first")
    return column_of([as_stated(value, said) for value in values])


def stack(column: Column, size: int) -> Column:
    """[n, ...] -> [n / size, size, ...]; n must be a multiple of size.

    Raises:
      StackError: rows of one group differ in shape.
      TypeError: they are datasets.
    """
    if type(column) is Dense:  # nearly always
        array = column.array
        return Dense(array.reshape(len(array) // size, size, *array.shape[1:]))
    if type(column) is Strings:
        return column.reshape((len(column) // size, size, *column.inner))
    if isinstance(column, LazyColumn):
        lazily = column.grouped(size)
        return stack(column.materialize(), size) if lazily is None else lazily
    if isinstance(column, SelfGrouped):
        return column.grouped_by(np.full(len(column) // size, size, np.int64))
    if isinstance(column, RaggedBatches) or (isinstance(column, Ragged) and column.loose):
        return batches_of(column, np.full(len(column) // size, size, np.int64))
    if isinstance(column, Ragged):
        return _stacked_ragged(column, size)
    items = _items_of(column)
    parts = [
        _stacked_items(items[first : first + size], column.dtype, first // size) for first in range(0, len(items), size)
    ]
    return column_of_arrays(parts) if parts else Objects([], column.dtype)


def split(column: Column, counts: Ints) -> Column:
    """[n, ...] -> [len(counts), (counts), ...]; consecutive rows grouped by these counts, which sum to n.

    Raises:
      StackError: rows of one group differ in shape.
      TypeError: they are datasets.
    """
    size = int(counts[0]) if len(counts) and (len(counts) == 1 or (counts == counts[0]).all()) else None
    if type(column) is Dense or type(column) is Strings:  # nearly always
        if size is not None:
            return column.reshape((len(counts), size, *column.inner))
        return Ragged(column, np.cumsum(counts) - counts, counts)
    if isinstance(column, LazyColumn):
        lazily = column.grouped(size) if size else None
        return split(column.materialize(), counts) if lazily is None else lazily
    if isinstance(column, SelfGrouped):
        return column.grouped_by(counts)
    if isinstance(column, RaggedBatches) or (isinstance(column, Ragged) and column.loose):
        return batches_of(column, counts)
    items = list(column.values()) if isinstance(column, Ragged) else _items_of(column)
    ends = np.cumsum(counts).tolist()
    groups = [items[a:b] for a, b in pairwise([0, *ends])]
    return column_of_arrays(
        [_stacked_items(group, column.dtype, place) for place, group in enumerate(groups)], column.dtype
    )


def _stacked_ragged(column: Ragged, size: int) -> Column:
    groups = column.sizes.reshape(-1, size)
    bad = np.flatnonzero((groups != groups[:, :1]).any(axis=1))
    if len(bad):
        group = groups[bad[0]]
        row = int(np.flatnonzero(group != group[0])[0])
        inner = column.flat.inner
        raise StackError.of(int(bad[0]), (int(group[0]), *inner), (int(group[row]), *inner), row)
    flat = column.gathered()
    widths = groups[:, 0]
    if len(widths) and (widths == widths[0]).all():
        return flat.reshape((len(groups), size, int(widths[0]), *flat.inner))
    ends = np.cumsum(widths * size)
    parts = [
        flat.rows(int(end - w * size), int(end)).reshape((size, int(w), *flat.inner)).whole()
        for end, w in zip(ends, widths, strict=True)
    ]
    return Objects(parts, column.dtype)


def _items_of(column: Column) -> list[Any]:
    if isinstance(column, Datasets):
        raise TypeError(NO_ROWS[column.optional])
    assert isinstance(column, Objects | Arrays)
    return column.items


def _stacked_items(members: list[Any], dtype: np.dtype[Any], group: int) -> Array:
    """Values of one shape as an array [len, ...]."""
    if not members:
        return np.empty((0,), dtype)
    first = shape_of(members[0])
    for row, member in enumerate(members):
        if shape_of(member) != first:
            raise StackError.of(group, first, shape_of(member), row)
    if dtype != STRING:
        return np.array(members, dtype)
    out = np.empty((len(members), *first), dtype=object)
    for i, member in enumerate(members):
        out[i] = member
    return out


def concat_columns(columns: Sequence[Column]) -> Column:
    """The rows of all columns, one after the other."""
    columns = [column for column in columns if len(column)] or list(columns[:1])
    return columns[0] if len(columns) == 1 else joined_columns(columns)


def joined_columns(columns: Sequence[Column]) -> Column:
    """As `concat_columns`, of several columns that all have rows."""
    joined = columns[0].followed_by(columns[1:]) if isinstance(columns[0], LazyColumn) else None
    if joined is not None:  # gathered once, not part by part and then side by side
        return joined.materialize()
    if isinstance(columns[0], Datasets) or all(isinstance(column, Views) for column in columns):
        kind: Callable[..., Column] = type(columns[0])
        return kind([item for column in columns for item in column.items], columns[0].dtype)  # type: ignore[attr-defined]
    columns = [column.materialize() for column in columns]
    first = columns[0]
    dense = _concat_dense(columns)
    if dense is not None:
        return dense
    for column in columns:
        if column.dtype != first.dtype:
            raise TypeError(f"the elements differ in dtype: {first.dtype} and {column.dtype}")
    if all(isinstance(c, Strings) for c in columns):
        strings: list[Strings] = columns  # type: ignore[assignment]
        if len({c.starts.shape[1:] for c in strings}) == 1:
            return _concat_strings(strings)
    if all(isinstance(c, Arrays | Ragged | Dense | Strings) for c in columns):
        ragged = [as_ragged(c) for c in columns]
        # Empty rows keep their other dimensions too, so flat columns of other rows must not be joined.
        if all(r is not None for r in ragged) and len({r.flat.inner for r in ragged if r is not None}) == 1:
            flats = concat_columns([r.gathered() for r in ragged])  # type: ignore[union-attr]
            if isinstance(flats, Dense | Strings):
                sizes = np.concatenate([r.sizes for r in ragged])  # type: ignore[union-attr]
                return Ragged(flats, np.cumsum(sizes) - sizes, sizes, any(r.loose for r in ragged if r is not None))
    if first.ragged_rank is not None:
        return _joined_ragged(columns)
    return Objects([item for column in columns for item in column.values()], first.dtype)


def _concat_dense(columns: Sequence[Column]) -> Dense | None:
    """The rows of all columns, if they are arrays of one dtype and inner shape."""
    arrays = []
    for column in columns:
        if not isinstance(column, Dense):
            return None
        array = column.array
        arrays.append(array)
        if array.dtype != arrays[0].dtype:
            return None
    try:
        return Dense(concatenated(arrays))
    except ValueError:  # the shapes differ, which is rare
        return None


def concatenated(arrays: Sequence[Array]) -> Array:
    """The rows of all arrays, which are of one dtype.

    Raises:
      ValueError: their rows differ in shape.
    """
    return joining(arrays[0], sum(map(len, arrays)))(arrays)


def joining(first: Array, rows: int) -> Callable[[Sequence[Array]], Array]:
    """What `concatenated` does for arrays that have so many rows together, of which this is the first, or is like it."""
    if rows * prod(first.shape[1:]) * first.itemsize < _FRESH_BYTES and first.dtype.isnative:
        return np.concatenate  # which gives the byte order of the machine where it makes the array
    return partial(_joined, (rows, *first.shape[1:]))


def _joined(shape: tuple[int, ...], arrays: Sequence[Array]) -> Array:
    return np.concatenate(arrays, out=empty(shape, arrays[0].dtype))


def whole_of(first: Array, second: Array) -> Array | None:
    """The rows of both as a view; None where the second one does not begin where the first one ends, in the same memory."""
    base: Any = first.base
    if base is None or second.base is not base or type(base) is not np.ndarray or not base.flags.carray:
        return None
    if first.dtype != second.dtype or first.dtype.hasobject or first.shape[1:] != second.shape[1:]:
        return None
    of_rows = [array.size and array.flags.c_contiguous for array in (first, second)]
    if not all(of_rows) or first.flags.writeable != second.flags.writeable:
        return None
    begin, start, end = [array.__array_interface__["data"][0] for array in (base, first, second)]
    if start + first.nbytes != end:
        return None
    whole: Array = np.ndarray((len(first) + len(second), *first.shape[1:]), first.dtype, base, start - begin)
    whole.flags.writeable = first.flags.writeable
    return whole


def _concat_strings(columns: Sequence[Strings]) -> Strings:
    """Joined buffers, each cut down to the strings in use where that is much less."""
    if all(c.data is columns[0].data for c in columns):
        return Strings(
            columns[0].data, np.concatenate([c.starts for c in columns]), np.concatenate([c.sizes for c in columns])
        )
    near = _in_one_buffer(columns)
    if near is not None:
        return near
    starts, sizes = np.concatenate([c.starts for c in columns]), np.concatenate([c.sizes for c in columns])
    holding = [c for c in columns if c.starts.size]
    if not holding:
        return Strings(columns[0].data[:0], starts, sizes)
    # What each of them spans, [holding]: of all at once, since a mixture joins a few rows of each of a hundred sources.
    counts = np.array([c.starts.size for c in holding])
    begins, flat, long = np.cumsum(counts) - counts, starts.reshape(-1), sizes.reshape(-1)
    first = np.minimum.reduceat(flat, begins)
    width = np.maximum.reduceat(flat + long, begins) - first
    if (width > 2 * np.add.reduceat(long, begins) + 1024).any():
        return _concat_strings([c.used() for c in holding])  # of which none spans more than that
    shift = np.cumsum(width) - width - first
    return Strings(
        concatenated([c.data[a : a + n] for c, a, n in zip(holding, first.tolist(), width.tolist(), strict=True)]),
        starts + np.repeat(shift, counts).reshape(starts.shape),
        sizes,
    )


def _in_one_buffer(columns: Sequence[Strings]) -> Strings | None:
    """All strings where they are; None if their buffers are not parts of one, far apart in it, or a small part of it."""
    whole = columns[0].data.base
    if not (isinstance(whole, np.ndarray) and whole.ndim == 1 and whole.dtype == np.uint8 and whole.flags.c_contiguous):
        return None
    if not all(c.data.base is whole and c.data.flags.c_contiguous for c in columns):
        return None
    begin, *places = [array.__array_interface__["data"][0] for array in (whole, *[c.data for c in columns])]
    starts = np.concatenate([c.starts + (place - begin) for c, place in zip(columns, places, strict=True)])
    sizes = np.concatenate([c.sizes for c in columns])
    first, last, used = (int(starts.min()), int((starts + sizes).max()), int(sizes.sum())) if starts.size else (0, 0, 0)
    if last - first > 2 * used + 1024 or len(whole) > 4 * used + 1024:  # its pool rounds up to a power of two
        return None
    return Strings(whole[first:last], starts - first, sizes)


def as_ragged(column: Column) -> Ragged | None:
    """The same rows as spans over a flat column, when rows are not scalars."""
    if isinstance(column, Ragged):
        return column
    if isinstance(column, Arrays):
        return column.joined()
    length = column.lengths()
    if length is None:
        return None
    sizes = np.full(len(column), length, np.int64)
    return Ragged(column.unstack(), np.cumsum(sizes) - sizes, sizes)  # type: ignore[arg-type]


def _joined_ragged(columns: Sequence[Column]) -> RaggedBatches:
    """The rows of all columns, one after the other.

    Raises:
      TypeError: they are not all ragged tensors, or differ in the shape of a value.
    """
    ranks = {column.ragged_rank for column in columns}
    flat = concat_columns([column.unstack() for column in columns]) if len(ranks) == 1 else None
    if not isinstance(flat, Ragged | RaggedBatches):
        raise TypeError("the elements differ in what is ragged, or in the shape of their values")
    return batches_of(flat, np.concatenate([column.lengths() for column in columns]))


def loose_rows(column: Column) -> Ragged:
    """Rows of which batches are ragged tensors.

    Raises:
      InvalidArgumentError: rows differ in another dimension than the first.
    """
    rows = _rows(column)
    return rows if rows.loose else Ragged(rows.flat, rows.starts, rows.sizes, loose=True)


def as_ragged_tensors(column: Column, ragged_rank: int) -> RaggedBatches:
    """Rows [d, ...] as ragged tensors of which `ragged_rank` dimensions after the first are ragged.

    Raises:
      InvalidArgumentError: values differ in shape under the ragged dimensions.
    """
    column = column.materialize()
    if isinstance(column, RaggedBatches):
        return column
    if isinstance(column, Objects | Arrays):
        return _of_arrays(column.items, ragged_rank, column.dtype)
    rows = _rows(column)
    inner = rows.flat
    flat = as_ragged_tensors(inner, ragged_rank - 1) if ragged_rank > 1 else _rows(inner)
    return RaggedBatches(flat, rows.starts, rows.sizes)


def _rows(column: Column) -> Ragged:
    """Rows that may differ in their first dimension as spans."""
    column = column.materialize()
    if isinstance(column, Objects):
        column = column_of_arrays(column.items, column.dtype)
    made = as_ragged(column) if isinstance(column, Ragged | Arrays | Dense | Strings) else None
    if made is None:
        shapes = {np.shape(item)[1:] for item in column.values()}
        raise InvalidArgumentError(
            f"Cannot batch rows that differ in more than their ragged dimensions: they have values of shape {sorted(shapes)}"
        )
    return made


def _of_arrays(items: Sequence[Array], ragged_rank: int, dtype: np.dtype[Any]) -> RaggedBatches:
    """Arrays [d0, d1, ...] as ragged tensors; only a loop over them, none over their rows."""
    if not items:
        return RaggedBatches(_empty_rows(dtype, ragged_rank), np.empty(0, np.int64), np.empty(0, np.int64))
    shapes = {np.shape(item)[ragged_rank + 1 :] for item in items}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            f"Cannot batch rows that differ in more than their ragged dimensions: they have values of shape {sorted(shapes)}"
        )
    dims = np.array([item.shape[: ragged_rank + 1] for item in items], np.int64)  # [n, ragged_rank + 1]
    (inner,) = shapes
    flats = [item.reshape(-1, *inner) if item.size else item.reshape(0, *inner) for item in items]
    values = np.concatenate(flats, dtype=items[0].dtype)  # which would be in the byte order of the machine
    flat: Any = Strings.of_array(values) if dtype == STRING else Dense(values)
    for level in range(ragged_rank, -1, -1):
        counts = np.repeat(dims[:, level], dims[:, :level].prod(axis=1))
        flat = (RaggedBatches if isinstance(flat, Ragged | RaggedBatches) else Ragged)(
            flat, np.cumsum(counts) - counts, counts
        )
    return flat  # type: ignore[no-any-return]


def _empty_rows(dtype: np.dtype[Any], ragged_rank: int) -> "Ragged | RaggedBatches":
    nothing = np.empty(0, np.int64)
    flat = Strings.of([]) if dtype == STRING else Dense(np.empty(0, dtype))
    made: Ragged | RaggedBatches = Ragged(flat, nothing, nothing)
    for _ in range(ragged_rank - 1):
        made = RaggedBatches(made, nothing, nothing)
    return made
