# SPDX-License-Identifier: Apache-2.0
"""Rows that are sparse tensors.

In a block a sparse tensor is three columns, one for each of its arrays, so that whatever keeps elements whole treats it as it
treats any nest. What groups rows, or takes elements apart, needs all three at once: it sees them *folded* into one column.
"""

from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np

from distinput.columns.column import Array, Column, Dense, Ints, SelfGrouped, StackError
from distinput.columns.ragged import Ragged
from distinput.columns.regroup import as_ragged, concat_columns
from distinput.errors import InvalidArgumentError
from distinput.values.nest import Structure
from distinput.values.sparse_tensor import SparseTensor


@final
class SparseRows(SelfGrouped):
    """Rows that are sparse tensors of one rank.

    Args:
      indices: rows [m, rank].
      values: rows [m].
      shapes: rows [rank].
    """

    __slots__ = ("indices", "shapes", "values_")

    def __init__(self, indices: Column, values: Column, shapes: Column) -> None:
        self.indices, self.values_, self.shapes = indices, values, shapes

    @property
    def columns(self) -> tuple[Column, Column, Column]:
        """Those of its arrays."""
        return self.indices, self.values_, self.shapes

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Of the values."""
        return self.values_.dtype

    def __len__(self) -> int:
        return len(self.shapes)

    def row(self, index: int) -> SparseTensor:
        return SparseTensor(*[column.row(index) for column in self.columns])

    def values(self) -> Iterator[SparseTensor]:
        return map(SparseTensor, *[column.values() for column in self.columns])

    def rows(self, start: int, stop: int, step: int = 1) -> "SparseRows":
        return SparseRows(*[column.rows(start, stop, step) for column in self.columns])

    def take(self, indices: Ints) -> "SparseRows":
        return SparseRows(*[column.take(indices) for column in self.columns])

    def lengths(self) -> Ints | None:
        if self._of_one_rank():
            sizes = self._sizes()
            return sizes[:, 0] if sizes.shape[1] else None
        firsts = [shape[:1] for shape in self.shapes.values()]
        return np.concatenate(firsts) if all(map(len, firsts)) else None

    def grouped_by(self, counts: Ints) -> "SparseRows":
        """[n] of shape [...] -> [len(counts)] of shape [count, ...]; each dimension is the largest of its group.

        Raises:
          StackError: rows of one group differ in rank.
        """
        if not self._of_one_rank():
            return self._split_by_group(counts)
        shapes = self._sizes()  # [n, rank]
        places, spans = self._flat()  # spans over [all values, rank]
        starts = np.cumsum(counts) - counts
        member = np.arange(len(self)) - np.repeat(starts, counts)
        first = np.repeat(member, places.sizes)[:, None]
        ends = np.concatenate([[0], np.cumsum(places.sizes)])
        sizes = ends[starts + counts] - ends[starts]
        there = counts > 0
        largest = np.zeros((len(counts), 1 + shapes.shape[1]), np.int64)
        largest[:, 0] = counts
        if there.any():
            largest[there, 1:] = np.maximum.reduceat(shapes, starts[there], axis=0)
        indices = np.concatenate([first, places.flat.array], axis=1)  # type: ignore[union-attr]  # numbers
        return _spans(indices, spans.flat, sizes, largest)

    def _split_by_group(self, counts: Ints) -> "SparseRows":
        """As `grouped_by`, where each group may have a rank of its own."""
        shapes = [tuple(shape.tolist()) for shape in self.shapes.values()]
        groups = []
        for number, (end, count) in enumerate(zip(np.cumsum(counts).tolist(), counts.tolist(), strict=True)):
            members = shapes[end - count : end]
            for row, shape in enumerate(members):
                if len(shape) != len(members[0]):
                    raise StackError.of(number, members[0], shape, row)
            groups.append(self.rows(end - count, end).grouped_by(np.array([count])).columns)
        return SparseRows(*[concat_columns(parts) for parts in zip(*groups, strict=True)])

    def unstack(self) -> "SparseRows":
        """[n] of shape [b, ...] -> [n * b] of shape [...].

        Raises:
          InvalidArgumentError: the rank is below 2, or places are not in order or lie outside of the shape.
        """
        if not self._of_one_rank():
            parts = [self.rows(row, row + 1).unstack().columns for row in range(len(self))]
            return SparseRows(*[concat_columns(each) for each in zip(*parts, strict=True)])
        shapes = self._sizes()
        places, spans = self._flat()
        if shapes.shape[1] < 2:
            raise InvalidArgumentError(
                f"a SparseTensor can be taken apart from rank 2 on, got rank {shapes.shape[1]}; make an array with "
                ".to_dense() first"
            )
        indices = places.flat.array  # type: ignore[union-attr]  # numbers
        element = np.repeat(np.arange(len(self)), places.sizes)
        _check_places(indices, element, shapes)
        rows = shapes[:, 0]
        sizes = np.bincount((np.cumsum(rows) - rows)[element] + indices[:, 0], minlength=int(rows.sum()))
        return _spans(indices[:, 1:], spans.flat, sizes, np.repeat(shapes[:, 1:], rows, axis=0))

    def copied(self) -> "SparseRows":
        return SparseRows(*[column.copied() for column in self.columns])

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns)

    def _sizes(self) -> Ints:
        """[n, rank], of rows of one rank."""
        shapes = self.shapes.materialize()
        return shapes.array if isinstance(shapes, Dense) else np.stack(list(shapes.values()))

    def _of_one_rank(self) -> bool:
        shapes = self.shapes.materialize()
        return isinstance(shapes, Dense) or len({len(shape) for shape in shapes.values()}) == 1

    def _flat(self) -> tuple[Ragged, Ragged]:
        """Places and values of all rows, one after the other.

        Raises:
          InvalidArgumentError: a row has not as many places as values, or places of another rank.
        """
        both = [as_ragged(column.materialize()) for column in (self.indices, self.values_)]
        places, spans = [None if s is None else Ragged(s.gathered(), s.starts, s.sizes) for s in both]
        rank = self._sizes().shape[1]
        if (
            places is None
            or spans is None
            or (places.sizes != spans.sizes).any()
            or places.flat.inner != (rank,)
            or spans.flat.inner
        ):
            raise InvalidArgumentError(
                f"a SparseTensor of rank {rank} must have indices [m, {rank}] and values [m] for m values; check what makes it"
            )
        return places, spans


def _spans(indices: Array, values: Any, sizes: Ints, shapes: Ints) -> SparseRows:
    starts = np.cumsum(sizes) - sizes
    return SparseRows(Ragged(Dense(indices), starts, sizes), Ragged(values, starts, sizes), Dense(shapes))


def _check_places(indices: Ints, element: Ints, shapes: Ints) -> None:
    """Refuse places outside of the shape of their element, and places that do not rise.

    Source: what `tf.io.serialize_many_sparse` refuses, by which TensorFlow takes sparse tensors apart.
    """
    outside = np.flatnonzero(((indices < 0) | (indices >= shapes[element])).any(axis=1))
    if len(outside):
        bad = outside[0]
        raise InvalidArgumentError(
            f"a SparseTensor that is taken apart must have its indices inside of dense_shape, got {indices[bad].tolist()} for "
            f"{shapes[element[bad]].tolist()}"
        )
    steps = np.diff(indices, axis=0)
    rises = np.take_along_axis(steps, (steps != 0).argmax(axis=1)[:, None], 1)[:, 0] > 0
    wrong = np.flatnonzero(~rises & (element[1:] == element[:-1]))
    if len(wrong):
        bad = wrong[0] + 1
        raise InvalidArgumentError(
            f"a SparseTensor that is taken apart must have its indices in order, each once, got {indices[bad].tolist()} behind "
            f"{indices[bad - 1].tolist()}; sort them with np.lexsort"
        )


def folded(structure: Structure, columns: Sequence[Column]) -> list[Column]:
    """The columns of `structure.folded`: one for each sparse tensor."""
    made: list[Column] = []
    at = 0
    for first in structure.sparse:
        made += [*columns[at:first], SparseRows(*columns[first : first + 3])]
        at = first + 3
    return [*made, *columns[at:]]


def unfolded(columns: Sequence[Column]) -> list[Column]:
    """The columns of the nest that was folded."""
    return [part for column in columns for part in (column.columns if isinstance(column, SparseRows) else (column,))]
