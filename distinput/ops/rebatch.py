# SPDX-License-Identifier: Apache-2.0
"""`unbatch`: the rows of each batch as elements; `rebatch`: the same rows in batches of other sizes."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, Failure, sound_parts, stacked_parts
from distinput.columns.column import Ints, StackError
from distinput.columns.regroup import split
from distinput.columns.rows import ChunkedBlock, RowQueue, Stream
from distinput.columns.state import State, is_count
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.names.lazy import dataclass, later
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.check import at_least
from distinput.plan.families import stacked_batches
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node, above
from distinput.run.run import Run
from distinput.values.leaves import shape_of
from distinput.values.nest import LEAF, component
from distinput.values.spec import LeafSpec, SparseTensorSpec, Spec, TensorSpec, no_rows

if TYPE_CHECKING:
    from distinput.columns import sparse_rows
else:
    sparse_rows = later("distinput.columns.sparse_rows")  # for batches that are taken apart

# ----------------------------------------------------------------------------
# `unbatch`: the rows of each batch as elements.
# ----------------------------------------------------------------------------


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

    tolerant = view_only = True
    needs: ClassVar[Needs] = Needs.EACH
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
        return above(self.input.start_at(row // size, epoch), skip=row % size)

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
        return _all_rows(self.input.fetch(batches, epoch)).take((np.cumsum(sizes) - sizes)[which] + over)

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


def first_dimension(op: str, spec: Spec) -> int | None:
    """The known first dimension of all leaves, or None.

    Raises:
      InvalidArgumentError: there is no leaf, one is a scalar, two disagree, or a sparse tensor has a rank below 2.
    """
    spec = spec.folded
    if not spec.leaves:
        raise _without_rows(op)
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


def row_counts(op: str, block: Block) -> Ints:
    """Rows of each element of a block.

    Raises:
      InvalidArgumentError: a component is a scalar, or the components of an element disagree.
    """
    counts: Ints | None = None
    block = block.columnar().folded()
    for column, path in zip(block.columns, block.structure.paths, strict=True):
        lengths = column.lengths()
        if lengths is None:
            raise InvalidArgumentError(
                f"{op}: All components must have at least one dimension, got scalar elements in {component(path)}"
            )
        each = np.broadcast_to(np.asarray(lengths, np.int64), block.size)
        counts = each if counts is None else counts
        bad = np.flatnonzero(counts != each)
        if len(bad):
            raise InvalidArgumentError(
                f"{op}: all components of an element must have the same first dimension, got {counts[bad[0]]} and "
                f"{each[bad[0]]}"
            )
    if counts is None:
        raise _without_rows(op)
    return counts


def _without_rows(op: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{op}: elements must have at least one component, so that they have rows")


def _all_rows(block: Block) -> Block:
    """The rows of all elements of a block."""
    if type(block) is ChunkedBlock and block.shape:
        return block.unstack()
    some = block.blocks[0] if type(block) is ChunkedBlock else block.columnar()  # whose rows have one shape
    lengths = [column.lengths() for column in some.folded().columns]
    if set(map(type, lengths)) == {int} and len(set(lengths)) == 1:
        return block.unstack()
    counts, part = row_counts("unbatch", block), block.columnar()
    columns = sparse_rows.unfolded([c.unstack() for c in part.folded().columns])
    return ColumnBlock(part.structure, columns, int(counts.sum()))


def _row_of(leaf: LeafSpec) -> LeafSpec:
    return leaf.with_shape(None if leaf.shape is None else leaf.shape[1:])


# ----------------------------------------------------------------------------
# `rebatch`: the same rows in batches of other sizes.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rebatch(Node):
    """Batches whose sizes cycle through `batch_size`, filled across the borders of the input's batches.

    Shapes: [b, ...] becomes [batch_size, ...]; the last batch may have fewer rows. A size of 0 gives an empty batch, without
    a look at the input. Only the rows of batches that cross a border are copied. State: where the next row stands in the rows
    of the input, and which size is next.

    Args:
      batch_size: one size, or a list of sizes that is repeated.
      drop_remainder: leave out a last batch that is not full.

    Raises:
      InvalidArgumentError: a size is negative, all are 0, or the input has components without a first axis.
      FailedPreconditionError: at iteration, rows of one batch differ in shape.

    >>> import distinput as di
    >>> list(di.data.Dataset.range(6).batch(4).rebatch([1, 2]).as_numpy_iterator())
    [array([0]), array([1, 2]), array([3]), array([4, 5])]

    Source: `tf.data.Dataset.rebatch`.
    """

    by_element = tolerant = view_only = True
    needs: ClassVar[Needs] = Needs.PART
    input: Node
    batch_size: int | Sequence[int]
    drop_remainder: bool = False
    keeps_inner_shape: ClassVar[bool] = False
    """True: an empty batch takes inner dimensions that the spec leaves open from the last row before it."""

    def __post_init__(self) -> None:
        sizes = self.sizes
        if not sizes or max(sizes) == 0:
            raise InvalidArgumentError(f"rebatch: batch_size must hold a positive size, got {self.batch_size}")
        if self.input.known_spec is not None:
            first_dimension("rebatch", self.input.known_spec)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The cycle of sizes."""
        given = self.batch_size
        if isinstance(given, np.ndarray):
            given = given.tolist()
        if isinstance(given, list | tuple):
            return tuple([at_least("rebatch", "batch_size", size, 0) for size in given])
        return (at_least("rebatch", "batch_size", given, 1),)

    @cached_property
    def spec(self) -> Spec:
        known = first_dimension("rebatch", self.input.spec)
        size = self.sizes[0] if len(set(self.sizes)) == 1 else None
        self.input.spec.tensors("rebatch")

        def batched(leaf: LeafSpec) -> LeafSpec:
            if leaf.shape is None:
                return leaf
            static = size is not None and (self.drop_remainder or (known is not None and known % size == 0))
            return leaf.with_shape((size if static else None, *leaf.shape[1:]))

        return self.input.spec.map(batched)

    def count_elements(self) -> int:
        if self.input.count_elements() == INFINITE:
            return self.cardinality if self.cardinality != UNKNOWN else INFINITE
        sizes = self.batch_sizes()
        return UNKNOWN if sizes is None else sizes.count

    def batch_sizes(self) -> BatchSizes | None:
        below = self.input.batch_sizes()
        return None if below is None else below.rebatched(self.sizes, drop_remainder=self.drop_remainder)

    def start(self, epoch: int) -> State:
        return {"input": Unbatch(self.input, origin=self.origin).start(epoch), "skip": 0, "next": 0}

    def input_at(self, state: State) -> Node:
        return Unbatch(self.input, origin=self.origin)

    def state_misfit(self, state: State) -> str | None:
        inner = state.get("inner")
        fits = inner is None or (
            isinstance(inner, list) and all(isinstance(shape, list) and all(map(is_count, shape)) for shape in inner)
        )
        fits = fits and (inner is None or len(inner) == len(self.spec.folded.leaves))
        fits = fits and state["next"] < len(self.sizes)
        return None if fits else "rebatch: 'next' and 'inner' must be of its batches"

    def start_at(self, row: int, epoch: int) -> State | None:
        rows = Unbatch(self.input, origin=self.origin)
        cycles, at = divmod(row, len(self.sizes))
        first = cycles * sum(self.sizes) + sum(self.sizes[:at])
        n = rows.cardinality
        start = rows.start_at(first if n < 0 else min(n, first), epoch)
        return None if start is None else {"input": start, "skip": 0, "next": at}

    @cached_property
    def _own_sizes(self) -> BatchSizes | None:
        return None if 0 in self.sizes else self.batch_sizes()

    @property
    def fetches(self) -> bool:
        return self.input.random_access and self._own_sizes is not None

    def fetch(self, rows: Ints, epoch: int) -> Block:
        """The batches at these positions; each batch of the input that holds some of their rows is made once."""
        assert self._own_sizes is not None
        starts, sizes = self._own_sizes.spans(rows)
        before = np.cumsum(sizes) - sizes
        wanted = np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))
        try:
            return Unbatch(self.input, origin=self.origin).fetch(wanted, epoch).split(sizes)
        except StackError as error:
            raise _differing(error) from None

    def stream(self, state: State, run: Run) -> Stream:
        queue = RowQueue(Unbatch(self.input, origin=self.origin).stream(state["input"], run), state)
        if len(self.sizes) > 1:
            return self._of_sizes(queue, state, run)
        (size,), drops = self.sizes, self.drop_remainder
        made = stacked_batches(queue, size, run, drop_remainder=drops, lost=RowQueue.passed, told=_differing)
        return ((block, {**mark, "next": 0}) for block, mark in made)

    def _of_sizes(self, queue: RowQueue, state: State, run: Run) -> Stream:
        sizes, place, inner = self.sizes, state["next"], state.get("inner")
        cycle = sum(sizes)

        def mark() -> State:
            here = {**queue.mark(), "next": place}
            return here if inner is None else {**here, "inner": inner}

        while True:
            if not sizes[place]:
                place = (place + 1) % len(sizes)
                yield self._empty(inner), mark()
                continue
            if not queue.fill(sizes[place]):
                if queue.failure is None:
                    break
                yield queue.passed(), mark()  # the rows gathered for this batch go with it
                continue
            whole = queue.front // cycle if place == 0 and 0 not in sizes else 0
            before, first = queue.mark(), place
            if whole:
                counts = np.tile(np.asarray(sizes, np.int64), whole)
            else:
                counts = np.asarray([sizes[place]], np.int64)
                place = (place + 1) % len(sizes)
            for batch, done in _split(queue.take(int(counts.sum())), counts, tolerant=run.tolerant):
                if type(batch) is not Failure:
                    inner = self._inner(batch)
                if done == len(counts):
                    yield batch, mark()
                else:
                    over = before["skip"] + int(counts[:done].sum())
                    yield batch, {**mark(), **before, "skip": over, "next": (first + done) % len(sizes)}
        if queue.size and not self.drop_remainder:
            size = queue.size
            for batch, _ in stacked_parts(queue.take(size), size, _differing, tolerant=run.tolerant):
                yield batch, mark()

    def _inner(self, made: Block) -> list[list[int]] | None:
        """The shapes of the rows of the last batch, if empty batches take theirs from it."""
        if not self.keeps_inner_shape or 0 not in self.sizes:
            return None
        shapes = [shape_of(column.row(made.size - 1))[1:] for column in made.columnar().folded().columns]
        return [[size or 0 for size in shape] for shape in shapes]

    def _empty(self, seen: list[list[int]] | None) -> Block:
        """A batch without rows; unknown dimensions are those seen last, or 0."""
        spec = self.input.spec.folded
        leaves = []
        for index, leaf in enumerate(spec.tensors("rebatch")):
            known = () if leaf.shape is None else leaf.shape[1:]
            last = seen[index] if seen is not None else [0] * len(known)
            inner = tuple([d if d is not None else last[axis] for axis, d in enumerate(known)])
            leaves.append(no_rows(leaf, inner))
        structure = self.input.spec.structure
        return Block.of(structure, [structure.flatten(spec.structure.build(leaves))])


@dataclass(frozen=True, eq=False)
class LegacyRebatch(Node):
    """Cut each batch on its own into `num_replicas` pieces of ceil(rows / num_replicas) rows; later ones may be empty.

    Shapes: [b, ...] becomes `num_replicas` elements [ceil(b / num_replicas) or fewer, ...]. All pieces are views. Components
    are cut independently by their own first dimension. State: that of the input, and how many pieces of its next batch to skip.

    Args:
      num_replicas: how many pieces each batch is cut into, at least 1.

    Raises:
      InvalidArgumentError: a component has no first axis.

    Source: `_LegacyRebatchDataset` of tensorflow/python/data/experimental/ops/distribute.py.
    """

    tolerant = view_only = True
    needs: ClassVar[Needs] = Needs.PART
    input: Node
    num_replicas: int

    def __post_init__(self) -> None:
        at_least("rebatch", "num_replicas", self.num_replicas, 1)

    @cached_property
    def spec(self) -> Spec:
        self.input.spec.tensors("rebatch")
        spec = self.input.spec.folded
        leaves: list[LeafSpec] = []
        for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
            if leaf.shape is None:
                leaves.append(leaf)
                continue
            if not leaf.shape:
                raise InvalidArgumentError(
                    f"distribute: {component(path)} must have a first axis to be divided over replicas, got "
                    "a scalar; call .batch(global_batch_size) before distributing"
                )
            first = leaf.shape[0]
            even = first is not None and first % self.num_replicas == 0
            leaves.append(
                leaf.with_shape((first // self.num_replicas if first is not None and even else None, *leaf.shape[1:]))
            )
        return Spec(spec.structure, tuple(leaves)).unfolded

    @property
    def cardinality(self) -> int:
        n = self.input.cardinality
        return n if n < 0 else n * self.num_replicas

    def batch_sizes(self) -> BatchSizes | None:
        below = self.input.batch_sizes()
        return None if below is None else below.cut(self.num_replicas)

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        return above(self.input.start_at(row // self.num_replicas, epoch), skip=row % self.num_replicas)

    def stream(self, state: State, run: Run) -> Stream:
        return taken_apart(self.input.open(state["input"], run), state, lambda block: self._parts(block, run))

    def _parts(self, block: Block, run: Run) -> Iterator[tuple[Block, int]]:
        return sound_parts(block.size, lambda a, b: self._cut(block.rows(a, b)), tolerant=run.tolerant)

    def _cut(self, block: Block) -> Block:
        columns = []
        pieces = self.num_replicas
        for column in block.columnar().folded().columns:
            counts = row_counts("distribute", ColumnBlock(LEAF, [column], block.size))
            size = -(-counts // pieces)
            each = np.clip(counts[:, None] - size[:, None] * np.arange(pieces), 0, size[:, None]).reshape(-1)
            columns.append(split(column.unstack(), each))
        return ColumnBlock(block.structure, sparse_rows.unfolded(columns), block.size * pieces)


def _split(block: Block, counts: Ints, *, tolerant: bool) -> Iterator[tuple[Block, int]]:
    """Rows grouped by counts, in parts with the group after each; a group whose rows differ in shape is a failure."""
    rows = 0
    while rows < len(counts):
        made, error = _split_prefix(block, counts[rows:])
        rows += made.size
        if made.size:
            yield made, rows
        if error is not None:
            if not tolerant:
                raise _differing(error)
            rows += 1
            yield Failure(_differing(error)), rows
            block = block.rows(int(counts[rows - 1 - made.size : rows].sum()), block.size)


def _split_prefix(block: Block, counts: Ints) -> tuple[Block, StackError | None]:
    """As many groups as possible, and the error of the first one that fails."""
    try:
        return block.split(counts), None
    except StackError as error:
        first = error
    # Each column may fail at another group, so the earliest failure is found by cutting down to the group before.
    made, earlier = _split_prefix(block.rows(0, int(counts[: first.group].sum())), counts[: first.group])
    return made, earlier or first


def _differing(error: StackError) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"rebatch: Cannot batch tensors with different shapes: {error}; pad the rows to one shape first"
    )
