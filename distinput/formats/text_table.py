# SPDX-License-Identifier: Apache-2.0
"""The common base of CSV and JSON Lines: text whose records are rows of a table, parsed by pyarrow a piece at a time.

A piece is a part of a file that ends where a record does. Pieces are found one after the other, which is quick, and parsed
on any threads. A piece that pyarrow rejects is searched for its first bad record: the rows before it are delivered, then an
error names the file, the line, the column, and what was found.
"""

import sys
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from distinput.core.arrow import NullsError, block_of
from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Column
from distinput.core.spec import Spec
from distinput.errors import DataLossError, DistinputError, InvalidArgumentError, UnimplementedError
from distinput.files.compression import Compression, as_compression
from distinput.files.source import EMPTY, Source, size_of, stamp_of
from distinput.files.table import FileTable
from distinput.formats.format import BLOCK_ROWS, Format, Fragment, Position, check_position
from distinput.formats.line_starts import LineStarts, count_newlines
from distinput.formats.portion import Portion
from distinput.formats.row_schema import RowSchema
from distinput.formats.tables import table_spec

__all__ = ["MARK", "MOST_RECORD_BYTES", "BadRecordError", "Bytes", "Decoded", "Head", "Piece", "TextTable"]

FIRST_BYTES = 64 * 1024  # of the very first chunk, so that the first rows do not wait for many others
CHUNK_BYTES = 1 << 20
_FRAGMENT_BYTES = 4 << 20
_INFERRED_BYTES = 1 << 20  # at the beginning of the first file, from which a schema is inferred
MOST_RECORD_BYTES = 256 << 20
"""A record that is longer is an error, so that a quote that is never closed does not fill the memory."""
MARK = b"\xef\xbb\xbf"
"""The byte order mark, which some programs write in front of UTF-8."""
_MARKS = {"GZIP": b"\x1f\x8b", "ZSTD": b"\x28\xb5\x2f\xfd", "LZ4": b"\x04\x22\x4d\x18", "BZ2": b"BZh9"}
"""The first bytes of compressed files."""
_NEWLINE = np.array([10], np.uint8)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


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
class Piece:
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


Decoded = tuple[Block | None, Position, Exception | None]
"""The rows of a piece, the position behind them, and the error of the next record."""


class TextTable(Format):
    """A format whose files are text with a record for each row.

    Subclasses are frozen dataclasses with the fields below. A schema is stated, or inferred from the first rows of the first
    file (`held`), and from then on every file has to fit it.
    """

    __slots__ = ()
    in_portions: ClassVar[bool] = True
    resumes: ClassVar[bool] = True
    refusal: ClassVar[type[DistinputError]] = DataLossError
    """The error of what is not text of this format."""
    endless: ClassVar[str] = "the record that begins here does not end"
    """What is said of a record that goes on to the end of the file."""
    schema: RowSchema | None
    columns: tuple[str, ...] | None
    nulls: Any
    compression_type: str | None

    @abstractmethod
    def head(self, path: str) -> Head:
        """Where the records of this file begin."""

    @abstractmethod
    def scan(self, data: Bytes, start: int, until: int, rows: int) -> tuple[int, int, int, int]:
        """Count records from `start` on, see `kernels.csv_records`: records, offset of the next line, newlines, problem."""

    @abstractmethod
    def problem(self, data: Bytes, place: int) -> str:
        """What is wrong at the offset that `scan` gives as a problem."""

    @abstractmethod
    def parse(self, data: Any, schema: RowSchema, head: Head) -> Any:
        """The records as a pyarrow RecordBatch with the columns of the schema.

        Raises:
          pyarrow.ArrowException: one of them does not fit.
        """

    def quick(self, data: Bytes, count: int, schema: RowSchema, head: Head) -> dict[str, Column] | None:
        """The columns of as many records, if there is a quicker way to just what `parse` makes of them; else None."""
        return None

    @abstractmethod
    def misfit(self, record: bytes, schema: RowSchema, head: Head) -> tuple[str | None, str]:
        """Why a single record cannot be parsed: the column, None if it is the record as a whole, and the reason."""

    @abstractmethod
    def infer(self, data: Bytes, head: Head, path: str) -> RowSchema | None:
        """The schema of some records; None if there is no record."""

    @property
    def lines_are_records(self) -> bool:
        """Whether each newline ends a record, so that a record can be found from anywhere."""
        return True

    @property
    def compression(self) -> Compression:
        """The compression of the file."""
        return as_compression(self.compression_type)

    @property
    def spec_from_file(self) -> bool:  # type: ignore[override]
        return self.schema is None

    @property
    def dialect(self) -> Hashable:
        """What determines where records begin."""
        return self.name

    @cached_property
    def wanted(self) -> RowSchema:
        """The schema of the columns that are read.

        Raises:
          InvalidArgumentError: a column does not exist.
        """
        assert self.schema is not None
        self._check_columns(self.name, self.schema)
        return self.schema.only(self.columns)

    def _check_columns(self, where: str, schema: RowSchema) -> None:
        for name in self.columns or ():
            if name not in schema.names:
                raise InvalidArgumentError(
                    f"{where}: there is no column {name!r}; the columns are {', '.join(schema.names) or 'none'}"
                )

    def spec(self, path: str | None) -> Spec:
        return self._known(path)._spec

    @cached_property
    def _spec(self) -> Spec:
        return table_spec(self.name, self.wanted.arrow, None)

    def _known(self, path: str | None) -> "TextTable":
        if self.schema is not None:
            return self
        if path is None:
            raise InvalidArgumentError(
                f"{self.name}: the columns are those of the files; name at least one, or state schema="
            )
        return self.held([path])

    def held(self, paths: Iterable[str]) -> "TextTable":
        """This format with a schema: the one stated, or that of the first file with a record.

        Raises:
          InvalidArgumentError: no file has a record, or the type of a column cannot be told.
        """
        if self.schema is not None:
            return self
        tried = []
        for path in paths:
            found = inferred(self, path, stamp_of(path))
            if found is not None:
                self._check_columns(path, found)
                return replace(self, schema=found)  # type: ignore[type-var]  # subclasses are dataclasses
            tried.append(path)
        raise InvalidArgumentError(
            f"{self.name}: no record shows the types of the columns, {' and '.join(tried[:2]) or 'there is no file'}"
            f"{' and others have' if len(tried) > 2 else ' has' if tried else ''} none; state them with schema="
        )

    # ---- where things are

    def ends_at(self, path: str, position: Position | None) -> bool:
        try:
            return next(self._pieces(path, position or self.start(), None, self.head(path)), None) is None
        except (DistinputError, OSError):
            return False

    def past(self, path: str, position: Position | None) -> Position | None:
        """The next record, unless this one does not end."""
        at = position or self.start()
        try:
            head = self.head(path)
            piece = next(self._pieces(path, at, None, head), None)
        except (DistinputError, OSError):
            return None
        return None if piece is None else self._after(piece, self._offset(piece.data, 1), 1)

    def start(self) -> Position:
        return {"row": 0} if self.compression else {"byte": 0, "row": 0}

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
        cuts = range(0, size, _FRAGMENT_BYTES)
        return [self.part(path, a, min(a + _FRAGMENT_BYTES, size)) for a in cuts]

    # ---- reading

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        return self._blocks(self.portions(path, position, None, 1, 0))

    def read_fragment(self, fragment: Fragment, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        at = fragment.start if position is None else position
        return self._blocks(self.portions(fragment.path, at, fragment.stop, 1, 0))

    @staticmethod
    def _blocks(portions: Iterator[Portion]) -> Iterator[tuple[Block, Position]]:
        for portion in portions:
            yield from portion.blocks(portion.decode())

    def portions(
        self, path: str, position: Position | None, stop: Position | None, size: int, given: int
    ) -> Iterator[Portion]:
        """The pieces of the file."""
        del size, given
        at = self.start() if position is None else position
        check_position(path, at)
        head = self.head(path)
        if self.schema is None and inferred(self, path, stamp_of(path)) is None:
            return  # there is no record, and so no schema
        known = self._known(path)
        for piece in self._pieces(path, at, stop, head):
            yield known._portion(piece, head)

    def _portion(self, piece: Piece, head: Head) -> Portion:
        return Portion(piece.count, 3 * len(piece.data), False, partial(self._decoded, piece, head), _delivered)

    def _pieces(self, path: str, at: Position, stop: Position | None, head: Head) -> Iterator[Piece]:
        """The records from a position on, in pieces."""
        until = sys.maxsize if stop is None else stop["near"]
        row = at.get("row", 0)
        if self.compression or "byte" not in at:
            begin, line, over = head.byte, head.lines + 1, row
            if "near" in at:
                begin, line, over = self._line_from(path, at["near"], head), 0, 0
        else:
            begin, line, over = max(at["byte"], head.byte), 0 if at["byte"] > head.byte else head.lines + 1, 0
        row -= over  # the rows before are found again, and passed over
        if begin >= until:
            return
        with Source(path, self.compression, 0 if self.compression else begin) as source:
            if self.compression and source.skip(begin) < begin:
                raise DataLossError(f"{path}: ends before byte {begin}; it changed")
            yield from self._found(source, begin, row, line, over, until)

    def _found(self, source: Source, byte: int, row: int, line: int, over: int, until: int) -> Iterator[Piece]:
        """Read chunks and cut them where records end.

        Args:
          source: the file, at a line.
          byte: the offset of that line.
          row: the number of the record there.
          line: the number of that line; 0 if unknown.
          over: records to pass over.
          until: lines that begin here or later are not read.
        """
        path, data, at, ended, size = source.path, EMPTY, 0, False, FIRST_BYTES
        if until < sys.maxsize:
            source.expect_end(until)
        while byte < until:
            room = over or BLOCK_ROWS
            count, after, lines, problem = self.scan(data, at, at + until - byte, room)
            taken = data[at:after]
            if over:
                over -= count
            elif count:
                yield Piece(path, taken, byte, row, count, line, source.offset)
            row, byte, at = row + count, byte + len(taken), after
            line += lines if line else 0
            if problem >= 0:
                self._refuse(path, data, problem, at, byte, line)
            if count == room:
                continue
            if ended:
                break
            kept = data[at:]
            if len(kept) > MOST_RECORD_BYTES:
                self._refuse(path, data, -1, at, byte, line)
            # If no record has ended, it is at least longer than the bytes at hand.
            more = max(size, len(kept))
            if source.size is not None:  # one more byte detects the end of the file
                more = min(more, max(source.size - source.offset + 1, 4096))
                more = min(more, max(until - source.offset, 4096, len(kept)))
            data, ended = source.more(kept, more)
            at, size = 0, min(2 * size, CHUNK_BYTES)
            if ended and len(data) and data[-1] != 10:
                data = np.concatenate([data, _NEWLINE])
        if byte < until and at < len(data):
            self._refuse(path, data, -1, at, byte, line)
        if over:
            raise DataLossError(
                f"{path}: has {row} records, but reading was to go on at record {row + over}; it changed"
            )

    def _refuse(self, path: str, data: Bytes, problem: int, at: int, byte: int, line: int) -> NoReturn:
        """Raise the error of the bytes at `problem`, or of a record that begins at `at` and does not end."""
        line = line or self.line_at(path, byte)
        line += 0 if problem < 0 else int(np.count_nonzero(data[at:problem] == 10))
        what = self.endless if problem < 0 else self.problem(data, problem)
        raise self.refusal(f"{path}: line {line}: {what}")

    def check_plain(self, path: str, data: Bytes) -> None:
        """Refuse a compressed file that is read as it is.

        Raises:
          DataLossError: it begins as compressed files do.
        """
        found = next((name for name, mark in _MARKS.items() if data[: len(mark)].tobytes() == mark), None)
        if found and not self.compression:
            raise DataLossError(f"{path}: looks like a {found} file; pass compression_type={found!r} or 'AUTO'")

    def line_at(self, path: str, byte: int) -> int:
        """The number of the line at this byte of a file that is not compressed, from 1."""
        return count_newlines(path, byte) + 1

    def _line_from(self, path: str, near: int, head: Head) -> int:
        """The offset of the first line that begins at or after `near`."""
        if near <= head.byte:
            return head.byte
        starts = LineStarts.of(path, stamp_of(path), self.dialect)
        return starts.first_from(near, head.byte, self.scan, self.lines_are_records, MOST_RECORD_BYTES)

    # ---- parsing

    def _decoded(self, piece: Piece, head: Head) -> Decoded:
        """The rows of a piece; up to the first bad record, and its error."""
        block, good, error = self._until_bad(piece, head, self._block)
        if error is None:
            return block, self._after(piece, len(piece.data), piece.count), None
        return block, self._after(piece, self._offset(piece.data, good), good), error

    def _until_bad(
        self, piece: Piece, head: Head, made: "Callable[[Bytes, int, Head], Any]"
    ) -> tuple[Any, int, Exception | None]:
        """What a function makes of a piece: of the records before the first bad one, how many they are, and its error."""
        try:
            return made(piece.data, piece.count, head), piece.count, None
        except BadRecordError:
            pass
        good, bad = 0, piece.count  # so many records are good, so many are not
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                made(piece.data[: self._offset(piece.data, middle)], middle, head)
            except BadRecordError:
                bad = middle
            else:
                good = middle
        begin, end = self._offset(piece.data, good), self._offset(piece.data, bad)
        found = made(piece.data[:begin], good, head) if good else None
        record = piece.data[begin:end].tobytes()
        text = record.lstrip(b"\r\n") or record
        before = int(np.count_nonzero(piece.data[:begin] == 10)) + record[: len(record) - len(text)].count(b"\n")
        line = before + (piece.line or self.line_at(piece.path, piece.byte))
        return found, good, self._error(f"{piece.path}: line {line}", text, head)

    def batches(self, path: str, looked_at: int = _INFERRED_BYTES) -> Iterator[Any]:
        """The rows as pyarrow RecordBatches in which missing values are nulls; they come before the error of a bad record.

        Args:
          path: the file.
          looked_at: bytes from which a schema is inferred, where none is stated.
        """
        head, known = self.head(path), self
        if self.schema is None:
            found = inferred(self, path, stamp_of(path), looked_at)
            if found is None:
                return
            self._check_columns(path, found)
            known = replace(self, schema=found)  # type: ignore[type-var]  # subclasses are dataclasses
        for piece in known._pieces(path, known.start(), None, head):
            batch, _, error = known._until_bad(piece, head, known._batch)
            if batch is not None:
                yield batch
            if error is not None:
                raise error

    def _after(self, piece: Piece, size: int, rows: int) -> Position:
        row = piece.row + rows
        return {"row": row} if self.compression else {"byte": min(piece.byte + size, piece.end), "row": row}

    def _offset(self, data: Bytes, records: int) -> int:
        return self.scan(data, 0, sys.maxsize, records)[1] if records else 0

    def _block(self, data: Bytes, count: int, head: Head) -> ColumnBlock:
        import pyarrow as pa

        structure = self._spec.structure
        if not self.wanted.names:
            return ColumnBlock(structure, [], count)
        columns = self.quick(data, count, self.wanted, head)
        if columns is not None:
            return ColumnBlock(structure, structure.flatten(columns), count)
        batch = self._batch(data, count, head)
        try:
            return block_of(batch, structure, {} if self.nulls == "error" else dict(self.nulls))
        except (NullsError, pa.ArrowInvalid, UnicodeDecodeError, OverflowError) as error:
            raise BadRecordError from error
        except TypeError as error:
            raise InvalidArgumentError(f"{self.name}: nulls: {error}") from None

    def _batch(self, data: Bytes, count: int, head: Head) -> Any:
        """Records as a record batch.

        Raises:
          BadRecordError: one of them cannot be parsed.
        """
        import pyarrow as pa

        try:
            batch = self.parse(data, self.wanted, head)
        except (pa.ArrowInvalid, UnicodeDecodeError, OverflowError) as error:
            raise BadRecordError from error
        except pa.ArrowNotImplementedError as error:
            raise UnimplementedError(f"{self.name}: {error}; state another type in schema=") from error
        if batch.num_rows != count:
            raise BadRecordError
        return batch

    def _error(self, where: str, record: bytes, head: Head) -> InvalidArgumentError:
        """The error of a single record that cannot be parsed."""
        try:
            batch = self.parse(np.frombuffer(record, np.uint8), self.wanted, head)
            if batch.num_rows == 1:
                block_of(batch, self._spec.structure, {} if self.nulls == "error" else dict(self.nulls))
        except NullsError as error:
            named = error.column.split(".")[0]
            return InvalidArgumentError(
                f"{where}: column {error.column!r} has no value, and NumPy has no null of type {error.kind}; say what to "
                f"put in the place of missing values with nulls={{{named!r}: value}}, or state the column as float64"
            )
        except Exception:  # noqa: BLE001 - whatever pyarrow raises, the record is looked at below
            pass
        column, reason = self.misfit(record, self.wanted, head)
        return InvalidArgumentError(f"{where}: {'' if column is None else f'column {column!r}: '}{reason}")


class BadRecordError(Exception):
    """One of the records of a piece cannot be parsed."""


def _delivered(decoded: Decoded) -> Iterator[tuple[Block, Position]]:
    block, after, error = decoded
    if block is not None:
        yield block, after
    if error is not None:
        raise error


@lru_cache(maxsize=256)
def inferred(made: TextTable, path: str, stamp: str, looked_at: int = _INFERRED_BYTES) -> RowSchema | None:
    """The schema of the records in so many first bytes of a file; None if it has no record."""
    del stamp
    head, parts, size = made.head(path), [], 0
    for piece in made._pieces(path, made.start(), None, head):
        parts.append(piece.data)
        size += len(piece.data)
        if size >= looked_at:
            break
    return made.infer(np.concatenate(parts), head, path) if parts else None
