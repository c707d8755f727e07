# SPDX-License-Identifier: Apache-2.0
"""`group_by_window` and `bucket_by_sequence_length`: elements collected by key."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import MOST_ROWS, Block, ColumnBlock, Failure, concat_blocks
from distinput.columns.column import Ints
from distinput.columns.ragged import Datasets
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import Mark, State
from distinput.errors import InvalidArgumentError
from distinput.functions.chain import calling
from distinput.functions.claim import Claim, alike
from distinput.functions.dataset_functions import hash_of, node_of
from distinput.functions.inference import infer, results_of
from distinput.ops.batch import Batch
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.slices import rows_node
from distinput.plan.binding import take_functions
from distinput.plan.check import at_least, integer, normalized, without_sparse
from distinput.plan.families import drawn_seeds, with_seed
from distinput.plan.fingerprint import is_count, taken_up
from distinput.plan.node import INFINITE, UNKNOWN, Node
from distinput.run.run import Run, called
from distinput.streaming.groups import Groups
from distinput.values.leaves import STRING, as_leaf, shape_of
from distinput.values.nest import LEAF
from distinput.values.randomness import fresh_seed, key_of, unseeded
from distinput.values.spec import DatasetSpec, Spec

# ----------------------------------------------------------------------------
# Steps that collect elements of their input by key.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Keyed(Node):
    """A step that sends something for each group of elements with the same key, as soon as there are enough of them.

    State: positions only. `input` and `skip`: where the oldest element that waits stands, and `from`: its number. `row`: how
    many elements were looked at. `sent`: up to which of them those of each key were sent, where that is not `from`. At the
    end of the input `flushed`: the last key whose rest was sent. `inner`: where what is made of a group stands. `failures`: how
    many there were before that oldest element, and in all.
    """

    tolerant: ClassVar[bool] = True
    input: Node

    @property
    def cardinality(self) -> int:
        return INFINITE if self.input.cardinality == INFINITE else UNKNOWN

    def state_misfit(self, state: State) -> str | None:
        sent, failures = state["sent"], state.get("failures", [0, 0])
        pairs = all(isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_integer, pair)) for pair in sent)
        fits = isinstance(failures, list | tuple) and len(failures) == 2 and all(map(is_count, failures))
        keys = state["flushed"] is None or _is_integer(state["flushed"])
        made = state["inner"] is None or isinstance(state["inner"], dict)
        return (
            None
            if pairs and fits and keys and made
            else f"{self.op}: 'sent', 'flushed', 'failures' or 'inner' is damaged"
        )

    def start(self, epoch: int) -> State:
        return {
            "epoch": epoch,
            "input": self.input.start(epoch),
            "skip": 0,
            "from": 0,
            "row": 0,
            "sent": [],
            "flushed": None,
            "inner": None,
        }


def _is_integer(value: object) -> bool:
    return is_count(value, -(1 << 63))


# ----------------------------------------------------------------------------
# `group_by_window`: elements collected by a key until a window is full.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GroupByWindow(Keyed):
    """Collect elements by key; pass a group that has reached its window size to `reduce_func`, and deliver its dataset.

    At the end the remaining groups follow in ascending order of their keys. Shapes: those of the datasets that
    `reduce_func` returns. State: only positions: where the oldest waiting element stands, and up to which row the elements of
    each key have been delivered; a restart calls `key_func` again from there.

    Args:
      key_func: element -> integer.
      reduce_func: (key, dataset of the group's elements) -> dataset.
      window_size: elements in a group.
      window_size_func: key -> elements in a group of that key.

    Raises:
      InvalidArgumentError: not exactly one of the two sizes is given, or a size is below 1.
      TypeError: at iteration, `key_func` returns no integer or `reduce_func` no dataset.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(6).group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), window_size=2)
    >>> [batch.tolist() for batch in ds]
    [[0, 2], [1, 3], [4], [5]]

    Source: `tf.data.Dataset.group_by_window`.
    """

    draws: ClassVar[bool] = True  # seeds of datasets that the function makes follow from its own
    key_func: Callable[..., Any]
    reduce_func: Callable[..., Any]
    window_size: int | None = None
    window_size_func: Callable[..., Any] | None = None
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)
    drawn_seed: int = field(default_factory=fresh_seed, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        sizes = () if self.window_size_func is None else ("window_size_func",)
        take_functions(self, "group_by_window", "key_func", "reduce_func", *sizes)
        if (self.window_size is None) == (self.window_size_func is None):
            raise InvalidArgumentError("group_by_window: give exactly one of window_size and window_size_func")
        if self.window_size is not None:
            at_least("group_by_window", "window_size", self.window_size, 1)

    def _reduced(self, key: int, parts: list[Block]) -> Node:
        window = rows_node(concat_blocks(parts), self.input.spec.leaves)
        with unseeded():
            node = node_of("group_by_window", self.reduce_func(np.int64(key), window.to_user()))
        if not drawn_seeds(node):
            return node
        return with_seed(node, key_of(self.drawn_seed, key, hash_of(parts[0].row(0))))

    def _size(self, key: int) -> int:
        if self.window_size is not None:
            return int(self.window_size)
        assert self.window_size_func is not None
        return at_least("group_by_window", "window_size", np.asarray(self.window_size_func(np.int64(key))), 1)

    def _of_some(self, window: Any) -> Any:
        """The results for a window, which may be made up."""
        key: Any = 0
        for element in window:
            with suppress(Exception):  # the element may be made up
                key = int(calling(self.key_func)(element))
            break
        return self.reduce_func(np.int64(key), window)

    @cached_property
    def made(self) -> tuple[Node, ...]:
        results = results_of(self._of_some, _OneGroup(self.input))
        return tuple([node_of("group_by_window", result) for result in results])

    @cached_property
    def spec(self) -> Spec:
        return self.claim.asked("group_by_window", self._inferred)

    def _inferred(self) -> Spec:
        leaf = infer("group_by_window", self._of_some, _OneGroup(self.input), self.reduce_func).leaves[0]
        if not isinstance(leaf, DatasetSpec):
            raise TypeError("group_by_window: reduce_func must return a dataset")
        return Spec.of(leaf.element_spec)

    def stream(self, state: State, run: Run) -> Stream:
        def number(result: Any) -> int:
            key = np.asarray(result)
            if key.dtype.kind not in "iu" or key.ndim:
                raise TypeError(f"group_by_window: key_func must return an integer, got {key!r}")
            return int(key)

        def made(key: int, parts: list[Block], inner: State | None) -> Stream:
            node = self._reduced(key, parts)
            stream = node.open(taken_up("group_by_window", node, state["epoch"], inner), run)
            return alike("group_by_window", stream, self.claim, lambda: self.spec, np.int64(key), tolerant=run.tolerant)

        self.decide(run)

        upstream = self.input.open(state["input"], run)
        results = called(upstream, state, self.key_func, unpack=True, tolerant=run.tolerant)
        return Groups(self.input, state, results, number, self._size, made, tolerant=run.tolerant).stream()


@dataclass(frozen=True, eq=False)
class _OneGroup(Node):
    """Some elements of the input as one group, to find out what `reduce_func` returns."""

    tolerant: ClassVar[bool] = True
    input: Node

    @cached_property
    def spec(self) -> Spec:
        return Spec(LEAF, (DatasetSpec(self.input.spec.nest),))

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state, run):
            if type(block) is Failure:  # the elements without errors tell what is returned, as they do in a first pass
                yield block, after
            else:
                group = rows_node(block, self.input.spec.leaves)
                yield ColumnBlock(LEAF, [Datasets([group], STRING)], 1), after


# ----------------------------------------------------------------------------
# `bucket_by_sequence_length`: batches of elements of similar length.
# ----------------------------------------------------------------------------


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
            length = as_leaf(result)
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
