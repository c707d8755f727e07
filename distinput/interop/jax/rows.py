# SPDX-License-Identifier: Apache-2.0
"""Which rows of a global batch the devices of this process hold, according to shardings, and the pieces that contain them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import Any

from distinput.partition.assignment import Assignment

__all__ = ["RowPieces", "device_rows", "pieces_of", "spans_processes"]

RowSpan = tuple[int, int]


def device_rows(sharding: Any, shape: Sequence[int | None], who: str) -> dict[Any, RowSpan]:
    """The rows that each device of this process holds of an array: first and stop.

    Args:
      sharding: a `jax.sharding.Sharding`.
      shape: of the global array, `[rows, ...]`; None for inner dimensions that are not known.
      who: whose array it is, for messages.

    Raises:
      ValueError: the rows cannot be divided as the sharding says.
    """
    rows = shape[0]
    assert rows is not None, "the caller knows the batch size"
    # An inner dimension that is not known says nothing about rows; any size that all axes divide will do.
    known = (rows, *[len(sharding.device_set) if size is None else size for size in shape[1:]])
    try:
        places = sharding.addressable_devices_indices_map(known)
    except (IndexError, ValueError) as error:
        raise ValueError(
            f"{who}, of shape {list(shape)}, cannot be divided as its sharding says ({error}); choose a batch size that the "
            "number of shards divides, and give a nest of shardings if components need different ones"
        ) from error
    return {device: place[0].indices(rows)[:2] if place else (0, rows) for device, place in places.items()}


def spans_processes(shardings: Iterable[Any], count: int, who: str) -> bool:
    """True if arrays lie on the devices of all `count` processes, False if on those of this process alone.

    Raises:
      ValueError: some lie on the devices of several processes, but not of all.
    """
    apart = [sharding for sharding in shardings if not sharding.is_fully_addressable]
    for sharding in apart:
        there = {device.process_index for device in sharding.device_set}
        if len(there) < count:
            raise ValueError(
                f"{who}: the devices of a sharding must be those of one process or of all {count}, got those of processes "
                f"{sorted(there)}; make a mesh of jax.devices() or of jax.local_devices()"
            )
    return bool(apart)


@dataclass(frozen=True)
class RowPieces:
    """The pieces of each global batch that this process reads.

    Args:
      rows: the rows of a global batch.
      assignment: the number of pieces, all of one size, and which of them are this process's.
    """

    rows: int
    assignment: Assignment

    @property
    def size(self) -> int:
        """The rows of a piece."""
        return self.rows // self.assignment.pieces

    @property
    def count(self) -> int:
        """How many pieces this process reads of each batch."""
        each = self.assignment.each
        assert each is not None, "of every batch"
        return each

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each of them."""
        return tuple([int(number) * self.size for number in self.assignment.numbers(0, self.count)])


def pieces_of(ranges: Iterable[RowSpan], rows: int) -> RowPieces:
    """Divide a batch into the fewest equal pieces, some of which make up exactly these ranges of rows.

    The pieces of a process must be consecutive, or at equal distances throughout the batch; otherwise all pieces between the
    first and the last needed one are read.

    Args:
      ranges: first and stop, in any order; they may overlap.
      rows: the rows of a batch.

    >>> pieces_of([(4, 6), (6, 8)], 8).starts
    (4,)
    >>> pieces_of([(0, 2), (4, 6)], 8).starts
    (0, 4)
    """
    merged = _merged(ranges)
    size = gcd(rows, *[bound for pair in merged for bound in pair])
    pieces = rows // size
    own = [number for first, stop in merged for number in range(first // size, stop // size)]
    return RowPieces(rows, _assignment(own, pieces))


def _merged(ranges: Iterable[RowSpan]) -> list[RowSpan]:
    found: list[RowSpan] = []
    for first, stop in sorted(set(ranges)):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((first, stop))
    return found


def _assignment(own: Collection[int], pieces: int) -> Assignment:
    numbers = list(own)
    first, last = numbers[0], numbers[-1]
    distances = {b - a for a, b in pairwise(numbers)}
    if len(distances) == 1 and distances != {1}:
        (period,) = distances
        if pieces % period == 0 and len(numbers) == pieces // period:
            return Assignment(pieces, first, period=period, fixed=True)
    return Assignment(pieces, first, period=pieces, own=last - first + 1, fixed=True)
