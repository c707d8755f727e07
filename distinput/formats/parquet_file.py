# SPDX-License-Identifier: Apache-2.0
"""Reading Parquet files with pyarrow: their footers, and readers that several threads can use at the same time."""

import os
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from distinput.arrow.validity import items_of
from distinput.columns.column import Ints
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.paths import local_path
from distinput.files.range_requests import FileMetadata, sends_whole
from distinput.files.remote import RemoteFile
from distinput.files.source import (
    HINTS,
    ending,
    facts_at,
    naming,
    open_binary,
    read_range,
    room_for,
    size_of,
    stamp_of,
    within,
)
from distinput.formats.tables import LruCache, naming_damage
from distinput.kernels.kernel import renewed
from distinput.names.lazy import library

pa = library("pyarrow")
types = library("pyarrow.types")

# ----------------------------------------------------------------------------
# The byte ranges of the columns of a Parquet file, from its footer.
#
# pyarrow offers this too, but crashes the process if this part of the footer is damaged. Source: "Thrift Compact protocol
# encoding" of Apache Thrift, and `parquet.thrift` of the format: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
# ----------------------------------------------------------------------------


_ROW_GROUPS, _COLUMNS, _META_DATA, _PATH, _COMPRESSED_SIZE, _DATA, _DICTIONARY = 4, 1, 3, 3, 7, 9, 11
"""The field numbers on the path from the footer to the bytes of a column."""


_DEEPEST = 64
"""How deep structs and lists may lie in each other."""


class ThriftError(Exception):
    """What should be a footer is none."""


class Chunk(NamedTuple):
    """The values of a column, or of one leaf of a nested column, in a row group.

    Args:
      column: the name of the top-level column.
      start: the byte of the file at which the chunk begins.
      stop: the byte at which it ends.
    """

    column: str
    start: int
    stop: int


def chunks_of(path: str, footer: bytes, size: int) -> list[list[Chunk]]:
    """The chunks of each row group.

    Args:
      path: of the file, for error messages.
      footer: of the file, without the length and the magic number after it.
      size: of the file in bytes.

    Raises:
      DataLossError: the footer is damaged.
    """
    try:
        groups = part_of(Compact(footer).struct(), _ROW_GROUPS, list)
        return [[_chunk(column, size) for column in part_of(group, _COLUMNS, list)] for group in groups]
    except ThriftError as error:
        raise DataLossError(f"{path}: not a Parquet file, or damaged: its footer: {error}") from error


def part_of(fields: Any, number: int, kind: type, missing: Any = None) -> Any:
    """A field of a struct.

    Args:
      fields: of the struct, as `Compact.struct` returns them.
      number: of the field.
      kind: what its value must be.
      missing: its value if it is not there; None: it must be.

    Raises:
      ThriftError: it is not there, or something else.
    """
    found = fields.get(number, missing) if isinstance(fields, dict) else None
    if type(found) is not kind:
        raise ThriftError(f"field {number} should be a {kind.__name__}, and is {found!r:.40}")
    return found


def path_of(described: Any) -> list[str]:
    """The names that lead to a leaf of a column, from the top-level column down, of its metadata."""
    names = part_of(described, _PATH, list)
    try:
        found = [name.decode() for name in names if isinstance(name, bytes)]
    except UnicodeDecodeError as error:
        raise ThriftError(f"a name of a column is not UTF-8: {error}") from error
    if not found or len(found) != len(names):
        raise ThriftError(f"a column whose name is {names!r:.40}")
    return found


_BESIDE = ((4, 5), (6, 7)), ((14, 15),)
"""The field numbers of the place and the length of what goes with a chunk: of two indexes, and in its metadata of a filter."""


def _last_byte(decoded: Any) -> int:
    """Where everything ends that a footer tells the place of."""
    ends = [len(b"PAR1")]
    for group in part_of(decoded, _ROW_GROUPS, list):
        for column in part_of(group, _COLUMNS, list):
            described = part_of(column, _META_DATA, dict)
            ends.append(_chunk(column, 1 << 62).stop)
            for fields, places in zip((column, described), _BESIDE, strict=True):
                ends += [part_of(fields, at, int, 0) + part_of(fields, length, int, 0) for at, length in places]
    return max(ends)


def _chunk(column: Any, size: int) -> Chunk:
    described = part_of(column, _META_DATA, dict)
    name, nbytes = path_of(described)[0], part_of(described, _COMPRESSED_SIZE, int)
    start, dictionary = part_of(described, _DATA, int), part_of(described, _DICTIONARY, int, 0)
    if dictionary > 0 and not 0 < start < dictionary:  # a chunk without values has no page of them: its place is 0
        start = dictionary
    if not 0 <= nbytes <= size or not 0 <= start <= size - nbytes:
        raise ThriftError(f"column {name!r} cannot take {nbytes} bytes from byte {start} on")
    return Chunk(name, start, start + nbytes)


class Compact:
    """A decoder of Thrift's compact encoding.

    Args:
      data: the bytes to decode, from the beginning.

    Raises:
      ThriftError: they are something else.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) & 15:  # no kind: the end, whatever the other bits are, as Thrift has it
            kind, step = head & 15, head >> 4
            number = number + step if step else self._signed()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth + 1)
        return fields

    @property
    def decoded(self) -> int:
        """How many bytes were decoded."""
        return self._at

    def items(self, wanted: int) -> list[bytes]:
        """The encoded structs of a list that is a field of this struct, which is decoded no further.

        Raises:
          ThriftError: there is no such list.
        """
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self._signed()
            if number == wanted and kind == 9:
                return self._items()
            if kind not in (1, 2):
                self._value(kind, 1)
        raise ThriftError(f"field {wanted} should be a list, and is not there")

    def _items(self) -> list[bytes]:
        head, found = self._byte(), []
        for _ in range(head >> 4 if head < 0xF0 else self._number()):
            first = self._at
            self._value(head & 15, 1)
            found.append(self._data[first : self._at])
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ThriftError(f"structs that lie in each other more than {_DEEPEST} deep")
        match kind:
            case 1 | 2:  # an item of a list; the value of a boolean field is in its header
                return self._byte() == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 7:
                return struct.unpack("<d", self._bytes(8))[0]
            case 8:
                return self._bytes(self._number())
            case 9 | 10:
                head = self._byte()
                count = head >> 4 if head < 0xF0 else self._number()
                return [self._value(head & 15, depth + 1) for _ in range(count)]
            case 12:
                return self.struct(depth)
        raise ThriftError(f"a value of kind {kind}")

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise ThriftError("it ends too early")
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise ThriftError(f"{count} bytes that are not there")
        return self._data[self._at - count : self._at]

    def _number(self) -> int:
        """A varint: seven bits per byte, lowest first; the highest bit means that more follow."""
        number = shift = 0
        while (byte := self._byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ThriftError("a number of more than 64 bits")
        return number | byte << shift

    def _signed(self) -> int:
        """A zigzag varint: 0, -1, 1, -2, ... are stored as 0, 1, 2, 3, ..."""
        number = self._number()
        return number >> 1 ^ -(number & 1)


_READ_BYTES, _LEAST_READ = 1 << 18, 1 << 13
"""How much of each column of a local file is read at a time: small enough to be in the CPU cache when it is decoded,
which halves the time for numbers. Less where many files are read by turns."""

_LEAST_REQUESTED = 2 << 20
"""How much of all columns of a remote file is requested at a time at least, however many files are read by turns: a request
takes as long as some megabytes."""

_PIECE_BYTES, _PIECES_BYTES = 4 << 20, 32 << 20
"""How much of a remote file is read at a time when columns are decoded in slices: of each column, and of all. A row group
that is decoded at once is there already, and pyarrow would copy it into a buffer of its own, a tenth of the time."""

_TAIL_BYTES = 64 << 10
"""How much is read from the end of a file first; most footers are shorter."""

_FOOTERS_BYTES, _FOOTER_COST = 256 << 20, 4
"""Memory limit of the footer cache, and the approximate ratio of a footer's size in memory to its size in the file."""

_INT96_ROWS = 1 << 16
"""How many points in time are looked at at once."""

_TEXT_BYTES = 16
"""The least estimate for a value without a fixed size."""


class Group(NamedTuple):
    """A row group.

    Args:
      rows: number of rows.
      nbytes: approximate memory of the columns to read, once decoded.
      widest: approximate memory of the largest of these columns.
    """

    rows: int
    nbytes: int
    widest: int


class Footer(NamedTuple):
    """The footer of a file.

    Args:
      metadata: as pyarrow's `FileMetaData`.
      rows: of all row groups.
      content: the bytes of the footer.
      size: of the file in bytes.
      facts: of the remote file that it is in; None for a local one.
    """

    metadata: Any
    rows: int
    content: bytes
    size: int
    facts: FileMetadata | None


def footer_of(path: str, stamp: str | None = None) -> Any:
    """The footer of a file, as pyarrow's `FileMetaData`.

    Args:
      path: of the file.
      stamp: of its version, as returned by `stamp_of`; None: the current one.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: it is not a Parquet file, or it is damaged.
    """
    return _footer_of(path, stamp).metadata


def _footer_of(path: str, stamp: str | None = None) -> Footer:
    """The footer of this version of a file, or of the current one; cached per process."""
    key = path, stamp_of(path) if stamp is None else stamp
    with _READING[hash(key) % len(_READING)]:
        found = _FOOTERS.get(key)
        if found is None:
            found = _read_footer(*key)
            _FOOTERS.put(key, found, 4096 + _FOOTER_COST * len(found.content))
        return found


def _read_footer(path: str, stamp: str) -> Footer:
    from pyarrow.parquet import read_metadata

    size, facts, tail = _end(path, stamp)
    if not size and local_path(path) is None:  # what some stores say of a folder
        raise DataLossError(
            f"{path}: not a Parquet file, or damaged: it has no bytes; {path.rstrip('/')}/ stands for the files below a folder"
        )
    whole = int.from_bytes(tail[-8:-4], "little") + 8
    if len(tail) < whole <= size:
        tail = read_range(path, size - whole, size - len(tail), facts) + tail
    with reading(path, None):
        try:
            metadata = read_metadata(pa.BufferReader(tail))
        except UnicodeDecodeError as error:  # of pyarrow, which decodes the names of columns
            raise DataLossError(f"{path}: not a Parquet file, or damaged: its footer: {error}") from error
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        rows = sum(group.num_rows for group in groups)
        nbytes = whole + sum(group.total_byte_size for group in groups)
    if rows != metadata.num_rows and metadata.num_rows:  # some writers never say it
        raise DataLossError(f"{path}: the footer says {metadata.num_rows} rows, but its row groups have {rows}")
    made = Footer(metadata, rows, tail[-whole:-8], size, facts)
    chunks = max(1, len(groups) * metadata.num_columns)
    # Its values would take less, if they were not even compressed; or the look costs little beside decoding them.
    if _JOINED in tail or 4 * nbytes < 3 * size or max(size, nbytes) // chunks >= _CHUNK_BYTES:
        _check_alone(path, made)
    return made


_JOINED = b"PAR1PAR1"
"""The end of a file, and the beginning of another one."""

_CHUNK_BYTES = 1 << 20
"""To look where so large a part of a column ends takes a twentieth of the time in which it is decoded. pyarrow does not tell it
without harm: where a damaged footer contradicts itself, its `column` ends the process."""


def decoded_footer(path: str, stamp: str) -> dict[int, Any]:
    """The fields of the footer of this version of a file, by number.

    Raises:
      DataLossError: the file is several ones, one behind the other.
      ThriftError: the footer is damaged.
    """
    footer = _footer_of(path, stamp)
    decoded = Compact(footer.content).struct()
    _check_alone(path, footer, decoded)
    return decoded


def check_alone(path: str) -> None:
    """Refuse files that were joined byte by byte, whatever the look costs.

    Raises:
      DataLossError: they were.
    """
    _check_alone(path, _footer_of(path))


def _check_alone(path: str, footer: Footer, decoded: dict[int, Any] | None = None) -> None:
    """Refuse files that were joined byte by byte: the footer of the last one counts from its own beginning.

    Raises:
      DataLossError: they were.
    """
    try:
        last = _last_byte(Compact(footer.content).struct() if decoded is None else decoded)
    except ThriftError:
        return
    before = footer.size - 8 - len(footer.content) - last
    if before >= len(_JOINED) and read_range(path, before - 4, before + 4, footer.facts) == _JOINED:
        raise DataLossError(
            f"{path}: holds several Parquet files one behind the other, the last from byte {before} on; readers see no other "
            "one, so bytes of Parquet files cannot be joined: name the files themselves, which one dataset reads in order"
        )


def _end(path: str, stamp: str) -> tuple[int, FileMetadata | None, bytes]:
    """The size of a file, what the server of a remote one says of it, and its last bytes."""
    size, facts = None, None
    if local_path(path) is None:
        found = ending(path, _TAIL_BYTES)
        if found is not None and found[0].size is not None:
            return found[0].size, found[0], bytes(found[1])
        with naming(path):
            facts = facts_at(path, stamp)
        size = facts.size
    if size is None:
        size, facts = size_of(path), None
        if not size and local_path(path) is None:  # its server tells none
            raise sends_whole(path)
    return size, facts, read_range(path, max(0, size - _TAIL_BYTES), size, facts)


@lru_cache(maxsize=256)
def chunks(path: str, stamp: str) -> list[list[Chunk]]:
    """The byte ranges of the columns of each row group.

    Args:
      path: of the file.
      stamp: of its version, as returned by `stamp_of`.

    Raises:
      DataLossError: the file is damaged.
    """
    footer = _footer_of(path, stamp)
    return chunks_of(path, footer.content, footer.size)


def rows_of(path: str, stamp: str | None = None) -> int:
    """The rows of a file, as its row groups say; arguments and errors as for `footer_of`."""
    return _footer_of(path, stamp).rows


def footer_bytes(path: str, stamp: str) -> bytes:
    """The footer of this version of a file, as it is stored."""
    return _footer_of(path, stamp).content


def schema_of(path: str, stamp: str | None = None) -> Any:
    """The pyarrow Schema of the columns of a file that have values. Pyarrow hands out no struct that has no fields."""
    return _schema(path, stamp_of(path) if stamp is None else stamp)


@lru_cache(maxsize=256)
def _schema(path: str, stamp: str) -> Any:
    schema = footer_of(path, stamp).schema.to_arrow_schema()
    kinds = [_with_values(kind) for kind in schema.types]
    if kinds == schema.types:
        return schema
    kept = [field.with_type(kind) for field, kind in zip(schema, kinds, strict=True) if kind is not None]
    return pa.schema(kept, schema.metadata)


def _with_values(kind: Any) -> Any:
    """A type without the structs in it that have no fields; None: nothing is left."""
    if not types.is_struct(kind):
        return kind
    fields = [(field, _with_values(field.type)) for field in kind]
    kept = [field.with_type(inner) for field, inner in fields if inner is not None]
    return pa.struct(kept) if kept else None


@lru_cache(maxsize=256)
def groups_of(path: str, stamp: str, columns: tuple[str, ...] | None) -> tuple[Group, ...]:
    """The row groups of a file.

    Their size is estimated from the types of the columns, since dictionary-encoded and run-length-encoded values take
    less space in the file than in memory; for values without a fixed size the total size of all columns is used too.
    The footer's metadata of each column is not accessed: pyarrow crashes the process if that is damaged.

    Args:
      path: of the file.
      stamp: of its version, as returned by `stamp_of`.
      columns: the columns to read; None: all.
    """
    footer, schema = _footer_of(path, stamp).metadata, schema_of(path, stamp)
    every = [width for field in schema for width in _widths(field.type)]
    read = every if columns is None else [width for name in columns for width in _widths(schema.field(name).type)]
    texts = read.count(None)
    sizes, sizes_of_all = [width or 0 for width in read], [width or 0 for width in every]
    groups = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        rows = group.num_rows
        text = max(group.total_byte_size - rows * sum(sizes_of_all), rows * _TEXT_BYTES * texts) if texts else 0
        widest = max(rows * max(sizes, default=0), text / max(1, texts))
        groups.append(Group(rows, int(rows * sum(sizes) + text), int(widest)))
    return tuple(groups)


@lru_cache(maxsize=256)
def decoding_order(path: str, stamp: str, columns: tuple[str, ...] | None) -> list[str] | None:
    """The names of the columns to read, in the order in which threads should decode them; None: all, in file order.

    Strings and lists take several times as long as numbers, so if one of them came last, the other threads would be
    idle.
    """
    schema = schema_of(path, stamp)
    names = list(schema.names if columns is None else columns)
    ordered = sorted(names, key=lambda name: None not in _widths(schema.field(name).type))
    return None if columns is None and ordered == names else ordered


def _widths(kind: Any) -> list[float | None]:
    """The sizes in bytes of the leaf values of an Arrow type; None for a leaf without a fixed size."""
    if isinstance(kind, pa.BaseExtensionType):
        return _widths(kind.storage_type)
    if types.is_struct(kind):
        return [width for field in kind for width in _widths(field.type)]
    if types.is_fixed_size_list(kind):
        return [None if width is None else width * kind.list_size for width in _widths(kind.value_type)]
    if types.is_dictionary(kind):
        return _widths(kind.value_type)
    try:
        return [kind.bit_width / 8]
    except ValueError:
        return [None]


@contextmanager
def reading(path: str, group: int | None) -> Iterator[None]:
    """Translate pyarrow errors inside the `with` into errors that name the file and the row group."""
    try:
        with naming_damage("a Parquet file", path, None if group is None else f"row group {group}"):
            yield
    except DataLossError:
        if group is not None:
            check_alone(path)
        raise


@lru_cache(maxsize=256)
def int96_columns(path: str, stamp: str) -> tuple[str, ...]:
    """The names of the columns in which a file has points in time of the old type INT96."""
    schema, leaves = schema_of(path, stamp), footer_of(path, stamp).schema
    places = [leaf.path for leaf in map(leaves.column, range(len(leaves))) if leaf.physical_type == "INT96"]
    return tuple([name for name in schema.names if any(f"{place}.".startswith(f"{name}.") for place in places)])


@lru_cache(maxsize=4096)
def check_int96(path: str, stamp: str, group: int, columns: tuple[str, ...] | None, unit: str) -> None:
    """Refuse points in time of the type INT96 that pyarrow changes: it lets those that int64 does not hold wrap around.

    Args:
      path: of the file.
      stamp: of its version.
      group: the number of the row group.
      columns: names of the columns to read; None: all.
      unit: as what they are read, "ns" or "us".

    Raises:
      InvalidArgumentError: a column has one.
    """
    names = [name for name in int96_columns(path, stamp) if columns is None or name in columns]
    if not names:
        return
    both = [opened(path, stamp, at_once=False, unit=each) for each in ("us", "ns")]
    with both[0] as micro, both[1] as nano, reading(path, group):
        batches = [each.file.iter_batches(_INT96_ROWS, row_groups=[group], columns=names) for each in (micro, nano)]
        for parts in zip(*batches, strict=True):
            for name in names:
                found, wrapped = [_times(part.column(name)) for part in parts]
                lost = (wrapped.view(np.uint64) - found.view(np.uint64) * np.uint64(1000)) > 0
                changed = found[lost if unit == "us" else wrapped // 1000 != found]
                if changed.size:
                    what = "lose digits as microseconds" if unit == "us" else "nanoseconds do not hold"
                    cure = "datetime64[ns]" if unit == "us" else "datetime64[us]"
                    raise InvalidArgumentError(
                        f"{path}: row group {group}: column {name!r} has points in time of the type INT96 that {what}, such "
                        f"as {changed[:1].view('M8[us]')[0]}; state another unit with schema=, such as {cure}, or name the "
                        "columns to read without this one"
                    )


def _times(array: Any) -> Ints:
    """The numbers of the points in time that are in an array and are no nulls."""
    if types.is_nested(array.type):
        parts = array.flatten() if types.is_struct(array.type) else [items_of(array)[0]]
        return np.concatenate([_times(part) for part in parts])
    there = array.drop_null() if types.is_timestamp(array.type) else array.slice(0, 0)
    return np.asarray(there.cast(pa.int64()) if len(there) else [], np.int64)


class ParquetReader:
    """Pyarrow's `ParquetFile` over a file.

    What it has decoded of a local file is not compared with its checksums again while the file is the same: that takes longer
    than decoding it.

    Args:
      opening: opens a `ParquetFile`, which compares pages with their checksums or not.
      remote: the remote file that it reads; None for a local file.
      path: of the file.
      stamp: of its version.
      unit: of points in time of the type INT96.

    Attributes:
      file: the `ParquetFile` that compares.
    """

    def __init__(
        self, opening: Callable[[bool], Any], remote: RemoteFile | None, path: str, stamp: str, unit: str = "ns"
    ) -> None:
        self.file, self.remote, self.path, self.stamp, self.unit = opening(True), remote, path, stamp, unit
        self._opening = opening
        self._compared: dict[Any, frozenset[int]] = {}

    @cached_property
    def _quick(self) -> Any:
        return self._opening(False)

    def check_int96(self, group: int, columns: Sequence[str] | None) -> None:
        """Refuse points in time of the type INT96 that would change; arguments and errors as for `check_int96`."""
        if int96_columns(self.path, self.stamp):
            check_int96(self.path, self.stamp, group, None if columns is None else tuple(columns), self.unit)

    def compares(self, columns: Any, parts: Iterable[int]) -> bool:
        """Whether checksums of these parts of columns are to be compared: some of them are not those that were noted last."""
        known = self.remote is None and self._compared.get(columns, frozenset()).issuperset(parts)
        return not known or stamp_of(self.path) != self.stamp

    def note_compared(self, columns: Any, parts: Iterable[int]) -> None:
        """Note that these parts of columns are as their checksums say."""
        self._compared[columns] = frozenset(parts)

    def row_group(self, number: int, columns: Sequence[str] | None, threads: bool = True, end: int = 0) -> Any:
        """Read these columns of a row group as a table.

        Args:
          number: of the row group.
          columns: their names; None: all.
          threads: whether several of them are read at a time, where there are cores.
          end: the number of a row from which on none is needed; 0: all are.
        """
        if self.remote is None:
            names = None if columns is None else tuple(columns)
            compares = self.compares(names, [number])
            if end and not compares:  # all of its pages were compared before
                batch = next(self._quick.iter_batches(end, [number], columns, use_threads=threads), None)
                if batch is not None and batch.num_rows == end:
                    return pa.Table.from_batches([batch])
            table = (self.file if compares else self._quick).read_row_group(number, columns, use_threads=threads)
            self.note_compared(names, [number])
            return table
        wanted = [
            chunk for chunk in chunks(self.path, self.stamp)[number] if columns is None or chunk.column in columns
        ]
        self.remote.keep([chunk.start for chunk in wanted], [chunk.stop for chunk in wanted])
        try:
            return self.file.read_row_group(number, columns=columns, use_threads=threads)
        finally:
            self.remote.keep([], [])

    def close(self) -> None:
        """Close what was opened."""
        self.file.close()
        if "_quick" in self.__dict__:
            self._quick.close()


@contextmanager
def opened(path: str, stamp: str, at_once: bool = True, unit: str = "ns") -> Iterator[ParquetReader]:
    """Open a reader of a file.

    Args:
      path: of the file.
      stamp: of its version.
      at_once: whether row groups are decoded at once, by `ParquetReader.row_group`, and not in slices.
      unit: of points in time of the type INT96.
    """
    from pyarrow.parquet import ParquetFile

    local, footer = local_path(path), _footer_of(path, stamp)
    columns = max(1, footer.metadata.num_columns)
    buffered = _READ_BYTES if local else max(_READ_BYTES, min(_PIECE_BYTES, _PIECES_BYTES // columns))
    least = _LEAST_READ if local else max(_LEAST_READ, _LEAST_REQUESTED // columns)
    buffered = max(least, room_for(buffered * columns) // columns)
    remote = RemoteFile(path, footer.size, footer.facts) if local is None and footer.size else None
    with naming(path):
        source = remote or (open_binary(path) if local is None else pa.OSFile(os.fsencode(local), "rb"))

    def opening(compares: bool) -> Any:
        return ParquetFile(
            source,
            metadata=footer.metadata,
            page_checksum_verification=compares,
            pre_buffer=False,
            buffer_size=0 if remote is not None and at_once else buffered,
            coerce_int96_timestamp_unit=unit,
        )

    with source:
        with reading(path, None):
            reader = ParquetReader(opening, remote, path, stamp, unit)
        with closing(reader):
            yield reader


class Readers:
    """A pool of pyarrow readers of one file, one for each concurrent thread, since they are not thread-safe.

    Args:
      path: of the file.
      stamp: of its version, as returned by `stamp_of`.
      unit: of points in time of the type INT96.
    """

    def __init__(self, path: str, stamp: str, unit: str = "ns") -> None:
        self.path, self.stamp, self.unit, self._room = path, stamp, unit, HINTS.room
        self._idle: dict[bool, list[tuple[ParquetReader, AbstractContextManager[ParquetReader]]]] = {
            True: [],
            False: [],
        }
        self._closed = False
        self._lock = renewed(threading.Lock())

    @contextmanager
    def lent(self, at_once: bool) -> Iterator[ParquetReader]:
        """Lend a reader to the caller exclusively; `at_once` as for `opened`."""
        idle = self._idle[at_once]
        with self._lock:
            lent = idle.pop() if idle else None
        if lent is None:
            opening = opened(self.path, self.stamp, at_once, self.unit)
            with within(self._room):  # this may be another thread
                lent = opening.__enter__(), opening
            self._check_same(opening)
        try:
            yield lent[0]
        finally:
            with self._lock:
                closed = self._closed
                if not closed:
                    idle.append(lent)
            if closed:
                lent[1].__exit__(None, None, None)

    def _check_same(self, opening: AbstractContextManager[Any]) -> None:
        """Reject a file that was opened for another thread and has changed since the footer was read."""
        if local_path(self.path) is not None and stamp_of(self.path) != self.stamp:
            opening.__exit__(None, None, None)
            raise DataLossError(
                f"{self.path}: changed while it was read; what was read of it so far belongs to another file"
            )

    def close(self) -> None:
        """Close all readers; those on loan are closed when they are returned."""
        with self._lock:
            self._closed, idle = True, [*self._idle[True], *self._idle[False]]
            for each in self._idle.values():
                each.clear()
        for _, opening in idle:
            opening.__exit__(None, None, None)


def batches_of(
    readers: Readers, number: int, rows: int, columns: list[str] | None, at_once: int | None
) -> Iterator[tuple[int, Any]]:
    """The record batches of a row group, each with the number of its first row in it.

    Args:
      readers: of the file.
      number: of the row group.
      rows: number of rows in it.
      columns: names of the columns to read; None: all.
      at_once: rows to decode at a time; None: all of them, before the first batch is yielded.

    Raises:
      DataLossError: the row group is damaged, or has a different number of rows.
    """
    row = 0
    with readers.lent(at_once is None) as reader, reading(readers.path, number):
        reader.check_int96(number, columns)
        if at_once is None:
            batches = iter(reader.row_group(number, columns).to_batches())
        else:
            # Arrow has a thread for each core, too few for all that wait for a network.
            threads = reader.remote is None
            batches = reader.file.iter_batches(at_once, row_groups=[number], columns=columns, use_threads=threads)
        for batch in batches:
            yield row, batch
            row += batch.num_rows
    if row != rows:
        raise DataLossError(f"{readers.path}: row group {number} should have {rows} rows, but has {row}")


class RowGroupBatches:
    """The record batches of a row group, decoded incrementally.

    Args:
      batches: as yielded by `batches_of`.
      rows: number of rows in the row group.
    """

    def __init__(self, batches: Iterator[tuple[int, Any]], rows: int) -> None:
        self._batches, self._rows = batches, rows
        self._last: tuple[int, Any] | None = None

    def decode(self, wanted: range) -> list[tuple[int, Any]]:
        """The batches that hold the wanted rows, which must come after those of the previous call."""
        batches = []
        item = self._last or next(self._batches, None)
        while item is not None:
            first, batch = item
            if first + batch.num_rows > wanted.start:
                batches.append(item)
            if first + batch.num_rows >= wanted.stop:
                break
            item = next(self._batches, None)
        self._last = item if item is not None and item[0] + item[1].num_rows > wanted.stop else None
        if wanted.stop == self._rows:
            for _ in self._batches:  # raises an error if there are more
                pass
        return batches


_FOOTERS: LruCache[Footer] = LruCache(_FOOTERS_BYTES)
"""The footers of recently used files."""

_READING = [renewed(threading.Lock()) for _ in range(32)]
"""Held while a footer is read, so that concurrent callers wait instead of reading it too."""
