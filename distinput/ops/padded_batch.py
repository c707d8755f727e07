# SPDX-License-Identifier: Apache-2.0
"""`padded_batch`: consecutive elements padded to one shape and stacked."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from distinput.columns.block import Block, Failure, concat_blocks, failed
from distinput.columns.column import Ints
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least, in_int64, refuse_sparse, without_sparse
from distinput.plan.families import Batching
from distinput.run.run import Run
from distinput.streaming.padding import Padding, for_leaves, padding_fills
from distinput.values.nest import component
from distinput.values.spec import Shape, Spec, TensorSpec


@dataclass(frozen=True, eq=False)
class PaddedBatch(Batching):
    """Pad `batch_size` consecutive elements to one shape and stack them.

    Shapes: [...] becomes [batch_size, ...]; a dimension that `padded_shapes` leaves open (None or -1) is that of the longest
    element of the batch. State: where the first element of the next batch stands in the input.

    Args:
      batch_size: elements in a batch, at least 1.
      padded_shapes: a nest of shapes; None: those of the element spec.
      padding_values: a nest of scalars, or one for all components; None, for all or for a part of the nest, stands for 0,
        an empty string, or NaT in dates and times.
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

    batch_size: int
    padded_shapes: Any = None
    padding_values: Any = None
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        at_least("padded_batch", "batch_size", self.batch_size, 1)
        self.shapes  # noqa: B018 - checked now
        self.fills  # noqa: B018 - the same

    def arguments(self) -> dict[str, Any]:
        found = super().arguments()
        return {**found, "padded_shapes": str(self.padded_shapes), "padding_values": str(self.padding_values)}

    @cached_property
    def shapes(self) -> tuple[tuple[int | None, ...], ...]:
        """The padded shape of each leaf."""
        spec = self.input.spec
        refuse_sparse("padded_batch", spec.structure)
        leaves = spec.tensors("padded_batch")
        given: Sequence[Any] = [leaf.shape for leaf in leaves]
        if self.padded_shapes is not None:
            given = for_leaves("padded_batch", "padded_shapes", spec.structure, self.padded_shapes)
        wanted = zip(given, leaves, spec.structure.paths, strict=True)
        return tuple([_padded_shape(shape, leaf, component(path)) for shape, leaf, path in wanted])

    @cached_property
    def fills(self) -> tuple[Any, ...]:
        """The padding value of each leaf."""
        return padding_fills("padded_batch", self.input.spec, self.padding_values)

    @cached_property
    def spec(self) -> Spec:
        first = int(self.batch_size) if self.drop_remainder else None
        leaves = self.input.spec.tensors("padded_batch")
        return Spec(
            self.input.spec.structure,
            tuple([TensorSpec((first, *shape), leaf.dtype) for shape, leaf in zip(self.shapes, leaves, strict=True)]),
        )

    @cached_property
    def padding(self) -> Padding:
        """The shapes and values with which elements are padded."""
        return Padding(self.shapes, self.fills)

    def stream(self, state: State, run: Run) -> Stream:
        size = int(self.batch_size)
        late = run.late(self) if run.by_element else None
        pending: list[Block] = []  # rows of a batch that is not full
        missing, mark = size, state
        upstream = without_sparse("padded_batch", self.input.open(state["input"], run.by_block()))
        for rows, mark_at in passing_over(upstream, state):
            first = 0
            if type(rows) is Failure:  # the elements gathered for its batch are lost with it
                yield rows, mark_at(0)
                pending, missing, mark = [], size, mark_at(0)
                continue
            if pending:
                first = min(missing, rows.size)
                pending.append(rows.rows(0, first))
                missing -= first
                if not missing:
                    yield self._batch(pending, run), mark_at(first)
                    pending, missing = [], size
            counts = np.full((rows.size - first) // size, size, np.int64)
            end = first + len(counts) * size
            whole = rows.rows(first, end)
            for made, done in self.padding.sound_batches(whole, counts, late, tolerant=run.tolerant):
                yield made, mark_at(first + done)
            first = end
            if first < rows.size:
                pending.append(rows.rows(first, rows.size))
                missing -= rows.size - first
            mark = mark_at(rows.size)
        if pending and not self.drop_remainder:
            yield self._batch(pending, run), mark

    def fetch(self, rows: Ints, epoch: int) -> Block:
        size, n = int(self.batch_size), self.input.cardinality
        wanted = self.elements_of(rows)
        counts = np.full(len(rows), size) if n < 0 else np.minimum(size, n - rows * size)
        elements = self.input.fetch(wanted if n < 0 else wanted[wanted < n], epoch)
        return concat_blocks([made for made, _ in self.padding.batches(elements, counts)])

    def _batch(self, parts: Sequence[Block], run: Run) -> Block:
        try:
            return self.padding.batch(parts)
        except Exception as error:  # noqa: BLE001 - `failed` raises it, unless the run is tolerant
            return failed(error, tolerant=run.tolerant)


def _padded_shape(given: Any, leaf: TensorSpec, path: str) -> tuple[int | None, ...]:
    if given is None or getattr(given, "rank", 0) is None:
        raise InvalidArgumentError(f"padded_batch: {path} has an unknown rank; give padded_shapes for it")
    shape = _dims(given, path)
    leaf_shape: Shape = leaf.shape
    if leaf_shape is None:
        return shape
    pairs = zip(shape, leaf_shape, strict=False)
    smaller = any(wanted is not None and own is not None and wanted < own for wanted, own in pairs)
    if smaller or len(shape) != len(leaf_shape):
        why = "it is smaller" if len(shape) == len(leaf_shape) else "the ranks differ"
        raise InvalidArgumentError(
            f"padded_batch: The padded shape {shape} is not compatible with the shape {leaf_shape} of {path}: {why}"
        )
    return shape


def _dims(given: Any, path: str) -> tuple[int | None, ...]:
    """A padded shape as a tuple; -1 stands for None.

    Raises:
      InvalidArgumentError: it is not a list of dimensions.
      TypeError: a dimension is not an integer.
    """
    sizes = np.asarray(given, object)
    if sizes.ndim > 1:
        raise InvalidArgumentError(
            f"padded_batch: the padded shape of {path} must be one list of dimensions, such as [None, 3], got {given!r}"
        )
    shape: list[int | None] = []
    must_be = f"padded_batch: the dimensions of the padded shape of {path} must be"
    for size in sizes.reshape(-1).tolist():
        if size is not None:
            if not isinstance(size, int | np.integer):
                raise TypeError(f"{must_be} integers or None, got {given!r}")
            if size < -1:
                raise InvalidArgumentError(f"{must_be} at least 0, or None, got {given!r}")
            in_int64("padded_batch", f"each dimension of the padded shape of {path}", int(size))
        shape.append(None if size is None or size == -1 else int(size))
    return tuple(shape)
