# SPDX-License-Identifier: Apache-2.0
"""`batch_by_tokens`: batches of as many consecutive elements as have a limited number of tokens."""

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import MOST_ROWS, Block, Failure, concat_blocks, failed, sound_parts
from distinput.columns.column import Ints, StackError
from distinput.columns.rows import Stream, loosened, passing_over, same
from distinput.columns.state import Mark, State
from distinput.errors import InvalidArgumentError
from distinput.functions.claim import between
from distinput.kernels.sequence_packing import cut_by_tokens
from distinput.names.lazy import dataclass
from distinput.ops.batch import ragged_row
from distinput.plan.binding import take_functions
from distinput.plan.check import at_least, refuse_sparse, without_sparse
from distinput.plan.families import differing
from distinput.plan.node import Needs, Node
from distinput.run.run import Run, called, element_text
from distinput.streaming.padding import Late, Padding, padding_fills
from distinput.values.nest import component
from distinput.values.spec import Spec, TensorSpec

_LAYOUTS, _LONGER = ("padded", "ragged"), ("raise", "alone")
_MANY = (1 << 31) - 1

_Measured = tuple[Ints, Block, Callable[[int], Mark]]
"""Tokens of elements, the elements, and the mark after so many of them; for a failure, nothing, itself, and that after it."""


@dataclass(frozen=True, eq=False)
class BatchByTokens(Node):
    """Put as many consecutive elements into a batch as have at most `max_tokens` tokens together.

    A batch ends before the element with which it would have more. Padding counts: a padded batch has as many tokens as its
    elements times the longest of them. To get less padding, let elements of similar length share batches: call it in the
    `reduce_func` of `group_by_window`, with lengths as keys; or take `layout="ragged"`.

    Shapes: [...] becomes [elements, ...], padded to the longest of the batch as by `padded_batch`, or ragged as by
    `ragged_batch`. Order: unchanged. State: where the first element of the next batch stands in the input.

    Args:
      max_tokens: tokens in a batch, from 1 to 2**31 - 1.
      layout: "padded" or "ragged".
      length_func: element -> its tokens. None: the first dimension of the longest component; of those alone whose first
        dimension the element spec leaves open, if there are any.
      max_rows: elements in a batch; None: any number.
      on_longer: what to do with an element that has more than `max_tokens`: "raise" an error, or deliver it "alone", as a batch
        of its own.
      padding_values: for "padded", as for `padded_batch`.

    Raises:
      InvalidArgumentError: an argument is none of these; a component has an unknown rank; without `length_func`, none has
        a first dimension; at iteration, an element has more than `max_tokens`.
      TypeError: `padding_values` do not fit the elements; at iteration, `length_func` returns no whole number.

    >>> import distinput as di
    >>> import numpy as np
    >>> ds = di.data.Dataset.range(1, 6).map(lambda n: np.full(n, n))
    >>> [batch.shape for batch in ds.batch_by_tokens(8)]
    [(2, 2), (2, 4), (1, 5)]
    >>> [batch.to_list() for batch in ds.batch_by_tokens(6, "ragged")]
    [[[1], [2, 2], [3, 3, 3]], [[4, 4, 4, 4]], [[5, 5, 5, 5, 5]]]

    Source: batches by a number of tokens are those of Vaswani and others: Attention is all you need (2017), section 5.1.
    """

    needs: ClassVar[Needs] = Needs.PART
    by_element = tolerant = same_end = True
    spec_given: ClassVar[bool] = True  # by the input: elements are what they are, whatever `length_func` returns
    input: Node
    max_tokens: int
    layout: str = "padded"
    length_func: Callable[..., Any] | None = None
    max_rows: int | None = None
    on_longer: str = "raise"
    padding_values: Any = None

    def __post_init__(self) -> None:
        for name, value in (("max_tokens", self.max_tokens), ("max_rows", self.max_rows)):
            if (value is not None or name == "max_tokens") and at_least("batch_by_tokens", name, value, 1) > _MANY:
                raise InvalidArgumentError(f"batch_by_tokens: {name} must be below 2**31, got {value}")
        for name, given, known in (("layout", self.layout, _LAYOUTS), ("on_longer", self.on_longer, _LONGER)):
            if given not in known:
                told = " or ".join(map(repr, known))
                raise InvalidArgumentError(f"batch_by_tokens: {name} must be {told}, got {given!r}")
        if self.layout == "ragged" and self.padding_values is not None:
            raise InvalidArgumentError("batch_by_tokens: layout='ragged' does not pad; leave out padding_values")
        if self.length_func is not None:
            take_functions(self, "batch_by_tokens", "length_func")
        self.padding  # noqa: B018 - checked now
        if self.length_func is None:
            self._measured_leaves  # noqa: B018 - the same

    def arguments(self) -> dict[str, Any]:
        found = super().arguments()
        return found if self.padding_values is None else {**found, "padding_values": str(self.padding_values)}

    @cached_property
    def _measured_leaves(self) -> list[int]:
        """The leaves whose first dimensions tell how many tokens an element has."""
        leaves = self.input.spec.tensors("batch_by_tokens")
        sequences = [number for number, leaf in enumerate(leaves) if leaf.shape]
        if not sequences:
            raise InvalidArgumentError(
                "batch_by_tokens: no component has a first dimension, so that its tokens could be counted; give length_func"
            )
        return [number for number in sequences if leaves[number].shape[0] is None] or sequences  # type: ignore[index]

    @cached_property
    def padding(self) -> Padding:
        """What elements are padded to."""
        spec = self.input.spec
        refuse_sparse("batch_by_tokens", spec.structure)
        leaves = spec.tensors("batch_by_tokens")
        for leaf, path in zip(leaves, spec.structure.paths, strict=True):
            if leaf.shape is None:
                raise InvalidArgumentError(
                    f"batch_by_tokens: {component(path)} has an unknown rank; give map an output_signature"
                )
        shapes = tuple([tuple(leaf.shape) for leaf in leaves])  # type: ignore[arg-type]
        return Padding(shapes, padding_fills("batch_by_tokens", spec, self.padding_values))

    @cached_property
    def _rows_spec(self) -> Spec:
        return self.input.spec.map(ragged_row)

    @cached_property
    def spec(self) -> Spec:
        if self.layout == "ragged":
            return self._rows_spec.map(lambda leaf: leaf.with_shape((None, *leaf.shape)))  # type: ignore[misc]
        return self.input.spec.map(lambda leaf: TensorSpec((None, *leaf.shape), leaf.dtype))  # type: ignore[misc, union-attr]

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def stream(self, state: State, run: Run) -> Stream:
        padded, most, most_rows = self.layout == "padded", int(self.max_tokens), int(self.max_rows or _MANY)
        late = run.late(self) if run.by_element else None
        pending: list[Block] = []  # elements of the batch that is begun
        count = tokens = 0
        behind: Mark = state
        for sizes, rows, mark_at in self._sound(state, run):
            if type(rows) is Failure:  # it ends the batch before it
                yield from self._rest(pending, behind, late, run)
                pending, count, tokens = [], 0, 0
                yield rows, mark_at(0)
                continue
            ends = np.empty(len(sizes), np.int64)
            ended, count, tokens = cut_by_tokens(sizes, count, tokens, most, most_rows, padded, ends)
            first, counts = 0, np.diff(ends[:ended], prepend=0)
            if pending and ended:
                first, counts = int(ends[0]), counts[1:]
                yield from self._rest([*pending, rows.rows(0, first)] if first else pending, mark_at(first), late, run)
                pending = []
            if len(counts):
                begin, last = first, int(ends[ended - 1])
                for made, done in self._batches(rows.rows(first, last), counts, late, run):
                    yield made, mark_at(begin + done)
                first = last
            if first < rows.size:
                pending.append(rows.rows(first, rows.size))
            behind = mark_at(rows.size)
        yield from self._rest(pending, behind, late, run)

    def _rest(self, held: list[Block], after: Mark, late: Late | None, run: Run) -> Stream:
        """What waits, as one batch."""
        if held:
            rows = concat_blocks(held)
            for made, _ in self._batches(rows, np.asarray([rows.size]), late, run):
                yield made, after

    def _batches(self, rows: Block, counts: Ints, late: Late | None, run: Run) -> Iterator[tuple[Block, int]]:
        """Consecutive elements in batches of these sizes, in a few blocks; each with the element after it."""
        if self.layout == "padded":
            yield from self.padding.sound_batches(rows, counts, late, tolerant=run.tolerant)
            return
        ends, loose = counts.cumsum(), loosened(rows, self._rows_spec)

        def stacked(first: int, end: int) -> Block:
            begin = int(ends[first - 1]) if first else 0
            try:
                return loose.rows(begin, int(ends[end - 1])).split(counts[first:end])
            except StackError as error:
                raise differing(error) from None

        for made, batch in sound_parts(len(counts), stacked, tolerant=run.tolerant):
            yield made, int(ends[batch - 1])

    def _sound(self, state: State, run: Run) -> Iterator[_Measured]:
        """Elements with their tokens, none of which has too many; failures in the place of those that have."""
        for sizes, rows, mark_at in self._measured(state, run):
            bad = np.flatnonzero(sizes > self.max_tokens).tolist() if self.on_longer == "raise" else []
            first = 0
            for place in bad:
                if place > first:
                    yield sizes[first:place], rows.rows(first, place), partial(_behind, mark_at, first)
                error = InvalidArgumentError(
                    f"batch_by_tokens: an element of {sizes[place]} tokens does not go into a batch of max_tokens="
                    f"{self.max_tokens}; give more, or on_longer='alone', or shorten it by map"
                )
                error.add_note(f"on {element_text(rows.shown(place))}")
                first = place + 1
                yield sizes[:0], failed(error, tolerant=run.tolerant), partial(_behind, mark_at, first)
            if first < rows.size or type(rows) is Failure:
                yield sizes[first:], rows.rows(first, rows.size), partial(_behind, mark_at, first)

    def _measured(self, state: State, run: Run) -> Iterator[_Measured]:
        """Elements with their tokens; failures of the input as they are."""
        if self.length_func is not None:
            yield from self._asked(self.length_func, state, run)
            return
        for rows, at in passing_over(self._opened(state, run), state):
            sizes = np.zeros(rows.size, np.int64)
            if rows.size:
                columns = rows.columnar().columns
                for number in self._measured_leaves:
                    lengths = columns[number].materialize().lengths()
                    sizes = sizes if lengths is None else np.maximum(sizes, lengths)
            yield np.minimum(sizes, _MANY), rows, at

    def _opened(self, state: State, run: Run) -> Stream:
        return without_sparse(self.op, self.input.open(state["input"], run.by_block()))

    def _asked(self, length_func: Callable[..., Any], state: State, run: Run) -> Iterator[_Measured]:
        upstream = self._opened(state, run)
        before: Mark = {"input": state["input"], "skip": state["skip"]}

        def tokens(*components: Any) -> int:
            found = np.asarray(length_func(*components))
            if found.dtype.kind not in "iu" or found.ndim or found < 0:
                raise TypeError(
                    f"batch_by_tokens: length_func must return a number of tokens, at least 0, got {found!r}"
                )
            return min(int(found), _MANY)

        for results, rows, first, mark in called(
            upstream, state, tokens, MOST_ROWS, unpack=True, tolerant=run.tolerant
        ):
            if type(rows) is Failure:
                yield np.empty(0, np.int64), rows, partial(same, mark)
            else:
                size = len(results)
                yield np.asarray(results, np.int64), rows.rows(first, first + size), between(before, mark, size)
            before = mark


def _behind(at: Callable[[int], Mark], first: int, done: int) -> Mark:
    return at(first + done)
