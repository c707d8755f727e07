# SPDX-License-Identifier: Apache-2.0
"""`unbatch`: the rows of each batch as elements."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, Failure, sound_parts
from distinput.columns.column import Ints
from distinput.columns.rows import ChunkedBlock, Stream
from distinput.columns.sparse_rows import unfolded
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node
from distinput.run.run import Run
from distinput.values.nest import component
from distinput.values.spec import LeafSpec, SparseTensorSpec, Spec, TensorSpec

BlockParts = Callable[[Block], Iterator[tuple[Block, int]]]
"""The rows of the elements of a block, in parts, each with the element after it."""


@dataclass(frozen=True, eq=False)
class Unbatch(Node):
    """Split every element along its first axis.

    Shapes: [b, ...] becomes b elements [...]. Order: unchanged. State: that of the input, and how many rows of its next
    element to skip.

    Raises:
      InvalidArgumentError: a component is a scalar, or first dimensions differ (at iteration if the spec does not tell).

    >>> import distinput as di
    >>> di.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch().to_list()
    [1, 2, 3, 4]

    Source: `tf.data.Dataset.unbatch`.
    """

    tolerant: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.EACH
    view_only: ClassVar[bool] = True
    input: Node

    def __post_init__(self) -> None:
        if self.input.known_spec is not None:
            first_dimension("unbatch", self.input.known_spec)

    @cached_property
    def spec(self) -> Spec:
        first_dimension("unbatch", self.input.spec)
        return self.input.spec.map(_row_of)

    @property
    def cardinality(self) -> int:
        n = self.input.cardinality
        if n < 0:
            return n
        size = first_dimension("unbatch", self.input.spec)
        return n * size if size else UNKNOWN

    def count_elements(self) -> int:
        if self.input.count_elements() == INFINITE:
            return self.cardinality if self.cardinality != UNKNOWN else INFINITE
        below = self.input.batch_sizes()
        return UNKNOWN if below is None else below.rows

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        size = first_dimension("unbatch", self.input.spec)
        if not size:
            return None
        at = self.input.start_at(row // size, epoch)
        return None if at is None else {"input": at, "skip": row % size}

    def stream(self, state: State, run: Run) -> Stream:
        return taken_apart(self.input.open(state["input"], run), state, lambda block: self._parts(block, run))

    @cached_property
    def _sizes(self) -> BatchSizes | None:
        return self.input.batch_sizes()

    @property
    def fetches(self) -> bool:
        return self.input.random_access and self._sizes is not None

    def fetch(self, rows: Ints, epoch: int) -> Block:
        """The rows at these positions; each batch that holds some of them is made once."""
        assert self._sizes is not None
        elements, over = self._sizes.places(rows)
        batches, which = np.unique(elements, return_inverse=True)
        _, sizes = self._sizes.spans(batches)
        starts = np.cumsum(sizes) - sizes
        return _all_rows(self.input.fetch(batches, epoch)).take(starts[which] + over)

    def _parts(self, block: Block, run: Run) -> Iterator[tuple[Block, int]]:
        return sound_parts(block.size, lambda first, end: _all_rows(block.rows(first, end)), tolerant=run.tolerant)


def taken_apart(stream: Stream, state: State, parts: BlockParts) -> Stream:
    """The rows of the elements of a stream.

    Args:
      stream: begins at the `input` of the state.
      state: `skip` tells how many rows to skip from there, and `failures` how many failures.
      parts: gives the rows of the elements of a block, in parts.
    """
    before, over, failed = state["input"], state["skip"], state.get("failures", 0)
    for block, after in stream:
        if type(block) is Failure:
            yield block, {"input": after, "skip": 0}
            over = failed = 0
        rows = failures = 0
        for part, done in parts(block) if block.size else ():
            rows, failures = rows + part.size, failures + (type(part) is Failure)
            mark = {"input": after, "skip": 0} if done == block.size else {"input": before, "skip": rows}
            if failures and done < block.size:
                mark["failures"] = failures
            if type(part) is not Failure:
                passed = min(over, part.size)
                over -= passed
                part = part.rows(passed, part.size)
                if part.size:
                    yield part, mark
            elif failed:
                failed -= 1
            else:
                yield part, mark
        before = after


def _all_rows(block: Block) -> Block:
    rows, error = unstacked("unbatch", block)
    if error is not None:
        raise error
    return rows


def first_dimension(op: str, spec: Spec) -> int | None:
    """The known first dimension of all leaves, or None.

    Raises:
      InvalidArgumentError: a leaf is a scalar, two leaves disagree, or a sparse tensor has a rank below 2.
    """
    spec = spec.folded
    sizes: dict[str, int] = {}
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        if leaf.shape is None:
            continue
        if not leaf.shape:
            what = "scalar elements" if isinstance(leaf, TensorSpec) else leaf.called
            raise InvalidArgumentError(
                f"{op}: All components must have at least one dimension, got {what} in {component(path)}"
                f"{'' if isinstance(leaf, TensorSpec) else f'; {leaf.cure}'}"
            )
        if isinstance(leaf, SparseTensorSpec) and len(leaf.shape) == 1:
            raise InvalidArgumentError(
                f"{op}: a SparseTensor must have rank 2 or more to be taken apart, got rank 1 in {component(path)}; make an "
                "array with .to_dense() first"
            )
        if leaf.shape[0] is not None:
            sizes[path] = leaf.shape[0]
    if len(set(sizes.values())) > 1:
        raise InvalidArgumentError(f"{op}: all components must have the same first dimension, got {sizes}")
    return next(iter(sizes.values()), None)


def row_counts(op: str, block: Block) -> tuple[Ints, InvalidArgumentError | None]:
    """Rows of each element of a block, up to the first element whose components disagree, and the error for that one."""
    counts: Ints | None = None
    block = block.columnar().folded()
    for column, path in zip(block.columns, block.structure.paths, strict=True):
        lengths = column.lengths()
        if lengths is None:
            raise InvalidArgumentError(
                f"{op}: All components must have at least one dimension, got scalar elements in {component(path)}"
            )
        each = np.broadcast_to(np.asarray(lengths, np.int64), block.size)
        if counts is None:
            counts = each
        else:
            bad = np.flatnonzero(counts[: len(each)] != each[: len(counts)])
            if len(bad):
                at = int(bad[0])
                error = InvalidArgumentError(
                    f"{op}: all components of an element must have the same first dimension, got {counts[at]} and {each[at]}"
                )
                return counts[:at], error
    assert counts is not None
    return counts, None


def unstacked(op: str, block: Block) -> tuple[Block, InvalidArgumentError | None]:
    """The rows of all elements of a block, up to the first element whose components disagree, and the error for that one."""
    if isinstance(block, ChunkedBlock) and block.shape:
        return block.unstack(), None
    some = block.blocks[0] if isinstance(block, ChunkedBlock) else block.columnar()  # whose rows have one shape
    lengths = [column.lengths() for column in some.folded().columns]
    if set(map(type, lengths)) == {int} and len(set(lengths)) == 1:
        return block.unstack(), None
    counts, error = row_counts(op, block)
    part = block.rows(0, len(counts)).columnar()
    columns = unfolded([c.unstack() for c in part.folded().columns])
    return ColumnBlock(part.structure, columns, int(counts.sum())), error


def _row_of(leaf: LeafSpec) -> LeafSpec:
    return leaf.with_shape(None if leaf.shape is None else leaf.shape[1:])
