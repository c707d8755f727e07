# SPDX-License-Identifier: Apache-2.0
"""`group_by_window` and `bucket_by_sequence_length`: elements collected by key."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import field
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import MOST_ROWS, Block, ColumnBlock, Failure, concat_blocks, failed
from distinput.columns.column import Ints
from distinput.columns.ragged import Datasets
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import Mark, State, is_count
from distinput.errors import InvalidArgumentError, StateError
from distinput.functions.chain import calling
from distinput.functions.claim import Claim, alike
from distinput.functions.dataset_functions import hash_of, node_of, spec_of_elements
from distinput.functions.inference import results_of
from distinput.kernels.sequence_packing import fill_windows
from distinput.names.lazy import dataclass
from distinput.ops.batch import Batch
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.slices import rows_node
from distinput.plan.binding import take_functions
from distinput.plan.check import at_least, normalized, whole_key, without_sparse
from distinput.plan.families import drawn_seeds, fresh_seed, key_of, unseeded, with_seed
from distinput.plan.fingerprint import taken_up
from distinput.plan.node import Node
from distinput.run.run import Run, called, called_once, note_element
from distinput.values.leaves import STRING, as_leaf, shape_of
from distinput.values.nest import LEAF
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

    tolerant = same_end = True
    input: Node

    def state_misfit(self, state: State) -> str | None:
        sent, failures = state["sent"], state.get("failures", [0, 0])
        pairs = all(isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_integer, pair)) for pair in sent)
        fits = isinstance(failures, list | tuple) and len(failures) == 2 and all(map(is_count, failures))
        keys = state["flushed"] is None or _is_integer(state["flushed"])
        inner = state["inner"]
        made = inner is None or (
            isinstance(inner, dict) and {"key", "state", "flush"} <= inner.keys() and _is_integer(inner["key"])
        )
        sound = pairs and fits and keys and made
        return None if sound else f"{self.op}: 'sent', 'flushed', 'failures' or 'inner' is damaged"

    def start(self, epoch: int) -> State:
        begin = {"epoch": epoch, "input": self.input.start(epoch), "skip": 0}
        return {**begin, "from": 0, "row": 0, "sent": [], "flushed": None, "inner": None}


def _is_integer(value: object) -> bool:
    return is_count(value, -(1 << 63), (1 << 63) - 1)


# ----------------------------------------------------------------------------
# Groups of elements with the same key that wait until they are full, and the positions from which a restart finds them.
# ----------------------------------------------------------------------------


_MOST_SENT = 64
"""Keys whose sent groups a state lists; if there are more, a restart looks at all elements again."""

_MOST_BLOCKS = 16
"""Blocks that a group may keep alive for single rows of them."""


class _Group:
    """The waiting elements of one key: the row number of the first, its mark in the input, and all of them.

    `failures` counts the failures before the first.
    """

    __slots__ = ("failures", "first", "fresh", "mark", "parts")

    def __init__(self, first: int, mark: Mark, failures: int) -> None:
        self.first, self.mark, self.failures = first, mark, failures
        self.parts: list[Block] = []
        self.fresh = 0

    def add(self, rows: Block) -> None:
        """Let rows of a block wait. Spans keep the whole block alive, so they are copied before they keep many alive."""
        self.parts.append(rows)
        self.fresh += 1
        if self.fresh > _MOST_BLOCKS:
            self.parts[-self.fresh :] = [concat_blocks(self.parts[-self.fresh :])]
            self.fresh = 0


class _Parts:
    """The rows of a block sorted by the groups that they join: first those of complete groups, then those that wait.

    Args:
      order: places of rows in the block.
      bounds: where in `order` each part begins, and where the last one ends.
      owners: the number of each part's key.
      behind: for each complete group, the place after its last row.
      waiting: numbers of the keys whose elements waited before this block, so that their first part is not a whole group.
    """

    def __init__(self, order: Ints, bounds: list[int], owners: list[int], behind: list[int], waiting: set[int]) -> None:
        self._order, self.bounds, self.owners, self.behind = order, bounds, owners, behind
        self.complete = len(behind)
        self.opened: list[tuple[int, int]] = []
        """The first place of each group that begins in this block, and its part; the last ones first."""
        waiting, whole = set(waiting), []
        for part, owner in enumerate(owners):
            whole.append(owner not in waiting)
            if whole[-1] and bounds[part + 1] > bounds[part]:
                self.opened.append((int(order[bounds[part]]), part))
            waiting.discard(owner)
        self.opened.sort(reverse=True)
        self._apart = [part for part, is_whole in enumerate(whole[: self.complete]) if not is_whole][::-1]

    def places(self, part: int, end: int) -> Ints:
        """The places of the parts from `part` up to `end`."""
        return self._order[self.bounds[part] : self.bounds[end]]

    def together(self, part: int) -> int:
        """How many complete groups, from this one on, have all their rows in this block; call it with ascending parts."""
        while self._apart and self._apart[-1] < part:
            self._apart.pop()
        return (self._apart[-1] if self._apart else self.complete) - part


class Groups:
    """The waiting elements by key, and the positions from which they can be found again.

    All rows before the oldest one that waits have been sent. So a restart from there only needs to know, for the groups that
    were sent since, up to which row they reached. If these are too many for a state, it restarts from the first row of all.

    Args:
      source: the input.
      state: where to begin.
      results: what the user's function returned for the elements from there on, as `called` yields it.
      key_of: result -> key; raises an error for a result that is no key.
      size_of: key -> number of elements in a group of that key.
      made: (key, its elements, state within the output or None) -> the output for a group.
      keys_of: as `key_of` for many integers at once, if possible.
      made_together: (rows, how many of them belong to each group) -> the output for groups of consecutive rows, in blocks with
        one row for each group; None if groups have to be made one by one.
      tolerant: whether an error becomes a failure in the place of the element, or of the output of a group.
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
        made_together: Callable[[Block, Ints], Iterator[Block]] | None = None,
        *,
        tolerant: bool = False,
    ) -> None:
        self.source, self.results = source, results
        self.key_of, self.size_of, self.made, self.keys_of = key_of, size_of, made, keys_of
        self.made_together, self.tolerant = made_together, tolerant
        self.epoch: int = state["epoch"]
        self.saved = state
        self.done: int = state["row"]
        self.flushed: int | None = state["flushed"]
        # Both in ascending order of rows, since dicts keep insertion order.
        self.sent: dict[int, int] = {int(k): n for k, n in state["sent"]}
        self.groups: dict[int, _Group] = {}
        self.row: int = state["from"]
        # Failures counted from the first row of all: those before `mark`, and those that were passed on.
        self.failures, self.known = state.get("failures", (0, 0))
        self.mark: Mark = {"input": state["input"], "skip": state["skip"]}
        # Keys are numbered in the order in which they appear; by number: key, size of a full group, waiting elements.
        self.numbers: dict[int, int] = {}
        self.keys: list[int] = []
        self.sizes: Ints = np.empty(0, np.int64)
        self.waiting: Ints = np.empty(0, np.int64)

    def stream(self) -> Stream:
        """Blocks of the output for full groups, and at the end for the others."""
        inner = self.saved["inner"]
        for results, rows, first, after in self.results:
            if type(rows) is Failure:
                yield from self._lost(rows, after)
            while len(results):
                numbers, error = self._numbered(results)
                size = len(numbers)
                end = after if size == len(results) else None
                # What was sent before the state was saved is collected again without being sent.
                again = min(max(0, self.done - self.row), size)
                if again:
                    yield from self._join(rows, first, numbers[:again], end if again == size else None, replayed=True)
                    if inner is not None and self.row == self.done:
                        if inner["key"] not in self.groups:
                            raise StateError(
                                f"restore: the state is damaged: no element before it has key {inner['key']}"
                            )
                        yield from self._emit(inner["key"], inner["state"], flush=inner["flush"])
                if size > again:
                    yield from self._join(rows, first + again, numbers[again:], end, replayed=False)
                if error is None:
                    break
                note_element(error, rows.shown(first + size))
                results, first = results[size + 1 :], first + size + 1
                here = {"input": self.mark["input"], "skip": self.mark["skip"] + 1} if len(results) else after
                yield from self._lost(failed(error, tolerant=self.tolerant), here)
        for key in sorted(self.groups):
            if self.flushed is None or key > self.flushed:
                yield from self._emit(key, None, flush=True)

    def _lost(self, failure: Failure, after: Mark) -> Stream:
        self.mark, self.failures = after, self.failures + 1
        if self.failures > self.known:
            self.known = self.failures
            yield failure, self._state(None)

    def _numbered(self, results: Any) -> tuple[Ints, Exception | None]:
        """The key numbers of results, up to the first that is an error."""
        if self.keys_of is not None:
            whole = isinstance(results, np.ndarray) or set(map(type, results)) <= {int, np.int32, np.int64}
            given = np.asarray(results) if whole else None
            if given is not None and given.dtype.kind == "i":
                keys = self.keys_of(given.astype(np.int64, copy=False))
                return np.asarray([self._number(key) for key in range(int(keys.max()) + 1)], np.int64)[keys], None
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
        """Let the rows of a block from `first` on wait in their groups, and send the groups that become full."""
        begin, before, keys, failures = self.mark, self.row, self.keys, self.failures

        def at(place: int) -> Mark:
            if place == len(numbers) and after is not None:
                return after
            return {"input": begin["input"], "skip": begin["skip"] + place}

        def come_to(place: int, part: int) -> None:
            """Advance to `place`: open the groups that begin before it, except those of parts before `part`."""
            while parts.opened and parts.opened[-1][0] < place:
                place_of_first, opened = parts.opened.pop()
                if opened >= part:
                    self.groups[keys[parts.owners[opened]]] = _Group(
                        before + place_of_first, at(place_of_first), failures
                    )
            self.row, self.mark = before + place, at(place)

        parts = self._parted(numbers, replayed=replayed)
        part, alone = 0, -1
        while part < parts.complete:
            key, together = keys[parts.owners[part]], 0 if replayed or part == alone else parts.together(part)
            if self.made_together is not None and together:
                whole = rows.take(parts.places(part, part + together) + first)
                for made in self._made_together(whole, np.diff(parts.bounds[part : part + together + 1])):
                    for _ in range(made.size):
                        self._remove(keys[parts.owners[part]], before + parts.behind[part])
                        part += 1
                    come_to(parts.behind[part - 1], part)
                    yield made, self._state(None)
                    together -= made.size
                alone = part if together else -1  # this group fails, so it is made on its own
                continue
            come_to(parts.behind[part], part)
            self.groups[key].add(rows.take(parts.places(part, part + 1) + first))
            if not replayed:
                yield from self._emit(key, None)
            elif self.saved["inner"] is None or self.row != self.done:
                self._remove(key, self.row)  # it was sent before the state was saved
            part += 1
        come_to(len(numbers), parts.complete)
        for part in range(parts.complete, len(parts.owners)):
            waiting = parts.places(part, part + 1)
            if len(waiting):
                self.groups[keys[parts.owners[part]]].add(rows.take(waiting + first))

    def _parted(self, numbers: Ints, *, replayed: bool) -> "_Parts":
        """The rows from here on, sorted by the groups that they join."""
        places = np.arange(len(numbers))
        if replayed:  # some of these no longer wait
            gone = np.asarray([self.sent.get(key, 0) for key in self.keys], np.int64)
            places = np.flatnonzero(self.row + places >= gone[numbers])
        joining, groups = numbers[places], len(self.keys)
        order, full = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
        ends = np.empty(len(places) + groups, np.int64)
        complete = fill_windows(joining, self.waiting, self.sizes, order, ends, full)
        owners = [*joining[full[:complete]].tolist(), *range(groups)]
        bounds = [0, *ends[: complete + groups].tolist()]
        behind = (places[full[:complete]] + 1).tolist()
        return _Parts(places[order], bounds, owners, behind, {self.numbers[key] for key in self.groups})

    def _remove(self, key: int, row: int) -> None:
        """Note that the group of `key` has been sent, with its elements before this row."""
        self.groups.pop(key, None)  # a group that came and went since the last state is not there
        self.sent.pop(key, None)
        self.sent[key] = row

    def _emit(self, key: int, inner: State | None, *, flush: bool = False) -> Stream:
        """All output for the group of `key`."""
        pending = None
        for block, after in self._made(key, self.groups[key].parts, inner):
            if pending is not None:
                yield pending[0], self._state({"key": key, "state": pending[1], "flush": flush})
            pending = block, after
        # The group is removed before its last block is sent, so that the state after it needs none of its rows.
        if flush:
            self.flushed = key
            del self.groups[key]
        else:
            self._remove(key, self.row)
        if pending is not None:
            yield pending[0], self._state(None)

    def _made_together(self, rows: Block, counts: Ints) -> Iterator[Block]:
        """The output for groups of consecutive rows, up to the first that fails."""
        assert self.made_together is not None
        try:
            yield from self.made_together(rows, counts)
        except Exception:
            if not self.tolerant:
                raise

    def _made(self, key: int, parts: list[Block], inner: State | None) -> Stream:
        """The output for a group; in a tolerant run, a failure if that raises an error."""
        try:
            yield from self.made(key, parts, inner)
        except Exception as error:  # noqa: BLE001 - `failed` raises it, unless the run is tolerant
            yield failed(error, tolerant=self.tolerant), {}

    def _state(self, inner: Any) -> State:
        oldest = next(iter(self.groups.values()), None)
        first, mark, failures = self.row, self.mark, self.failures
        if oldest is not None:
            first, mark, failures = oldest.first, oldest.mark, oldest.failures
        while self.sent and next(iter(self.sent.values())) <= first:
            del self.sent[next(iter(self.sent))]
        # A restart from the first row counts the groups again; the last ones are then those that wait.
        far = len(self.sent) > _MOST_SENT
        if far:
            first, mark, failures = 0, {"input": self.source.start(self.epoch), "skip": 0}, 0
        sent = [] if far else list(self.sent.items())
        made = {
            "epoch": self.epoch,
            **mark,
            "from": first,
            "row": self.row,
            "sent": sent,
            "flushed": self.flushed,
            "inner": inner,
        }
        return {**made, "failures": [failures, self.known]} if self.known else made


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
        try:
            with unseeded():
                node = node_of("group_by_window", called_once(self.reduce_func, np.int64(key), window.to_user()))
        except Exception as error:
            error.add_note(f"on the window of key {key}")
            raise
        if not drawn_seeds(node):
            return node
        return with_seed(node, key_of(self.drawn_seed, key, hash_of(parts[0].row(0))))

    def _size(self, key: int) -> int:
        if self.window_size is not None:
            return int(self.window_size)
        assert self.window_size_func is not None
        size = np.asarray(called_once(self.window_size_func, np.int64(key)))
        return at_least("group_by_window", "window_size", size, 1)

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
        return spec_of_elements("group_by_window", self._of_some, _OneGroup(self.input), self.reduce_func)

    def stream(self, state: State, run: Run) -> Stream:
        def made(key: int, parts: list[Block], inner: State | None) -> Stream:
            node = self._reduced(key, parts)
            stream = node.open(taken_up("group_by_window", node, state["epoch"], inner), run)
            return alike("group_by_window", stream, self.claim, lambda: self.spec, np.int64(key), tolerant=run.tolerant)

        self.decide(run)

        upstream = self.input.open(state["input"], run)
        results = called(upstream, state, self.key_func, unpack=True, tolerant=run.tolerant)
        return Groups(
            self.input, state, results, partial(whole_key, self.op), self._size, made, tolerant=run.tolerant
        ).stream()


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
                yield ColumnBlock(LEAF, [Datasets([rows_node(block, self.input.spec.leaves)], STRING)], 1), after


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
        for name in ("bucket_boundaries", "bucket_batch_sizes"):
            given = getattr(self, name)
            if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes):
                raise TypeError(f"bucket_by_sequence_length: {name} must be a list of integers, got {given!r}")
            normalized(self, name, copy(given) if isinstance(given, list | tuple | np.ndarray) else list(given))
        for boundary in self.bucket_boundaries:
            at_least("bucket_by_sequence_length", "bucket_boundaries", boundary, -(1 << 63))
        if self.pad_to_bucket_boundary and not len(self.bucket_boundaries):
            raise InvalidArgumentError(
                "bucket_by_sequence_length: pad_to_bucket_boundary=True needs a boundary, got none"
            )
        if len(self.bucket_batch_sizes) != len(self.bucket_boundaries) + 1:
            raise InvalidArgumentError(
                "bucket_by_sequence_length: `len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1`, got "
                f"{len(self.bucket_batch_sizes)} and {len(self.bucket_boundaries)}"
            )
        for size in self.bucket_batch_sizes:
            at_least("bucket_by_sequence_length", "bucket_batch_sizes", size, 1)
        self._batch(0, self.input)  # what no batch can be made with is refused now

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

    @property
    def rows_per_batch(self) -> int | None:
        sizes = set(map(int, self.bucket_batch_sizes))
        return sizes.pop() if self.drop_remainder and len(sizes) == 1 else None

    @cached_property
    def spec(self) -> Spec:
        if self.pad_to_bucket_boundary and not self.no_padding:
            made = PaddedBatch(self.input, 1, self.padded_shapes, self.padding_values, origin=self.origin).spec
        else:
            made = self._batch(0, self.input).spec
        # Also where `rows_per_batch` is known: replicas then share what is left of the batches at the end of the data.
        return made.map(lambda leaf: leaf if leaf.shape is None else leaf.with_shape((None, *leaf.shape[1:])))

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
    for rows, at in passing_over(stream, mark):
        if type(rows) is Failure:
            yield [], rows, 0, at(0)
            continue
        lengths = np.asarray(rows.columnar().columns[0].lengths(), np.int64)
        yield np.broadcast_to(lengths, rows.size), rows, 0, at(rows.size)
