# SPDX-License-Identifier: Apache-2.0
"""Families of steps: what follows for all that pass on, group, stack, seed or hold elements alike; seeds, and their places."""

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from functools import cached_property, partial, reduce
from itertools import chain, count
from threading import local
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from distinput.arrow.adopt import frozen
from distinput.columns.block import MOST_ROWS, Block, ColumnBlock, Failure, stacked_parts, trouble_of
from distinput.columns.column import Column, Dense, Ints, StackError
from distinput.columns.ragged import Arrays, Datasets, Objects, Ragged, ragged_spec
from distinput.columns.rows import RowQueue, Stream, stackable
from distinput.columns.state import Digest, State
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass, later
from distinput.plan.check import integer, normalized
from distinput.plan.node import UNKNOWN, Needs, Node, Provenance, above, describe, record_in_words, walk
from distinput.run.run import Run
from distinput.run.threads import loader_worker
from distinput.values.leaves import TensorShape, dtype_name, shape_of
from distinput.values.nest import Structure
from distinput.values.spec import DatasetSpec, ElementsSpec, LeafSpec, Spec, TensorSpec, merge_shapes

if TYPE_CHECKING:
    from distinput.columns import picked as picking
    from distinput.plan import batch_sizes as sizes_of_batches
    from distinput.plan.batch_sizes import BatchSizes
    from distinput.values import nullable as nullables
else:
    picking = later("distinput.columns.picked")  # for rows that are reached by position
    sizes_of_batches = later("distinput.plan.batch_sizes")  # for workers
    nullables = later("distinput.values.nullable")  # for columns with nulls

# ----------------------------------------------------------------------------
# Randomness: every random choice is a function of (seed, epoch, position), so it can be made again.
#
# The mixing function is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
# ----------------------------------------------------------------------------


_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
Words = np.ndarray[Any, np.dtype[np.uint64]]


_GLOBAL: tuple[int, "count[int]"] | None = None
"""The seed that the user set for all steps without one, and how many have drawn from it since."""

_HERE = local()


def set_global_seed(seed: int | None) -> None:
    """Have ops that are given no seed draw theirs from this one, in order; None: from the operating system, as at first."""
    global _GLOBAL
    _GLOBAL = None if seed is None else (seed, count())


def fresh_seed() -> int:
    """A seed for an op that was given none: from the global seed if there is one, or else from the operating system."""
    if _GLOBAL is None or getattr(_HERE, "unseeded", False):
        return unrelated()
    seed, drawn = _GLOBAL
    return key_of(seed, next(drawn)) >> 1


def unrelated() -> int:
    """A number from the operating system, of 63 bits."""
    return int.from_bytes(os.urandom(8), "little") >> 1


@contextmanager
def unseeded() -> Iterator[None]:
    """Within it, on this thread, no seeds are drawn from the global one: for functions that run while a pipeline does."""
    before = getattr(_HERE, "unseeded", False)
    _HERE.unseeded = True
    try:
        yield
    finally:
        _HERE.unseeded = before


def _mix(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _MASK
    return word ^ (word >> 31)


def key_of(*parts: int) -> int:
    """One 64-bit key from integers of any size, such as a seed and an epoch."""
    key = 0
    for part in parts:
        rest = int(part)
        negative = rest < 0
        rest = abs(rest)
        key = _mix((key + _GOLDEN + negative) & _MASK)
        while True:
            key = _mix((key ^ (rest & _MASK)) + _GOLDEN & _MASK)
            rest >>= 64
            if not rest:
                break
    return key


def words_at(key: int, start: int, count: int) -> Words:
    """The random words of positions start to start + count."""
    return words_of(key, np.arange(start, start + count, dtype=np.uint64))


def words_of(key: int, positions: np.ndarray[Any, Any]) -> Words:
    """The random words of these positions."""
    with np.errstate(over="ignore"):
        word = positions.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(key)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return word ^ (word >> np.uint64(31))


def uniform_at(key: int, start: int, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers in [0, 1) of positions start to start + count."""
    return (words_at(key, start, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


# ----------------------------------------------------------------------------
# Families of steps: what follows for all steps that pass on, group, stack or seed their input alike.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OneForOne(Node):
    """A step whose element i depends on element i of the input alone.

    State: the position of the next element in the input; a step that has the states of its input says so with
    `passes_states`. A step that cannot fetch single elements is without `same_access`.
    """

    same_count = same_access = True
    needs: ClassVar[Needs] = Needs.ONE
    input: Node

    @property
    def in_record_order(self) -> bool:
        return self.input.in_record_order

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        return above(self.input.start_at(row, epoch), skip=0)

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return (state, ahead) if self.passes_states else (state["input"], ahead + state["skip"])


class Signed(OneForOne):
    """A step whose user may say what its function returns. Subclasses have `output_signature` among their fields."""

    output_signature: Any

    @property
    def spec_given(self) -> bool:
        return self.output_signature is not None

    @cached_property
    def signature(self) -> Spec | None:
        """The spec that the user gave, with which elements are compared."""
        return None if self.output_signature is None else Spec.of(self.output_signature)


class Restructured(OneForOne):
    """A step that hands out columns of its input, all or some, in a structure of its own. Its states are those of its input."""

    tolerant: ClassVar[bool] = True
    passes_states: ClassVar[bool] = True
    keeps_batches: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    view_only: ClassVar[bool] = True

    def added(self) -> Node:
        if self.input.known_spec is not None:
            _ = self.spec
        return self

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, epoch)

    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state, run):
            yield (block if type(block) is Failure else self._restructured(block)), after

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._restructured(self.input.fetch(rows, epoch))

    def _restructured(self, block: Block) -> Block:
        return ColumnBlock(self.spec.structure, self._kept(block.columnar().columns), block.size)

    def _kept(self, columns: Sequence[Column]) -> Sequence[Column]:
        """The columns of the elements, in the order of the spec."""
        return columns


@dataclass(frozen=True, eq=False)
class SameElements(Node):
    """A step whose elements are those of its input: all or some of them, once or again, in any order.

    Each step states how many there are.
    """

    keeps_batches: ClassVar[bool] = True
    delays: ClassVar[bool] = False
    """True: it passes on every element, but makes or keeps many of them before the first."""
    _asks: ClassVar[bool] = False  # its functions decide which elements come, and not what they look like
    input: Node

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec


class Transparent(SameElements):
    """A step whose elements and states are those of its input: it says how they are made."""

    tolerant: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    transparent: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.ONE
    by_position: ClassVar[bool] = True
    same_count = same_access = True

    @property
    def fails_in_place(self) -> bool:
        return self.input.fails_in_place

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, epoch)

    def stream(self, state: State, run: Run) -> Stream:
        return self.input.open(state, run)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows, epoch)


@dataclass(frozen=True, eq=False)
class Seeded(Node):
    """A step with a seed: the user's, or one that it draws, which states remember.

    Subclasses have `seed` among their fields, where TensorFlow's arguments have it, and put `seeded` into their states. The
    random numbers of a pass follow from `key_of_pass` and a position. A step whose seed does not decide which element comes
    next overrides `chooses`; one whose passes differ, `reshuffles`.
    """

    drawn_seed: int = field(default_factory=fresh_seed, kw_only=True, repr=False)
    mark: int = field(default_factory=unrelated, kw_only=True, repr=False)
    """A number that copies of the step have, and no other step."""
    place: int = field(default=0, kw_only=True, repr=False)
    """Which of the places of this step in its tree it stands at; the first one is 0 (`placed`)."""

    @property
    @abstractmethod
    def seed(self) -> int | None:
        """Any integer; None: `drawn_seed` takes its place."""

    @property
    def draws(self) -> bool:
        return self.seed is None

    @property
    def chooses(self) -> bool:
        return True

    def seeded(self, epoch: int, row: int = 0) -> State:
        """What a state holds of the seed, the pass and the position."""
        seed = self.drawn_seed if self.seed is None else int(self.seed)
        return {"seed": key_of(seed, self.place) if self.place else seed, "epoch": epoch, "row": row}

    @property
    def differs_by_place(self) -> bool:
        return self.reshuffles

    def at_place(self, place: int) -> Self:
        """The same step at another place."""
        return replace(self, place=place).same_as(self)

    def key_of_pass(self, state: State) -> int:
        """The key of the random numbers of the pass that a state is of."""
        return key_of(state["seed"], state["epoch"] if self.reshuffles else 0)

    def check_seed(self, op: str) -> None:
        """Refuse a seed that is not an integer.

        Raises:
          TypeError: it is none.
        """
        if self.seed is not None:
            integer(op, "seed", self.seed)


_MOST = 64
"""Elements of a group whose records are looked for one by one, for a note on an error."""


@dataclass(frozen=True, eq=False)
class Grouped(Node):
    """A step whose element i is made of up to `needed` elements of the input, from number i * `step` on.

    State: the position of the next group's first element in the input.
    """

    needs: ClassVar[Needs] = Needs.PART
    input: Node

    @property
    @abstractmethod
    def step(self) -> int:
        """Elements from the start of one group to the start of the next."""

    @property
    def needed(self) -> int:
        """Elements from the first to the last of a full group."""
        return self.step

    def groups(self, *, full: bool) -> int:
        """How many groups there are, or how many full ones."""
        n = self.input.cardinality
        if n < 0:
            return n
        return max(0, (n - self.needed) // self.step + 1) if full else -(-n // self.step)

    @property
    def members(self) -> range:
        """The elements of a full group, counted from its first one."""
        return range(self.needed)

    def records_at(self, state: State, ahead: int) -> Provenance | None:
        at, first = state["input"], state["skip"] + ahead * self.step
        members = self.members
        records = self.input.records_at(at, first)
        if records is None:
            return None
        if self.input.in_record_order and members.step == 1 and len(records.runs) == 1:
            last = self.input.records_at(at, first + members[-1])
            file, row, count = records.runs[0]
            if last is not None and last.runs[-1][0] == file and sum(last.runs[-1][1:]) == row + count * len(members):
                return Provenance(((file, row, count * len(members)),))
        for number in members[1:_MOST]:
            record = self.input.records_at(at, first + number)
            if record is None:  # the group may end here, or nobody knows
                return replace(records, more=True)
            records += record
        return replace(records, more=records.more or len(members) > _MOST)

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        row = trouble_of(error).row
        if row is None:
            return super().told_record(error, state, ahead)
        return record_in_words(self.input.records_at(state["input"], state["skip"] + ahead * self.step + row))

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        n = self.input.cardinality
        first = row * self.step
        return above(self.input.start_at(first if n < 0 else min(n, first), epoch), skip=0)


class Batching(Grouped):
    """A `Grouped` step whose groups are batches of `batch_size` elements.

    Subclasses have both arguments among their fields, in TensorFlow's order.
    """

    by_element: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    batch_size: int
    drop_remainder: bool

    @property
    def step(self) -> int:
        return int(self.batch_size)

    @property
    def cardinality(self) -> int:
        return self.groups(full=self.drop_remainder)

    @property
    def drops_rows(self) -> bool:
        return bool(self.drop_remainder)

    @property
    def rows_per_batch(self) -> int | None:
        return int(self.batch_size)

    @property
    def fetches(self) -> bool:
        return self.input.random_access and self.input.cardinality != UNKNOWN

    def elements_of(self, rows: Ints) -> Ints:
        """The positions of the elements of these batches, of each as many; the last one may have fewer."""
        size, n = int(self.batch_size), self.input.cardinality
        return (rows[:, None] * size + np.arange(size if n < 0 else min(size, n))).reshape(-1)

    def with_full_batches(self) -> Node:
        return replace(self, drop_remainder=True)  # type: ignore[call-arg]  # a field of every subclass

    def batch_sizes(self) -> "BatchSizes | None":
        n = self.input.count_elements()
        if n < 0:
            return None
        singles = sizes_of_batches.BatchSizes.of([([1], n)])
        return singles.batched(int(self.batch_size), drop_remainder=self.drops_rows)


def stacked_batches(
    queue: RowQueue,
    size: int,
    run: Run,
    *,
    drop_remainder: bool,
    lost: Callable[[RowQueue], Failure],
    told: Callable[[StackError], Exception],
) -> Stream:
    """The rows of a queue in batches of one size, each with the mark after it.

    Args:
      queue: the rows.
      size: of a batch.
      run: the iteration.
      drop_remainder: whether a last batch that is smaller is left out.
      lost: takes the next failure, with which the rows gathered for its batch are lost.
      told: what to raise for rows that differ in shape.
    """
    mark = queue.mark()
    while True:
        before = mark
        block = queue.whole(size)
        if block is None:
            if queue.fill(size):
                block = queue.take_groups(size, lazily=run.by_element)
            elif queue.failure is not None:
                failure, mark = lost(queue), queue.mark()
                yield failure, mark
                continue
            elif queue.size and not drop_remainder:
                size = queue.size
                block = queue.take(size)
            else:
                return
        mark = queue.mark()
        for made, done in stacked_parts(block, size, told, tolerant=run.tolerant):
            yield made, mark if done == block.size else {**before, "skip": before["skip"] + done}


class Stacking(Batching):
    """A `Batching` step that stacks elements as they are."""

    view_only: ClassVar[bool] = True
    num_parallel_calls: int | None = None

    @cached_property
    def rows_spec(self) -> Spec:
        """What is stacked: the elements, of which some leaves may be rows of ragged tensors."""
        return self.input.spec

    @property
    def rows_known(self) -> Spec | None:
        """`rows_spec`, where it is needed to stack rows; None: columns tell which rows are those of ragged tensors."""
        return None

    def stacked(self, stream: Stream) -> Stream:
        """What is stacked of the elements of a stream: these, with rows of ragged tensors marked as such."""
        return stackable(stream, self.rows_known)

    @cached_property
    def spec(self) -> Spec:
        self.rows_spec.tensors(self.op)
        first = int(self.batch_size) if self.drop_remainder else None
        return self.rows_spec.map(lambda leaf: _batched(leaf, first))

    def stream(self, state: State, run: Run) -> Stream:
        size, drops = int(self.batch_size), self.drop_remainder
        below = run.asking(group=(id(self.input), size))
        queue = RowQueue(self._rows(self.input.open(state["input"], below)), state)
        return stacked_batches(queue, size, run, drop_remainder=drops, lost=self._lost, told=differing)

    def _rows(self, stream: Stream) -> Stream:
        """As `stacked`; what the elements are is asked when there are some.

        The spec may be that of a function, which is not tried where it fails for all elements.
        """
        for block, after in stream:
            if block.size:
                first = iter([(block, after)])
                del block, after  # nothing but this iterator, until it is used up, holds their memory
                yield from self.stacked(chain(first, stream))
                return
            yield block, after

    def _lost(self, queue: RowQueue) -> Failure:
        """The next failure. The elements gathered for its batch are lost with it; after a `map`, the whole batch is."""
        left = self.batch_size - queue.size - 1
        failure = queue.passed()
        while left and self.num_parallel_calls is None and self.input.fails_in_place:
            queue.fill(left)
            size = min(left, queue.size)
            queue.skip(size)
            left -= size
            if left:
                if queue.failure is None:
                    break
                queue.passed()
                left -= 1
        return failure

    @cached_property
    def may_fail(self) -> bool:
        return self.input.may_fail or not self.input.spec.is_static

    @property
    def random_access(self) -> bool:
        source = self.input
        return source.random_access and 0 <= source.cardinality == self.cardinality * self.batch_size

    def fetch(self, rows: Ints, epoch: int) -> Block:
        size, n = int(self.batch_size), self.input.cardinality
        wanted = self.elements_of(rows)
        whole = n < 0 or not len(rows) or (rows.max() + 1) * size <= n
        found = self.input.fetch(wanted if whole else wanted[wanted < n], epoch)
        ((block, _),) = self._rows(iter([(found, {})]))
        try:
            # The last batch may have fewer rows.
            return block.stack(size) if whole else block.split(np.minimum(size, n - rows * size))
        except StackError as error:
            raise differing(error) from None


def differing(error: StackError) -> InvalidArgumentError:
    """What users are told of elements that cannot be stacked."""
    made = InvalidArgumentError(
        f"Cannot batch tensors with different shapes{error.where}: {error}; pad them with padded_batch, keep them as they are "
        "with ragged_batch, or bring them to one shape: images in a map that calls Pillow's Image.resize, frames of video with "
        "resize=; padded_batch and ragged_batch have to know how many dimensions they have, which map(output_signature=) states"
    )
    trouble_of(made).row = error.row
    return made


def _batched(leaf: LeafSpec, first: int | None) -> LeafSpec:
    """The spec of stacked elements: that of one with a new first dimension."""
    return leaf.with_shape(None if leaf.shape is None else (first, *leaf.shape))


# ----------------------------------------------------------------------------
# Neighbouring steps of one kind run as one.
# ----------------------------------------------------------------------------


class _Step(Protocol):
    @property
    def map_func(self) -> Any: ...

    @property
    def spec(self) -> Spec: ...

    @property
    def spec_given(self) -> bool: ...

    @property
    def identity(self) -> dict[str, Any]: ...


S = TypeVar("S", bound=_Step)


@dataclass(frozen=True)
class Neighbours(Generic[S]):
    """Steps that were neighbours, in order; they are no longer nodes of the tree, since no block passes between them."""

    steps: tuple[S, ...]

    def __str__(self) -> str:
        return ", ".join([describe(step.map_func) for step in self.steps])


@dataclass(frozen=True, eq=False)
class Fused(OneForOne, Generic[S]):
    """Neighbouring steps that run as one.

    Args:
      functions: the steps.
    """

    tolerant: ClassVar[bool] = True
    _calls: ClassVar[bool] = True
    functions: Neighbours[S]

    @property
    def maps(self) -> tuple[S, ...]:
        """The steps, the first one first."""
        return self.functions.steps

    @cached_property
    def spec(self) -> Spec:
        return self.maps[-1].spec

    @property
    def spec_given(self) -> bool:
        return self.maps[-1].spec_given

    @cached_property
    def identity(self) -> dict[str, Any]:
        parts = [step.identity for step in self.maps]
        told = {name: [part.get(name, "") for part in parts] for name in dict.fromkeys(chain(*parts))}
        found = {name: Digest().add(words).word for name, words in told.items()}
        return {**found, "step": f"{self.op}#{found['step']}"}


# ----------------------------------------------------------------------------
# What elements of several datasets have in common.
# ----------------------------------------------------------------------------


def common_spec(op: str, sources: tuple[Node, ...]) -> Spec:
    """The spec that the elements of all sources fit.

    Raises:
      TypeError: structures or dtypes differ.
    """
    return reduce(partial(_merged, op), (source.spec for source in sources))


def in_one_order(stream: Stream, spec: Callable[[], Spec]) -> Stream:
    """Elements of several datasets with one order of keys, that of `spec`, which is asked for where there are keys."""
    for block, state in stream:
        yield block.built_as(spec().structure) if block.size and block.structure.form else block, state


def _merged(op: str, a: Spec, b: Spec) -> Spec:
    if a.structure != b.structure:
        raise TypeError(
            f"{op}: all datasets must have the same structure of elements, got {a.structure} and {b.structure}"
            f"{_cure_of_nulls(a.structure, b.structure)}"
        )
    return Spec(a.structure, tuple([_common(op, x, y) for x, y in zip(a.leaves, b.leaves, strict=True)]))


def _cure_of_nulls(a: Structure, b: Structure) -> str:
    """What to do if a column may be missing in one of two datasets; else nothing."""
    for name, one, other in zip(a.keys, a.children, b.children, strict=False) if a.keys == b.keys else ():
        if nullables.is_nullable(one) != nullables.is_nullable(other):
            return f"; one of them has nulls in {name!r}: have the readers of both tell them, with valid=[{name!r}]"
    return ""


def _common(op: str, a: LeafSpec, b: LeafSpec) -> LeafSpec:
    if isinstance(a, ElementsSpec) and type(a) is type(b):
        with suppress(TypeError):  # then the error is that of these two
            return a.of_elements(_merged(op, Spec.of(a.element_spec), Spec.of(b.element_spec)).nest, b)
    if isinstance(a, ElementsSpec) or isinstance(b, ElementsSpec) or a.ragged_rank != b.ragged_rank:
        raise TypeError(f"{op}: all datasets must have the same element type, got {a} and {b}")
    if a.dtype != b.dtype:
        raise TypeError(
            f"{op}: all datasets must have the same dtypes, got {dtype_name(a.dtype)} and {dtype_name(b.dtype)}"
        )
    return a.merged_with(b)  # type: ignore[no-any-return]  # specs of one kind


# ----------------------------------------------------------------------------
# Sources whose elements are in memory, so that functions can be tried on them before the iteration.
# ----------------------------------------------------------------------------


class InMemory(Node):
    """A source with random access whose elements are in memory, or are computed from their position."""

    in_memory: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    view_only: ClassVar[bool] = True
    random_access: ClassVar[bool] = True

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def start_at(self, row: int, epoch: int) -> State:
        return {"row": row}

    @abstractmethod
    def rows_of(self, numbers: Sequence[int]) -> Sequence[int] | Ints:
        """The rows that hold one of these numbers; none if the elements are not numbers."""


@dataclass(frozen=True, eq=False)
class Rows(InMemory):
    """The rows of a block that is in memory.

    Shapes: those of the block's rows. State: the next row.

    Args:
      block: the elements.
      description: what to print for them.
      leaves: what is known about the elements beyond these rows, for blocks cut from a stream.
    """

    block: Block
    description: str = ""
    leaves: tuple[LeafSpec, ...] | None = None

    def __post_init__(self) -> None:
        normalized(self, "block", frozen(self.block))  # later passes, and the user, look at the same arrays

    @cached_property
    def spec(self) -> Spec:
        if self.leaves is not None:
            return Spec(self.block.structure, self.leaves)
        return Spec(self.block.structure, tuple([leaf_spec(c) for c in self.block.columnar().columns]))

    @property
    def cardinality(self) -> int:
        return self.block.size

    def arguments(self) -> dict[str, Any]:
        return {"elements": self.description or f"{self.block.size} rows"}

    def stream(self, state: State, run: Run) -> Stream:
        for block, end in rows_from(self.block, state["row"]):
            yield block, {"row": end}

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return picking.picked(self.block, rows)

    def rows_of(self, numbers: Sequence[int]) -> Sequence[int] | Ints:
        leaf = self.spec.leaves[0]
        column = self.block.columnar().columns[0]
        if not isinstance(leaf, TensorSpec) or leaf.shape != () or leaf.dtype.kind not in "iuf":
            return ()
        assert isinstance(column, Dense)
        return np.flatnonzero(np.isin(column.array, numbers))


def rows_from(block: Block, row: int) -> Iterator[tuple[Block, int]]:
    """The rows of a block from `row` on in views of it, and where each ends."""
    if not row and block.size <= MOST_ROWS:
        yield block, block.size
        return
    for first in range(row, block.size, MOST_ROWS):  # views, so their bytes do not matter
        end = min(first + MOST_ROWS, block.size)
        yield block.rows(first, end), end


def leaf_spec(column: Column) -> LeafSpec:
    """The most specific spec that all rows of a column fit."""
    if column.inner is not None:
        return TensorSpec(column.inner, column.dtype)
    if column.ragged_rank is not None:
        return ragged_spec(column)
    if isinstance(column, Ragged):
        return TensorSpec((None, *column.flat.inner), column.dtype)  # also where all lengths are equal, by chance
    if isinstance(column, Datasets):
        return optionals_spec(column.items) if column.optional else datasets_spec(column.items)
    assert isinstance(column, Objects | Arrays)
    shape = shape_of(column.items[0])
    merged: tuple[int | None, ...] | None = shape
    for item in column.items:
        merged = merge_shapes(merged, shape_of(item))
    return TensorSpec(merged, column.dtype)


def optionals_spec(items: Sequence[Any]) -> LeafSpec:
    """The spec of Optionals that are rows of one column.

    Raises:
      InvalidArgumentError: their values differ in structure or dtype.
    """
    merged = items[0].leaf_spec.most_specific_common_supertype([item.leaf_spec for item in items[1:]])
    if merged is None:
        raise InvalidArgumentError("Optionals of one dataset must have values of one structure and dtype")
    return merged  # type: ignore[no-any-return]


def datasets_spec(items: Sequence[Any]) -> DatasetSpec:
    """The spec of datasets, or of tuples of them, that are rows of one column.

    Raises:
      InvalidArgumentError: their elements differ in structure or dtype.
    """
    nodes = [node for item in items for node in (item if isinstance(item, tuple) else (item,))]
    shapes = {(len(item),) if isinstance(item, tuple) else () for item in items}
    shape: tuple[int | None, ...] = shapes.pop() if len(shapes) == 1 else (None,)
    try:
        merged = common_spec("a list of datasets", tuple(nodes))
    except TypeError as error:
        raise InvalidArgumentError(str(error)) from None
    return DatasetSpec(merged.nest, TensorShape(shape))


# ----------------------------------------------------------------------------
# What later passes depend on besides the position in this one, so that a state must hold it.
#
# This is the seeds that were drawn because the user gave none, and the pass that each cache keeps.
# ----------------------------------------------------------------------------


def drawn_seeds(node: Node) -> list[int]:
    """The drawn seeds of a tree, inputs first; a node that occurs twice counts once."""
    return [step.drawn_seed for step in node.lasting if step.draws]  # type: ignore[attr-defined]


class PassStore:
    """What a step keeps of one pass: the `store` of a step that `keeps`."""

    def __init__(self) -> None:
        self._epochs: list[int | None] = [None]  # one for all shares: their pass is the same
        self._of_shares: dict[Hashable, Self] = {}
        self.met: object = None
        """Where elements are missing, since they failed: what all streams share of the iteration that met those errors."""

    @property
    def epoch(self) -> int | None:
        """Which pass it is; None while there was none."""
        return self._epochs[0]

    @epoch.setter
    def epoch(self, epoch: int | None) -> None:
        self._epochs[0] = epoch

    def of_share(self, share: Hashable) -> Self:
        """What the step keeps where it stands over the elements of one worker alone; always the same for this worker."""
        if share not in self._of_shares:
            made = type(self)()
            made._epochs = self._epochs
            self._of_shares.setdefault(share, made)
        return self._of_shares[share]


def stores(node: Node) -> list[Any]:
    """What the nodes of a tree keep of a pass, each with the `epoch` of that pass, None while there was none."""
    found = {id(step.store): step.store for step in node.lasting if step.keeps}  # type: ignore[attr-defined]
    return list(found.values())


def kept_epochs(node: Node, epoch: int | None) -> list[int | None]:
    """The passes that `stores` keep, or begin to keep in a pass of this epoch; None: they decide when they begin."""
    begin: dict[int, int | None] = {}
    seen: set[int] = set()  # a step may be below many others

    def look(step: Node, at: int | None) -> None:
        if id(step) in seen:
            return
        seen.add(id(step))
        if step.keeps:
            begin.setdefault(id(step.store), at)  # type: ignore[attr-defined]
        for source in step.inputs:
            look(source, None if at is None else step.epoch_below(at))

    look(node, epoch)
    return [begin[id(store)] if store.epoch is None else store.epoch for store in stores(node)]


def decided(node: Node) -> list[Any]:
    """What users decide about while the nodes of a tree run, each with the `state` of its decisions; one of each."""
    found = {id(step.live): step.live for step in node.lasting if step.decides}  # type: ignore[attr-defined]
    return list(found.values())


def with_drawn_seeds(node: Node, seeds: Sequence[int]) -> Node:
    """The same tree with other drawn seeds, as `drawn_seeds` gave them in another process.

    What nodes keep of their elements (`store`) begins empty: it belongs to the old seeds.
    """
    left = iter(seeds)
    nodes: dict[int, Any] = {}

    def changed(step: Node) -> Node:
        if id(step) not in nodes:
            changes: dict[str, Any] = {}
            inputs = tuple([changed(source) for source in step.inputs])
            if step.draws:
                changes["drawn_seed"] = next(left)
            store = getattr(step, "store", None)
            if store is not None:
                changes["store"] = nodes.setdefault(id(store), type(store)())
            moved = step.with_inputs(inputs) if inputs else step
            nodes[id(step)] = replace(moved, **changes).same_as(step)
        found: Node = nodes[id(step)]
        return found

    return changed(node)


def kept_apart(node: Node, whole: Node, share: Hashable) -> Node:
    """The tree of one worker, whose steps keep its elements apart from those of other workers, and of the whole.

    Args:
      node: the tree that a policy made of the whole.
      whole: the tree that was divided; what its steps keep is theirs where they stand in both.
      share: which of which shares, for each policy.
    """
    undivided = {id(step) for step in whole.lasting}

    def changed(step: Node) -> Node:
        if id(step) in undivided or not step.lasting:
            return step
        moved = step.with_changed_inputs(changed).same_as(step)
        if not step.keeps:
            return moved
        return replace(moved, **moved.kept_by(share)).same_as(step)  # type: ignore[attr-defined]

    return changed(node) if any(step.keeps for step in node.lasting) else node


def with_seed(node: Node, seed: int) -> Node:
    """The same tree, in which every op that draws its own seed takes one that follows from `seed` and its place.

    Workers that build the same pipeline and share this one number shuffle and draw alike, so that what policy DATA gives them
    is disjoint and complete. Datasets that the function of a `flat_map` makes take their seeds from that of its place.

    Args:
      node: a pipeline.
      seed: any whole number, the same on all workers.
    """
    seeds = [key_of(seed, place) >> 1 for place in range(len(drawn_seeds(node)))]
    return with_drawn_seeds(node, seeds) if seeds else node


def walk_made(node: Node) -> Iterator[Node]:
    """The steps of a tree, inputs first, including those of the datasets that its functions make."""
    for step in walk(node):
        for inner in step.made:
            yield from walk_made(inner)
        yield step


def own_draw(node: Node, num_shards: int) -> Node | None:
    """A step whose seed this process drew for itself, so that no other process has its elements in the same order.

    A tree that came from another process, such as one that a forked worker inherited, has the seeds of that process.

    Args:
      node: what is divided.
      num_shards: among how many workers.
    """
    worker = loader_worker()
    several = worker is not None and num_shards > worker.count  # of several processes, which drew apart
    for step in walk(node):
        if several or step.origin.process == os.getpid():
            for inner in (step, *[below for made in step.made for below in walk_made(made)]):
                if inner.draws and inner.chooses:
                    return inner
    return None


# ----------------------------------------------------------------------------
# Places of random steps: a step that stands in a tree more than once has another order at each of its places.
#
# As in TensorFlow, where each iterator over a shuffled dataset draws anew: `zip((ds, ds))` pairs each element with another
# one, and `ds.concatenate(ds)` is two epochs. The order is a function of the seed, the pass and the place. A cache keeps
# one order.
#
# A step is known by its mark, which its copies have.
# ----------------------------------------------------------------------------


def differing_by_place(node: Node) -> list[Seeded]:
    """The steps of a tree that have another order at each of their places, inputs first; each as often as it is there."""
    return [step for step in walk(node) if isinstance(step, Seeded) and step.differs_by_place]


def placed(node: Node, number: int = 0, shared: Collection[int] = ()) -> Node:
    """The same tree, in which each place of a step has a number; a part of a tree that has them is given back as it is.

    Args:
      node: a tree.
      number: of datasets that a function makes one after the other, which one this is.
      shared: the marks of steps that were made before the function was called, so that all these datasets have them.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(9).shuffle(9, seed=1)
    >>> [step.place for step in differing_by_place(placed(ds.concatenate(ds).node))]
    [0, 1]
    """
    steps = differing_by_place(node)
    if any(step.place for step in steps):
        return node
    found = Counter([step.mark for step in steps])
    if not any(count > 1 or (number and mark in shared) for mark, count in found.items()):
        return node
    return _Places(number, shared).of(node)


class _Places:
    def __init__(self, number: int, shared: Collection[int]) -> None:
        self._number, self._shared = number, shared
        self._before: Counter[int] = Counter()
        self._kept: dict[int, Node] = {}  # by what they keep of a pass

    def of(self, step: Node) -> Node:
        """The tree below a step, after those that were given before."""
        store = id(step.store) if step.keeps else None  # type: ignore[attr-defined]
        if store in self._kept:
            return self._kept[store]
        made = step.with_changed_inputs(self.of).same_as(step)
        if isinstance(made, Seeded) and made.differs_by_place:
            made = self._numbered(made)
        if store is not None:
            self._kept[store] = made
        return made

    def _numbered(self, step: Seeded) -> Node:
        place = self._before[step.mark]
        self._before[step.mark] += 1
        if self._number and step.mark in self._shared:
            place = key_of(self._number, place)
        return step if place == step.place else step.at_place(place)
