# SPDX-License-Identifier: Apache-2.0
"""`unbatch`: the rows of each batch as elements."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distinput.core.block import Block
from distinput.core.chunked import Chunked
from distinput.core.column import Ints
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import LeafSpec, Spec, TensorSpec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError
from distinput.plan.node import UNKNOWN, Node

__all__ = ["Unbatch", "row_counts", "unstacked"]


@dataclass(frozen=True, eq=False)
class Unbatch(Node):
    """Split every element along its first axis.

    Shapes: [b, ...] becomes b elements [...]. Order: unchanged. State: that of the input, and how many
    rows of its next element to pass over.

    Raises:
      InvalidArgumentError: a component is a scalar, or first dimensions differ (at iteration where the spec does not tell).

    >>> import distinput as di
    >>> di.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch().to_list()
    [1, 2, 3, 4]

    Source: `tf.data.Dataset.unbatch`.
    """

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

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        size = first_dimension("unbatch", self.input.spec)
        if not size:
            return None
        at = self.input.start_at(row // size, epoch)
        return None if at is None else {"input": at, "skip": row % size}

    def stream(self, state: State, run: Run) -> Stream:
        over = state["skip"]
        for block, after in self.input.open(state["input"], run):
            if block.size:
                rows, failure = unstacked("unbatch", block)
                if over:
                    every = rows.size
                    rows = rows.rows(over, every)
                    over -= every - rows.size
                yield rows, {"input": after, "skip": over}
                if failure is not None:
                    raise failure


def first_dimension(op: str, spec: Spec) -> int | None:
    """The known first dimension of all leaves, or None.

    Raises:
      InvalidArgumentError: a leaf is a scalar, or two leaves disagree.
    """
    known: dict[str, int] = {}
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        if leaf.shape is None:
            continue
        if not leaf.shape:
            what = "scalar elements" if isinstance(leaf, TensorSpec) else "a dataset, to be flat_mapped,"
            raise InvalidArgumentError(
                f"{op}: All components must have at least one dimension, got {what} in component {path or 'of the element'}"
            )
        if leaf.shape[0] is not None:
            known[path] = leaf.shape[0]
    if len(set(known.values())) > 1:
        raise InvalidArgumentError(f"{op}: all components must have the same first dimension, got {known}")
    return next(iter(known.values()), None)


def row_counts(op: str, block: Block) -> tuple[Ints, InvalidArgumentError | None]:
    """Rows of each element of a block, up to the first element whose components disagree, and the error for that one."""
    counts: Ints | None = None
    for column, path in zip(block.columns, block.structure.paths, strict=True):
        lengths = column.lengths()
        if lengths is None:
            raise InvalidArgumentError(
                f"{op}: All components must have at least one dimension, got scalar elements in component "
                f"{path or 'of the element'}"
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
    if isinstance(block, Chunked) and block.shape:
        return block.unstack(), None
    some = block.blocks[0] if isinstance(block, Chunked) else block  # rows of a chunked one have one shape
    lengths = [column.lengths() for column in some.columns]
    if set(map(type, lengths)) == {int} and len(set(lengths)) == 1:
        return block.unstack(), None
    counts, error = row_counts(op, block)
    part = block.rows(0, len(counts))
    columns = [c.unstack() for c in part.columns]
    return Block(part.structure, columns, int(counts.sum())), error


def _row_of(leaf: LeafSpec) -> LeafSpec:
    return leaf.with_shape(None if leaf.shape is None else leaf.shape[1:])
