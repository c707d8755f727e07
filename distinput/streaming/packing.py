# SPDX-License-Identifier: Apache-2.0
"""Packing: sequences of several blocks, planned together and copied once, straight into rows of one length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from distinput.core.block import Block, concat_blocks
from distinput.core.buffers import empty
from distinput.core.column import Array, Column, Ints
from distinput.core.dense import Dense
from distinput.core.objects import Arrays
from distinput.core.padded import as_bytes
from distinput.core.ragged import Ragged
from distinput.core.sizes import MOST_BYTES
from distinput.core.spec import TensorSpec
from distinput.kernels.packing import fill_spans, number_rows, plan_rows
from distinput.kernels.ragged import gather_spans

__all__ = ["SequencePacking", "spans_of"]

_MOST_PARTS = 16
"""Blocks that are copied from where they are; more of them hold few sequences each, and are put side by side first."""


def spans_of(column: Column) -> tuple[Array, Ints, Ints]:
    """Rows that may differ in their first dimension: a contiguous array [m, ...], and the start and length of each, [n]."""
    column = column.materialize()
    if isinstance(column, Arrays):
        column = column.joined()
    if isinstance(column, Ragged) and isinstance(column.flat, Dense):
        flat, starts, sizes = column.flat.array, column.starts, column.sizes
    elif isinstance(column, Dense):
        count, length, *inner = column.array.shape
        flat = column.array.reshape(count * length, *inner)
        starts, sizes = np.arange(count, dtype=np.int64) * length, np.full(count, length, np.int64)
    else:
        rows = list(column.values())
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        flat, starts = np.concatenate(rows), np.cumsum(sizes) - sizes
    return np.ascontiguousarray(flat), np.ascontiguousarray(starts), np.ascontiguousarray(sizes)


@dataclass(frozen=True)
class SequencePacking:
    """How sequences become rows.

    Args:
      length: tokens in a row.
      best: best fit, else first fit; see `kernels.packing`.
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
        columns = [[spans_of(column) for column in part.columnar().columns] for part in parts]
        borders = np.cumsum([0, *[part.size for part in parts]])
        most = max(1, MOST_BYTES // (self.length * self._token_bytes))
        while first < count:
            end = min(first + most, count)
            chosen = order[bounds[first] : bounds[end]]
            yield (
                self._made(columns, borders, owners[chosen], begins[chosen], pieces[chosen], bounds[first : end + 1]),
                end,
                end < count,
            )
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
