# SPDX-License-Identifier: Apache-2.0
"""The rows of replicas in a step, made of the numbers of their records."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from distinput.core.column import Ints
from distinput.core.sizes import balanced_slice
from distinput.distribute.input.dealing import equal_slices
from distinput.lineage.located import Located

__all__ = ["cut_rows", "located_part", "located_rows"]


class RecordNumbering(Protocol):
    """What the numbers of records stand for."""

    @property
    def fills(self) -> bool:
        """Whether some numbers are negative, which stand for no record."""
        ...

    @property
    def files(self) -> Sequence[str]:
        """The files."""
        ...

    def places(self, numbers: Ints) -> tuple[Ints, Ints]:
        """The file, among `files`, and the record in it of record numbers [n]."""
        ...


@lru_cache(maxsize=256)
def cut_rows(rows: int, replica: int | None, total: int, workers: int, balanced: bool) -> tuple[Ints, Ints, Ints]:
    """Which rows of a global batch a replica gets, or all of them, replica by replica.

    Args:
      rows: of the batch.
      replica: None: all.
      total: how many replicas there are.
      workers: how many workers they are on.
      balanced: whether the sizes of parts differ by at most one.

    Returns:
      The rows in the batch [n], the replicas that get them [n], and the rows in their parts [n]; not to be written to.
    """
    numbers = range(total) if replica is None else [replica]
    if balanced:
        parts = [balanced_slice(rows, total, number) for number in numbers]
    else:  # a worker has every W-th piece
        slices, count = equal_slices(rows, total), total // workers
        parts = [slices[number // count + number % count * workers] for number in numbers]
    sizes = [part.stop - part.start for part in parts]
    at = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    found = at, np.repeat(np.asarray(numbers), sizes), np.concatenate([np.arange(size) for size in sizes])
    for array in found:
        array.flags.writeable = False
    return found


def located_part(
    step: int, epoch: int, replica: int, numbers: Ints, records: RecordNumbering, assumes: tuple[str, ...]
) -> Located:
    """`located_rows` of the part of one replica."""
    rows = 1 if numbers.ndim == 1 else len(numbers)
    return located_rows(step, epoch, np.full(rows, replica), np.arange(rows), numbers, records, assumes)


def located_rows(
    step: int, epoch: int, replica: Ints, row: Ints, numbers: Ints, records: RecordNumbering, assumes: tuple[str, ...]
) -> Located:
    """The rows of replicas.

    Args:
      step: which step.
      epoch: of which pass.
      replica: [n] that gets the row.
      row: [n] the row in its part.
      numbers: [n, records of a row] of the records, or [records] of a single row.
      records: what these numbers stand for.
      assumes: what is taken for granted, in words.
    """
    flat = numbers.reshape(-1)
    if len(flat) != len(row):
        each = len(flat) // max(1, len(row))
        replica, row = np.repeat(replica, each), np.repeat(row, each)
    if records.fills and len(flat) and flat.min() < 0:  # what fills short batches of batches
        there = flat >= 0
        replica, row, flat = replica[there], row[there], flat[there]
    file, record = records.places(flat)
    return Located(step, epoch, records.files, file, record, replica, row, assumes)
