# SPDX-License-Identifier: Apache-2.0
"""What formats of tables share: options, rows as blocks, one schema for all files, and files that state or count their rows."""

import dataclasses
import re
import threading
from abc import abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from distinput.arrow.arrow import (
    ArrowDamageError,
    FillError,
    NullsError,
    UnsupportedTypeError,
    block_of,
    check_batch,
    is_list,
    is_text,
    names_of,
    schema_spec,
    take,
    without_runs,
)
from distinput.arrow.record_batches import column_to_arrow
from distinput.arrow.tabular import check_fill, filled_names
from distinput.arrow.validity import as_marks, default_marks, items_of, marked, marked_schema, marks_in_place, stored
from distinput.columns.block import MOST_BYTES, Block, ColumnBlock
from distinput.columns.column import Column, Ints
from distinput.errors import DataLossError, DistinputError, InvalidArgumentError, UnimplementedError
from distinput.files.manifest import FileTable
from distinput.files.paths import ask_each
from distinput.formats.format import (
    Format,
    Fragment,
    PlacedBlocks,
    Position,
    check_position,
    check_reached,
    cut_rows,
    rows_in,
)
from distinput.formats.row_schema import RowSchema
from distinput.kernels.kernel import renewed
from distinput.names.lazy import dataclass, library
from distinput.plan.check import normalized, taken
from distinput.values.nest import Structure
from distinput.values.spec import Spec

pa = library("pyarrow")
types = library("pyarrow.types")

# ----------------------------------------------------------------------------
# A cache with a memory limit and least-recently-used eviction.
# ----------------------------------------------------------------------------


T = TypeVar("T")


BRINGS_TOGETHER = 'bring the files together with schema="union" or schema={column: type}, or '
"""How files of Parquet or Arrow that differ get one schema."""


class LruCache(Generic[T]):
    """Values by key; above a memory limit, the least recently used are evicted first.

    Args:
      most_bytes: limit for all values together; a single value may exceed it.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: OrderedDict[Any, tuple[T, int]] = OrderedDict()
        self._bytes = 0
        self._lock = renewed(threading.Lock())

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Any) -> T | None:
        """The value of this key; None if it is not cached."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Any, thing: T, nbytes: int) -> None:
        """Cache a value that takes `nbytes` of memory."""
        with self._lock:
            self._bytes += nbytes - self._kept.pop(key, (thing, 0))[1]
            self._kept[key] = thing, nbytes
            while self._bytes > self.most_bytes and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1][1]


# ----------------------------------------------------------------------------
# Code shared by Parquet and Arrow IPC: options, conversion of rows to blocks, and error messages.
# ----------------------------------------------------------------------------


_ENCRYPTED = re.compile(r"encrypted metadata|Cannot decrypt|file decryption|is encrypted", re.IGNORECASE)
"""What pyarrow says of a file, or a column, for which it would need a key."""


def as_columns(who: str, columns: Any) -> tuple[str, ...] | None:
    """The names of the columns to read; None: all.

    Raises:
      InvalidArgumentError: it is a single name.
    """
    if isinstance(columns, str | bytes):
        raise InvalidArgumentError(f"{who}: columns must be a list of names, got {columns!r}")
    return None if columns is None else tuple(columns)


def as_nulls(who: str, nulls: Any, tells: bool = True) -> Any:
    """The replacement of nulls: "error", or (column, value) pairs; the rule is in `arrow.arrow`; `tells` as for `rows_block`.

    Raises:
      InvalidArgumentError: it is none of the words, and no dict.
    """
    if isinstance(nulls, Mapping):
        check_fill(who, nulls)
        return tuple(sorted(taken(nulls).items()))
    if nulls != "error" and not isinstance(nulls, tuple):
        more = ', or "valid", or None' if tells else ""
        raise InvalidArgumentError(f'{who}: nulls must be "error" or a dict of values by column{more}, got {nulls!r}')
    return nulls


def telling(nulls: Any, asked: bool) -> tuple[str, Any]:
    """How nulls are to be told that the first file holds, and the option `nulls` of a format.

    Args:
      nulls: as users give it: None, "error", "valid" or a dict.
      asked: whether other options say what becomes of nulls.
    """
    if isinstance(nulls, str) and nulls == "valid":
        return ("" if asked else "beside"), "error"
    return ("" if asked or nulls == "error" else "in place"), "error" if nulls is None else nulls


def check_nulls(path: str, nulls: Any, schema: Any) -> None:
    """Refuse replacements of nulls for what is no column of a file.

    Args:
      path: of the file.
      nulls: as returned by `as_nulls`.
      schema: of all columns of the file.

    Raises:
      InvalidArgumentError: there is no such column, or field of a struct.
    """
    if nulls == "error":
        return
    names = names_of(schema)
    for name in filled_names(nulls):
        if name not in names:
            raise InvalidArgumentError(f"{path}: nulls: has no column {name!r}; its columns are {', '.join(names)}")


def check_columns(path: str, schema: Any, columns: Iterable[str] | None) -> None:
    """Refuse a file that has two columns of one name that is wanted, or lacks one.

    Raises:
      DataLossError: a name is not UTF-8.
      InvalidArgumentError: a column does not exist.
      UnimplementedError: two columns have the same name.
    """
    try:
        names = schema.names
        _decode_names(schema)
    except UnicodeDecodeError as error:  # of pyarrow
        raise DataLossError(f"{path}: damaged: the name of a column is not UTF-8: {error}") from error
    wanted = names if columns is None else tuple(columns)
    twice = {name for name, count in Counter(names).items() if count > 1}
    if not twice.isdisjoint(wanted):
        cure = (
            "give each its own"
            if columns is not None
            else "give each its own, or name the columns to read without them"
        )
        raise UnimplementedError(f"{path}: several columns have the same name; {cure}: {', '.join(names)}")
    for name in () if columns is None else wanted:
        if name not in names:
            raise InvalidArgumentError(f"{path}: has no column {name!r}; its columns are {', '.join(names)}")


def _decode_names(fields: Iterable[Any]) -> None:
    """Have pyarrow decode the names of fields at any depth, which it does when it is asked for them."""
    for field in fields:
        kind = getattr(field.type, "storage_type", field.type)
        _ = field.name
        _decode_names([kind.field(place) for place in range(kind.num_fields)])


def table_spec(path: str, schema: Any, columns: Iterable[str] | None) -> Spec:
    """The spec of a row of a file with this schema.

    Raises:
      DataLossError: a type in the schema is invalid.
      InvalidArgumentError: a column does not exist.
      UnimplementedError: two columns have the same name, or a column has a type that no array can hold.
    """
    check_columns(path, schema, columns)
    try:
        return schema_spec(schema if columns is None else [schema.field(name) for name in columns])
    except UnsupportedTypeError as error:
        raise _unsupported(path, error) from None
    except ArrowDamageError as error:
        raise DataLossError(f"{path}: damaged: {error}") from error


@contextmanager
def naming_damage(kind: str, path: str, part: str | None) -> Iterator[None]:
    """Translate pyarrow errors inside the `with` into errors that name the file and the part of it.

    Args:
      kind: the expected kind of file, such as "a Parquet file".
      path: of the file.
      part: such as "row group 3"; None: the footer, which is about the file as a whole.

    Raises:
      DataLossError: pyarrow found damage.
      UnimplementedError: pyarrow cannot read it.
    """
    where = path if part is None else f"{path}: {part}"
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise UnimplementedError(f"{where}: {error}") from error
    except pa.ArrowException as error:
        raise _damage(path, part, kind, error) from error
    except OSError as error:
        if error.errno is None:  # from pyarrow, not from the operating system
            raise _damage(path, part, kind, error) from error
        error.add_note(f"while reading {path!r}")
        raise


def _damage(path: str, part: str | None, kind: str, error: Exception) -> DistinputError:
    """What an error of pyarrow means."""
    where, what = (f"{path}: {part}", error) if part is not None else (path, f"its footer: {error}")
    if _ENCRYPTED.search(str(error)):
        return UnimplementedError(
            f"{where}: is encrypted, and keys cannot be given: {error}; write it decrypted, or name the columns that are not "
            "encrypted with columns="
        )
    return DataLossError(f"{where}: not {kind}, or damaged: {what}")


def checked_batch(path: str, part: str, batch: Any) -> Any:
    """The same record batch, checked so that no offset or index points outside of its memory.

    Args:
      path: of the file.
      part: the part of the file that the batch is from, such as "row group 3".
      batch: a pyarrow RecordBatch of the requested columns.

    Raises:
      DataLossError: an offset or index points outside.
      UnimplementedError: a column has a type that pyarrow has no arrays of.
    """
    try:
        check_batch(batch)
    except ArrowDamageError as error:
        raise DataLossError(f"{path}: {part}: damaged: {error}") from error
    except UnsupportedTypeError as error:
        raise _unsupported(path, error) from None
    return batch


def rows_block(
    path: str,
    part: str,
    batch: Any,
    structure: Structure,
    nulls: Any,
    rows: Sequence[int] | np.ndarray[Any, Any],
    tells: bool = True,
) -> ColumnBlock:
    """Convert a record batch to a block.

    Args:
      path: of the file.
      part: the part of the file that the batch is from, such as "row group 3".
      batch: a pyarrow RecordBatch of the requested columns, in the requested order.
      structure: of the spec from `table_spec`.
      nulls: as returned by `as_nulls`.
      rows: the numbers of its rows in the part.
      tells: whether the format has an option that tells nulls, and columns can be named.

    Raises:
      InvalidArgumentError: there are nulls without a replacement, or the replacement does not fit.
      UnimplementedError: a column has a type that no array can hold.
    """
    try:
        return block_of(batch, structure, {} if nulls == "error" else dict(nulls))
    except NullsError as error:
        cure = f"{error.cure}, or name the columns to read without this one" if tells else error.filling
        raise InvalidArgumentError(
            f"{path}: column {error.column!r} has nulls in {part} (first in its row "
            f"{rows[error.row]}), and NumPy has no null of type {error.kind}; {cure}"
        ) from None
    except UnsupportedTypeError as error:
        raise _unsupported(path, error) from None
    except FillError as error:
        raise InvalidArgumentError(f"{path}: nulls: {error}") from None


def _unsupported(path: str, error: UnsupportedTypeError) -> UnimplementedError:
    return UnimplementedError(
        f"{path}: {error}, which no array can hold; cast it when writing, or name the columns to read without it"
    )


def arrays_of(who: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Convert columns to Arrow arrays.

    Args:
      who: the name of the caller, for error messages.
      columns: by name: arrays [n, ...], lists of numbers, bytes, str or arrays, `Column`s, or Arrow arrays.

    Raises:
      InvalidArgumentError: they differ in length, or one of them is not a column.
      TypeError: they are no dict.
    """
    if not isinstance(columns, Mapping):
        raise TypeError(f"{who}: columns must be a dict from name to values, got {columns!r:.80}")
    arrays = {name: _array_of(who, name, values) for name, values in columns.items()}
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name}: {len(array)}" for name, array in arrays.items())
        raise InvalidArgumentError(f"{who}: columns must have the same number of rows, got {lengths}")
    return arrays


def _array_of(who: str, name: str, values: Any) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, Column):
        return column_to_arrow(values)
    try:
        if isinstance(values, np.ndarray) and not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
        if isinstance(values, np.ndarray) and values.ndim > 1:
            flat = pa.array(values.reshape(-1))
            for size in reversed(values.shape[1:]):
                flat = pa.FixedSizeListArray.from_arrays(flat, size)
            return flat
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{who}: column {name!r}: {error}") from error


# ----------------------------------------------------------------------------
# The common base of Parquet, Arrow IPC and npy: files that state the spec and the number of their rows.
# ----------------------------------------------------------------------------


class TableFormat(Format):
    """A format whose files are tables: rows are numbered, and reading can begin at any of them."""

    __slots__ = ()
    spec_from_file = counts_rows = fetches = states_cardinality = True

    def spec(self, path: str | None) -> Spec:
        if path is None:
            raise InvalidArgumentError(
                f"{self.name}: the spec of a row is determined by the files; name at least one file"
            )
        return self.spec_of(path)

    @abstractmethod
    def spec_of(self, path: str) -> Spec:
        """The spec of a row of this file."""

    def seek(self, path: str, row: int) -> Position | None:
        del path
        return {"row": row}

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        """The rows from `start` to before `stop`."""
        if stop is None:
            return Fragment(path, {"row": start}, None, None, 0)
        return Fragment(path, {"row": start}, {"row": stop}, stop - start, 0)

    def read(self, path: str, position: Position | None = None) -> PlacedBlocks:
        return self.read_groups(path, position, 1, 0)

    @staticmethod
    def first_row(path: str, position: Position | None) -> int:
        """The number of the row at which reading begins.

        Raises:
          StateError: the position is invalid.
        """
        if position is None:
            return 0
        check_position(path, position)
        row: int = position["row"]
        return row

    @abstractmethod
    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        """Like `read`, in blocks that end where groups of `size` rows do."""


class CountedRows(Protocol):
    """An open file that knows how many rows it has, and gives any of them by their numbers."""

    @property
    def rows(self) -> int:
        """How many there are."""
        ...

    def block(self, rows: Ints) -> Block:
        """Rows by their numbers, which are in range."""
        ...


class CountedTable(TableFormat):
    """A format whose files have an index of their rows, so that they are counted, and reached by number."""

    __slots__ = ()

    @abstractmethod
    def opened(self, path: str) -> CountedRows:
        """The file, with its index."""

    def rows(self, path: str) -> int:
        """The number of rows in the file."""
        return self.opened(path).rows

    def units(self, files: FileTable) -> Ints | None:
        return np.fromiter(ask_each(self.rows, files.paths()), np.int64, len(files))

    def unit_bytes(self, files: FileTable) -> int:
        units = self.units(files)
        return max(1, int(files.sizes.sum()) // max(1, 0 if units is None else int(units.sum())))

    def fetch(self, path: str, rows: Ints) -> Block:
        file = self.opened(path)
        return file.block(rows_in(path, rows, file.rows))

    def groups_of(
        self, path: str, file: CountedRows, row: int, ends: Callable[[int], Ints], size: int, given: int
    ) -> PlacedBlocks:
        """What `read_groups` gives of a file that knows the bytes of its rows.

        Args:
          path: of the file.
          file: the same, open.
          row: the first row.
          ends: for a row, the bytes from its beginning to its end, and to the ends of the rows behind it.
          size: rows of a group.
          given: rows given before.
        """
        check_reached(path, file.rows, row, "record")
        while row < file.rows:
            most = max(1, int(np.searchsorted(ends(row), MOST_BYTES, "right")))
            _, stop = next(cut_rows(file.rows - row, most, size, given))
            block = file.block(np.arange(row, row + stop))
            row, given = row + stop, given + stop
            yield block, {"row": row}


# ----------------------------------------------------------------------------
# Files whose columns differ, brought to one schema: one that is stated, or the union of those of all files.
#
# A column that a file lacks, or of which it knows nulls alone, is a column of nulls there; so is a field of a struct.
# Numbers become wider ones where no value changes. Nulls follow the rule in `arrow.arrow`.
# ----------------------------------------------------------------------------


UNION = "union"


@dataclass(frozen=True)
class Conforming:
    """What the rows of files are brought to.

    Args:
      schema: of the rows; "union": that of all files, once they are known; None: each file has its own.
      valid: (path, name) pairs: a column of truth values with this name says what is not null there; "": in place.
      told: the columns of these marks, if nobody has asked for them: the first file has nulls there. States do not compare
        them.

    Raises:
      InvalidArgumentError: an option has an invalid value.
    """

    schema: RowSchema | str | None = None
    valid: tuple[tuple[str, str], ...] = ()
    told: tuple[str, ...] = dataclasses.field(default=(), repr=False)

    @staticmethod
    def of(who: str, schema: Any, valid: Any) -> "Conforming":
        """From the arguments of users."""
        marks = as_marks(valid)
        if marks is None:
            raise InvalidArgumentError(
                f"{who}: valid must be a dict of names by column, or a list of columns, got {valid!r}"
            )
        return Conforming(schema if schema == UNION else RowSchema.of(who, schema), marks)

    def only(self, columns: Sequence[str]) -> "Self | None":
        """The same for some of the columns of files; None: these need nothing, so files are read as they are."""
        if not self.told:
            return self
        kept = [(mark, column) for mark, column in zip(self.valid, self.told, strict=True) if column in columns]
        valid, told = tuple([mark for mark, _ in kept]), tuple([column for _, column in kept])
        return replace(self, valid=valid, told=told) if kept else None

    def held(self, paths: Iterable[str], schema_of: Callable[[str], Any]) -> "Conforming":
        """The same with the union of the schemas of files stated.

        Raises:
          InvalidArgumentError: the types of a column have nothing in common; the error names the file.
        """
        if self.schema != UNION:
            return self
        names, found = list(paths), pa.schema([])
        for path, schema in zip(names, ask_each(schema_of, names), strict=True):
            try:
                plain = pa.schema([(field.name, _stored(field.type)) for field in schema])
                found = pa.unify_schemas([found, plain], promote_options="permissive")
            except (pa.ArrowException, TypeError) as error:
                raise InvalidArgumentError(
                    f"{path}: its columns cannot be brought together with those of the files before it: {error}; state the "
                    "types with schema=, or name the columns to read"
                ) from error
        return Conforming(RowSchema(found), self.valid)

    def columns_in(self, schema: Any, columns: Sequence[str] | None) -> tuple[str, ...] | None:
        """The columns to read of a file of this schema; None: all."""
        if columns is None and not isinstance(self.schema, RowSchema):
            return None
        names = self.schema.names if isinstance(self.schema, RowSchema) else schema.names
        marks = self._marks(names)
        wanted = [name for name in (names if columns is None else columns) if name not in marks]
        wanted += [name for mark, name in marks.items() if mark in (columns or ()) and name not in wanted]
        if isinstance(self.schema, RowSchema):  # what a file lacks is null
            return tuple([name for name in wanted if name in schema.names])
        return tuple(wanted)

    def rows_of(self, path: str, schema: Any, columns: Sequence[str] | None) -> Any:
        """The schema of rows, those columns included that say what is null.

        Args:
          path: a file.
          schema: of the file.
          columns: the columns that are wanted; None: all.

        Raises:
          InvalidArgumentError: a column is not there, or the file cannot be brought to the schema.
          UnimplementedError: a column has a type that no array can hold.
        """
        arrow_schema = self.schema.arrow if isinstance(self.schema, RowSchema) else schema
        for field in arrow_schema if arrow_schema is not schema else ():
            if field.name in schema.names:
                _check(path, field.name, schema.field(field.name).type, field.type)
        try:
            arrow_schema = marked_schema(arrow_schema, self.valid) if self.valid else arrow_schema
        except ValueError as error:
            raise InvalidArgumentError(f"{path}: valid: {error}") from None
        except UnsupportedTypeError as error:
            raise _unsupported(path, error) from None
        for name in columns or ():
            if name not in arrow_schema.names:
                raise InvalidArgumentError(
                    f"{path}: has no column {name!r}; its columns are {', '.join(arrow_schema.names)}"
                )
        return arrow_schema if columns is None else pa.schema([arrow_schema.field(name) for name in columns])

    def brought(self, path: str, batch: Any, rows: Any, nulls: Any) -> Any:
        """A record batch of a file with the columns of `rows`, as `rows_of` returned them.

        Args:
          path: of the file.
          batch: of it.
          rows: the schema.
          nulls: what to put in the place of nulls, as returned by `as_nulls`.

        Raises:
          InvalidArgumentError: a value does not fit the schema, or a replacement its column.
        """
        if isinstance(self.schema, RowSchema):
            marks = self._marks(self.schema.names)
            needed = {marks.get(name, name) for name in rows.names}
            fields = [field for field in self.schema.arrow if field.name in needed]
            arrays = [
                _brought(
                    path,
                    field.name,
                    batch.column(field.name) if field.name in batch.schema.names else None,
                    field.type,
                    batch.num_rows,
                )
                for field in fields
            ]
            batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
        try:
            there = [(name, mark) for name, mark in self.valid if _root(name, batch.schema.names) is not None]
            batch = marked(batch, there, {} if nulls == "error" else dict(nulls)) if there else batch
        except (pa.ArrowException, TypeError) as error:
            raise InvalidArgumentError(f"{path}: nulls: {error}") from None
        return batch if batch.schema.names == rows.names else batch.select(rows.names)

    def _marks(self, names: Collection[str]) -> dict[str, str]:
        """The marks that stand beside columns, and what they are about; others stand inside of structs."""
        roots = {mark: (_root(path, names), path) for path, mark in self.valid}
        return {
            mark: root
            for mark, (root, path) in roots.items()
            if mark and root is not None and set(path[len(root) :]) <= {"[", "]"}
        }


class NullableTable(TableFormat):
    """A format of tables in which there may be nulls, and whose rows are brought to one schema where options say so."""

    __slots__ = ()
    columns: Sequence[str] | None
    nulls: Any

    def __post_init__(self) -> None:
        normalized(self, "columns", as_columns(self.name, self.columns))
        normalized(self, "nulls", as_nulls(self.name, self.nulls))

    @staticmethod
    @abstractmethod
    def conforming_table(**options: Any) -> Any:
        """The format whose rows are brought to one schema."""

    @classmethod
    def of_options(
        cls,
        schema: Any = None,
        valid: Mapping[str, str] | Sequence[str] | None = None,
        nulls: Any = None,
        **options: Any,
    ) -> Any:
        """The format with the options of its dataset."""
        tells, options["nulls"] = telling(nulls, schema is not None or valid is not None)
        if schema is None and not valid:
            plain: Any = cls  # subclasses are dataclasses
            return plain(**options, tells=tells)
        return cls.conforming_table(**options, conforming=Conforming.of(cls.name, schema, valid))

    def with_columns(self, columns: Sequence[str]) -> Format:
        made: Format = replace(self, columns=columns)  # type: ignore[type-var]  # subclasses are dataclasses
        return made


class ConformingTable(TableFormat):
    """A format of tables whose rows are brought to one schema, `conforming`."""

    __slots__ = ()
    conforming: Conforming

    @property
    @abstractmethod
    def plain(self) -> TableFormat:
        """The format without what the first file told, as states know it."""

    def __repr__(self) -> str:
        plain = repr(self.plain)
        if self.conforming.told:
            return plain
        return f"{type(self).__name__}{plain[plain.index('(') : -1]}, conforming={self.conforming!r})"

    def with_columns(self, columns: Sequence[str]) -> Format:
        left = self.conforming.only(columns)
        kept: Any = self.plain if left is None else replace(self, conforming=left)  # type: ignore[type-var]
        made: Format = replace(kept, columns=columns)
        return made


def _root(path: str, names: Collection[str]) -> str | None:
    """The column with which the path of a mark begins; None if there is none. The name of a column may be empty."""
    found = [name for name in names if path == name or path.startswith((f"{name}.", f"{name}[]"))]
    return max(found, key=len, default=None)


def told_nulls(
    schema: Any, columns: Sequence[str] | None, nulls: Sequence[str], how: str, fill: Any
) -> tuple[Conforming, Sequence[str] | None] | None:
    """How a file is read whose nulls are to be told by marks, and which columns. None: it holds none.

    Args:
      schema: of the first file.
      columns: that are wanted; None: all.
      nulls: the paths at which it holds some that NumPy has no value for.
      how: "in place" or "beside".
      fill: what to put in the place of nulls, as returned by `as_nulls`: these need no marks.
    """
    if how == "in place":
        marks = marks_in_place(nulls, schema, {} if fill == "error" else dict(fill))
        told = Conforming(None, marks, tuple([_root(path, schema.names) or "" for path, _ in marks]))
        kept = told.only(schema.names if columns is None else columns) if marks else None
        return None if kept is None else (kept, columns)
    valid = default_marks(nulls, schema)
    if not valid:
        return None
    found = Conforming(None, valid)
    beside = [mark for mark in found._marks(schema.names) if columns is not None and mark not in columns]
    return found, None if columns is None else (*columns, *beside)


def _stored(kind: Any) -> Any:
    """The type of the values of a dictionary, or of runs."""
    while types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def _check(path: str, name: str, kind: Any, wanted: Any) -> None:
    """Refuse a column that cannot become one of the wanted type without another meaning.

    Raises:
      InvalidArgumentError: it cannot.
    """
    kind = _stored(kind)
    if kind == wanted or types.is_null(kind):
        return
    if types.is_struct(kind) and types.is_struct(wanted):
        for field in wanted:
            place = kind.get_field_index(field.name)
            if place >= 0:
                _check(path, f"{name}.{field.name}", kind.field(place).type, field.type)
        return
    if types.is_map(kind) and types.is_map(wanted):
        _check(path, name, kind.key_type, wanted.key_type)
        _check(path, name, kind.item_type, wanted.item_type)
        return
    if hasattr(kind, "value_type") and hasattr(wanted, "value_type"):
        _check(path, name, kind.value_type, wanted.value_type)
        return
    if _family(kind) != _family(wanted) or not _family(kind):
        raise InvalidArgumentError(
            f"{path}: column {name!r} is of type {kind}, and the schema says {wanted}; state one that fits all files, or cast "
            "the column where it is written"
        )


def _family(kind: Any) -> str:
    """What types have in common whose values can become those of another."""
    families = {
        "number": (types.is_integer, types.is_floating, types.is_decimal),
        "truth": (types.is_boolean,),
        "text": (is_text,),
        "day": (types.is_date, types.is_timestamp),
        "time": (types.is_time,),
        "duration": (types.is_duration,),
    }
    return next((name for name, tests in families.items() if any(test(kind) for test in tests)), "")


def _brought(path: str, name: str, array: Any, wanted: Any, rows: int) -> Any:
    """A column, or a field of a struct, of the wanted type."""
    if array is None or types.is_null(array.type):
        return pa.nulls(rows, wanted)
    if array.type == wanted:
        return array
    array = without_runs(array)
    if types.is_dictionary(array.type):
        array = take(array.dictionary, array.indices)
    if types.is_struct(array.type):
        parts = {field.name: part for field, part in zip(array.type, array.flatten(), strict=True)}
        fields = [_brought(path, f"{name}.{each.name}", parts.get(each.name), each.type, rows) for each in wanted]
        if not fields:
            return pa.array([{}] * rows, wanted)
        return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=array.is_null())
    says = f"{path}: column {name!r} is of type {array.type}, and a value of it does not fit the schema, which says {wanted}: "
    try:
        made = array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(f"{says}{error}") from error
    if infinities(made) > infinities(array):
        raise InvalidArgumentError(f"{says}a number would become infinite")
    return made


def infinities(array: Any) -> int:
    """How many numbers of an array are infinite, at any depth."""
    array = stored(array)
    kind = array.type
    if types.is_floating(kind):
        return int(np.isinf(array.to_numpy(zero_copy_only=False)).sum())
    if types.is_struct(kind):
        return sum(map(infinities, array.flatten()))
    lists = is_list(kind) or types.is_fixed_size_list(kind) or types.is_map(kind)
    return infinities(items_of(array)[0]) if lists else 0
