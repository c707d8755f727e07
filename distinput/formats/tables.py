# SPDX-License-Identifier: Apache-2.0
"""What Parquet, Arrow IPC and npy share: options, rows as blocks, a cache, and files that state their spec."""

import re
import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from distinput.arrow.arrow import (
    ArrowDamageError,
    FillError,
    NullsError,
    UnsupportedTypeError,
    block_of,
    check_batch,
    names_of,
    schema_spec,
)
from distinput.arrow.record_batches import column_to_arrow
from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column
from distinput.errors import DataLossError, DistinputError, InvalidArgumentError, UnimplementedError
from distinput.formats.format import Format, Fragment, Position, check_position
from distinput.values.nest import Structure
from distinput.values.spec import Spec

__all__ = [
    "LruCache",
    "TableFormat",
    "arrays_of",
    "as_columns",
    "as_nulls",
    "check_columns",
    "check_nulls",
    "checked_batch",
    "naming_damage",
    "rows_block",
    "table_spec",
]


# ----------------------------------------------------------------------------
# A cache with a memory limit and least-recently-used eviction.
# ----------------------------------------------------------------------------


T = TypeVar("T")


class LruCache(Generic[T]):
    """Values by key; above a memory limit, the least recently used are evicted first.

    Args:
      most_bytes: limit for all values together; a single value may exceed it.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: OrderedDict[Any, tuple[T, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

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


def as_nulls(who: str, nulls: Any) -> Any:
    """The replacement of nulls: "error", or (column, value) pairs; the rule is in `core.arrow`.

    Raises:
      InvalidArgumentError: it is neither "error" nor a dict.
    """
    if isinstance(nulls, Mapping):
        return tuple(sorted(nulls.items()))
    if nulls != "error" and not isinstance(nulls, tuple):
        raise InvalidArgumentError(f'{who}: nulls must be "error" or a dict of values by column, got {nulls!r}')
    return nulls


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
    for name, _ in nulls:
        if name not in names:
            raise InvalidArgumentError(f"{path}: nulls: has no column {name!r}; its columns are {', '.join(names)}")


def check_columns(path: str, schema: Any, columns: Iterable[str] | None) -> None:
    """Refuse a file that has two columns of one name, or lacks one that is wanted.

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
    if len(set(names)) != len(names):
        raise UnimplementedError(f"{path}: several columns have the same name; give each its own: {', '.join(names)}")
    for name in columns or ():
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
    import pyarrow as pa

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
    """
    try:
        check_batch(batch)
    except ArrowDamageError as error:
        raise DataLossError(f"{path}: {part}: damaged: {error}") from error
    return batch


def rows_block(
    path: str,
    part: str,
    batch: Any,
    structure: Structure,
    nulls: Any,
    rows: Sequence[int] | np.ndarray[Any, Any],
) -> ColumnBlock:
    """Convert a record batch to a block.

    Args:
      path: of the file.
      part: the part of the file that the batch is from, such as "row group 3".
      batch: a pyarrow RecordBatch of the requested columns, in the requested order.
      structure: of the spec from `table_spec`.
      nulls: as returned by `as_nulls`.
      rows: the numbers of its rows in the part.

    Raises:
      InvalidArgumentError: there are nulls without a replacement, or the replacement does not fit.
      UnimplementedError: a column has a type that no array can hold.
    """
    try:
        return block_of(batch, structure, {} if nulls == "error" else dict(nulls))
    except NullsError as error:
        raise InvalidArgumentError(
            f"{path}: column {error.column!r} has nulls in {part} (first in its row "
            f"{rows[error.row]}), and NumPy has no null of type {error.kind}; say what to put in their place with "
            f"nulls={{{error.column!r}: value}}, or name the columns to read without this one"
        ) from None
    except UnsupportedTypeError as error:
        raise _unsupported(path, error) from None
    except FillError as error:
        raise InvalidArgumentError(f"{path}: nulls: {error}") from None


def _unsupported(path: str, error: UnsupportedTypeError) -> UnimplementedError:
    if str(error).endswith("is of type null"):
        return UnimplementedError(
            f'{path}: {error}: it holds nulls alone, which take the type of other files with schema="union"; or state one '
            "with schema=, or name the columns to read without it"
        )
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
    """
    arrays = {name: _array_of(who, name, values) for name, values in columns.items()}
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name}: {len(array)}" for name, array in arrays.items())
        raise InvalidArgumentError(f"{who}: columns must have the same number of rows, got {lengths}")
    return arrays


def _array_of(who: str, name: str, values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, Column):
        return column_to_arrow(values)
    try:
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
    spec_from_file: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True
    fetches: ClassVar[bool] = True
    states_cardinality: ClassVar[bool] = True

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

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
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
    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        """Like `read`, in blocks that end where groups of `size` rows do."""
