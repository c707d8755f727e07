# SPDX-License-Identifier: Apache-2.0
"""Rows that are ragged tensors: *spans* (start and length) over a column of their rows, which are not moved.

Also the ways from other columns: rows whose batches are to be ragged (`loosened`), and elements that are to be ragged
themselves (`as_ragged_tensors`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Array, Column, Ints
from distinput.core.concat import as_ragged, concat_columns
from distinput.core.dense import Dense
from distinput.core.leaves import STRING, dtype_name
from distinput.core.objects import Arrays, Objects, column_of
from distinput.core.ragged import Ragged
from distinput.core.ragged_rows import row_numbers, splits_of
from distinput.core.ragged_tensor import RaggedTensor
from distinput.core.spec import RaggedTensorSpec, Spec
from distinput.core.strings import Strings
from distinput.errors import InvalidArgumentError

__all__ = [
    "RaggedBatches",
    "as_ragged_tensors",
    "column_of_ragged",
    "frozen_rows",
    "join_ragged",
    "loose_rows",
    "loosened",
    "ragged_spec",
    "ragged_tensor",
    "rows_column",
]


@final
class RaggedBatches(Column):
    """Rows that are ragged tensors: row i is the ragged tensor of `flat` rows starts[i] to starts[i] + sizes[i]."""

    __slots__ = ("flat", "sizes", "starts")

    def __init__(self, flat: "Ragged | RaggedBatches", starts: Ints, sizes: Ints) -> None:
        self.flat, self.starts, self.sizes = flat, starts, sizes

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Of the values."""
        return self.flat.dtype

    @property
    def ragged_rank(self) -> int:
        """How many dimensions of a row differ in length."""
        return 1 + (self.flat.ragged_rank if isinstance(self.flat, RaggedBatches) else 0)

    @property
    def item_shape(self) -> tuple[int, ...]:
        """The shape of a value under all ragged dimensions."""
        return self.flat.item_shape if isinstance(self.flat, RaggedBatches) else self.flat.flat.inner

    def __len__(self) -> int:
        return len(self.starts)

    def row(self, index: int) -> RaggedTensor:
        start = int(self.starts[index])
        return ragged_tensor(self.flat.rows(start, start + int(self.sizes[index])))

    def values(self) -> Iterator[RaggedTensor]:
        if not len(self.starts):
            return
        ends = self.starts + self.sizes
        first = int(self.starts.min())
        flat = self.flat.rows(first, int(ends.max()))
        starts, stops = (self.starts - first).tolist(), (ends - first).tolist()
        if len(flat) and not _side_by_side(flat):
            for start, stop in zip(starts, stops, strict=True):
                yield ragged_tensor(flat.rows(start, stop))  # copied when it is reached, so that it is in the cache
            return
        whole = ragged_tensor(flat)
        values, splits = whole.values, whole.row_splits
        bounds = splits.tolist() if len(splits) < _FEW_ROWS * len(starts) else splits
        for start, stop in zip(starts, stops, strict=True):
            begin = bounds[start]
            yield RaggedTensor(values[begin : bounds[stop]], splits[start : stop + 1] - begin)

    def rows(self, start: int, stop: int, step: int = 1) -> "RaggedBatches":
        return RaggedBatches(self.flat, self.starts[start:stop:step], self.sizes[start:stop:step])

    def take(self, indices: Ints) -> "RaggedBatches":
        return RaggedBatches(self.flat, self.starts.take(indices), self.sizes.take(indices))

    def stack(self, size: int) -> "RaggedBatches":
        return _grouped(self, np.full(len(self) // size, size, np.int64))

    def lengths(self) -> Ints:
        return self.sizes

    def unstack(self) -> "Ragged | RaggedBatches":
        starts, sizes, flat = self.starts, self.sizes, self.flat
        if isinstance(flat, Ragged) and not flat.loose:
            flat = Ragged(flat.flat, flat.starts, flat.sizes, loose=True)  # batches of these rows are ragged again
        if not len(starts):
            return flat.rows(0, 0)
        ends = starts + sizes
        if (starts[1:] == ends[:-1]).all():
            return flat.rows(int(starts[0]), int(ends[-1]))
        return flat.take(row_numbers(starts, sizes))

    def split(self, counts: Ints) -> "RaggedBatches":
        return _grouped(self, counts)

    def copied(self) -> "RaggedBatches":
        return RaggedBatches(self.unstack().copied(), np.cumsum(self.sizes) - self.sizes, self.sizes)

    @property
    def nbytes(self) -> int:
        per_row = self.flat.nbytes / max(1, len(self.flat))
        return int(per_row * float(self.sizes.sum())) + 16 * len(self.sizes)


_FEW_ROWS = 64
"""Up to this many rows an element, Python's integers are quicker to look up than NumPy's."""


def _grouped(rows: "Ragged | RaggedBatches", counts: Ints) -> RaggedBatches:
    """Consecutive rows as ragged tensors of so many rows each."""
    return RaggedBatches(rows, np.cumsum(counts) - counts, counts)


def _side_by_side(rows: "Ragged | RaggedBatches") -> bool:
    """Whether all values lie one after the other, on every level."""
    flat: Any = rows
    while isinstance(flat, Ragged | RaggedBatches):
        starts, sizes = flat.starts, flat.sizes
        if len(starts) and not (starts[1:] == starts[:-1] + sizes[:-1]).all():
            return False
        flat = flat.flat
    return True


def ragged_tensor(rows: "Ragged | RaggedBatches") -> RaggedTensor:
    """All rows of a column as one ragged tensor; a view if the values lie one after the other."""
    values = rows.unstack()
    made = ragged_tensor(values) if isinstance(values, Ragged | RaggedBatches) else values.whole()  # type: ignore[attr-defined]
    return RaggedTensor(made, splits_of(rows.sizes))


def rows_column(ragged: RaggedTensor) -> "Ragged | RaggedBatches":
    """The rows of a ragged tensor as a column."""
    splits, values = ragged.row_splits, ragged.values
    starts, sizes = splits[:-1], splits[1:] - splits[:-1]
    if isinstance(values, RaggedTensor):
        return RaggedBatches(rows_column(values), starts, sizes)
    return Ragged(Strings.of_array(values) if values.dtype == STRING else Dense(values), starts, sizes, loose=True)


def column_of_ragged(items: Sequence[RaggedTensor]) -> RaggedBatches:
    """Ragged tensors, at least one, as a column.

    Raises:
      TypeError: some differ in dtype, in what is ragged, or in the shape of a value.
    """
    first = items[0]
    for item in items:
        if not isinstance(item, RaggedTensor):
            raise TypeError(f"the elements differ: some are ragged tensors, some are not, as {item!r}")
        if (item.dtype, item.ragged_rank, item.flat_values.shape[1:]) != (
            first.dtype,
            first.ragged_rank,
            first.flat_values.shape[1:],
        ):
            raise TypeError(f"the elements differ in kind: {_kind(first)} and {_kind(item)}")
    flat = rows_column(first if len(items) == 1 else _joined(items))
    return _grouped(flat, np.fromiter(map(len, items), np.int64, len(items)))


def _joined(items: Sequence[Any]) -> RaggedTensor:
    lengths = np.concatenate([item.row_lengths() for item in items])
    parts = [item.values for item in items]
    values = _joined(parts) if isinstance(parts[0], RaggedTensor) else np.concatenate(parts)
    return RaggedTensor(values, splits_of(lengths))


def _kind(item: RaggedTensor) -> str:
    return f"shape {item.shape} with ragged_rank {item.ragged_rank} and dtype {dtype_name(item.dtype)}"


def loosened(block: Block, spec: Spec) -> Block:
    """The same elements, with what the spec calls rows of ragged tensors marked as such, so that their batches are ragged.

    Raises:
      InvalidArgumentError: rows differ in another dimension too.
    """
    columns: list[Column] = [
        _of_spec(column, leaf) if isinstance(leaf, RaggedTensorSpec) else column
        for column, leaf in zip(block.columnar().columns, spec.leaves, strict=True)
    ]
    return ColumnBlock(block.structure, columns, block.size)


def _of_spec(column: Column, leaf: RaggedTensorSpec) -> Column:
    return as_ragged_tensors(column, leaf.ragged_rank) if leaf.ragged_rank else loose_rows(column)


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
        column = column_of(column.items, column.dtype)
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
    values = np.concatenate([item.reshape(-1, *inner) if item.size else item.reshape(0, *inner) for item in items])
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


def frozen_rows(column: Column, frozen: Callable[[Column], Column]) -> RaggedBatches:
    """The same ragged tensors over rows that `frozen` gives."""
    assert isinstance(column, RaggedBatches)
    return RaggedBatches(frozen(column.flat), column.starts, column.sizes)  # type: ignore[arg-type]  # of the same kind


def ragged_spec(column: Column) -> RaggedTensorSpec:
    """The spec that all rows of a column of ragged tensors fit; only the number of rows may be known."""
    assert isinstance(column, RaggedBatches)
    sizes = set(column.sizes.tolist())
    rows = sizes.pop() if len(sizes) == 1 else None
    rank = column.ragged_rank
    return RaggedTensorSpec((rows, *[None] * rank, *column.item_shape), column.dtype, rank)


def join_ragged(columns: Sequence[Column]) -> RaggedBatches:
    """The rows of all columns, one after the other.

    Raises:
      TypeError: they are not all ragged tensors, or differ in the shape of a value.
    """
    ranks = {column.ragged_rank for column in columns}
    flat = concat_columns([column.unstack() for column in columns]) if len(ranks) == 1 else None
    if not isinstance(flat, Ragged | RaggedBatches):
        raise TypeError("the elements differ in what is ragged, or in the shape of their values")
    return _grouped(flat, np.concatenate([column.lengths() for column in columns]))
