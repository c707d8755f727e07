# SPDX-License-Identifier: Apache-2.0
"""Padding: how elements of different lengths become the rows of a batch, some of them only when it is handed out."""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, final

import numpy as np

from distinput.columns.block import Block, ColumnBlock, failed
from distinput.columns.column import Array, Column, Dense, Ints, LazyColumn, Strings
from distinput.columns.ragged import Arrays, Objects, Ragged
from distinput.columns.regroup import column_of, concat_columns, split, stack
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.kernels.spans import pad_spans
from distinput.names.lazy import dataclass
from distinput.plan.node import Node
from distinput.values.buffers import empty
from distinput.values.leaves import STRING, as_leaf, dtype_name, dtype_of, lost, shape_of, zero
from distinput.values.nest import Structure, component
from distinput.values.spec import Spec, TensorSpec

# ----------------------------------------------------------------------------
# Batches that are padded when they are handed out.
#
# Padding a batch writes all of it. So batches travel as the rows they consist of, and each is padded when it is asked for,
# into memory that is still in the cache when the consumer looks at it; small batches are padded several at a time.
# ----------------------------------------------------------------------------


GROUP_BYTES = 1 << 18
"""Smaller batches are padded together up to this many bytes, which fit into a core's cache beside the batches in use."""

Late = Callable[[float], None]

_BYTE = np.dtype(np.uint8)


@final
class Padded(LazyColumn):
    """Batches of consecutive rows that differ in their first dimension alone, each row padded to the width of its batch.

    Args:
      flat: [m, ...] of numbers, C-contiguous.
      starts: [n], where in `flat` each row begins; C-contiguous.
      lengths: [n], of each row; C-contiguous.
      counts: [k], rows of each batch, n in all.
      widths: [k], at least the lengths of the rows of each batch.
      fill: [...], one item, which fills each row up to its width.
      late: called with the seconds that padding takes when batches are handed out (`Run.late`).
    """

    __slots__ = ("_counts", "_fill", "_flat", "_late", "_lengths", "_starts", "_widths")

    def __init__(
        self,
        flat: Array,
        starts: Ints,
        lengths: Ints,
        counts: Ints,
        widths: Ints,
        fill: Array,
        late: Late | None = None,
    ) -> None:
        self._flat, self._starts, self._lengths = flat, starts, lengths
        self._counts, self._widths, self._fill, self._late = counts, widths, fill, late

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]  # that of an item
        return self._fill.dtype

    def __len__(self) -> int:
        return len(self._counts)

    def row(self, index: int) -> Any:
        return next(self.rows(index, index + 1).values())

    def values(self) -> Iterator[Any]:
        source, fill = as_bytes(self._flat), as_bytes(self._fill)
        counts, widths, sizes = self._counts.tolist(), self._widths.tolist(), self.sizes.tolist()
        first = 0
        for begin, end in groups(sizes, GROUP_BYTES):
            clock = perf_counter()
            last = first + sum(counts[begin:end])
            out = room(sum(sizes[begin:end]))
            rows = self._starts[first:last], self._lengths[first:last]
            pad_spans(source, *rows, self._counts[begin:end], self._widths[begin:end], out, fill)
            batches = iter(self._cut(out, counts[begin:end], widths[begin:end]))
            if self._late is not None:
                self._late(perf_counter() - clock)
            del out  # only the batches refer to their memory, so it can be used again once they are dropped
            yield from batches
            first = last

    def rows(self, start: int, stop: int, step: int = 1) -> "Padded":
        if step != 1:
            return self.take(np.arange(len(self))[start:stop:step])
        first, counts = int(self._counts[:start].sum()), self._counts[start:stop]
        last = first + int(counts.sum())
        rows = self._starts[first:last], self._lengths[first:last]
        return Padded(self._flat, *rows, counts, self._widths[start:stop], self._fill, self._late)

    def take(self, indices: Ints) -> "Padded":
        counts = self._counts.take(indices)
        shift = (self._counts.cumsum() - self._counts).take(indices) - (counts.cumsum() - counts)
        numbers = np.arange(counts.sum()) + np.repeat(shift, counts)
        rows = self._starts.take(numbers), self._lengths.take(numbers)
        return Padded(self._flat, *rows, counts, self._widths.take(indices), self._fill, self._late)

    def lengths(self) -> Ints:
        return self._counts

    def unstack(self) -> Column:
        flat, widths = self._items(self._padded()), np.repeat(self._widths, self._counts)
        if len(widths) and (widths == widths[0]).all():
            return Dense(flat.reshape(len(widths), int(widths[0]), *flat.shape[1:]))
        return Ragged(Dense(flat), widths.cumsum() - widths, widths)

    def copied(self) -> Column:
        return self.materialize()

    def materialize(self) -> Dense | Objects:
        """The same batches, padded now."""
        batches = self._cut(self._padded(), self._counts.tolist(), self._widths.tolist())
        return Objects(batches, self.dtype) if isinstance(batches, list) else Dense(batches)

    @property
    def sizes(self) -> Ints:
        """[k], the bytes of each batch."""
        return self._counts * self._widths * self._fill.nbytes

    @property
    def nbytes(self) -> int:
        return int(self.sizes.sum())

    def _padded(self) -> Array:
        """All batches as bytes, one after the other."""
        out = room(self.nbytes)
        rows = self._starts, self._lengths
        pad_spans(as_bytes(self._flat), *rows, self._counts, self._widths, out, as_bytes(self._fill))
        return out

    def _items(self, made: Array) -> Array:
        """Bytes as items [n, ...]."""
        items = made.view(self.dtype)
        return items.reshape(-1, *self._fill.shape) if self._fill.ndim else items

    def _cut(self, made: Array, counts: list[int], widths: list[int]) -> Array | list[Array]:
        """Batches, given as bytes, one after the other: an array of them if they are all of one shape."""
        items, inner = made.view(self.dtype), self._fill.shape
        if len(counts) == 1 or (counts and len(set(counts)) == len(set(widths)) == 1):
            return items.reshape(len(counts), counts[0], widths[0], *inner)
        flat, batches, at = self._items(made), [], 0
        for count, width in zip(counts, widths, strict=True):
            batches.append(flat[at : at + count * width].reshape(count, width, *inner))
            at += count * width
        return batches

    def __reduce__(self) -> tuple[Any, ...]:
        made = self.materialize()
        return (Dense, (made.array,)) if isinstance(made, Dense) else (Objects, (made.items, made.dtype))


def room(nbytes: int) -> Array:
    """Memory for batches: from buffers of few sizes, since batches of many widths follow each other."""
    return empty((1 << max(0, nbytes - 1).bit_length(),), _BYTE)[:nbytes]


def groups(sizes: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Neighbours to be made together, from one to before another, so that the sum of their sizes is at most `most`.

    >>> list(groups([3, 3, 3, 9, 1], most=6))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    begin = total = 0
    for end, size in enumerate(sizes):
        total += size
        if total > most and begin < end:
            yield begin, end
            begin, total = end, size
    if sizes:
        yield begin, len(sizes)


def as_bytes(array: Array) -> Array:
    """A C-contiguous array as its bytes [n]."""
    return array.reshape(-1).view(_BYTE)


# ----------------------------------------------------------------------------
# Padding: how elements of different lengths become the rows of a batch.
#
# Rows that differ only in their first dimension, whether spans of one array or arrays of their own, are copied once,
# straight into the batch, many batches at a time. All other rows are padded one by one.
# ----------------------------------------------------------------------------


Dims = tuple[int | None, ...]
_Spans = tuple[Array, Ints, Ints]
"""A contiguous array [m, ...], and for each row where it begins in the array and how long it is, [n]."""

_LARGE_BYTES = 1 << 26
"""Bytes of batches in one block, if they are padded when they are handed out: enough for the cost of a block to vanish."""


@dataclass(frozen=True)
class Padding:
    """What to pad the leaves of elements to.

    Args:
      shapes: the padded shape of each leaf; None in a dimension means the longest of the batch.
      fills: the padding value of each leaf.
    """

    shapes: tuple[Dims, ...]
    fills: tuple[Any, ...]

    def batch(self, parts: Sequence[Block]) -> Block:
        """All rows of several blocks as one batch.

        Raises:
          DataLossError: a row is longer than its shape.
        """
        parts = [self._arrays(part) for part in parts if part.size] or parts[:1]
        leaves = zip(
            zip(*[part.columnar().columns for part in parts], strict=True), self.shapes, self.fills, strict=True
        )
        return ColumnBlock(parts[0].structure, [_batch(columns, shape, fill) for columns, shape, fill in leaves], 1)

    def batches(self, rows: Block, counts: Ints, late: Late | None = None) -> Iterator[tuple[Block, int]]:
        """Batches of consecutive rows: blocks of batches, each with the number of rows in it.

        Args:
          rows: all rows.
          counts: [k] the rows of each batch, at least 1; they sum to all rows.
          late: given if batches are handed out one by one: they are padded then, and `late` counts the time that takes.

        Raises:
          DataLossError: a row is longer than its shape; the batches before it are yielded first.
        """
        if not len(counts):
            return
        rows = self._arrays(rows)
        ends = counts.cumsum()
        leaves = [
            _batches(column, shape, fill, counts, ends, late)
            for column, shape, fill in zip(rows.columnar().columns, self.shapes, self.fills, strict=True)
        ]
        columns = [leaf for leaf in leaves if leaf is not None]
        if len(columns) < len(leaves):
            first = 0
            for end in ends.tolist():
                yield self.batch([rows.rows(first, end)]), end - first
                first = end
            return
        whole = min(map(len, columns), default=len(counts))  # batches before one that is an error
        sizes: Ints = sum([c.sizes[:whole] for c in columns if isinstance(c, Padded)], np.zeros(whole, np.int64))
        first = 0
        for begin, end in groups(sizes.tolist(), GROUP_BYTES if late is None else _LARGE_BYTES):
            parts = [column.rows(begin, end) for column in columns]
            if late is None:
                parts = [part.materialize() if isinstance(part, Padded) else part for part in parts]
            last = int(ends[end - 1])
            yield ColumnBlock(rows.structure, parts, end - begin), last - first
            first = last
        if whole < len(counts):
            self.batch([rows.rows(first, int(ends[whole]))])

    def sound_batches(
        self, rows: Block, counts: Ints, late: Late | None, *, tolerant: bool
    ) -> Iterator[tuple[Block, int]]:
        """As `batches`, each with the row after it; unless an error is raised, a failure for each that cannot be made."""
        ends = counts.cumsum()
        done = batch = 0
        while batch < len(counts):
            try:
                for made, taken in self.batches(rows.rows(done, rows.size), counts[batch:], late):
                    done, batch = done + taken, batch + made.size
                    yield made, done
            except Exception as error:  # noqa: BLE001 - `failed` raises it, unless the run is tolerant
                failure = failed(error, tolerant=tolerant)
                done, batch = int(ends[batch]), batch + 1
                yield failure, done

    def _arrays(self, block: Block) -> Block:
        """The same elements, ragged tensors as arrays with padding."""
        columns = block.columnar().columns
        if all(column.ragged_rank is None for column in columns):
            return block
        made = [
            column if column.ragged_rank is None else column_of([ragged.to_padded(fill) for ragged in column.values()])
            for column, fill in zip(columns, self.fills, strict=True)
        ]
        return ColumnBlock(block.structure, made, block.size)


def _batches(column: Column, shape: Dims, fill: Any, counts: Ints, ends: Ints, late: Late | None) -> Column | None:
    """A leaf of many batches, up to the first with a row that is too long; None if rows must be looked at one by one."""
    if column.inner is not None and _fits(shape, column.inner):
        return split(column, counts)
    spans = None if isinstance(column, LazyColumn) else _spans(column)  # that is gathered a batch at a time
    if spans is None or not _fits(shape[1:], spans[0].shape[1:]):
        return None
    longest = np.maximum.reduceat(spans[2], ends - counts)
    widths = longest if shape[0] is None else np.full(len(counts), shape[0], np.int64)
    made = Padded(*spans, counts, widths, _item(fill, spans[0]), late)
    too_long = np.flatnonzero(longest > widths)
    return made.rows(0, int(too_long[0])) if len(too_long) else made


def _batch(columns: Sequence[Column], shape: Dims, fill: Any) -> Column:
    """All rows of a leaf as one batch."""
    shapes = {column.inner for column in columns}
    if len(shapes) == 1 and None not in shapes and _whole_shape(shape, shapes) in shapes:
        whole = concat_columns(columns)
        return stack(whole, len(whole))
    spans = [each for each in map(_spans, columns) if each is not None]
    if len(spans) == len(columns) and len({flat.shape[1:] for flat, _, _ in spans}) == 1:
        inner = spans[0][0].shape[1:]
        width, *dims = _whole_shape(shape, [(max(int(lengths.max()) for _, _, lengths in spans), *inner)])
        if tuple(dims) == inner:
            return _padded_spans(spans, width, fill)
    texts = _padded_texts(columns, shape) if isinstance(fill, bytes) and not fill else None
    if texts is not None:
        return texts
    items = [item for column in columns for item in column.values()]
    are_arrays = all(isinstance(column, Arrays) for column in columns)
    inner = items[0].shape[1:] if are_arrays else None
    longest = _whole_shape(
        shape, {shape_of(item) for item in items} if inner is None else [(max(map(len, items)), *inner)]
    )
    out = empty((1, len(items), *longest), columns[0].dtype)
    out[...] = fill
    batch = out[0]
    if longest[1:] == inner:
        for row, item in zip(batch, items, strict=True):
            row[: len(item)] = item
    else:
        for row, item in enumerate(items):
            batch[(row, *map(slice, shape_of(item)))] = item
    return column_of([batch]) if batch.dtype == STRING else Dense(out)


def _padded_spans(spans: Sequence[_Spans], width: int, fill: Any) -> Dense:
    """Rows that differ only in their first dimension as one batch, with one kernel call for each block that they come from."""
    item = _item(fill, spans[0][0])
    out, at, count = room(sum(len(starts) for _, starts, _ in spans) * width * item.nbytes), 0, 0
    for flat, starts, lengths in spans:
        n = np.asarray([len(starts)], np.int64)
        end = at + len(starts) * width * item.nbytes
        pad_spans(as_bytes(flat), starts, lengths, n, np.asarray([width], np.int64), out[at:end], as_bytes(item))
        at, count = end, count + len(starts)
    return Dense(out.view(item.dtype).reshape(1, count, width, *item.shape))


def _padded_texts(columns: Sequence[Column], shape: Dims) -> Strings | None:
    """Rows of byte strings that differ only in their first dimension, with empty ones behind them; None for other columns."""
    rows = concat_columns([column.materialize() for column in columns])
    if not isinstance(rows, Ragged) or not isinstance(rows.flat, Strings) or 0 in rows.flat.inner:
        return None
    places, lengths = np.ascontiguousarray(rows.starts), np.ascontiguousarray(rows.sizes)
    width, *dims = _whole_shape(shape, [(int(lengths.max()), *rows.flat.inner)])
    if tuple(dims) != rows.flat.inner:
        return None
    starts, sizes = [
        _padded_spans([(np.ascontiguousarray(each), places, lengths)], width, 0).array
        for each in (rows.flat.starts, rows.flat.sizes)
    ]
    return Strings(rows.flat.data, starts, sizes)


def _spans(column: Column) -> _Spans | None:
    """Rows whose first dimension may differ, as spans; None for other columns, and where the inner dimensions hold nothing."""
    spans = spans_of(column)
    return None if spans is None or 0 in spans[0].shape[1:] else spans


def spans_of(column: Column) -> _Spans | None:
    """Rows whose first dimension may differ: all their values, and the start and length of each; None for other columns."""
    column = column.materialize()
    if isinstance(column, Ragged) and isinstance(column.flat, Dense):
        flat, starts, lengths = column.flat.array, column.starts, column.sizes
    elif isinstance(column, Dense) and column.array.ndim > 1:
        count, length, *inner = column.array.shape
        flat = column.array.reshape(count * length, *inner)
        starts, lengths = np.arange(count, dtype=np.int64) * length, np.full(count, length, np.int64)
    else:
        return None
    return np.ascontiguousarray(flat), np.ascontiguousarray(starts), np.ascontiguousarray(lengths)


def _item(fill: Any, flat: Array) -> Array:
    """The padding of one item of `flat`."""
    return np.full(flat.shape[1:], fill, flat.dtype)


def _fits(shape: Dims, own: tuple[int, ...]) -> bool:
    """Whether rows of shape `own` need no padding."""
    return len(shape) == len(own) and all(wanted in (None, size) for wanted, size in zip(shape, own, strict=True))


def _whole_shape(shape: Dims, own: Any) -> tuple[int, ...]:
    """The shape to which all rows are padded: as given, or that of the longest."""
    if {len(dims) for dims in own} != {len(shape)}:
        raise InvalidArgumentError(
            f"padded_batch: all elements must have the rank of their padded shape {list(shape)}, got shape "
            f"{next(list(dims) for dims in own if len(dims) != len(shape))}"
        )
    longest = [max(dims) for dims in zip(*own, strict=True)]
    for given, needed in zip(shape, longest, strict=True):
        if given is not None and needed > given:
            raise DataLossError(
                f"Attempted to pad to a smaller size than the input element: padded_shapes allows {list(shape)}, an element "
                f"needs {longest}; give a larger shape, or None for the longest of each batch"
            )
    return tuple([n if g is None else g for g, n in zip(shape, longest, strict=True)])


# ----------------------------------------------------------------------------
# What rows are filled up with: a value for each leaf, from the argument `padding_values` of an op.
# ----------------------------------------------------------------------------


def padding_fills(op: str, spec: Spec, values: Any) -> tuple[Any, ...]:
    """The padding value of each leaf.

    Args:
      op: for messages.
      spec: what an element looks like.
      values: a nest of scalars, or one for all leaves; None, for all or for a part of the nest, stands for 0 or
        an empty string.

    Raises:
      InvalidArgumentError: a value is no scalar.
      TypeError: a value has another dtype than its leaf, or the values are nested in another way.
    """
    leaves = spec.tensors(op)
    if values is None or not isinstance(values, tuple | dict):
        given: list[Any] = [values] * len(leaves)
    else:
        given = for_leaves(op, "padding_values", spec.structure, _spread(values, spec.structure))
    paths = spec.structure.paths
    return tuple([_fill(op, v, leaf, component(p)) for v, leaf, p in zip(given, leaves, paths, strict=True)])


def for_leaves(op: str, argument: str, structure: Structure, given: Any) -> list[Any]:
    """The value that an argument, nested like the elements, has for each leaf.

    Raises:
      TypeError: the values are not nested like the elements.
    """
    try:
        return structure.flatten(given)
    except TypeError as error:
        raise TypeError(f"{op}: {argument}: {error}; nest it as the elements, {structure}") from None


def _spread(given: Any, structure: Structure) -> Any:
    """A nest in which None may stand for whole parts of the structure, with a None for each of their leaves."""
    if given is None:
        return structure.build([None] * structure.num_leaves)
    if structure.kind in ("tuple", "namedtuple") and isinstance(given, tuple) and len(given) == len(structure.children):
        return tuple([_spread(part, child) for part, child in zip(given, structure.children, strict=True)])
    if structure.kind == "dict" and isinstance(given, dict) and given.keys() == set(structure.keys):
        return {key: _spread(given[key], child) for key, child in zip(structure.keys, structure.children, strict=True)}
    return given


def _fill(op: str, given: Any, leaf: TensorSpec, path: str) -> Any:
    if given is None:
        return zero(leaf.dtype, ())
    if isinstance(given, tuple | dict):
        raise TypeError(f"{op}: padding_values must be nested as the element, got {given!r} for {path}")
    try:
        with np.errstate(over="ignore"):
            value = as_leaf(given)
    except TypeError as error:
        raise TypeError(f"{op}: the padding value of {path} must be a scalar: {error}") from None
    if isinstance(value, Node):
        raise TypeError(f"{op}: the padding value of {path} must be a scalar, got {given!r}")
    if shape_of(value):
        raise InvalidArgumentError(f"{op}: the padding value of {path} must be a scalar, got {given!r}")
    number = isinstance(given, int | float) and not isinstance(given, np.generic)
    if number and _holds(leaf.dtype, given):
        with np.errstate(over="ignore"):
            made = leaf.dtype.type(given)
        if lost(float(given), made):
            name = dtype_name(leaf.dtype)
            raise InvalidArgumentError(f"{op}: the padding value of {path} is too large for {name}, got {given!r}")
        return made
    if dtype_of(value) in (leaf.dtype, leaf.dtype.newbyteorder("=")):  # a scalar of NumPy has no other byte order
        return value
    raise TypeError(
        f"{op}: the padding value of {path} must have its dtype {dtype_name(leaf.dtype)}, got "
        f"{dtype_name(dtype_of(value))}"
    )


def _holds(dtype: np.dtype[Any], number: int | float) -> bool:
    """Whether this dtype can hold a Python number: 1.5 is not an integer, and 300 is not a uint8."""
    if dtype.kind in "iu":
        return isinstance(number, int) and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))  # those of ml_dtypes are of kind V
