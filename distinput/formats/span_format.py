# SPDX-License-Identifier: Apache-2.0
"""Formats whose records are consecutive spans of bytes: one loop that reads chunks and finds the records in them.

A record that extends past the end of a chunk is copied to the next one; all other bytes stay where they were read.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import ColumnBlock
from distinput.columns.column import Strings
from distinput.files.compression import Compression, as_compression
from distinput.files.range_requests import PIECE_BYTES
from distinput.files.source import EMPTY, FileStream, read_small, room_for, size_of, wanted_until
from distinput.formats.format import BLOCK_ROWS, Format, PlacedBlocks, Position, check_position, check_reached
from distinput.names.lazy import dataclass
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

FIRST_BYTES = 64 * 1024  # of the very first chunk, so that the first record does not wait for many others
CHUNK_BYTES = (
    7 << 19
)  # of later chunks, and of a whole file: fewer cost more calls, more do not fit in a buffer of 4 MB
_BEYOND_BYTES = 4096  # past the end of a fragment, where its last record may continue; the least to read
_MOST_BYTES = 4 << 20  # blocks are aligned to groups of rows up to this size

_FRONT: Position = {"byte": 0, "row": 0}

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(slots=True)
class Piece:
    """A part of a file in memory, and what a format must know about it.

    Args:
      path: the file.
      data: the bytes.
      at: the offset in `data` at which the next record begins.
      byte: the offset in the (decompressed) file at which the next record begins.
      row: the number of the next record.
      ended: true if the file ends with `data`.
      size: of the file in bytes, None if unknown.
    """

    path: str
    data: Bytes
    at: int
    byte: int
    row: int
    ended: bool
    size: int | None


@dataclass(slots=True)
class Found:
    """Records found in a piece.

    Args:
      count: number of records; their spans are in the arrays passed in.
      after: the offset in the data at which the next record begins.
      need: bytes needed from there for the next record, 0 if unknown.
      error: the error of the next record, if it is known to be bad.
    """

    count: int
    after: int
    need: int = 0
    error: Exception | None = None


class SpanFormat(Format):
    """A format whose records are byte strings stored consecutively in the file."""

    __slots__ = ()
    reads: ClassVar[bool] = True
    from_front: ClassVar[bool] = True
    compression_type: str | None
    ends_exactly: ClassVar[bool] = False
    """True if a part of a file ends exactly where its last record does, so that nothing after it need be read."""

    @property
    def compression(self) -> Compression:
        """The compression of the file."""
        return as_compression(self.compression_type) if self.compression_type else ""

    def spec(self, path: str | None) -> Spec:
        del path
        return Spec.leaf((), object)

    def start(self) -> Position:
        return {"row": 0} if self.compression else {"byte": 0, "row": 0}

    @abstractmethod
    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        """Find records and write the start and size of each to the arrays, until they are full."""

    def open(self, path: str, position: Position) -> tuple[FileStream, int]:
        """Open the file at the nearest record before the position that can be reached directly; also its number.

        Raises:
          DataLossError: the file ends before that record.
        """
        if self.compression:
            return FileStream(path, self.compression), 0
        if "byte" not in position:
            return FileStream(path), 0
        return FileStream(path, start=position["byte"]), position["row"]

    def ends_at(self, path: str, position: Position | None) -> bool:
        at = position or self.start()
        return at["byte"] >= size_of(path) if "byte" in at else super().ends_at(path, position)

    def after(self, byte: int, row: int) -> Position:
        """The position of the record with this offset and number."""
        return {"row": row} if self.compression else {"byte": byte, "row": row}

    def read(self, path: str, position: Position | None = None) -> PlacedBlocks:
        return self._read(path, position if position is not None else self.start(), None)

    def read_until(self, path: str, position: Position, stop: Position) -> PlacedBlocks:
        return self._read(path, position, stop.get("byte"))

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        return self._read(path, position if position is not None else self.start(), None, size, given)

    def _read(self, path: str, wanted: Position, until: int | None, group: int = 1, given: int = 0) -> PlacedBlocks:
        """The records from a position on; bytes after `until` are only read to complete a record."""
        check_position(path, wanted)
        if until is None and wanted == _FRONT:
            data = read_small(path, room_for(CHUNK_BYTES))
            if data is not None:
                yield from self._within(path, data, group, given)
                return
        with wanted_until(until):
            source, row = self.open(path, wanted)
        with source:
            over = wanted["row"] - row
            chunks = _Chunks(group, given - over, first=not given or source.size is None)
            for piece, found, starts, sizes in self._found(source, row, until, chunks):
                row = piece.row + found.count
                if found.count > over:
                    column = Strings(piece.data, starts[over:], sizes[over:])
                    block = ColumnBlock(LEAF, [column], found.count - over)
                    yield block, self.after(piece.byte + found.after - piece.at, row)
                over = max(0, over - found.count)
            check_reached(path, row, wanted["row"], "record")

    def _within(self, path: str, data: Bytes, group: int, given: int) -> PlacedBlocks:
        """The records of a file that was read whole, in blocks that end where a group of rows does."""
        starts, sizes = np.empty((2, BLOCK_ROWS), np.int64)
        group = group if group <= BLOCK_ROWS else 1
        room, at, row = group - given % group if group > 1 else BLOCK_ROWS, 0, 0
        ended = False
        while not ended:
            found = self.find(Piece(path, data, at, at, row, True, len(data)), starts[:room], sizes[:room])
            count, at, row = found.count, found.after, row + found.count
            if count:
                column = Strings(data, starts[:count].copy(), sizes[:count].copy())
                yield ColumnBlock(LEAF, [column], count), self.after(at, row)
            if found.error is not None:
                raise found.error
            ended, room = count < room, BLOCK_ROWS // group * group

    def _found(
        self, source: FileStream, row: int, until: int | None = None, chunks: "_Chunks | None" = None
    ) -> Iterator[tuple[Piece, Found, Ints, Ints]]:
        """Yield pieces of the file with the records found in each."""
        chunks = chunks or _Chunks()
        all_starts, all_sizes = np.empty((2, BLOCK_ROWS), np.int64)
        data, position, byte, ended, need, lent = EMPTY, 0, source.offset, False, 0, False
        if until is not None:
            source.expect_end(until)
        while not ended:
            kept = data[position:]
            # The length that a record claims is only trusted up to the known size of the file.
            likely = len(kept) if source.size is None else source.size - source.offset
            size = max(chunks.more(len(kept)), min(need - len(kept), likely))
            lends = source.lends and not (len(kept) or chunks.grouped)
            if lends and size >= CHUNK_BYTES:  # what comes in one answer stays together
                size = max(size, PIECE_BYTES)
            if source.size is not None:  # one more byte detects the end of the file
                size = min(size, max(likely + 1, _BEYOND_BYTES))
            if until is not None:
                left = until - source.offset
                size = min(size, left if self.ends_exactly and left > 0 else max(left, _BEYOND_BYTES, len(kept)))
            if lent and 0 < len(kept) < need:  # the bytes after this record need no copy again
                size = min(need - len(kept), likely)
            lent = lends
            data, ended = source.next_bytes(size) if lent else source.more(kept, size)
            position = 0
            while True:
                piece, room = Piece(source.path, data, position, byte, row, ended, source.size), chunks.rows
                found = self.find(piece, all_starts[:room], all_sizes[:room])
                count, taken = found.count, found.after - position
                if count:
                    yield piece, found, all_starts[:count].copy(), all_sizes[:count].copy()
                chunks.note(count, taken)
                row, byte, position = row + count, byte + taken, found.after
                if found.error is not None:
                    raise found.error
                if count < room:
                    # If nothing is known about the next record, it is at least longer than the bytes at hand.
                    need = found.need or 2 * (len(data) - position)
                    break
                need = 0
                if not ended and len(data) - position < chunks.expected:
                    break


class _Chunks:
    """Decides how much of a file is read at a time, and how many records are searched in it.

    A batch that spans two blocks must be copied together, so blocks end where a group of rows does. Therefore only
    about as many bytes are read as the missing rows will take, judged by the rows so far, plus a little: the bytes
    after them must be moved in front of the next chunk.

    Args:
      group: rows that the consumer takes at a time.
      given: rows that it already has, from this file and others.
      first: true if it waits for the very first record, or the size of the file is unknown.
    """

    def __init__(self, group: int = 1, given: int = 0, *, first: bool = True) -> None:
        self._group, self._given = (group, given % group) if group <= BLOCK_ROWS else (1, 0)
        self._rows = self._bytes = 0
        self._most = room_for(CHUNK_BYTES)
        self._next = min(FIRST_BYTES if first else CHUNK_BYTES, self._most)
        self.rows = self._group - self._given if self._group > 1 else BLOCK_ROWS
        """The most records to search for; one group at first, so that the first batch does not wait for others."""
        self.expected = 0
        """Estimated bytes of so many records, plus a little; 0 if unknown, or if blocks may end anywhere."""

    @property
    def grouped(self) -> bool:
        """Whether blocks should end where a group does."""
        return self._group > 1

    def more(self, kept: int) -> int:
        """How many bytes to read after those that are kept."""
        size, self._next = self._next, min(2 * self._next, self._most)
        return max(_BEYOND_BYTES, self.expected - kept) if self.expected else size

    def note(self, rows: int, size: int) -> None:
        """Record that `rows` records of `size` bytes were found, from which the length of the next ones is estimated."""
        self._given = (self._given + rows) % self._group
        self._rows += rows
        self._bytes += size
        if self._group == 1 or not self._rows:
            return
        each = self._bytes / self._rows
        if self._group * each > min(_MOST_BYTES, self._most):
            self.rows, self.expected = BLOCK_ROWS, 0
            return
        groups = int(min(BLOCK_ROWS, self._most / each)) // self._group
        self.rows = max(1, groups) * self._group - self._given
        self.expected = int(each * (self.rows + math.sqrt(self.rows)))
