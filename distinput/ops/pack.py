# SPDX-License-Identifier: Apache-2.0
"""`pack`: sequences of many lengths put side by side into rows of one length."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import MOST_BYTES, Block, ColumnBlock, Failure, concat_blocks, failed
from distinput.columns.column import Array, Column, Dense, Ints
from distinput.columns.ragged import Arrays, Ragged
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import Mark, State
from distinput.errors import InvalidArgumentError
from distinput.kernels.sequence_packing import fill_spans, number_rows, plan_rows
from distinput.kernels.spans import gather_spans
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least, refuse_sparse
from distinput.plan.node import Needs, Node
from distinput.run.run import Run, element_text
from distinput.streaming.padding import as_bytes, padding_fills, spans_of
from distinput.values.buffers import empty
from distinput.values.leaves import STRING
from distinput.values.nest import component
from distinput.values.spec import Spec, TensorSpec

# ----------------------------------------------------------------------------
# Packing: sequences of several blocks, planned together and copied once, straight into rows of one length.
# ----------------------------------------------------------------------------


_MOST_PARTS = 16
"""Blocks that are copied from where they are; more of them hold few sequences each, and are put side by side first."""


def spans_of_any(column: Column) -> tuple[Array, Ints, Ints]:
    """Rows that may differ in their first dimension: a contiguous array [m, ...], and the start and length of each, [n]."""
    column = column.materialize()
    spans = spans_of(column.joined() if isinstance(column, Arrays) else column)
    if spans is not None:
        return spans
    rows = list(column.values())
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    return np.ascontiguousarray(np.concatenate(rows)), np.cumsum(sizes) - sizes, sizes


@dataclass(frozen=True)
class SequencePacking:
    """How sequences become rows.

    Args:
      length: tokens in a row.
      best: best fit, else first fit; see `kernels.sequence_packing`.
      leaves: what a sequence looks like: one spec for each of its components, which all have its length.
      fills: the padding value of each component.
    """

    length: int
    best: bool
    leaves: tuple[TensorSpec, ...]
    fills: tuple[Any, ...]

    def rows(self, parts: Sequence[Block], sizes: Ints, first: int = 0) -> Iterator[tuple[list[Array], int, bool]]:
        """Rows of some sequences: a few megabytes at a time.

        Args:
          parts: the sequences, [n] in all.
          sizes: [n], how many tokens of each are used. What is longer than a row becomes several sequences.
          first: rows to pass over.

        Yields:
          The components, the segment numbers and the positions, each [r, length, ...]; the row after them; whether more follow.
        """
        if len(parts) > _MOST_PARTS:
            parts = [concat_blocks(parts)]
        # [p] pieces of sequences: of which one, from which of its tokens on, and how many.
        counts = -(-sizes // self.length)
        owners = np.repeat(np.arange(len(sizes)), counts)
        begins = (np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)) * self.length
        pieces = np.minimum(self.length, sizes[owners] - begins)
        order, bounds = np.empty(len(pieces), np.int64), np.empty(len(pieces) + 1, np.int64)
        count = plan_rows(pieces, self.length, self.best, order, bounds)
        columns = [[spans_of_any(column) for column in part.columnar().columns] for part in parts]
        borders = np.cumsum([0, *[part.size for part in parts]])
        most = max(1, MOST_BYTES // (self.length * self._token_bytes))
        while first < count:
            end = min(first + most, count)
            chosen = order[bounds[first] : bounds[end]]
            spans = owners[chosen], begins[chosen], pieces[chosen], bounds[first : end + 1]
            yield self._made(columns, borders, *spans), end, end < count
            first = end

    @property
    def _token_bytes(self) -> int:
        return 8 + sum(prod(_inner(leaf)) * leaf.dtype.itemsize for leaf in self.leaves)

    def _made(
        self,
        columns: Sequence[Sequence[tuple[Array, Ints, Ints]]],
        borders: Ints,
        owners: Ints,
        begins: Ints,
        sizes: Ints,
        bounds: Ints,
    ) -> list[Array]:
        """Consecutive rows, from the spans of each part's columns and the pieces in these rows."""
        bounds = bounds - bounds[0]
        count = len(bounds) - 1
        shape = (count, self.length)
        places = np.empty(len(sizes), np.int64)
        segments, positions = empty(shape, np.dtype(np.int32)), empty(shape, np.dtype(np.int32))
        number_rows(sizes, bounds, self.length, places, segments.reshape(-1), positions.reshape(-1))
        last = bounds[1:] - 1
        tails, ends = places[last] + sizes[last], (np.arange(count) + 1) * self.length
        # Which pieces come from which part.
        inside = [
            np.flatnonzero((owners >= low) & (owners < high)) if len(columns) > 1 else np.arange(len(owners))
            for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
        ]
        made: list[Array] = []
        for number, (leaf, fill) in enumerate(zip(self.leaves, self.fills, strict=True)):
            out = empty((*shape, *_inner(leaf)), leaf.dtype)
            item = np.full(_inner(leaf), fill, leaf.dtype)
            made.append(out)
            if not item.nbytes:
                continue
            target = as_bytes(out)
            for part, mine, low in zip(columns, inside, borders.tolist(), strict=False):
                flat, starts, _ = part[number]
                froms = (starts[owners[mine] - low] + begins[mine]) * item.nbytes
                gather_spans(as_bytes(flat), froms, sizes[mine] * item.nbytes, target, places[mine] * item.nbytes)
            fill_spans(tails, ends, as_bytes(item), target)
        return [*made, segments, positions]


def _inner(leaf: TensorSpec) -> tuple[int, ...]:
    return tuple([size or 0 for size in (leaf.shape or ())[1:]])


_STRATEGIES = ("best_fit", "first_fit")
_LONGER = ("raise", "split", "truncate")
_TOKENS, _FEWEST, _MOST = 1 << 20, 64, 512


@dataclass(frozen=True, eq=False)
class Pack(Node):
    """Put sequences side by side into rows of `length` tokens, so that little of a row is padding.

    Consecutive sequences are planned together, as many as fill about `window` rows: the longest first, each into a row that
    has room for it. Rows are delivered in the order of their first sequences, and a row holds its sequences in their order.
    Every sequence is in exactly one row, and moves by less than a window. A sequence without tokens takes no place.

    Shapes: each component [n, ...] becomes [length, ...]. A dict gets two more components, `segment_ids` and `positions`,
    int32 [length]; anything else becomes a tuple (packed, segment_ids, positions). `segment_ids` numbers the sequences of a row
    from 1, and is 0 where there is padding; `positions` counts the tokens of each sequence from 0. With `cu_seqlens=True`
    another component of that name follows, int32 [sequences + 1]: where each sequence begins, and `length`; padding counts as
    the last one. Kernels of attention over sequences of many lengths take it as it is (`flash_attn_varlen_func`). State: where
    the first sequence of the window stands, and how many of its rows were sent; a restart plans the window again.

    Args:
      length: tokens in a row.
      strategy: "best_fit" puts a sequence into the row with the least room that suffices, "first_fit" into the first row with
        room. They fill rows equally well; best fit plans faster.
      on_longer: what to do with a sequence longer than a row: "raise" an error, "split" it into several sequences of `length`
        tokens and a rest, whose positions each begin at 0, or "truncate" it.
      window: rows planned together, at least 1; None: about a million tokens, from 64 to 512 rows. More rows leave less
        padding and need more memory.
      padding_values: a nest of scalars, or one for all components; None, for all or for a part of the nest, stands for 0,
        or NaT in dates and times.
      cu_seqlens: also give the places in each row at which its sequences begin and the last one ends.

    Raises:
      InvalidArgumentError: an argument is none of these; a component has no first dimension, or other unknown dimensions; at
        iteration, the components of an element differ in length, or a sequence is longer than a row.
      TypeError: a component is text or a dataset.

    >>> import distinput as di
    >>> import numpy as np
    >>> ds = di.data.Dataset.range(1, 5).map(lambda n: np.full(n, n))
    >>> for tokens, segment_ids, positions in ds.pack(6):
    ...     print(tokens, segment_ids, positions)
    [1 3 3 3 0 0] [1 2 2 2 0 0] [0 0 1 2 0 0]
    [2 2 4 4 4 4] [1 1 2 2 2 2] [0 1 0 1 2 3]
    >>> [cu_seqlens.tolist() for *_, cu_seqlens in ds.pack(6, cu_seqlens=True)]
    [[0, 1, 4, 6], [0, 2, 6]]

    Source: the rule is that of Johnson, Demers, Ullman, Garey and Graham (SIAM Journal on Computing 3, 1974); segment ids and
    positions are those of T5X and Grain.
    """

    needs: ClassVar[Needs] = Needs.PART
    tolerant = same_end = True
    input: Node
    length: int
    strategy: str = "best_fit"
    on_longer: str = "raise"
    window: int | None = None
    padding_values: Any = None
    cu_seqlens: bool = False

    def __post_init__(self) -> None:
        if at_least("pack", "length", self.length, 1) >= 1 << 31:
            raise InvalidArgumentError(f"pack: length must be below 2**31, got {self.length}")
        for name, given, known in (("strategy", self.strategy, _STRATEGIES), ("on_longer", self.on_longer, _LONGER)):
            if given not in known:
                raise InvalidArgumentError(f"pack: {name} must be one of {', '.join(map(repr, known))}, got {given!r}")
        if self.window is not None:
            at_least("pack", "window", self.window, 1)
        self.packing  # noqa: B018 - checked now
        self.spec  # noqa: B018 - the same

    def arguments(self) -> dict[str, Any]:
        found = super().arguments()
        if not self.cu_seqlens:
            del found["cu_seqlens"]
        return found if self.padding_values is None else {**found, "padding_values": str(self.padding_values)}

    @cached_property
    def packing(self) -> SequencePacking:
        """How sequences become rows."""
        spec = self.input.spec
        refuse_sparse("pack", spec.structure)
        leaves = spec.tensors("pack")
        if not leaves:
            raise InvalidArgumentError(f"pack: elements must have at least one component, got {spec.nest}")
        for leaf, path in zip(leaves, spec.structure.paths, strict=True):
            _check(leaf, component(path))
        fills = padding_fills("pack", spec, self.padding_values)
        return SequencePacking(int(self.length), self.strategy == "best_fit", leaves, fills)

    @cached_property
    def spec(self) -> Spec:
        numbers = TensorSpec((int(self.length),), np.int32)
        packed = self.input.spec.map(lambda leaf: TensorSpec((int(self.length), *leaf.shape[1:]), leaf.dtype))  # type: ignore[index, union-attr]
        return Spec.of(self._joined(packed.nest, numbers, numbers, TensorSpec((None,), np.int32)))

    def _joined(self, packed: Any, *added: Any) -> Any:
        names = ("segment_ids", "positions", "cu_seqlens") if self.cu_seqlens else ("segment_ids", "positions")
        if self.input.spec.structure.kind != "dict":
            return packed, *added[: len(names)]
        for name in names:
            if name in packed:
                raise InvalidArgumentError(
                    f"pack: it adds a component {name!r}, which the elements have already; rename theirs before"
                )
        return {**packed, **dict(zip(names, added, strict=False))}

    @cached_property
    def _places(self) -> list[int]:
        """For each leaf of a row, which one of the packed leaves, the segment ids and the positions, and of the ends, it is."""
        count = len(self.input.spec.leaves)
        nest = self._joined(self.input.spec.structure.build(list(range(count))), count, count + 1, count + 2)
        return [int(place) for place in self.spec.structure.flatten(nest)]

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0, "row": 0}

    @property
    def _most(self) -> int:
        """Tokens of a window."""
        return int(self.window or max(_FEWEST, min(_MOST, _TOKENS // int(self.length)))) * int(self.length)

    def stream(self, state: State, run: Run) -> Stream:
        window = _Window({"input": state["input"], "skip": state["skip"]}, state["row"], self._most)
        for rows, mark_at in passing_over(self.input.open(state["input"], run.by_block()), state):
            if type(rows) is Failure:
                yield from self._packed(window)
                window = _Window(mark_at(0), 0, self._most)
                yield rows, {**mark_at(0), "row": 0}
                continue
            sizes, bad = self._sizes(rows)
            ends = np.cumsum(np.maximum(1, sizes))  # an empty sequence counts too, so that a window has an end
            place = 0
            while place < rows.size:
                stop = rows.size if bad is None or bad < place else bad
                begin = int(ends[place - 1]) if place else 0
                fitting = int(np.searchsorted(ends[:stop], begin + window.room, "right"))
                fitting = max(fitting, place + (place < stop and not window.parts))
                if fitting > place:
                    tokens = int(ends[fitting - 1]) - begin
                    window.add(rows.rows(place, fitting), sizes[place:fitting], tokens, mark_at(fitting))
                place = fitting
                if place < stop:
                    yield from self._packed(window)
                    window = _Window(mark_at(place), 0, self._most)
                elif place == bad:
                    failure = failed(self._refused(rows.shown(place)), tolerant=run.tolerant)
                    yield from self._packed(window)
                    place += 1
                    window = _Window(mark_at(place), 0, self._most)
                    yield failure, {**mark_at(place), "row": 0}
                    sizes, bad = self._sizes(rows, place)
        yield from self._packed(window)

    def _packed(self, window: "_Window") -> Stream:
        if not window.parts:
            return
        for arrays, row, more in self.packing.rows(window.parts, np.concatenate(window.sizes), window.row):
            columns: list[Column] = [Dense(array) for array in arrays]
            if self.cu_seqlens:
                columns.append(_cumulative(arrays[-2]))
            made = ColumnBlock(self.spec.structure, [columns[place] for place in self._places], len(arrays[0]))
            yield made, {**window.first, "row": row} if more else {**window.after, "row": 0}

    def _sizes(self, rows: Block, first: int = 0) -> tuple[Ints, int | None]:
        """The length of each sequence, and the first one from `first` on that cannot be packed."""
        columns = rows.columnar().columns
        lengths = [np.broadcast_to(np.asarray(c.materialize().lengths(), np.int64), rows.size) for c in columns]
        sizes = lengths[0]
        wrong = np.zeros(rows.size, bool)
        for other in lengths[1:]:
            wrong |= other != sizes
        if self.on_longer == "raise":
            wrong |= sizes > self.length
        elif self.on_longer == "truncate":
            sizes = np.minimum(sizes, int(self.length))
        bad = np.flatnonzero(wrong[first:])
        return sizes, int(bad[0]) + first if len(bad) else None

    def _refused(self, element: Any) -> Exception:
        """Why an element cannot be packed."""
        structure = self.input.spec.structure
        lengths = [len(leaf) for leaf in structure.flatten(element)]
        if len(set(lengths)) > 1:
            told = ", ".join(f"{component(path)} has {n}" for path, n in zip(structure.paths, lengths, strict=True))
            error = InvalidArgumentError(
                f"pack: all components of an element must have the same length, but {told}; bring them to one length by map"
            )
        else:
            error = InvalidArgumentError(
                f"pack: a sequence of {lengths[0]} tokens is longer than a row of {self.length}; give on_longer='split' or "
                "'truncate', or a larger length"
            )
        error.add_note(f"on {element_text(element)}")
        return error


def _cumulative(segments: Array) -> Ragged:
    """For each row of segment ids [n, length], where its segments begin, and its length."""
    count, length = segments.shape
    begins = np.ones((count, length + 1), bool)  # the last one is the end of the row
    begins[:, 1:-1] = segments[:, 1:] != segments[:, :-1]
    sizes = begins.sum(1, dtype=np.int64)
    return Ragged(Dense(np.nonzero(begins)[1].astype(np.int32)), np.cumsum(sizes) - sizes, sizes)


class _Window:
    """Sequences that are planned together.

    Args:
      first: where the first one stands.
      row: rows that were sent before.
      room: tokens that it still takes.
    """

    __slots__ = ("after", "first", "parts", "room", "row", "sizes")

    def __init__(self, first: Mark, row: int, room: int) -> None:
        self.first, self.after, self.row, self.room = first, first, row, room
        self.parts: list[Block] = []
        self.sizes: list[Ints] = []

    def add(self, part: Block, sizes: Ints, tokens: int, after: Mark) -> None:
        """Let more sequences wait."""
        self.parts.append(part)
        self.sizes.append(sizes)
        self.room -= tokens
        self.after = after


def _check(leaf: TensorSpec, path: str) -> None:
    if leaf.dtype == STRING:
        raise TypeError(f"pack: {path} is text; map it to numbers first, such as the ids of its tokens")
    if leaf.ragged_rank:
        raise InvalidArgumentError(
            f"pack: {path} is a ragged tensor; unbatch it, so that elements are single sequences"
        )
    if not leaf.shape:
        told, cure = "has an unknown rank", "give map an output_signature"
        if leaf.shape == ():
            told, cure = "has no first dimension", "repeat it for each token, or leave it out by map"
        raise InvalidArgumentError(f"pack: {path} {told}, so it is not a sequence; {cure}")
    if None in leaf.shape[1:]:
        raise InvalidArgumentError(
            f"pack: only the first dimension of a sequence may be unknown, got shape {leaf.shape} for {path}; give map an "
            "output_signature"
        )
