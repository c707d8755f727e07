# SPDX-License-Identifier: Apache-2.0
"""TFRecord files with an index file, so that records can be counted and accessed by number."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Strings
from distinput.core.nest import LEAF
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.concurrent_requests import ask_each
from distinput.files.paths import as_paths
from distinput.files.ranges import read_spans
from distinput.files.source import EMPTY
from distinput.files.table import FileTable
from distinput.formats.format import Fragment, Position
from distinput.formats.record_index import CURE, index_sink, load_index
from distinput.formats.span_format import Found, Ints, Piece
from distinput.formats.tfrecord import TFRecords
from distinput.kernels.tfrecord import FOOTER, HEADER

__all__ = ["IndexedTFRecords", "write_tfrecord_index"]

_FRAGMENT_BYTES = 1 << 20


@dataclass(frozen=True)
class IndexedTFRecords(TFRecords):
    """`TFRecords` for files that have an index beside them; see `record_index` for its format.

    A stale index is detected when it is used: by the size of the file, and by any record that does not begin where the
    index says.

    Args:
      compression_type: None or ""; compressed files do not support random access.

    Raises:
      InvalidArgumentError: a compression is given.
    """

    name: ClassVar[str] = "indexed_tfrecord"
    counts_rows: ClassVar[bool] = True
    fetches: ClassVar[bool] = True
    states_cardinality: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compression:
            raise InvalidArgumentError(
                f"tfrecord: an index needs files without compression, got compression_type {self.compression_type!r}; "
                "read them without index"
            )

    def rows(self, path: str) -> int:
        """The number of records in the file.

        Raises:
          NotFoundError: the file has no index.
          DataLossError: the index belongs to another version of the file.
        """
        return len(load_index(path)) - 1

    def seek(self, path: str, row: int) -> Position:
        return {"byte": int(load_index(path)[row]), "row": row}

    def fragments(self, path: str) -> list[Fragment]:
        offsets = load_index(path)
        marks = np.arange(0, offsets[-1], _FRAGMENT_BYTES)
        cuts = [*dict.fromkeys(np.searchsorted(offsets, marks).tolist() or [0]), len(offsets) - 1]
        return [self.part(path, a, b) for a, b in pairwise(cuts)]

    def units(self, files: FileTable) -> Ints:
        """The number of records in each file."""
        if files.rows is not None and (files.rows >= 0).all():
            return files.rows
        paths = [files.path(number) for number in range(len(files))]
        return np.fromiter(ask_each(self.rows, paths), np.int64, len(files))

    def unit_bytes(self, files: FileTable) -> int:
        """The average size of a record of these files in bytes."""
        return max(1, int(files.sizes.sum()) // max(1, int(self.units(files).sum())))

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        offsets = load_index(path)
        end = len(offsets) - 1 if stop is None else stop
        behind = None if stop is None else self.seek(path, stop)
        return Fragment(path, self.seek(path, start), behind, end - start, int(offsets[end] - offsets[start]))

    def read_until(self, path: str, position: Position, stop: Position) -> Iterator[tuple[Block, Position]]:
        return self._checked(path, self._read(path, position, stop["byte"]))

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        return self._checked(path, super().read(path, position))

    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        return self._checked(path, super().read_groups(path, position, size, given))

    def _checked(self, path: str, blocks: Iterator[tuple[Block, Position]]) -> Iterator[tuple[Block, Position]]:
        """The same blocks, checked to end where the index says."""
        offsets = load_index(path)
        for block, after in blocks:
            if after["row"] >= len(offsets) or offsets[after["row"]] != after["byte"]:
                raise _stale(path, after["row"])
            yield block, after

    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        found = super().find(piece, starts, sizes)
        if found.error is not None:
            found.error.add_note(f"if {piece.path} is whole, its index is of another version of it: {CURE}")
        return found

    def fetch(self, path: str, rows: Ints) -> Block:
        offsets = load_index(path)
        wanted, count = np.asarray(rows, np.int64), len(offsets) - 1
        if len(wanted) and (wanted.min() < 0 or wanted.max() >= count):
            raise InvalidArgumentError(f"{path}: records must be from 0 to {count - 1}, got {wanted.tolist()!s:.80}")
        # Consecutive records are read as one span.
        begins = np.flatnonzero(np.diff(wanted, prepend=-2) != 1)
        last = wanted[np.append(begins[1:], len(wanted)) - 1] if len(wanted) else wanted
        data = (
            read_spans(path, offsets[wanted[begins]], offsets[last + 1] - offsets[wanted[begins]])
            if len(wanted)
            else EMPTY
        )
        starts, sizes = np.empty((2, len(wanted)), np.int64)
        found = self.find(Piece(path, data, 0, 0, 0, True, None), starts, sizes)
        good = found.count
        if good < len(wanted) or (sizes != np.diff(offsets)[wanted] - (HEADER + FOOTER)).any():
            bad = int(wanted[min(good, len(wanted) - 1)])
            raise _stale(path, bad) from found.error
        return ColumnBlock(LEAF, [Strings(data, starts, sizes)], len(wanted))


def _stale(path: str, row: int) -> DataLossError:
    return DataLossError(
        f"{path}: record {row} is not where the index says, or damaged: the file has changed since the index was written; "
        f"{CURE}"
    )


def write_tfrecord_index(path: str | os.PathLike[str]) -> int:
    """Write the index of a TFRecord file, `<path>.index`, so that records can be counted and accessed by number.

    The whole file is read, and both checksums of each record are verified.

    Args:
      path: of the uncompressed file: a local path or any fsspec URL.

    Returns:
      The number of records.

    Raises:
      NotFoundError: it is not there.
      DataLossError: it is damaged; no index is written.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("a.tfrecord") as writer:
    ...     for number in range(3):
    ...         writer.write(b"record %d" % number)
    >>> di.io.write_tfrecord_index("a.tfrecord")
    3
    >>> int(di.data.TFRecordDataset("a.tfrecord", index=True).cardinality())
    3
    """
    (name,) = as_paths(path)
    ends = [np.zeros(1, np.int64)]
    byte = 0
    for block, after in TFRecords().read(name):
        (column,) = block.columnar().columns
        assert isinstance(column, Strings)
        ends.append(byte + np.cumsum(column.sizes + (HEADER + FOOTER)))
        byte = after["byte"]
    offsets = np.concatenate(ends)
    index_sink(name, offsets).close()
    return len(offsets) - 1
