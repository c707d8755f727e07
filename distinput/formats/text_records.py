# SPDX-License-Identifier: Apache-2.0
"""Where the records of text files are: files cut into pieces, each of which ends where a record does."""

import sys
from abc import abstractmethod
from bisect import bisect_right, insort
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from typing import Any, ClassVar, NoReturn

import numpy as np

from distinput.errors import DataLossError, DistinputError
from distinput.files.compression import MARK_BYTES, Compression, as_compression, codec_of_bytes
from distinput.files.manifest import FileTable
from distinput.files.source import EMPTY, FileStream, room_for, size_of, stamp_of
from distinput.formats.format import BLOCK_ROWS, Format, Fragment, Position, check_reached
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# What is known of a part of a text file: where it lies, and how many records it has.
# ----------------------------------------------------------------------------


MARK = b"\xef\xbb\xbf"
"""The byte order mark, which some programs write in front of UTF-8."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def has_lone_return(data: Bytes) -> bool:
    r"""Whether there is a "\r" without "\n" behind it.

    >>> has_lone_return(np.frombuffer(b"a\r\n", np.uint8)), has_lone_return(np.frombuffer(b"a\rb", np.uint8))
    (False, True)
    """
    returns = np.flatnonzero(data == 13)
    return len(returns) > 0 and bool(returns[-1] + 1 == len(data) or (data[returns + 1] != 10).any())


@dataclass(frozen=True)
class Head:
    """Where the records of a file begin, and the names of its columns.

    Args:
      byte: the offset behind a byte order mark and a header.
      lines: how many lines come before.
      names: of the columns in the file's order; empty where each record names its own.
    """

    byte: int = 0
    lines: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Whole records of a file.

    Args:
      path: the file.
      data: the bytes; the last record ends with a newline.
      byte: the offset of the first one in the (decompressed) file.
      row: the number of the first record.
      count: how many records there are.
      line: the number of the first line, from 1; 0 if unknown.
      end: bytes read so far: the last record may have been given a newline.
    """

    path: str
    data: Bytes
    byte: int
    row: int
    count: int
    line: int
    end: int


# ----------------------------------------------------------------------------
# Where lines begin in a file of text, near given bytes: found by reading on from the nearest place that is known.
# ----------------------------------------------------------------------------


_CHUNK_BYTES = 4 << 20
_MOST_KNOWN = 65536

ScanLines = Callable[[Bytes, int, int, int], tuple[int, int, int, int]]


class LineStarts:
    """What is known about a file: the offsets of some lines that begin a record.

    Where a newline may be a part of a quoted value, only the quotes from the beginning on tell what it is. All of the file
    before the place asked for is read once, at the speed of memory; what is found serves the next question.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._known: list[int] = []

    @staticmethod
    def of(path: str, stamp: str, dialect: Hashable) -> "LineStarts":
        """What is known about the file with this stamp, in this dialect."""
        return _of(path, stamp, dialect)

    def first_from(self, near: int, begin: int, scan: ScanLines, anywhere: bool, most: int) -> int:
        """The offset of the first line that begins at or after `near`; the end of the file if there is none.

        Args:
          near: greater than `begin`.
          begin: where the first record begins.
          scan: counts records, those that are refused too, see `TextRecords.scan_all`.
          anywhere: true if every newline ends a record, so that the byte before `near` is early enough to begin.
          most: the most bytes of a record.
        """
        if anywhere:
            return self._newline_from(near - 1)
        known = self._known  # replaced as a whole, so that threads see a sorted list
        place = bisect_right(known, near)
        at = max(begin, known[place - 1]) if place else begin
        if at < near:
            at = self._scanned(at, near, scan, most)
            again = list(self._known)
            insort(again, at)
            if len(again) <= _MOST_KNOWN:
                self._known = again
        return at

    def _scanned(self, byte: int, near: int, scan: ScanLines, most: int) -> int:
        """The first line from `near` on, for a line that begins at `byte`."""
        data: Bytes = EMPTY
        ended = False
        with FileStream(self.path, start=byte) as source:
            while not ended:
                size = max(_CHUNK_BYTES, len(data))
                data, ended = source.more(data, min(size, max(near - source.offset, 4096, len(data))))
                _, after, _, _ = scan(data, 0, near - byte, sys.maxsize)
                byte, data = byte + after, data[after:]
                if byte >= near:
                    return byte
                if len(data) > most:  # the reader of the part before meets this record
                    return source.offset if source.size is None else source.size
            return source.offset

    def _newline_from(self, byte: int) -> int:
        """The offset behind the first newline at or after `byte`."""
        with FileStream(self.path) as source:
            if source.size is not None and byte >= source.size:
                return source.size
            source.go_to(byte)
            ended, size = False, 4096
            while not ended:
                first = source.offset
                data, ended = source.more(EMPTY, size)
                found = data.tobytes().find(b"\n")
                if found >= 0:
                    return first + found + 1
                size = min(2 * size, _CHUNK_BYTES)
            return source.offset


@lru_cache(maxsize=256)
def _of(path: str, stamp: str, dialect: Hashable) -> LineStarts:
    del stamp, dialect
    return LineStarts(path)


def count_newlines(path: str, stop: int) -> int:
    """How many newlines there are before byte `stop` of a file that is not compressed."""
    found = 0
    with FileStream(path) as source:
        ended = False
        while source.offset < stop and not ended:
            data, ended = source.more(EMPTY, min(_CHUNK_BYTES, stop - source.offset))
            found += int(np.count_nonzero(data == 10))
    return found


FIRST_BYTES = 64 * 1024  # of the very first chunk, so that the first rows do not wait for many others
CHUNK_BYTES = 1 << 20
_TIMES = 3
"""How many times the bytes of a piece its text and the columns made of it take."""

_FRAGMENT_BYTES = 4 << 20
MOST_RECORD_BYTES = 256 << 20
"""A record that is longer is an error, so that a quote that is never closed does not fill the memory."""
_OTHER_MARKS = {
    b"\xfd7zX": "an XZ file; decompress it, or compress it in another way",
    b"PK\x03\x04": 'a zip archive; name a file in it, as "zip://a.csv::archive.zip" does',
}
"""The first bytes of files that are not decompressed here, what they are, and what to do."""

Ints = np.ndarray[Any, np.dtype[np.int64]]


def more_lines(source: FileStream, kept: Bytes, size: int) -> tuple[Bytes, bool]:
    """As `FileStream.more`, with a newline behind a last line that has none."""
    data, ended = source.more(kept, size)
    return (np.append(data, np.uint8(10)) if ended and len(data) and data[-1] != 10 else data), ended


class CutByBytes(Format):
    """A format whose files are cut anywhere, unless they are compressed: a part has the records that begin in it."""

    __slots__ = ()

    @property
    @abstractmethod
    def compression(self) -> Compression:
        """The compression of the file."""

    def units(self, files: FileTable) -> Ints | None:
        return None if self.compression else files.sizes

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        """The records that begin at or after byte `start` and before byte `stop`."""
        if self.compression:
            return super().part(path, start, stop)
        begin = {"near": start} if start else self.start()
        return Fragment(path, begin, None if stop is None else {"near": stop}, None, (stop or start) - start)

    def fragments(self, path: str) -> list[Fragment]:
        size = size_of(path)
        if self.compression or not size:
            return super().fragments(path)
        return [self.part(path, a, min(a + _FRAGMENT_BYTES, size)) for a in range(0, size, _FRAGMENT_BYTES)]


class TextRecords(CutByBytes):
    """A format whose files are text that a scan cuts into records."""

    __slots__ = ()
    resumes: ClassVar[bool] = True
    refusal: ClassVar[type[DistinputError]] = DataLossError
    """The error of what is not text of this format."""
    endless: ClassVar[str] = "the record that begins here does not end"
    """What is said of a record that goes on to the end of the file."""
    compression_type: str | None

    @abstractmethod
    def head(self, path: str) -> Head:
        """Where the records of this file begin."""

    @abstractmethod
    def scan(self, data: Bytes, start: int, until: int, rows: int) -> tuple[int, int, int, int]:
        """Count records from `start` on, see `kernels.csv_records`: records, offset of the next line, newlines, problem."""

    def scan_piece(self, data: Bytes, start: int, until: int, rows: int) -> tuple[int, int, int, int]:
        """Like `scan`, but it may end before records of another kind, which are then parsed by themselves."""
        return self.scan(data, start, until, rows)

    @abstractmethod
    def problem(self, data: Bytes, place: int) -> str:
        """What is wrong at the offset that `scan` gives as a problem."""

    def end_of_refused(self, data: Bytes, place: int) -> int:
        """Where the record ends in which `scan` refuses a byte; -1: not in this data."""
        after = np.flatnonzero(data[place:] == 10)
        return place + int(after[0]) + 1 if len(after) else -1

    def scan_all(self, data: Bytes, start: int, until: int, rows: int) -> tuple[int, int, int, int]:
        """Like `scan`, but a record that it refuses counts as the others do."""
        count = lines = 0
        while True:
            found, after, newlines, problem = self.scan(data, start, until, rows - count)
            count, lines, start = count + found, lines + newlines, after
            end = self.end_of_refused(data, problem) if problem >= 0 else -1
            if end < 0:
                return count, start, lines, -1
            count, lines, start = count + 1, lines + int(np.count_nonzero(data[start:end] == 10)), end

    @property
    def lines_are_records(self) -> bool:
        """Whether each newline ends a record, so that a record can be found from anywhere."""
        return True

    @property
    def compression(self) -> Compression:
        """The compression of the file."""
        return as_compression(self.compression_type)

    @property
    def dialect(self) -> Hashable:
        """What determines where records begin."""
        return self.name

    def ends_at(self, path: str, position: Position | None) -> bool:
        try:
            return next(self._pieces(path, position or self.start(), None, self.head(path)), None) is None
        except (DistinputError, OSError):
            return False

    def past(self, path: str, position: Position | None) -> Position | None:
        """The next record, unless this one does not end."""
        position = position or self.start()
        try:
            begin, over = self._begin(path, position, self.head(path))
            want = over + 1
            data, ended = EMPTY, False
            with FileStream(path, self.compression, 0 if self.compression else begin) as source:
                if self.compression:
                    source.skip(begin)
                while not ended and len(data) <= MOST_RECORD_BYTES:
                    data, ended = more_lines(source, data, max(FIRST_BYTES, len(data)))
                    count, after, _, _ = self.scan_all(data, 0, sys.maxsize, want)
                    want, begin, data = want - count, begin + after, data[after:]
                    if not want:
                        return self._position(min(begin, source.offset), position.get("row", 0) + 1)
        except (DistinputError, OSError):
            pass
        return None

    def start(self) -> Position:
        return self._position(0, 0)

    def _pieces(
        self, path: str, at: Position, stop: Position | None, head: Head, refused: bool = True
    ) -> Iterator[TextPiece]:
        """The records from a position on, in pieces; one that `scan` refuses is an error, or not: a line is then a piece."""
        until = sys.maxsize if stop is None else stop["near"]
        begin, over = self._begin(path, at, head)
        line = head.lines + 1 if begin == head.byte else 0
        row = at.get("row", 0) - over  # the rows before are found again, and passed over
        if begin >= until:
            return
        with FileStream(path, self.compression, 0 if self.compression else begin) as source:
            if self.compression and source.skip(begin) < begin:
                raise DataLossError(f"{path}: ends before byte {begin}; the file has changed")
            yield from self._found(source, begin, row, line, over, until, refused)

    def _begin(self, path: str, at: Position, head: Head) -> tuple[int, int]:
        """The byte from which on a position is looked for, and how many records are passed over from there."""
        if "near" in at:
            return self._line_from(path, at["near"], head), 0
        if self.compression or "byte" not in at:
            return head.byte, at.get("row", 0)
        return max(at["byte"], head.byte), 0

    def _found(
        self, source: FileStream, byte: int, row: int, line: int, over: int, until: int, refused: bool
    ) -> Iterator[TextPiece]:
        """Read chunks and cut them where records end.

        Args:
          source: the file, at a line.
          byte: the offset of that line.
          row: the number of the record there.
          line: the number of that line; 0 if unknown.
          over: records to pass over.
          until: lines that begin here or later are not read.
          refused: whether a line that `scan` refuses is an error.
        """
        path, data, position, ended, most = source.path, EMPTY, 0, False, room_for(_TIMES * CHUNK_BYTES) // _TIMES
        size = min(FIRST_BYTES, most)
        if until < sys.maxsize:
            source.expect_end(until)
        while byte < until:
            room = over or BLOCK_ROWS
            scan = self.scan_all if over else self.scan_piece  # what is passed over has been told
            count, after, lines, problem = scan(data, position, position + until - byte, room)
            taken = data[position:after]
            if over:
                over -= count
            elif count:
                yield TextPiece(path, taken, byte, row, count, line, source.offset)
            row, byte, position = row + count, byte + len(taken), after
            line += lines if line else 0
            if problem >= 0 and refused:
                self._refuse(path, data, problem, position, byte, line)
            size_of_record = self.end_of_refused(data, problem) - position if problem >= 0 else 0
            if size_of_record > 0:
                if self.lines_are_records:
                    yield TextPiece(path, data[position : position + size_of_record], byte, row, 1, line, source.offset)
                row, byte, position = row + 1, byte + size_of_record, position + size_of_record
                line += 1 if line else 0
                continue
            if count == room or (ended and count and position < len(data)):
                continue
            if ended:
                break
            kept = data[position:]
            if len(kept) > MOST_RECORD_BYTES:
                self._refuse(path, data, -1, position, byte, line)
            # If no record has ended, it is at least longer than the bytes at hand.
            more = max(size, len(kept))
            if source.size is not None:  # one more byte detects the end of the file
                more = min(more, max(source.size - source.offset + 1, 4096))
                more = min(more, max(until - source.offset, 4096, len(kept)))
            data, ended = more_lines(source, kept, more)
            position, size = 0, min(2 * size, most)
        if byte < until and position < len(data):
            self._refuse(path, data, -1, position, byte, line)
        check_reached(path, row, row + over, "record")

    def _refuse(self, path: str, data: Bytes, problem: int, at: int, byte: int, line: int) -> NoReturn:
        """Raise the error of the bytes at `problem`, or of a record that begins at `at` and does not end."""
        line = line or self.line_at(path, byte)
        line += 0 if problem < 0 else int(np.count_nonzero(data[at:problem] == 10))
        what = self.endless if problem < 0 else self.problem(data, problem)
        raise self.refusal(f"{path}: line {line}: {what}")

    def check_plain(self, path: str, data: Bytes) -> None:
        """Refuse a compressed file or an archive that is read as it is, and text in UTF-16.

        Raises:
          DataLossError: it begins as these do.
        """
        begin = data[:MARK_BYTES].tobytes()
        found = "" if self.compression else codec_of_bytes(begin)
        if found:
            raise DataLossError(f"{path}: looks like a {found} file; pass compression_type={found!r} or 'AUTO'")
        other = _OTHER_MARKS.get(begin[:4])
        if other:
            raise DataLossError(f"{path}: looks like {other}")
        if begin[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise DataLossError(f"{path}: looks like text in UTF-16; make it UTF-8, as `iconv -f UTF-16 -t UTF-8` does")

    def line_at(self, path: str, byte: int) -> int:
        """The number of the line at this byte of a file that is not compressed, from 1."""
        return count_newlines(path, byte) + 1

    def _line_from(self, path: str, near: int, head: Head) -> int:
        """The offset of the first line that begins at or after `near`."""
        if near <= head.byte:
            return head.byte
        starts = LineStarts.of(path, stamp_of(path), self.dialect)
        return starts.first_from(near, head.byte, self.scan_all, self.lines_are_records, MOST_RECORD_BYTES)

    def _after(self, piece: TextPiece, size: int, rows: int) -> Position:
        return self._position(min(piece.byte + size, piece.end), piece.row + rows)

    def _position(self, byte: int, row: int) -> Position:
        return {"row": row} if self.compression else {"byte": byte, "row": row}

    def _offset(self, data: Bytes, records: int) -> int:
        return self.scan(data, 0, sys.maxsize, records)[1] if records else 0
