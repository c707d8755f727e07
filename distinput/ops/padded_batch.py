# SPDX-License-Identifier: Apache-2.0
"""`padded_batch`: consecutive elements padded to one shape and stacked."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.column import Column, Dense, Ragged, Strings, column_of
from distinput.core.rows import RowQueue, Stream
from distinput.core.run import Run
from distinput.core.spec import Shape, Spec, TensorSpec
from distinput.core.state import State
from distinput.core.values import STRING, as_leaf, dtype_of, shape_of, zero
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.kernels.ragged import pad_rows
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
            yield padded(queue.take(size), self.shapes, self.fills), queue.mark()
        if queue.size and not self.drop_remainder:
            yield padded(queue.take(queue.size), self.shapes, self.fills), queue.mark()


def padded(rows: Block, shapes: Sequence[tuple[int | None, ...]], fills: Sequence[Any]) -> Block:
    """All rows of a block as one batch.

    Raises:
      DataLossError: a row is longer than its shape.
    """
    parts = [_padded_column(c, shape, fill) for c, shape, fill in zip(rows.columns, shapes, fills, strict=True)]
    return Block(rows.structure, parts, 1)


def _padded_column(column: Column, shape: tuple[int | None, ...], fill: Any) -> Column:
    if isinstance(column, Dense | Strings):
        own = column.array.shape[1:] if isinstance(column, Dense) else column.starts.shape[1:]
        if _whole_shape(shape, [own]) == own:
            return column.stack(len(column))
    if isinstance(column, Ragged) and isinstance(column.flat, Dense) and column.flat.array.ndim == 1:
        return _padded_rows(column, column.flat, shape, fill)
    items = list(column.values())
    whole = _whole_shape(shape, {shape_of(item) for item in items})
    out = np.full((len(items), *whole), fill, dtype=column.dtype)
    for target, item in zip(out, items, strict=True):
        target[tuple(map(slice, shape_of(item)))] = item
    return column_of([out])


def _padded_rows(column: Ragged, flat: Dense, shape: tuple[int | None, ...], fill: Any) -> Dense:
    """Rows of one dimension, by one call of a kernel."""
    (width,) = _whole_shape(shape, [(int(column.sizes.max()),)])
    values = _gathered(column)
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column.sizes, out=offsets[1:])
    out = np.empty((1, len(column), width), flat.dtype)
    fill_bytes = np.asarray([fill], flat.dtype).view(np.uint8)
    pad_rows(np.ascontiguousarray(values).view(np.uint8), offsets, width, out.reshape(-1).view(np.uint8), fill_bytes)
    return Dense(out)


def _gathered(column: Ragged) -> np.ndarray[Any, Any]:
    flat = column.unstack()
    assert isinstance(flat, Dense)
    return flat.array


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
