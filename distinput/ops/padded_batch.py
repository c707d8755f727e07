# SPDX-License-Identifier: Apache-2.0
"""`padded_batch`: consecutive elements padded to one shape and stacked."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.buffers import empty
from distinput.core.column import Array, Arrays, Column, Dense, Ints, Ragged, Strings, column_of, concat_columns
from distinput.core.rows import RowQueue, Stream
from distinput.core.run import Run
from distinput.core.spec import Shape, Spec, TensorSpec
from distinput.core.state import State
from distinput.core.values import STRING, as_leaf, dtype_of, shape_of, zero
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.kernels.ragged import pad_spans
from distinput.plan.check import at_least
from distinput.plan.node import Node

__all__ = ["PaddedBatch", "padded"]


@dataclass(frozen=True, eq=False)
class PaddedBatch(Node):
    """Pad `batch_size` consecutive elements to one shape and stack them.

    Shapes: [...] becomes [batch_size, ...]; a dimension that `padded_shapes` leaves open (None or -1) is that of the longest
    element of the batch. State: where the first element of the next batch stands in the input.

    Args:
      batch_size: elements in a batch, at least 1.
      padded_shapes: a nest of shapes; those of the element spec when None.
      padding_values: a nest of scalars, or one for all components; 0 or an empty string when None.
      drop_remainder: leave out a last batch that is not full.

    Raises:
      InvalidArgumentError: a shape or value does not go with the elements.
      TypeError: a padding value has another dtype than its component.
      DataLossError: at iteration, an element is longer than its padded shape.

    >>> import distinput as di
    >>> import numpy as np
    >>> ds = di.data.Dataset.range(1, 4).map(lambda x: np.full(x, x)).padded_batch(3)
    >>> next(iter(ds)).tolist()
    [[1, 0, 0], [2, 2, 0], [3, 3, 3]]

    Source: `tf.data.Dataset.padded_batch`.
    """

    input: Node
    batch_size: int
    padded_shapes: Any = None
    padding_values: Any = None
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        at_least("padded_batch", "batch_size", self.batch_size, 1)
        assert self.shapes is not None
        assert self.fills is not None

    def arguments(self) -> dict[str, Any]:
        found = super().arguments()
        return {**found, "padded_shapes": str(self.padded_shapes), "padding_values": str(self.padding_values)}

    @cached_property
    def shapes(self) -> tuple[tuple[int | None, ...], ...]:
        """The padded shape of each leaf."""
        spec = self.input.spec
        leaves = spec.tensors("padded_batch")
        if self.padded_shapes is None:
            given: Sequence[Any] = [leaf.shape for leaf in leaves]
        else:
            given = spec.structure.flatten(self.padded_shapes)
        made = []
        for shape, leaf, path in zip(given, leaves, spec.structure.paths, strict=True):
            made.append(_padded_shape(shape, leaf, path or "of the element"))
        return tuple(made)

    @cached_property
    def fills(self) -> tuple[Any, ...]:
        """The padding value of each leaf."""
        spec = self.input.spec
        leaves = spec.tensors("padded_batch")
        values = self.padding_values
        if values is None or not isinstance(values, tuple | dict):
            given: list[Any] = [values] * len(leaves)
        else:
            given = spec.structure.flatten(values)
        paths = spec.structure.paths
        return tuple([_fill(v, leaf, p or "of the element") for v, leaf, p in zip(given, leaves, paths, strict=True)])

    @cached_property
    def spec(self) -> Spec:
        first = int(self.batch_size) if self.drop_remainder else None
        leaves = self.input.spec.tensors("padded_batch")
        return Spec(
            self.input.spec.structure,
            tuple([TensorSpec((first, *shape), leaf.dtype) for shape, leaf in zip(self.shapes, leaves, strict=True)]),
        )

    @property
    def cardinality(self) -> int:
        n = self.input.cardinality
        if n < 0:
            return n
        return n // self.batch_size if self.drop_remainder else -(-n // self.batch_size)

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        n = self.input.cardinality
        first = row * self.batch_size
        at = self.input.start_at(first if n < 0 else min(n, first), epoch)
        return None if at is None else {"input": at, "skip": 0}

    def stream(self, state: State, run: Run) -> Stream:
        queue = RowQueue(self.input.open(state["input"], run), state)
        size = int(self.batch_size)
        while queue.fill(size):
            yield padded(queue.take_parts(size), self.shapes, self.fills), queue.mark()
        if queue.size and not self.drop_remainder:
            yield padded(queue.take_parts(queue.size), self.shapes, self.fills), queue.mark()


def padded(parts: Sequence[Block], shapes: Sequence[tuple[int | None, ...]], fills: Sequence[Any]) -> Block:
    """All rows of some blocks as one batch.

    Raises:
      DataLossError: a row is longer than its shape.
    """
    parts = [part for part in parts if part.size] or parts[:1]
    leaves = zip(zip(*[part.columns for part in parts], strict=True), shapes, fills, strict=True)
    return Block(parts[0].structure, [_padded_columns(columns, shape, fill) for columns, shape, fill in leaves], 1)


def _padded_columns(columns: Sequence[Column], shape: tuple[int | None, ...], fill: Any) -> Column:
    if isinstance(columns[0], Dense | Strings):
        shapes = {_inner_shape(column) for column in columns}
        if len(shapes) == 1 and _whole_shape(shape, shapes) in shapes:
            whole = concat_columns(columns)
            return whole.stack(len(whole))
    spans = [each for each in map(_spans, columns) if each is not None]
    if len(spans) == len(columns) and all(each[0].shape[1:] == spans[0][0].shape[1:] for each in spans):
        return _padded_spans(spans, shape, fill)
    items = [item for column in columns for item in column.values()]
    flat = all(isinstance(column, Arrays) for column in columns) and items[0].ndim == 1
    longest = _whole_shape(shape, [(max(map(len, items)),)] if flat else {shape_of(item) for item in items})
    out = empty((1, len(items), *longest), columns[0].dtype)
    out[...] = fill
    batch = out[0]
    for row, item in enumerate(items):
        if flat:
            batch[row, : len(item)] = item
        else:
            batch[(row, *map(slice, shape_of(item)))] = item
    return column_of([batch]) if batch.dtype == STRING else Dense(out)


_Spans = tuple[Array, Ints, Ints]


def _inner_shape(column: Column) -> tuple[int, ...] | None:
    """The shape that all rows have, None where they differ in their first dimension or more."""
    whole = column.array if isinstance(column, Dense) else column.starts if isinstance(column, Strings) else None
    shape: tuple[int, ...] | None = None if whole is None else whole.shape[1:]
    return shape


def _spans(column: Column) -> _Spans | None:
    """Rows of one or more dimensions as an array, and where each row of the column begins in it and how long it is."""
    if isinstance(column, Ragged) and isinstance(column.flat, Dense):
        return column.flat.array, column.starts, column.sizes
    if isinstance(column, Dense) and column.array.ndim > 1:
        rows, length, *inner = column.array.shape
        starts = np.arange(rows, dtype=np.int64) * length
        return column.array.reshape(rows * length, *inner), starts, np.full(rows, length, np.int64)
    return None


def _padded_spans(spans: Sequence[_Spans], shape: tuple[int | None, ...], fill: Any) -> Column:
    """Rows that differ in their first dimension alone, by one call of a kernel for each block they come from."""
    flat, inner = spans[0][0], spans[0][0].shape[1:]
    count, longest = 0, 0
    for _, _, sizes in spans:
        count += len(sizes)
        longest = max(longest, int(sizes.max()))
    whole = _whole_shape(shape, [(longest, *inner)])
    out = empty((1, count, *whole), flat.dtype)
    if not out.size:
        return Dense(out)
    if whole[1:] == inner:
        target, first = out.reshape(-1).view(np.uint8), 0
        item = np.frombuffer(np.asarray(fill, flat.dtype).tobytes() * prod(inner), np.uint8)
        for values, starts, sizes in spans:
            end = first + len(sizes) * whole[0] * item.size
            source = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
            pad_spans(source, starts, sizes, whole[0], target[first:end], item)
            first = end
        return Dense(out)
    out[...] = fill
    rows = iter(out[0])
    for values, starts, sizes in spans:
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            next(rows)[(slice(size), *map(slice, inner))] = values[start : start + size]
    return Dense(out)


def _whole_shape(shape: tuple[int | None, ...], own: Any) -> tuple[int, ...]:
    """The shape that all rows are padded to: as given, or that of the longest."""
    longest = [max(dims) for dims in zip(*own, strict=True)]
    for given, needed in zip(shape, longest, strict=True):
        if given is not None and needed > given:
            raise DataLossError(
                f"Attempted to pad to a smaller size than the input element: padded_shapes allows {list(shape)}, an element "
                f"needs {longest}; give a larger shape, or None for the longest of each batch"
            )
    return tuple([n if g is None else g for g, n in zip(shape, longest, strict=True)])


def _padded_shape(given: Any, leaf: TensorSpec, path: str) -> tuple[int | None, ...]:
    if given is None:
        raise InvalidArgumentError(f"padded_batch: component {path} has an unknown rank; give padded_shapes for it")
    if isinstance(given, int | np.integer):
        given = (given,)
    shape = tuple([None if d is None or int(d) == -1 else int(d) for d in given])
    known: Shape = leaf.shape
    if known is None:
        return shape
    if len(shape) != len(known):
        raise InvalidArgumentError(
            f"padded_batch: The padded shape {shape} is not compatible with the shape {known} of component {path}: the ranks "
            "differ"
        )
    for wanted, own in zip(shape, known, strict=True):
        if wanted is not None and own is not None and wanted < own:
            raise InvalidArgumentError(
                f"padded_batch: The padded shape {shape} is not compatible with the shape {known} of component {path}: it is "
                "smaller"
            )
    return shape


def _fill(given: Any, leaf: TensorSpec, path: str) -> Any:
    if given is None:
        return zero(leaf.dtype, ())
    if isinstance(given, tuple | dict):
        raise TypeError(
            f"padded_batch: padding_values must be nested as the element, got {given!r} for component {path}"
        )
    value = as_leaf(given)
    if shape_of(value):
        raise InvalidArgumentError(
            f"padded_batch: the padding value of component {path} must be a scalar, got {given!r}"
        )
    if dtype_of(value) == leaf.dtype:
        return value
    if isinstance(given, int | float) and not isinstance(given, np.generic) and leaf.dtype != STRING:
        return leaf.dtype.type(given)
    raise TypeError(
        f"padded_batch: the padding value of component {path} must have its dtype {leaf.dtype}, got {dtype_of(value)}"
    )
