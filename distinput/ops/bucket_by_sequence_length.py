# SPDX-License-Identifier: Apache-2.0
"""`bucket_by_sequence_length`: batches of elements of similar length."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.core.adopt import leaf_of
from distinput.core.block import Block, concat_blocks
from distinput.core.calls import called
from distinput.core.column import Ints
from distinput.core.failure import Failure
from distinput.core.leaves import shape_of
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Run
from distinput.core.sizes import MOST_ROWS
from distinput.core.spec import Spec
from distinput.core.state import Mark, State
from distinput.errors import InvalidArgumentError
from distinput.ops.batch import Batch
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.slices import rows_node
from distinput.plan.binding import take_functions
from distinput.plan.check import at_least, integer, normalized, without_sparse
from distinput.plan.keyed import Keyed
from distinput.plan.node import Node
from distinput.plan.state_form import taken_up
from distinput.streaming.groups import Groups

__all__ = ["BucketBySequenceLength"]


@dataclass(frozen=True, eq=False)
class BucketBySequenceLength(Keyed):
    """Padded batches of elements of similar length.

    Bucket i takes lengths from `bucket_boundaries[i - 1]` to below `bucket_boundaries[i]`; a bucket that has reached its batch
    size is delivered. At the end the rest follows, buckets of shorter elements first. Shapes: [...] becomes [batch size, ...],
    padded as by `padded_batch`. State: as for `group_by_window`.

    Args:
      element_length_func: element -> its length. The built-in `len` is never called for elements with a first axis, since
        their lengths are known.
      bucket_boundaries: ascending lengths.
      bucket_batch_sizes: a batch size for each bucket, one more than there are boundaries.
      padded_shapes, padding_values, drop_remainder: as for `padded_batch`.
      pad_to_bucket_boundary: pad unknown dimensions to one below the bucket's upper boundary, not to the longest element.
      no_padding: stack the elements as they are.

    Raises:
      InvalidArgumentError: there is not one batch size for each bucket; at iteration, with `pad_to_bucket_boundary`, an
        element reaches the last boundary.

    >>> import distinput as di
    >>> import numpy as np
    >>> ds = di.data.Dataset.range(1, 6).map(lambda n: np.full(n, n))
    >>> ds = ds.bucket_by_sequence_length(lambda x: len(x), [3], [2, 2])
    >>> [batch.shape for batch in ds]
    [(2, 2), (2, 4), (1, 5)]

    Source: `tf.data.Dataset.bucket_by_sequence_length`.
    """

    by_element: ClassVar[bool] = True
    element_length_func: Callable[..., Any]
    bucket_boundaries: Sequence[int]
    bucket_batch_sizes: Sequence[int]
    padded_shapes: Any = None
    padding_values: Any = None
    pad_to_bucket_boundary: bool = False
    no_padding: bool = False
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        take_functions(self, "bucket_by_sequence_length", "element_length_func")
        for name, given in (
            ("bucket_boundaries", self.bucket_boundaries),
            ("bucket_batch_sizes", self.bucket_batch_sizes),
        ):
            if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes):
                raise TypeError(f"bucket_by_sequence_length: {name} must be a list of integers, got {given!r}")
            if not isinstance(given, list | tuple | np.ndarray):
                normalized(self, name, list(given))
        for boundary in self.bucket_boundaries:
            integer("bucket_by_sequence_length", "bucket_boundaries", boundary)
        if len(self.bucket_batch_sizes) != len(self.bucket_boundaries) + 1:
            raise InvalidArgumentError(
                "bucket_by_sequence_length: `len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1`, got "
                f"{len(self.bucket_batch_sizes)} and {len(self.bucket_boundaries)}"
            )
        for size in self.bucket_batch_sizes:
            at_least("bucket_by_sequence_length", "bucket_batch_sizes", size, 1)
        assert self._batch(0, self.input) is not None

    def _batch(self, bucket: int, rows: Node) -> Node:
        size = int(self.bucket_batch_sizes[bucket])
        if self.no_padding:
            return Batch(rows, size, self.drop_remainder, origin=self.origin)
        shapes = self.padded_shapes
        if self.pad_to_bucket_boundary:
            if bucket == len(self.bucket_boundaries):
                raise InvalidArgumentError(
                    "bucket_by_sequence_length: When pad_to_bucket_boundary=True, elements must have length < "
                    f"max(bucket_boundaries), which is {max(self.bucket_boundaries)}"
                )
            open_shapes = PaddedBatch(rows, size, shapes, self.padding_values, origin=self.origin).shapes
            width = int(self.bucket_boundaries[bucket]) - 1
            closed = [tuple([width if d is None else d for d in shape]) for shape in open_shapes]
            shapes = rows.spec.structure.build(closed)
        return PaddedBatch(rows, size, shapes, self.padding_values, self.drop_remainder, origin=self.origin)

    @cached_property
    def spec(self) -> Spec:
        if self.pad_to_bucket_boundary and not self.no_padding:
            made = PaddedBatch(self.input, 1, self.padded_shapes, self.padding_values, origin=self.origin).spec
        else:
            made = self._batch(0, self.input).spec
        sizes = set(map(int, self.bucket_batch_sizes))
        first = sizes.pop() if self.drop_remainder and len(sizes) == 1 else None
        return made.map(lambda leaf: leaf.with_shape((first, *leaf.shape[1:])))  # type: ignore[index]

    def stream(self, state: State, run: Run) -> Stream:
        boundaries = np.asarray([int(b) for b in self.bucket_boundaries], np.int64)
        batches: dict[int, Node] = {}
        late = run.late(self) if run.by_element else None

        def bucket_of(result: Any) -> int:
            length = leaf_of(result)
            if shape_of(length):
                raise InvalidArgumentError(
                    f"bucket_by_sequence_length: element_length_func must return one number, got {length!r}"
                )
            return int(np.searchsorted(boundaries, int(length), "right"))

        def buckets_of(lengths: Ints) -> Ints:
            return np.searchsorted(boundaries, lengths, "right")

        def made(bucket: int, parts: list[Block], inner: State | None) -> Stream:
            batch = batches.get(bucket) or batches.setdefault(bucket, self._batch(bucket, self.input))
            if not isinstance(batch, PaddedBatch):
                node = batch.with_inputs((rows_node(concat_blocks(parts), self.input.spec.leaves),))
                yield from node.open(taken_up("bucket_by_sequence_length", node, state["epoch"], inner), run)
            elif not (self.drop_remainder and sum([part.size for part in parts]) < batch.batch_size):
                yield batch.padding.batch(parts), {}

        def size_of(bucket: int) -> int:
            return int(self.bucket_batch_sizes[bucket])

        def made_together(rows: Block, counts: Ints) -> Iterator[Block]:
            assert isinstance(shared, PaddedBatch)
            return (block for block, _ in shared.padding.batches(rows, counts, late))

        # Buckets of different widths cannot be padded by one call.
        shared = None if self.pad_to_bucket_boundary or self.no_padding else self._batch(0, self.input)
        upstream = without_sparse(self.op, self.input.open(state["input"], run.by_block()))
        spec = self.input.spec
        if (
            self.element_length_func is len
            and spec.structure.is_leaf
            and spec.tensors("bucket_by_sequence_length")[0].shape
        ):
            results = _lengths(upstream, state)
        else:
            results = called(upstream, state, self.element_length_func, MOST_ROWS, unpack=True, tolerant=run.tolerant)
        together = None if shared is None else made_together
        groups = Groups(
            self.input, state, results, bucket_of, size_of, made, buckets_of, together, tolerant=run.tolerant
        )
        return groups.stream()


def _lengths(stream: Stream, mark: Mark) -> Iterator[tuple[Any, Block, int, Mark]]:
    """The same as `called` with `len`, for elements with a first axis, without creating the elements."""
    for rows, _, _, at in passing_over(stream, mark):
        if type(rows) is Failure:
            yield [], rows, 0, at(0)
            continue
        lengths = np.asarray(rows.columnar().columns[0].lengths(), np.int64)
        yield np.broadcast_to(lengths, rows.size), rows, 0, at(rows.size)
