# SPDX-License-Identifier: Apache-2.0
"""`group_by_window` and `bucket_by_sequence_length`: elements collected by a key until a window is full."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from distinput.core.block import Block, concat_blocks
from distinput.core.calls import called, note_element
from distinput.core.column import Ints
from distinput.core.nest import LEAF
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Run
from distinput.core.spec import DatasetSpec, Spec
from distinput.core.state import Mark, State
from distinput.core.values import as_leaf, shape_of
from distinput.errors import InvalidArgumentError
from distinput.kernels.windows import fill_windows
from distinput.ops.batch import Batch
from distinput.ops.function import infer
from distinput.ops.interleave import node_of
from distinput.ops.padded_batch import PaddedBatch, padded
from distinput.ops.slices import rows_node
from distinput.plan.check import at_least, callable_argument
from distinput.plan.node import INFINITE, UNKNOWN, Node

__all__ = ["BucketBySequenceLength", "GroupByWindow"]

_MOST_SENT = 64
"""Keys whose groups a state tells of; where there are more, a restart looks at all elements again."""

_MOST_BLOCKS = 16
"""Blocks that a group may keep alive for the sake of single rows."""


@dataclass(frozen=True, eq=False)
class GroupByWindow(Node):
    """Collect elements by key; hand a group that has reached its window size to `reduce_func`, and send what that gives.

    At the end the remaining groups follow in ascending order of their keys. Shapes: those of the data sets that
    `reduce_func` returns. State: positions only: where the oldest element waiting stands, and up to which row each key's
    elements have been sent; a restart calls `key_func` again from there.

    Args:
      key_func: element -> a whole number.
      reduce_func: (key, data set of the group's elements) -> data set.
      window_size: elements in a group.
      window_size_func: key -> elements in a group of that key.

    Raises:
      InvalidArgumentError: not exactly one of the two sizes is given, or a size is below 1.
      TypeError: at iteration, `key_func` gives no whole number or `reduce_func` no data set.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(6).group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), window_size=2)
    >>> [batch.tolist() for batch in ds]
    [[0, 2], [1, 3], [4], [5]]

    Source: `tf.data.Dataset.group_by_window`.
    """

    input: Node
    key_func: Callable[..., Any]
    reduce_func: Callable[..., Any]
    window_size: int | None = None
    window_size_func: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        callable_argument("group_by_window", "key_func", self.key_func)
        callable_argument("group_by_window", "reduce_func", self.reduce_func)
        if (self.window_size is None) == (self.window_size_func is None):
            raise InvalidArgumentError("group_by_window: give exactly one of window_size and window_size_func")
        if self.window_size is not None:
            at_least("group_by_window", "window_size", self.window_size, 1)

    def _reduced(self, key: int, parts: list[Block]) -> Node:
        window = rows_node(concat_blocks(parts), self.input.spec.leaves)
        return node_of("group_by_window", self.reduce_func(np.int64(key), window.to_user()))

    def _size(self, key: int) -> int:
        if self.window_size is not None:
            return int(self.window_size)
        assert self.window_size_func is not None
        return at_least("group_by_window", "window_size", np.asarray(self.window_size_func(np.int64(key))), 1)

    @cached_property
    def spec(self) -> Spec:
        def reduced(window: Any) -> Any:
            return self.reduce_func(np.int64(0), window)

        leaf = infer("group_by_window", reduced, _OneGroup(self.input)).leaves[0]
        if not isinstance(leaf, DatasetSpec):
            raise TypeError("group_by_window: reduce_func must return a data set")
        return Spec.of(leaf.element_spec)

    @property
    def cardinality(self) -> int:
        return INFINITE if self.input.cardinality == INFINITE else UNKNOWN

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

    def stream(self, state: State, run: Run) -> Stream:
        def key_of(result: Any) -> int:
            key = np.asarray(result)
            if key.dtype.kind not in "iu" or key.ndim:
                raise TypeError(f"group_by_window: key_func must return a whole number, got {key!r}")
            return int(key)

        def made(key: int, parts: list[Block], inner: State | None) -> Stream:
            node = self._reduced(key, parts)
            return node.open(node.start(state["epoch"]) if inner is None else inner, run)

        results = called(self.input.open(state["input"], run), state, self.key_func, unpack=True)
        return _Groups(self.input, state, results, key_of, self._size, made).stream()


@dataclass(frozen=True, eq=False)
class BucketBySequenceLength(Node):
    """Batches of elements of similar length, padded.

    Bucket i holds lengths from `bucket_boundaries[i - 1]` up to below `bucket_boundaries[i]`; a bucket that holds its batch
    size is sent. At the end the rest follows, shorter buckets first. Shapes: [...] becomes [batch size, ...], padded as
    `padded_batch` does. State: as `group_by_window`.

    Args:
      element_length_func: element -> its length. The built-in `len` on elements with a first axis is never called: their
        lengths are known.
      bucket_boundaries: ascending lengths.
      bucket_batch_sizes: one more than boundaries.
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

    input: Node
    element_length_func: Callable[..., Any]
    bucket_boundaries: Sequence[int]
    bucket_batch_sizes: Sequence[int]
    padded_shapes: Any = None
    padding_values: Any = None
    pad_to_bucket_boundary: bool = False
    no_padding: bool = False
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        callable_argument("bucket_by_sequence_length", "element_length_func", self.element_length_func)
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
        return made.map(lambda leaf: leaf.with_shape((first, *leaf.shape[1:])))  # type: ignore[union-attr, index]

    @property
    def cardinality(self) -> int:
        return INFINITE if self.input.cardinality == INFINITE else UNKNOWN

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

    def stream(self, state: State, run: Run) -> Stream:
        boundaries = np.asarray([int(b) for b in self.bucket_boundaries], np.int64)
        batches: dict[int, Node] = {}

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
                yield from node.open(node.start(state["epoch"]) if inner is None else inner, run)
            elif not (self.drop_remainder and sum([part.size for part in parts]) < batch.batch_size):
                yield padded(parts, batch.shapes, batch.fills), {}

        def size_of(bucket: int) -> int:
            return int(self.bucket_batch_sizes[bucket])

        upstream = self.input.open(state["input"], run)
        spec = self.input.spec
        if (
            self.element_length_func is len
            and spec.structure.is_leaf
            and spec.tensors("bucket_by_sequence_length")[0].shape
        ):
            results = _lengths(upstream, state)
        else:
            results = called(upstream, state, self.element_length_func, unpack=True)
        return _Groups(self.input, state, results, bucket_of, size_of, made, buckets_of).stream()


def _lengths(stream: Stream, mark: Mark) -> Iterator[tuple[Any, Block, int, Mark]]:
    """As `called` with `len` for elements that have a first axis, without making the elements."""
    for rows, _, _, at in passing_over(stream, mark):
        lengths = np.asarray(rows.columns[0].lengths(), np.int64)
        yield np.broadcast_to(lengths, rows.size), rows, 0, at(rows.size)


class _Group:
    """The elements of one key that wait: the number of the first one, where it stands in the input, and all of them."""

    __slots__ = ("first", "fresh", "mark", "parts")

    def __init__(self, first: int, mark: Mark) -> None:
        self.first, self.mark = first, mark
        self.parts: list[Block] = []
        self.fresh = 0

    def add(self, rows: Block) -> None:
        """Let rows of a block wait. Spans refer to the whole block, so they are copied before they refer to many."""
        self.parts.append(rows)
        self.fresh += 1
        if self.fresh > _MOST_BLOCKS:
            self.parts[-self.fresh :] = [concat_blocks(self.parts[-self.fresh :])]
            self.fresh = 0


class _Groups:
    """The elements that wait, by key, and the positions from which they can be found again.

    Args:
      source: the input.
      state: where to begin.
      results: what the user's function gave for the elements from there on, as `called` yields it.
      key_of: such a result -> a key; it raises an error for one that is none.
      size_of: key -> elements in a group of that key.
      made: (key, its elements, state inside of what is made or None) -> what is made of a group.
      keys_of: as `key_of` for many whole numbers at once, where that can be.

    At the oldest row that waits all earlier ones have been sent. So a restart from there needs to know only, for groups that
    were sent since, up to which row that was. Where these are too many for a state it restarts from the first row of all.
    """

    def __init__(
        self,
        source: Node,
        state: State,
        results: Iterator[tuple[Any, Block, int, Mark]],
        key_of: Callable[[Any], int],
        size_of: Callable[[int], int],
        made: Callable[[int, list[Block], State | None], Stream],
        keys_of: Callable[[Ints], Ints] | None = None,
    ) -> None:
        self.source, self.results = source, results
        self.key_of, self.size_of, self.made, self.keys_of = key_of, size_of, made, keys_of
        self.epoch: int = state["epoch"]
        self.saved = state
        self.done: int = state["row"]
        self.flushed: int | None = state["flushed"]
        # Both in ascending order of rows, since dicts keep the order of insertion.
        self.sent: dict[int, int] = {int(k): n for k, n in state["sent"]}
        self.groups: dict[int, _Group] = {}
        self.row: int = state["from"]
        self.mark: Mark = {"input": state["input"], "skip": state["skip"]}
        # Keys are numbered as they come; by these numbers: key, elements of a full group, elements that wait.
        self.numbers: dict[int, int] = {}
        self.keys: list[int] = []
        self.sizes: Ints = np.empty(0, np.int64)
        self.waiting: Ints = np.empty(0, np.int64)

    def stream(self) -> Stream:
        """Blocks of what was made of full groups, and at the end of the others."""
        inner = self.saved["inner"]
        for results, rows, first, after in self.results:
            numbers, error = self._numbered(results)
            size = len(numbers)
            end = after if size == len(results) else None
            # What was sent before the state was saved is collected again in silence.
            again = min(max(0, self.done - self.row), size)
            if again:
                yield from self._join(rows, first, numbers[:again], end if again == size else None, replayed=True)
                if inner is not None and self.row == self.done:
                    yield from self._emit(inner["key"], inner["state"], flush=inner["flush"])
            if size > again:
                yield from self._join(rows, first + again, numbers[again:], end, replayed=False)
            if error is not None:
                note_element(error, rows.row(first + size))
                raise error
        for key in sorted(self.groups):
            if self.flushed is None or key > self.flushed:
                yield from self._emit(key, None, flush=True)

    def _numbered(self, results: Any) -> tuple[Ints, Exception | None]:
        """The numbers of the keys of results, up to one that is an error."""
        if self.keys_of is not None:
            whole = isinstance(results, np.ndarray) or set(map(type, results)) <= {int, np.int32, np.int64}
            given = np.asarray(results) if whole else None
            if given is not None and given.dtype.kind == "i":
                keys = self.keys_of(given.astype(np.int64, copy=False))
                named = [self._number(key) for key in range(int(keys.max()) + 1)]
                return np.asarray(named, np.int64)[keys], None
        numbers: list[int] = []
        try:
            for result in results:
                key = self.key_of(result)
                number = self.numbers.get(key)
                numbers.append(self._number(key) if number is None else number)
        except Exception as error:  # noqa: BLE001 - raised again when what came before it was sent
            return np.asarray(numbers, np.int64), error
        return np.asarray(numbers, np.int64), None

    def _number(self, key: int) -> int:
        number = self.numbers.get(key)
        if number is None:
            size = self.size_of(key)
            number = self.numbers[key] = len(self.keys)
            self.keys.append(key)
            self.sizes = np.append(self.sizes, size)
            self.waiting = np.append(self.waiting, 0)
        return number

    def _join(self, rows: Block, first: int, numbers: Ints, after: Mark | None, *, replayed: bool) -> Stream:
        """Let rows of a block, from `first` on, wait in their groups; and send the groups that become full."""
        begin, before, keys = self.mark, self.row, self.keys

        def at(place: int) -> Mark:
            if place == len(numbers) and after is not None:
                return after
            return {"input": begin["input"], "skip": begin["skip"] + place}

        places = np.arange(len(numbers))
        if replayed:  # of these some do not wait any more
            gone = np.asarray([self.sent.get(key, 0) for key in keys], np.int64)
            places = np.flatnonzero(before + places >= gone[numbers])
        joining = numbers[places]
        order, full = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
        ends = np.empty(len(places) + len(keys), np.int64)
        complete = fill_windows(joining, self.waiting, self.sizes, order, ends, full)
        members = np.split(places[order] + first, ends[: complete + len(keys) - 1])
        owners = [*joining[full[:complete]].tolist(), *range(len(keys))]
        known, opened = {self.numbers[key] for key in self.groups}, []
        for part, owner in zip(members, owners, strict=True):
            if len(part) and owner not in known:
                opened.append((int(part[0]) - first, owner))
            known.discard(owner)
        opened.sort(reverse=True)

        def open_until(place: int) -> None:
            while opened and opened[-1][0] <= place:
                place_of_first, owner = opened.pop()
                self.groups[keys[owner]] = _Group(before + place_of_first, at(place_of_first))

        for part, place, owner in zip(members, places[full[:complete]].tolist(), owners, strict=False):
            open_until(place)
            key = keys[owner]
            self.groups[key].add(rows.take(part))
            self.row, self.mark = before + place + 1, at(place + 1)
            if not replayed:
                yield from self._emit(key, None)
            elif self.saved["inner"] is None or self.row != self.done:
                self._remove(key)  # it was sent before the state was saved
        open_until(len(numbers))
        for part, owner in zip(members[complete:], owners[complete:], strict=True):
            if len(part):
                self.groups[keys[owner]].add(rows.take(part))
        self.row, self.mark = before + len(numbers), at(len(numbers))

    def _remove(self, key: int) -> None:
        del self.groups[key]
        self.sent.pop(key, None)
        self.sent[key] = self.row

    def _emit(self, key: int, inner: State | None, *, flush: bool = False) -> Stream:
        """Everything that is made of the group of `key`."""
        held = None
        for block, after in self.made(key, self.groups[key].parts, inner):
            if held is not None:
                yield held[0], self._state({"key": key, "state": held[1], "flush": flush})
            held = block, after
        # With the last block the group is gone, so that the state after it needs none of its rows.
        if flush:
            self.flushed = key
            del self.groups[key]
        else:
            self._remove(key)
        if held is not None:
            yield held[0], self._state(None)

    def _state(self, inner: Any) -> State:
        oldest = next(iter(self.groups.values()), None)
        first, mark = (self.row, self.mark) if oldest is None else (oldest.first, oldest.mark)
        while self.sent and next(iter(self.sent.values())) <= first:
            del self.sent[next(iter(self.sent))]
        # The sizes of groups are known again from the first row on; the last ones then are those that wait.
        far = len(self.sent) > _MOST_SENT
        if far:
            first, mark = 0, {"input": self.source.start(self.epoch), "skip": 0}
        sent = [] if far else list(self.sent.items())
        return {
            "epoch": self.epoch,
            **mark,
            "from": first,
            "row": self.row,
            "sent": sent,
            "flushed": self.flushed,
            "inner": inner,
        }


@dataclass(frozen=True, eq=False)
class _OneGroup(Node):
    """All elements of the input as one group, for finding out what `reduce_func` returns."""

    input: Node

    @cached_property
    def spec(self) -> Spec:
        return Spec(LEAF, (DatasetSpec(self.input.spec.nest),))

    def start(self, epoch: int) -> State:
        return {}

    def stream(self, state: State, run: Run) -> Stream:
        return iter(())
