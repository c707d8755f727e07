# SPDX-License-Identifier: Apache-2.0
"""The steps of a rank: its rows of every global batch, or every n-th step; short steps, and names of parts."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import field, replace
from functools import cached_property
from typing import Any, ClassVar

from distinput.columns.block import Block
from distinput.columns.state import State, is_count
from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator, HandMark
from distinput.data.seal import Seal, opened, place_in, sealed
from distinput.distribute.input.dealing import StepPadding
from distinput.errors import InvalidArgumentError, StateError
from distinput.names.lazy import dataclass
from distinput.ops.reader import FileNames
from distinput.ops.rebatch import row_counts
from distinput.ops.shard import Shard
from distinput.ops.shard_batches import ShardBatches
from distinput.plan.check import at_least
from distinput.plan.families import drawn_seeds, kept_epochs, walk_made
from distinput.plan.node import Node, walk
from distinput.rewrite.rules import Running
from distinput.run.threads import Closing
from distinput.sharding.own_rows import batch_size_of, has_batches, own_steps, unstated, with_common_order
from distinput.values.spec import Spec, TensorSpec

# ----------------------------------------------------------------------------
# Names of the parts of a source that is not stored in files, so that it can be divided among workers as files are.
# ----------------------------------------------------------------------------


class ShardNames(FileNames):
    """Names such as "shard 3 of 8", of which formats know the parts; the sizes in the table are weights for balancing."""

    op: ClassVar[str] = "shards"

    @cached_property
    def names(self) -> None:  # type: ignore[override]  # nothing is known of them but that they are there
        return None


def number_in(name: str) -> int:
    """The number in such a name."""
    return int(name.split()[1])


# ----------------------------------------------------------------------------
# Steps with fewer rows than a global batch, and what becomes of them on the ranks that share it.
# ----------------------------------------------------------------------------


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
        if not has_batches(node):
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
        counts = row_counts(self.op, block)
        if (counts != self.rows).any():
            raise _short(self.rows, int(counts[counts != self.rows][0]))
        return super()._shares(block)


def _short(rows: int, there: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"tail='error': every batch must have {rows} rows, and one has {there}; choose a batch size that divides the number of "
        "rows, or tail 'pad' or 'drop'"
    )


def rows_of(spec: Spec) -> Callable[[Any], int]:
    """The function that counts the rows of a batch."""
    structure = spec.structure.parted[0]  # `as_rows` has made lists of some parts
    return len if structure.is_leaf else lambda element: len(structure.flatten(element)[0])


def empty_words(who: str, rank: int, ranks: int) -> str:
    """What a rank says about a step in which it has no rows."""
    return (
        f"{who}: rank {rank} of {ranks} has no rows in this step, since the batch has fewer rows than there are ranks. The "
        "mean of no rows is NaN, and makes the gradients and metrics of all ranks NaN. Pass tail='pad' (a step is a pair of "
        "the batch and a mask of its rows), tail='drop' or tail='error'; or divide sums by the rows of all ranks, and pass "
        "tail='partial'"
    )


# ----------------------------------------------------------------------------
# The steps of a rank: its rows of every global batch, or every n-th of these steps for each of its n loader workers.
#
# A step is a global batch, so all ranks have the same number of steps, whatever the data, and need not communicate. A rank
# may get no row of a short batch; `ShortSteps` says what becomes of such steps.
# ----------------------------------------------------------------------------


_KEYS = {"kind", "epoch", "step", "stride", "at", "state"}


@dataclass(frozen=True)
class RankPosition:
    """A position in the steps of one pass.

    Args:
      epoch: the number of the pass.
      step: the number of the next step, among those of all loader workers of the rank.
      stride: how many loader workers share the steps; above 1, this is the position of one of them.
      at: how many steps come before `state`; at most `step`. Those from `at` to `step` are skipped.
      state: of the dataset of the rank's rows; None: the pass has not begun, and `at` is 0.
    """

    epoch: int
    step: int = 0
    stride: int = 1
    at: int = 0
    state: State | None = None

    def to_json(self) -> State:
        """The position as a small JSON value with a checksum."""
        fields = {"epoch": self.epoch, "step": self.step, "stride": self.stride, "at": self.at, "state": self.state}
        return sealed({"kind": "steps", **fields})

    @staticmethod
    def of(state: Any, who: str) -> "RankPosition":
        """The position that `to_json` gave.

        Raises:
          StateError: it is something else, or was changed.
        """
        found = opened(state, who, _KEYS, "steps")
        epoch, step, stride, at = (found[key] for key in ("epoch", "step", "stride", "at"))
        if not (all(is_count(n) for n in (epoch, step, at)) and is_count(stride, 1) and at <= step):
            raise StateError(f"{who}: the state is damaged; it must be what state_dict() of a view gave")
        return RankPosition(epoch, step, stride, at, found["state"])


StepMark = tuple[int, int, HandMark]
"""A position of an iterator of steps: those of `RankPosition`, and of its elements."""


_SHORT = ShortSteps()


class RankSteps:
    """The steps of one rank over a dataset of global batches.

    On a single rank, elements need not be batches: then each element is a step.

    Args:
      dataset: of global batches, the same on all ranks.
      rank: of this process.
      ranks: how many share the batches.
      who: for the messages.
      short: what becomes of steps that are not full.
      empty: called for a step in which this rank has no rows, unless `short` says what becomes of it.

    Attributes:
      finish: makes of each step what is delivered. It is called last, so that a step is not lost if it is interrupted.

    Raises:
      InvalidArgumentError: several ranks cannot share these elements: they have no batch axis, they were divided before, or
        their order is random without a seed; a batch is known to be short, and that is an error.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        rank: int,
        ranks: int,
        who: str,
        short: ShortSteps = _SHORT,
        empty: Callable[[], None] | None = None,
    ) -> None:
        node = short.kept(with_common_order(dataset.node))
        if ranks > 1:
            _check_shared(node, ranks, who)
        self._who = who
        if has_batches(node):
            node = short.shares(node, ranks, rank)
        self._mine = Dataset(node)
        self.finish: Callable[[Any], Any] = short.padding(node.spec, ranks) or as_it_is
        if short.tail is None and ranks > 1 and empty is not None:
            self.finish = _telling(rows_of(node.spec), empty)

    @property
    def reads(self) -> str:
        """What this rank reads, and what its loader workers do, in words."""
        ranks, mine = getattr(self._mine.node, "num_shards", 1), self._mine._runs().node
        whose = "only this rank's rows" if ranks > 1 and type(mine).__name__ == "OwnShares" else "everything"
        if self.divides:
            return f"{whose}; each loader worker only its own steps"
        return (
            f"{whose}; every loader worker the same again, since its steps cannot be read alone: use at most one"
            f"{self.why_together}"
        )

    @property
    def why_together(self) -> str:
        """What to state so that loader workers read nothing but their own steps; empty where that would change nothing."""
        return unstated(self._mine.node)

    @property
    def divides(self) -> bool:
        """True if loader workers read nothing but their own steps."""
        return own_steps(self._mine.node, 0, 2) is not None

    def lasting(self, epoch: int | None = None) -> State:
        """What later passes go on with, in other processes too: the seeds that were drawn, and the passes that caches keep.

        Args:
          epoch: of the pass that begins, which caches keep that keep none yet; None: they decide when they begin.
        """
        node = self._mine.node
        return {"seeds": drawn_seeds(node), "kept": kept_epochs(node, epoch)}

    def go_on(self, lasting: State) -> None:
        """Have all passes from now on go on with what `lasting` gave."""
        self._mine._take_over(lasting)

    def begin(
        self, position: RankPosition, *, worker: int = 0, workers: int = 1, may_differ: str | Collection[str] = ()
    ) -> "StepIterator":
        """The steps from a position on, for one of the loader workers of this rank.

        A position with a stride belongs to this worker. Otherwise worker w gets the steps w, w + workers, ... counted from it.

        Args:
          position: where to begin.
          worker: the number of the loader worker.
          workers: how many there are.
          may_differ: as for `Dataset.restore`.

        Raises:
          StateError: the position belongs to another number of loader workers, or to another pipeline.
        """
        if position.stride > 1 and position.stride != workers:
            raise StateError(
                f"{self._who}: this is the state of one of {position.stride} loader workers, and there are {workers} here; "
                "load the state_dict() of the whole DataLoader into the view before it is iterated"
            )
        first = position.step + (worker if position.stride == 1 else 0)
        position = replace(position, step=first, stride=workers)
        return StepIterator(self._mine, position, self._who, may_differ)


class StepIterator(Closing, Iterator[Any]):
    """The steps of one loader worker, or of a rank that has no loader workers.

    Args:
      mine: the dataset of the rank's rows of every global batch.
      position: where to begin.
      who: for the messages.
      may_differ: as for `Dataset.restore`.
    """

    def __init__(
        self, mine: Dataset[Any], position: RankPosition, who: str, may_differ: str | Collection[str] = ()
    ) -> None:
        self.epoch, self.stride = position.epoch, position.stride
        self._step = position.step
        running = mine._runs()
        if position.state is None:
            place: State = {"epoch": position.epoch, "at": running.node.start(position.epoch), "skip": 0}
        else:
            place, running = place_in(mine.node, running, position.state, may_differ)
            if place["epoch"] != position.epoch:
                raise StateError(
                    f"{who}: the state is damaged: it belongs to two passes, {position.epoch} and {place['epoch']}"
                )
            running = mine._take_over(place, running)  # for the passes that follow, too
        self._plan, self._runs = mine.node, running
        self._count = self._plan.count_elements()
        self._seal = Seal(self._plan, self._runs)
        own = own_steps(self._plan, self._step % self.stride, self.stride) if self.stride > 1 else None
        self._jumps = own is not None
        if own is not None:  # it reads no other steps
            runs = Running.of(own)
            at = runs.node.start_at(self._until(self._step) // self.stride, self.epoch)
            assert at is not None, "own_steps checked that"
            self._at = self._step
            self._elements: DatasetIterator[Any] = DatasetIterator(own, runs, {**place, "at": at, "skip": 0})
            return
        self._at = position.at
        if self._step > self._at and self._count >= 0:  # perhaps the steps between need not be read
            at = self._runs.node.start_at(min(self._step, self._count), self.epoch)
            if at is not None:
                place, self._at = {**place, "at": at, "skip": 0}, self._step
        self._elements = DatasetIterator(self._plan, self._runs, place)

    def _until(self, step: int) -> int:
        """The step, but not beyond this worker's first step past the end."""
        if self._count < 0 or step < self._count:
            return step
        return step % self.stride + -(-(self._count - step % self.stride) // self.stride) * self.stride

    def __next__(self) -> Any:
        while self._at < self._step:
            self._pass_over()
        # No interrupt comes between the element that is taken and the step that is counted: no function is called there.
        after = self._step + self.stride, self._step + self.stride if self._jumps else self._at + 1
        try:
            for element in self._elements:
                self._step, self._at = after
                return element
        except Exception:
            self._step, self._at = after
            raise
        raise StopIteration

    def _pass_over(self) -> None:
        """Read a step of another worker, which is not delivered."""
        after = self._at + 1
        try:
            for _ in self._elements:
                self._at = after
                return
        except Exception:  # noqa: BLE001 - it takes the place of a step of another worker, which raises it
            self._at = after
            return
        raise StopIteration

    def mark(self) -> StepMark:
        """What `position` needs to tell this position later; quick to make."""
        return self._step, self._at, self._elements.mark()

    def position(self, mark: StepMark | None = None) -> RankPosition:
        """The position after the last step delivered.

        Args:
          mark: what `mark` gave; None: the position now.
        """
        step, at, elements = mark or self.mark()
        place = self._elements.place(elements)
        if not self._jumps:
            return RankPosition(self.epoch, step, self.stride, at, self._elements.sealed(place))
        step_here = step if self._count < 0 else min(step, self._count)
        start = self._runs.node.start_at(step_here, self.epoch)
        assert start is not None, "own_steps checked that"
        state = self._seal({**place, "at": start, "skip": 0})
        return RankPosition(self.epoch, step, self.stride, step_here, state)

    def close(self) -> None:
        """End the iteration and its threads."""
        self._elements.close()


def as_it_is(step: Any) -> Any:
    """The step itself."""
    return step


def _telling(rows: Callable[[Any], int], empty: Callable[[], None]) -> Callable[[Any], Any]:
    """A function that leaves a step as it is, and tells if it has no rows."""

    def told(element: Any) -> Any:
        if not rows(element):
            empty()
        return element

    return told


def _check_shared(node: Node, ranks: int, who: str) -> None:
    """Refuse elements that several ranks cannot share."""
    if not has_batches(node):
        raise InvalidArgumentError(
            f"{who}: {ranks} ranks share the rows of every batch, and these elements have no batch axis: {node.element_spec}; "
            "call .batch(global_batch_size), which is the number of rows of a step on all ranks together"
        )
    for step in walk(node):
        if (isinstance(step, ShardBatches) and step.num_shards > 1) or (
            isinstance(step, Shard) and step.num_shards == ranks
        ):
            raise InvalidArgumentError(
                f"{who}: the dataset is sharded already, by {step}, made at {step.origin}, and would be sharded again for "
                f"{ranks} ranks; leave that step out, or pass rank=0, world_size=1 if it is to stay"
            )
    for step in walk_made(node):
        if step.draws and step.chooses:
            raise InvalidArgumentError(
                f"{who}: all ranks must have the same batches in the same order, but {step}, made at {step.origin}, was given "
                "no seed, so each rank draws its own: records would be lost and others delivered twice; give it a seed, the "
                "same on all ranks (seed=1)"
            )
