# SPDX-License-Identifier: Apache-2.0
"""The common base of CSV and JSON Lines: text whose records are rows of a table, parsed by pyarrow a piece at a time.

Pieces are found one after the other, see `text_records`, which is quick, and parsed on any threads. A piece that pyarrow
rejects is searched for its first bad record: the rows before it are delivered, then an error names the file, the line, the
column, and what was found.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import Any

import numpy as np

from distinput.arrow.arrow import FillError, NullsError, block_of
from distinput.arrow.validity import unfilled
from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column, Dense, Strings
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.paths import local_path
from distinput.files.source import beginning_with, begun, stamp_of
from distinput.formats.format import Fragment, PlacedBlocks, Portion, Position, blocks_of, check_position
from distinput.formats.row_schema import Path, RowSchema, text_of
from distinput.formats.tables import as_nulls, check_nulls, table_spec
from distinput.formats.text_records import Head, TextPiece, TextRecords
from distinput.kernels.plain_csv import AS_WRITTEN, FLOAT32, FLOAT64, INT32, INT64, LEFT_OUT, TEXT, TRUTH, WIDTHS
from distinput.names.lazy import library
from distinput.plan.check import normalized
from distinput.values.buffers import Bytes, empty
from distinput.values.spec import Spec

pa = library("pyarrow")

# ----------------------------------------------------------------------------
# The columns that kernels write: one buffer for all of them, and what is made of it.
# ----------------------------------------------------------------------------


_DTYPES: dict[int, np.dtype[Any]] = {
    INT64: np.dtype(np.int64),
    FLOAT64: np.dtype(np.float64),
    FLOAT32: np.dtype(np.float32),
    INT32: np.dtype(np.int32),
    TRUTH: np.dtype(np.bool_),
}
_BYTE = np.dtype(np.uint8)


def as_inferred(kind: int, inferred: bool) -> int:
    """A kind of column, with `AS_WRITTEN` if it is one of numbers that nobody stated."""
    return kind + AS_WRITTEN if inferred and LEFT_OUT < kind < TEXT else kind


class PlainColumns:
    """Room for columns of so many rows.

    Args:
      kinds: of the columns, `LEFT_OUT` for what is not read; see `kernels.plain_json`.
      count: how many rows there are.

    >>> room = PlainColumns([INT64, LEFT_OUT, TEXT], 3)
    >>> room.places, room.out.size
    ([0, 24, 24], 72)
    """

    def __init__(self, kinds: Sequence[int], count: int) -> None:
        self.places: list[int] = []
        size, kinds = 0, [kind % AS_WRITTEN for kind in kinds]
        for kind in kinds:
            self.places.append(size)
            size += -(-WIDTHS[kind] * count // 8) * 8
        self.out = empty((size,), _BYTE)
        self._kinds, self._count = kinds, count

    def made(self, text: Bytes) -> list[Column | None]:
        """The columns, None for what is left out; `text` is what starts of text refer to."""
        return [self._column(kind, place, text) for kind, place in zip(self._kinds, self.places, strict=True)]

    def _column(self, kind: int, place: int, text: Bytes) -> Column | None:
        if kind == TEXT:
            # The text is copied, so that neither the numbers around it nor the buffer of the file stay in memory.
            return Strings(text, *np.ndarray((2, self._count), np.int64, self.out, place)).compact()
        return None if kind == LEFT_OUT else Dense(np.ndarray((self._count,), _DTYPES[kind], self.out, place))


_INFERRED_BYTES = 1 << 20  # at the beginning of the first file, from which a schema is inferred

Decoded = tuple[Block | None, Position, Exception | None]
"""The rows of a piece, the position behind them, and the error of the next record."""


class TextTable(TextRecords):
    """A format whose files are text with a record for each row.

    Subclasses are frozen dataclasses with the fields below. A schema is stated, or inferred from the first rows of the first
    file (`held`), and from then on every file has to fit it.
    """

    __slots__ = ()
    has_columns = in_portions = from_front = errors_of_records = True
    schema: RowSchema | None
    columns: tuple[str, ...] | None
    nulls: Any
    valid: Any

    def _check_nulls(self) -> None:
        """Normalize what is said of nulls: None, "error", or (column, value) pairs; and tell those of `valid` in the schema."""
        if self.nulls is not None:
            normalized(self, "nulls", as_nulls(self.name, self.nulls, tells=False))
        if not isinstance(self.valid, list | tuple | None):
            raise InvalidArgumentError(f"{self.name}: valid must be a list of columns, got {self.valid!r}")
        normalized(self, "valid", tuple(self.valid or ()))
        if self.schema is not None and self.valid:
            normalized(self, "schema", self.schema.telling(self.name, self.valid))

    @property
    def _fills(self) -> dict[str, Any]:
        """What stands in the place of nulls, by column."""
        return {} if self.nulls in (None, "error") else dict(self.nulls)

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
    def infer(self, data: Bytes, head: Head, path: str, stated: RowSchema | None) -> RowSchema | None:
        """The schema of some records, with the types that are stated; None if there is no record."""

    def named(self, path: str) -> tuple[str, ...] | None:
        """The names of all columns, where the head of the file tells them."""
        del path
        return None

    @property
    def spec_from_file(self) -> bool:  # type: ignore[override]
        return self.schema is None

    @cached_property
    def wanted(self) -> RowSchema:
        """The schema of the columns that are read.

        Raises:
          InvalidArgumentError: a column does not exist.
        """
        assert self.schema is not None
        self._check_columns(self.name, self.schema)
        # Else there may be others, which nobody knows.
        if self.columns is None or len(self.schema.names) > len(self.columns):
            check_nulls(self.name, self.nulls or "error", self.schema.arrow)
        return self.schema.only(self.columns)

    def _check_columns(self, where: str, schema: RowSchema) -> None:
        if self.columns is None or schema.states(self.columns):
            return
        name = next(name for name in self.columns if name not in schema.names)
        raise InvalidArgumentError(
            f"{where}: there is no column {name!r}; the columns are {', '.join(schema.names) or 'none'}"
        )

    def spec(self, path: str | None) -> Spec:
        return self._known(path)._spec

    @cached_property
    def _spec(self) -> Spec:
        return table_spec(self.name, self.wanted.delivered, None)

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

        A schema that is not whole is completed by what is inferred for the other columns. Files that have names of columns, and
        no record, have columns of text.

        Raises:
          InvalidArgumentError: no file shows the columns, or the type of one cannot be told.
        """
        schema = self.schema
        if schema is not None and (schema.whole or (self.columns is not None and schema.states(self.columns))):
            return self
        # Types are inferred whatever replaces nulls, which may be a list or a dict, and those have no hash.
        unstated = replace(self, schema=None, nulls=None)  # type: ignore[type-var]  # subclasses are dataclasses
        tried, of_text = [], None
        try:
            for path in paths:
                names = None if schema is None else unstated.named(path)
                if schema is not None and names is not None and schema.states(names):
                    return self
                found = inferred(unstated, path, stamp_of(path), stated=schema)
                found = found if schema is None or found is None or found.states(schema.names) else schema
                if found is not None:
                    return self._holding(found, path)
                of_text = of_text or unstated._of_text(path, schema)
                tried.append(path)
        except (OSError, DataLossError):
            if schema is None:
                raise
            return self  # the reader says what is wrong with the file
        if of_text is not None:
            return self._holding(of_text, tried[0])
        if schema is not None:
            return self
        raise InvalidArgumentError(
            f"{self.name}: no record shows the types of the columns, {' and '.join(tried[:2]) or 'there is no file'}"
            f"{' and others have' if len(tried) > 2 else ' has' if tried else ''} none; state them with schema="
        )

    def _holding(self, found: RowSchema, path: str) -> "TextTable":
        self._check_columns(path, found)
        if self.nulls == "error":
            found = replace(found, nulls=())
        elif self.nulls:  # what is replaced is no null
            fills = self._fills
            left = unfilled([text_of(each) for each in found.nulls], found.arrow, fills)
            kept = [each for each in found.nulls if fills.keys().isdisjoint(_names(each)) or text_of(each) in left]
            found = replace(found, nulls=tuple(kept))
        made: TextTable = replace(self, schema=found)  # type: ignore[type-var]  # subclasses are dataclasses
        try:
            _ = made._spec
        except UnimplementedError:
            table_spec(path, made.wanted.delivered, None)  # which names the file
            raise
        return made

    def _of_text(self, path: str, stated: RowSchema | None) -> RowSchema | None:
        """The schema of a file without records: columns of text, unless another type is stated."""
        names = self.named(path)
        if not names:
            return None
        known = {} if stated is None else {field.name: field.type for field in stated.arrow}
        if not set(names).issuperset(known):
            return stated  # the reader says what the file lacks
        fields = [(name, known.get(name, pa.binary())) for name in names]
        return RowSchema(pa.schema(fields), frozenset(names) - frozenset(known))

    # ---- reading

    def read(self, path: str, position: Position | None = None) -> PlacedBlocks:
        return blocks_of(self.portions(path, position, None, 1, 0))

    def read_fragment(self, fragment: Fragment, position: Position | None = None) -> PlacedBlocks:
        at = fragment.start if position is None else position
        return blocks_of(self.portions(fragment.path, at, fragment.stop, 1, 0))

    def portions(
        self, path: str, position: Position | None, stop: Position | None, size: int, given: int
    ) -> Iterator[Portion]:
        """The pieces of the file."""
        del size, given
        at = self.start() if position is None else position
        check_position(path, at)
        # What comes first is looked at, and then read: of a remote file both are of one answer.
        shared = None if local_path(path) is not None or at != self.start() else begun(path)
        with beginning_with(path, shared):
            head = self.head(path)
            if self.schema is None and inferred(self, path, stamp_of(path)) is None:
                return  # there is no record
            known, pieces = self._known(path), self._pieces(path, at, stop, head)
            first = next(pieces, None)
        pieces = chain(iter([] if first is None else [first]), pieces)
        del shared, first  # their memory is not held while the rest is read
        for piece in pieces:
            yield known._portion(piece, head)

    def _portion(self, piece: TextPiece, head: Head) -> Portion:
        return Portion(piece.count, 3 * len(piece.data), False, partial(self._decoded, piece, head), _delivered)

    # ---- parsing

    def _decoded(self, piece: TextPiece, head: Head) -> Decoded:
        """The rows of a piece; up to the first bad record, and its error."""
        block, good, error = self._until_bad(piece, head, self._block)
        if error is None:
            return block, self._after(piece, len(piece.data), piece.count), None
        return block, self._after(piece, self._offset(piece.data, good), good), error

    def _until_bad(
        self, piece: TextPiece, head: Head, made: "Callable[[Bytes, int, Head], Any]"
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
        end = end if end > begin else len(piece.data)  # a line that `scan` refuses
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
            known = self._holding(found, path)
        pieces, error = known._pieces(path, known.start(), None, head), None
        try:
            for piece in pieces:
                batch, _, error = known._until_bad(piece, head, known._batch)
                if batch is not None:
                    yield batch
                if error is not None:
                    raise error
        finally:
            pieces.close()  # type: ignore[attr-defined]
            del error

    def _block(self, data: Bytes, count: int, head: Head) -> ColumnBlock:
        structure = self._spec.structure
        if not self.wanted.names:
            return ColumnBlock(structure, [], count)
        columns = self.quick(data, count, self.wanted, head)
        if columns is not None:
            # None of these is null.
            valid, named = Dense(np.ones(count, np.bool_)), {path[0] for path in self.wanted.nulls}
            nest = {
                name: {"value": column, "valid": valid} if name in named else column for name, column in columns.items()
            }
            return ColumnBlock(structure, structure.flatten(nest), count)
        batch = self._batch(data, count, head)
        try:
            return self.block_of(batch)
        except (NullsError, pa.ArrowInvalid, UnicodeDecodeError, OverflowError) as error:
            raise BadRecordError from error
        except FillError as error:
            raise InvalidArgumentError(f"{self.name}: nulls: {error}") from None

    def block_of(self, batch: Any) -> ColumnBlock:
        """The rows of a record batch of the wanted columns.

        Raises:
          FillError: a replacement does not fit its column.
          NullsError: a column holds nulls that nothing tells or replaces.
        """
        return block_of(self.wanted.told(batch, self._fills), self._spec.structure, self._fills)

    def _batch(self, data: Bytes, count: int, head: Head) -> Any:
        """Records as a record batch.

        Raises:
          BadRecordError: one of them cannot be parsed.
        """
        try:
            batch = self.parse(data, self.wanted, head)
        except (pa.ArrowInvalid, UnicodeDecodeError, OverflowError, RecursionError) as error:
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
                self.block_of(batch)
        except NullsError as error:
            as_float = ", or state the column as float64" if "int" in error.kind.partition("<")[0] else ""
            return InvalidArgumentError(
                f"{where}: column {error.column!r} has no value, and NumPy has no null of type {error.kind}; {error.cure}"
                f"{as_float}"
            )
        except (FillError, pa.ArrowException, UnicodeDecodeError, OverflowError, RecursionError):
            pass  # the record is looked at below
        column, reason = self.misfit(record, self.wanted, head)
        return InvalidArgumentError(f"{where}: {'' if column is None else f'column {column!r}: '}{reason}")


def _names(path: Path) -> Iterator[str]:
    """The names by which `nulls=` replaces what is at a path: its own, and those of what is around it."""
    parts = [part for part in path if part is not None]
    return (".".join(parts[: end + 1]) for end in range(len(parts)))


class BadRecordError(Exception):
    """One of the records of a piece cannot be parsed."""


def _delivered(decoded: Decoded) -> PlacedBlocks:
    block, after, error = decoded
    if block is not None:
        yield block, after
    try:
        if error is not None:
            raise error
    finally:
        del decoded, error  # which would hold this frame, and be held by it


@lru_cache(maxsize=256)
def inferred(
    made: TextTable, path: str, stamp: str, looked_at: int = _INFERRED_BYTES, stated: RowSchema | None = None
) -> RowSchema | None:
    """The schema of the records in so many first bytes of a file, with the types stated; None if it has no record."""
    del stamp
    head, parts, size = made.head(path), [], 0
    try:
        for piece in made._pieces(path, made.start(), None, head, refused=False):
            parts.append(piece.data)
            size += len(piece.data)
            if size >= looked_at:
                break
    except DataLossError:
        if not parts:
            raise
        # the rows before are delivered, then the reader says what is wrong here
    return made.infer(np.concatenate(parts), head, path, stated) if parts else None
