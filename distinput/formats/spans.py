# SPDX-License-Identifier: Apache-2.0
"""Formats whose records are spans of bytes, one after the other: one loop that reads chunks and finds records in them.

A record that goes on behind the end of a chunk is carried over into the next one; all else stays where it was read.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.column import Strings
from distinput.core.nest import LEAF
from distinput.core.spec import Spec
from distinput.errors import DataLossError
from distinput.files.compression import Compression, as_compression
from distinput.files.source import EMPTY, Source
from distinput.formats.format import BLOCK_ROWS, Format, Position

__all__ = ["Found", "Piece", "SpanFormat"]

FIRST_BYTES = 64 * 1024  # of the first chunk: the first record must not wait for many others
CHUNK_BYTES = 512 * 1024  # of later ones: about what a core's own cache holds
_BEYOND_BYTES = 4096  # behind the end of a fragment, where its last record may go on

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(slots=True)
class Piece:
    """A part of a file in memory, and what a format must know of it.

    Args:
      path: the file.
      data: the bytes.
      at: where in `data` the next record begins.
      byte: where in the file (decompressed) the next record begins.
      row: the number of the next record.
      ended: whether the file ends with `data`.
      size: bytes of the file, None if they are not known.
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
      count: how many, their spans being in the arrays handed in.
      after: where in the data the next one begins.
      need: bytes from there on that are needed for the next one, 0 if that is not known.
      error: what is wrong with the next one, if that can be seen.
    """

    count: int
    after: int
    need: int = 0
    error: Exception | None = None


class SpanFormat(Format):
    """Records are byte strings that lie one after the other in the file."""

    __slots__ = ()
    compression_type: str | None

    @property
    def compression(self) -> Compression:
        """The compression of the file."""
        return as_compression(self.compression_type)

    def spec(self, path: str | None) -> Spec:
        del path
        return Spec.leaf((), object)

    def start(self) -> Position:
        return {"row": 0} if self.compression else {"byte": 0, "row": 0}

    @abstractmethod
    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        """Find records and write where each begins in the data, and how long it is, until the arrays are full."""

    def open(self, path: str, position: Position) -> tuple[Source, int]:
        """The file, read up to the first record that can be reached directly, and the number of that record.

        Raises:
          DataLossError: the file ends before that record.
        """
        if self.compression:
            return Source(path, self.compression), 0
        if "byte" not in position:
            return Source(path), 0
        return Source(path, start=position["byte"]), position["row"]

    def after(self, byte: int, row: int) -> Position:
        """The position of a record."""
        return {"row": row} if self.compression else {"byte": byte, "row": row}

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        return self._read(path, position if position is not None else self.start(), None)

    def _read(self, path: str, wanted: Position, until: int | None) -> Iterator[tuple[Block, Position]]:
        """The records from a position on; what lies behind byte `until` is only read where a record goes on there."""
        source, row = self.open(path, wanted)
        with source:
            over = wanted["row"] - row
            for piece, found, starts, sizes in self._found(source, row, until):
                row = piece.row + found.count
                if found.count > over:
                    column = Strings(piece.data, starts[over:], sizes[over:])
                    yield (
                        Block(LEAF, [column], found.count - over),
                        self.after(piece.byte + found.after - piece.at, row),
                    )
                over = max(0, over - found.count)
            if over:
                raise DataLossError(
                    f"{path}: has {row} records, but reading was to go on at record {wanted['row']}; it changed"
                )

    def _found(self, source: Source, row: int, until: int | None = None) -> Iterator[tuple[Piece, Found, Ints, Ints]]:
        """Pieces of the file with the records found in each."""
        all_starts, all_sizes = np.empty((2, BLOCK_ROWS), np.int64)
        data, at, byte, ended = EMPTY, 0, source.offset, False
        chunk, need = FIRST_BYTES, 0
        while not ended:
            kept = data[at:]
            # What a length field claims is only believed as far as the file is known to be that long.
            likely = len(kept) if source.size is None else source.size - source.offset
            size = max(chunk, min(need - len(kept), likely) if need else len(kept))
            if until is not None:
                size = min(size, max(until - source.offset, _BEYOND_BYTES))
            data, ended = source.more(kept, size)
            chunk, at = min(2 * chunk, CHUNK_BYTES), 0
            while True:
                piece = Piece(source.path, data, at, byte, row, ended, source.size)
                found = self.find(piece, all_starts, all_sizes)
                count = found.count
                if count:
                    yield piece, found, all_starts[:count].copy(), all_sizes[:count].copy()
                row += count
                byte += found.after - at
                at, need = found.after, found.need
                if found.error is not None:
                    raise found.error
                if count < BLOCK_ROWS:
                    break
