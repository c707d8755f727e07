# SPDX-License-Identifier: Apache-2.0
"""CSV and JSON Lines files with an index, so that records can be counted and accessed by number."""

import sys
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from distinput.arrow.arrow import without_rows
from distinput.columns.block import Block
from distinput.formats.csv import Csv
from distinput.formats.format import Portion, Position
from distinput.formats.indexed import Indexed
from distinput.formats.jsonl import JsonLines
from distinput.formats.text_records import Bytes, Ints, TextPiece, has_lone_return
from distinput.formats.text_table import BadRecordError, TextTable
from distinput.names.lazy import dataclass

_FEW = 16
"""So few records are told apart one at a time."""


class _IndexedTextTable(Indexed, TextTable):
    """What an index takes in a format whose files are text with a record for each row."""

    __slots__ = ()

    @property
    def _options(self) -> str:
        # Indices of 0.4.0 may be wrong where "\r" ends a record and quotes hold newlines; they are built again.
        return str(self.dialect) if self.lines_are_records else f"{self.dialect} by records"

    def offsets(self, path: str) -> Iterator[Ints]:
        head = self.head(path)
        end = head.byte
        # A line that is no object is a record that cannot be read, as without an index.
        for piece in self._pieces(path, self.start(), None, head, refused=not self.lines_are_records):
            starts = piece.byte + self._starts(piece.data, 0, len(piece.data), piece.count)
            starts[:1] = end  # empty lines before a record belong to it
            yield starts
            end = min(piece.byte + len(piece.data), piece.end)
        yield np.array([end])

    def _starts(self, data: Bytes, begin: int, end: int, count: int) -> Ints:
        """Where the records of data[begin:end] begin."""
        newlines = np.flatnonzero(data[begin:end] == 10)
        # No empty line, and none in quotes: where records end otherwise, one in quotes may make up for that.
        if len(newlines) == count and (self.lines_are_records or not has_lone_return(data[begin:end])):
            return begin + np.append(0, newlines[:-1] + 1) if count else newlines
        if count > _FEW:
            middle = self.scan(data, begin, sys.maxsize, count // 2)[1]
            halves = (begin, middle, count // 2), (middle, end, count - count // 2)
            return np.concatenate([self._starts(data, *half) for half in halves])
        starts = [begin]
        while len(starts) < count:
            starts.append(self.scan(data, starts[-1], sys.maxsize, 1)[1])
        return np.array(starts[:count], np.int64)

    def portions(
        self, path: str, position: Position | None, stop: Position | None, size: int, given: int
    ) -> Iterator[Portion]:
        until = stop if stop is None or "near" in stop else {"near": stop["byte"]}
        return super().portions(path, position, until, size, given)

    def parse_rows(self, path: str, data: Bytes, ends: Ints, rows: Ints) -> Block:
        head, columns_known = self.head(path), self._known(path)
        if not len(rows):
            return columns_known.block_of(without_rows(columns_known.wanted.arrow))
        open_end = np.flatnonzero(data[ends - 1] != 10)  # at the end of a file the last newline may be left out
        closed = np.insert(data, ends[open_end], 10) if len(open_end) else data
        try:
            return columns_known._block(closed, len(rows), head)
        except BadRecordError:
            pass
        for row, begin, end in zip(rows.tolist(), np.append(0, ends[:-1]).tolist(), ends.tolist(), strict=True):
            byte = self.seek(path, row).get("byte", 0)
            record = np.append(data[begin:end], np.uint8(10)) if data[end - 1] != 10 else data[begin:end]
            _, _, error = columns_known._decoded(TextPiece(path, record, byte, row, 1, 0, sys.maxsize), head)
            if error is not None:
                raise error
        raise self.misplaced(path, int(rows[0]))


@dataclass(frozen=True)
class IndexedCsv(_IndexedTextTable, Csv):
    """`Csv` for files with an index; compressed files have none.

    Args:
      index_folder: where indices are kept; None: beside each file.
    """

    name: ClassVar[str] = "indexed_csv"


@dataclass(frozen=True)
class IndexedJsonLines(_IndexedTextTable, JsonLines):
    """`JsonLines` for files with an index; compressed files have none.

    Args:
      index_folder: where indices are kept; None: beside each file.
    """

    name: ClassVar[str] = "indexed_jsonl"
