# SPDX-License-Identifier: Apache-2.0
"""`shard`: every n-th element, for one worker of n."""

from typing import ClassVar, Self

from distinput.columns.block import Block, Failure
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.check import in_int64
from distinput.plan.families import SameElements, own_draw
from distinput.plan.node import UNKNOWN, Needs, above
from distinput.run.run import Run

SHARD_HINT = -1
"""A placeholder for the arguments of `shard`, filled in by the policy HINT; `tf.data.experimental.SHARD_HINT`."""


@dataclass(frozen=True, eq=False)
class Shard(SameElements):
    """Keep the elements whose position is `index` modulo `num_shards`.

    Shapes and order: unchanged. State: how many rows to skip before the next one that is kept.

    Args:
      num_shards: how many workers share the elements, at least 1.
      index: which of them this worker is, from 0.

    Raises:
      InvalidArgumentError: `num_shards` is not positive, or `index` is not one of the shards.

    Warns:
      InputWarning: the order of the elements is random and was given no seed, so that it differs between processes.

    >>> import distinput as di
    >>> di.data.Dataset.range(10).shard(num_shards=3, index=1).to_list()
    [1, 4, 7]

    Source: `tf.data.Dataset.shard`.
    """

    tolerant = harmless = same_access = by_position = view_only = True
    needs: ClassVar[Needs] = Needs.PLACES
    num_shards: int
    index: int

    def __post_init__(self) -> None:
        in_int64("shard", "index", self.index)
        if self.is_hint:
            return
        if in_int64("shard", "num_shards", self.num_shards) < 1:
            raise InvalidArgumentError(
                f"shard: Number of shards must be greater than zero, got num_shards={self.num_shards}"
            )
        if not 0 <= self.index < self.num_shards:
            raise InvalidArgumentError(
                f"shard: Index must be between 0 and {self.num_shards - 1}, got index={self.index}"
            )

    def added(self) -> Self:
        if self.num_shards > 1 and (step := own_draw(self.input, self.num_shards)) is not None:
            text = (
                f"shard: the shards of a random order are complete only if all workers have the same order, but {step}, "
                f"made at {step.origin}, was given no seed, so each process draws its own: records will be lost and others "
                "delivered twice; give it a seed, the same on all workers (seed=1), or shard first and then shuffle"
            )
            self.origin.warn(text)
        return self

    @property
    def is_hint(self) -> bool:
        """True for the placeholder `shard(SHARD_HINT, SHARD_HINT)`, whose index has no meaning."""
        return bool(self.num_shards == SHARD_HINT)

    @property
    def cardinality(self) -> int:
        n = self.input.cardinality
        if n < 0:
            return n
        if self.is_hint:  # TensorFlow's formula, count // -1 + (index < 0); a placeholder cannot be iterated
            return (1 if self.index < 0 else 0) - n
        return len(range(self.index, n, self.num_shards))

    def batch_sizes(self) -> BatchSizes | None:
        below = None if self.is_hint else self.input.batch_sizes()
        return None if below is None else below.every(int(self.num_shards), int(self.index))

    def start(self, epoch: int) -> State:
        self._check_hint()
        return {"input": self.input.start(epoch), "wait": int(self.index)}

    def _check_hint(self) -> None:
        """Refuse to iterate a placeholder, even for an op that would not look at its elements."""
        if self.is_hint:
            error = FailedPreconditionError(
                "shard(SHARD_HINT, SHARD_HINT) can only be used in `tf.distribute.Strategy.experimental_distribute_dataset()` "
                "with `auto_shard_policy` set to `tf.data.experimental.AutoShardPolicy.HINT`"
            )
            error.add_note(f"in {self}, made at {self.origin}")
            raise error

    def start_at(self, row: int, epoch: int) -> State | None:
        n = self.input.cardinality
        if n == UNKNOWN:
            return None
        first = row * self.num_shards + self.index
        return above(self.input.start_at(first if n < 0 else min(first, n), epoch), wait=0)

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return state["input"], state["wait"] + ahead * self.num_shards

    def stream(self, state: State, run: Run) -> Stream:
        wait = state["wait"]
        for block, upstream in self.input.open(state["input"], run):
            # Failures are not counted, so that all workers agree on who has the next element.
            if type(block) is Failure:
                yield block, {"input": upstream, "wait": wait}
                continue
            kept = block.rows(wait, block.size, self.num_shards)
            wait = (wait - block.size) % self.num_shards
            if kept.size:
                yield kept, {"input": upstream, "wait": wait}

    @property
    def fails_in_place(self) -> bool:
        return self.num_shards == 1 and self.input.fails_in_place

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows * self.num_shards + self.index, epoch)
