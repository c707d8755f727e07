# SPDX-License-Identifier: Apache-2.0
"""`group_by_window` and `bucket_by_sequence_length`: elements collected by a key until a window is full."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from distinput.core.block import Block, concat_blocks
from distinput.core.nest import LEAF
from distinput.core.rows import Stream, called
from distinput.core.run import Run
from distinput.core.spec import DatasetSpec, Spec
from distinput.core.state import Mark, State
from distinput.core.values import as_leaf, shape_of
from distinput.errors import InvalidArgumentError
from distinput.ops.batch import Batch
from distinput.ops.function import calling, infer
from distinput.ops.interleave import node_of
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.slices import rows_node
from distinput.plan.check import at_least, callable_argument
from distinput.plan.node import INFINITE, UNKNOWN, Node

__all__ = ["BucketBySequenceLength", "GroupByWindow"]

_MOST_SENT = 64
"""Keys whose groups a state tells of; where there are more, a restart looks at all elements again."""


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

    def _reduced(self, key: int, rows: Block) -> Node:
        window = rows_node(rows, self.input.spec.leaves)
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
        call = calling(self.key_func)

        def key_of(element: Any) -> int:
            key = np.asarray(call(element))
            if key.dtype.kind not in "iu" or key.ndim:
                raise TypeError(f"group_by_window: key_func must return a whole number, got {key!r}")
            return int(key)

        return _Groups(self.input, state, run, key_of, self._size, self._reduced).stream()


@dataclass(frozen=True, eq=False)
class BucketBySequenceLength(Node):
    """Batches of elements of similar length, padded.

    Bucket i holds lengths from `bucket_boundaries[i - 1]` up to below `bucket_boundaries[i]`; a bucket that holds its batch
    size is sent. At the end the rest follows, shorter buckets first. Shapes: [...] becomes [batch size, ...], padded as
    `padded_batch` does. State: as `group_by_window`.

    Args:
      element_length_func: element -> its length.
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
        call = calling(self.element_length_func)
        boundaries = [int(b) for b in self.bucket_boundaries]
        leaves = self.input.spec.leaves

        def bucket_of(element: Any) -> int:
            length = as_leaf(call(element))
            if shape_of(length):
                raise InvalidArgumentError(
                    f"bucket_by_sequence_length: element_length_func must return one number, got {length!r}"
                )
            return bisect_right(boundaries, int(length))

        def reduced(bucket: int, rows: Block) -> Node:
            return self._batch(bucket, rows_node(rows, leaves))

        def size_of(bucket: int) -> int:
            return int(self.bucket_batch_sizes[bucket])

        return _Groups(self.input, state, run, bucket_of, size_of, reduced).stream()


class _Group:
    """The elements of one key that wait: the number of the first one, where it stands in the input, and all of them."""

    __slots__ = ("first", "mark", "parts", "size")

    def __init__(self, first: int, mark: Mark) -> None:
        self.first, self.mark, self.size = first, mark, 0
        self.parts: list[Block] = []


class _Groups:
    """The elements that wait, by key, and the positions from which they can be found again.

    At the oldest row that waits all earlier ones have been sent. So a restart from there needs to know only, for groups that
    were sent since, up to which row that was. Where these are too many for a state it restarts from the first row of all.
    """

    def __init__(
        self,
        source: Node,
        state: State,
        run: Run,
        key_of: Callable[[Any], int],
        size_of: Callable[[int], int],
        reduced: Callable[[int, Block], Node],
    ) -> None:
        self.source, self.run, self.key_of, self.size_of, self.reduced = source, run, key_of, size_of, reduced
        self.epoch: int = state["epoch"]
        self.saved = state
        self.done: int = state["row"]
        self.flushed: int | None = state["flushed"]
        # Both in ascending order of rows, since dicts keep the order of insertion.
        self.sent: dict[int, int] = {int(k): n for k, n in state["sent"]}
        self.groups: dict[int, _Group] = {}
        self.places: dict[int, list[int]] = {}
        self.block: Block | None = None
        self.row: int = state["from"]
        self.mark: Mark = {"input": state["input"], "skip": state["skip"]}
        self.sizes: dict[int, int] = {}

    def stream(self) -> Stream:
        """Blocks of what `reduced` made of full groups, and at the end of the others."""
        inner = self.saved["inner"]
        begin = self.mark
        for keys, rows, first, after in called(self.source.open(begin["input"], self.run), begin, self.key_of):
            self.block, self.places = rows.rows(first, first + len(keys)), {}
            for place, key in enumerate(keys):
                mark = {"input": begin["input"], "skip": begin["skip"] + place}
                self.row += 1
                self.mark = {**mark, "skip": mark["skip"] + 1} if place + 1 < len(keys) else after
                full = self.row > self.sent.get(key, 0) and self._joined(key, place, mark)
                resumes = inner is not None and self.row == self.done
                if full and self.row > self.done:
                    yield from self._emit(key, None)
                elif full and not (resumes and inner["key"] == key):  # it was sent before the state was saved
                    self._remove(key)
                if resumes:
                    yield from self._emit(inner["key"], inner["state"], flush=inner["flush"])
            self._settle()
            begin = after
        for key in sorted(self.groups):
            if self.flushed is None or key > self.flushed:
                yield from self._emit(key, None, flush=True)

    def _joined(self, key: int, place: int, mark: Mark) -> bool:
        """Let the row at a place of the block wait; True when its group is full."""
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = _Group(self.row - 1, mark)
        group.size += 1
        self.places.setdefault(key, []).append(place)
        return group.size >= self._size(key)

    def _settle(self, key: int | None = None) -> None:
        """Take the rows that wait, of one key or of all, out of the block, which is not kept for their sake."""
        assert self.block is not None
        for each in [*self.places] if key is None else [key]:
            places = self.places.pop(each, None)
            if places is not None:
                self.groups[each].parts.append(self.block.take(np.asarray(places, np.int64)))

    def _size(self, key: int) -> int:
        size = self.sizes.get(key)
        if size is None:
            size = self.sizes[key] = self.size_of(key)
        return size

    def _remove(self, key: int) -> None:
        self.places.pop(key, None)
        del self.groups[key]
        self.sent.pop(key, None)
        self.sent[key] = self.row

    def _emit(self, key: int, inner: State | None, *, flush: bool = False) -> Stream:
        """Everything that `reduced` makes of the group of `key`."""
        self._settle(key)
        node = self.reduced(key, concat_blocks(self.groups[key].parts))
        stream = node.open(node.start(self.epoch) if inner is None else inner, self.run)
        held = None
        for block, after in stream:
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
