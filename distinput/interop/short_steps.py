# SPDX-License-Identifier: Apache-2.0
"""Steps with fewer rows than a global batch, and what becomes of them on the ranks that share it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from distinput.core.block import Block
from distinput.core.spec import Spec, TensorSpec
from distinput.distribute.input.tail import StepPadding
from distinput.errors import InvalidArgumentError
from distinput.ops.shard_batches import ShardBatches
from distinput.ops.unbatch import row_counts
from distinput.plan.check import at_least
from distinput.plan.node import Node
from distinput.sharding.batches import batch_size_of

__all__ = ["TAILS", "FullBatches", "ShortSteps", "batched", "empty_words", "rows_of"]

TAILS = ("drop", "error", "pad", "partial")


@dataclass(frozen=True)
class ShortSteps:
    """What becomes of steps with fewer rows than a full global batch.

    Args:
      tail: "partial" delivers them as they are; "pad" makes each step a pair of the element and a mask, with equally many rows
        on every rank; "drop" leaves them out; "error" raises. None: as "partial", but a rank says that it got no rows.
      rows: of a full global batch; 0 where they do not matter.
    """

    tail: str | None = None
    rows: int = 0

    @staticmethod
    def of(tail: str | None, node: Node, who: str, batch_size: int | None = None) -> "ShortSteps":
        """The choice for a dataset of global batches.

        Args:
          tail: of `TAILS`, or None.
          node: of the dataset.
          who: for the messages.
          batch_size: the rows of a full batch, if a function over whole batches hides it.

        Raises:
          InvalidArgumentError: there is no such tail, or it needs to know the rows of a full batch, and they are not known.
        """
        if tail is not None and tail not in TAILS:
            raise InvalidArgumentError(f"{who}: tail must be one of {', '.join(TAILS)}, got {tail!r}")
        if tail in (None, "partial"):
            if batch_size is not None:
                raise InvalidArgumentError(
                    f"{who}: batch_size states the rows of a full batch for tail='pad' or 'error'; the dataset makes the "
                    "batches: dataset.batch(global_batch_size)"
                )
            return ShortSteps(tail)
        if not batched(node):
            raise InvalidArgumentError(
                f"{who}: tail={tail!r} is about the rows of batches, and these elements have no batch axis: "
                f"{node.element_spec}; call .batch(global_batch_size)"
            )
        known = batch_size_of(node)
        given = None if batch_size is None else at_least(who, "batch_size", batch_size, 1)
        if known is None and (given is None or tail == "drop"):
            cure = "write batch(n, drop_remainder=True)" if tail == "drop" else "pass batch_size="
            raise InvalidArgumentError(
                f"{who}: tail={tail!r} needs to know the rows of a full batch, which a function over whole batches may hide; "
                f"{cure}, or call the function on single elements, before batch"
            )
        if known is not None and given is not None and known != given:
            raise InvalidArgumentError(f"{who}: batch_size is {given}, but the batches have {known} rows")
        return ShortSteps(tail, known or given or 0)

    def kept(self, node: Node) -> Node:
        """The batches that are delivered."""
        return node.with_full_batches() if self.tail == "drop" else node

    def shares(self, node: Node, ranks: int, rank: int) -> Node:
        """The rows of a rank in every batch.

        Raises:
          InvalidArgumentError: tail is "error", and a batch is known to be short.
        """
        sizes = node.batch_sizes() if self.tail == "error" else None
        for there in [] if sizes is None else [size for pattern, _ in sizes.runs for size in pattern]:
            if there != self.rows:
                raise _short(self.rows, there)
        if self.tail == "error" and sizes is None:
            return FullBatches(node, ranks, rank, self.rows, origin=node.origin)
        return ShardBatches(node, ranks, rank, origin=node.origin)

    def padding(self, spec: Spec, ranks: int) -> StepPadding | None:
        """What fills up the rows of a rank; None: nothing does."""
        return StepPadding(spec, -(-self.rows // ranks)) if self.tail == "pad" else None

    def element_spec(self, nest: Any) -> Any:
        """What a step looks like."""
        return (nest, TensorSpec([None], "bool")) if self.tail == "pad" else nest


@dataclass(frozen=True, eq=False)
class FullBatches(ShardBatches):
    """`shard_batches` of batches that must be full, which is seen when they are read. All ranks raise for the same batch.

    Args:
      rows: of each batch.
    """

    rows: int = field(default=0, repr=False)  # the state is that of the op

    @property
    def op(self) -> str:
        return "shard_batches"

    def _shares(self, block: Block) -> Block:
        counts, error = row_counts(self.op, block)
        if error is None and (counts != self.rows).any():
            raise _short(self.rows, int(counts[counts != self.rows][0]))
        return super()._shares(block)


def _short(rows: int, there: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"tail='error': every batch must have {rows} rows, and one has {there}; choose a batch size that divides the number of "
        "rows, or tail 'pad' or 'drop'"
    )


def batched(node: Node) -> bool:
    """True if every component has an axis, which then is that of the rows."""
    return all(isinstance(leaf, TensorSpec) and leaf.shape != () for leaf in node.spec.leaves)


def rows_of(spec: Spec) -> Callable[[Any], int]:
    """The function that counts the rows of a batch."""
    structure = spec.structure
    return len if structure.is_leaf else lambda element: len(structure.flatten(element)[0])


def empty_words(who: str, rank: int, ranks: int) -> str:
    """What a rank says about a step in which it has no rows."""
    return (
        f"{who}: rank {rank} of {ranks} has no rows in this step, since the batch has fewer rows than there are ranks. The "
        "mean of no rows is NaN, and makes the gradients and metrics of all ranks NaN. Pass tail='pad' (a step is a pair of "
        "the batch and a mask of its rows), tail='drop' or tail='error'; or divide sums by the rows of all ranks, and pass "
        "tail='partial'"
    )
