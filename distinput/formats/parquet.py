# SPDX-License-Identifier: Apache-2.0
"""Parquet files: every row is a record, a dict of the requested columns."""

import math
import os
import re
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial
from itertools import pairwise
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.arrow import has_missing, nested, without_rows
from distinput.arrow.expression import ColumnBounds, possible
from distinput.arrow.validity import null_paths, unfilled
from distinput.columns.block import MOST_ROWS, Block, concat_blocks
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.compression import page_codec
from distinput.files.paths import as_path, local_path
from distinput.files.sink import Sink
from distinput.files.source import room_for, stamp_of, stamped
from distinput.formats.format import (
    Fragment,
    PlacedBlocks,
    Portion,
    Position,
    blocks_of,
    check_reached,
    cut_rows,
    rows_in,
)
from distinput.formats.parquet_file import (
    Compact,
    Group,
    Readers,
    RowGroupBatches,
    ThriftError,
    batches_of,
    chunks,
    decoded_footer,
    decoding_order,
    footer_bytes,
    footer_of,
    groups_of,
    int96_columns,
    opened,
    part_of,
    path_of,
    reading,
    rows_of,
    schema_of,
)
from distinput.formats.parquet_pages import pages_of, reads_by_pages, taken_rows
from distinput.formats.tables import (
    BRINGS_TOGETHER,
    Conforming,
    ConformingTable,
    NullableTable,
    arrays_of,
    check_columns,
    check_nulls,
    checked_batch,
    rows_block,
    table_spec,
    told_nulls,
)
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least
from distinput.values.spec import Spec

# ----------------------------------------------------------------------------
# Bounds of the values of each row group of a Parquet file, from the statistics in its footer.
#
# They are decoded here, since pyarrow crashes the process where this part of a footer is damaged. Columns that are nested,
# or whose order is not that of Python's numbers and bytes, are left out, and so are those that may hold nulls: what stands
# for a null is no value of the file. Source: `parquet.thrift` of the format: ColumnMetaData, Statistics.
# ----------------------------------------------------------------------------


_ROW_GROUPS, _COLUMNS, _META_DATA, _TYPE, _STATISTICS = 4, 1, 3, 1, 12
_NULLS, _MAX, _MIN = 3, 5, 6
_WRITER, _SIZES, _LEVELS = 6, 16, 3
_INT32, _INT64, _FLOAT, _DOUBLE, _BYTES = 1, 2, 4, 5, 6
_LAYOUT = {_INT32: "<i", _INT64: "<q", _FLOAT: "<f", _DOUBLE: "<d"}
"""Physical types, and how their values are stored."""


@lru_cache(maxsize=256)
def ranges_of(path: str, stamp: str, replaced: frozenset[str] = frozenset()) -> list[dict[str, ColumnBounds]]:
    """For each row group, what is known about the values of its columns.

    Args:
      path: of the file.
      stamp: of its version.
      replaced: the columns in whose nulls something is put; without that a null among floats is NaN.
    """
    schema = schema_of(path, stamp)
    kinds = {field.name: _kind(field.type) for field in schema}
    try:
        groups = part_of(Compact(footer_bytes(path, stamp)).struct(), _ROW_GROUPS, list)
        return [_ranges(part_of(group, _COLUMNS, list), kinds, replaced) for group in groups]
    except ThriftError:
        return []  # without statistics everything is read, and damage that matters is found there


def _kind(kind: Any) -> str:
    """How values are ordered: "number", "float", "bytes"; empty if otherwise."""
    from pyarrow import types

    if types.is_signed_integer(kind) or types.is_uint8(kind) or types.is_uint16(kind):
        return "number"
    if types.is_float32(kind) or types.is_float64(kind):
        return "float"
    texts = types.is_string(kind), types.is_large_string(kind), types.is_binary(kind), types.is_large_binary(kind)
    return "bytes" if any(texts) else ""


def _ranges(columns: list[Any], kinds: dict[str, str], replaced: frozenset[str]) -> dict[str, ColumnBounds]:
    bounds = {}
    for column in columns:
        described = part_of(column, _META_DATA, dict)
        path, told = path_of(described), part_of(described, _STATISTICS, dict, {})
        name = path[0]
        kind = kinds.get(name, "")
        if len(path) > 1 or not kind or _MIN not in told or _MAX not in told:
            continue
        if told.get(_NULLS, -1) != 0 and (kind != "float" or name in replaced):
            continue
        physical = part_of(described, _TYPE, int)
        low, high = [_value(physical, kind, part_of(told, number, bytes)) for number in (_MIN, _MAX)]
        if low is not None and high is not None and low <= high:
            bounds[name] = ColumnBounds(low, high, nan=kind == "float")
    return bounds


def _value(physical: int, kind: str, data: bytes) -> Any:
    if kind == "bytes":
        return data if physical == _BYTES else None
    if physical not in _LAYOUT or (kind == "float") != (physical in (_FLOAT, _DOUBLE)):
        return None
    if len(data) != struct.calcsize(_LAYOUT[physical]):
        raise ThriftError(f"a bound of {len(data)} bytes")
    (value,) = struct.unpack(_LAYOUT[physical], data)
    return None if isinstance(value, float) and math.isnan(value) else value


_BLOCK_BYTES, _COLUMN_BYTES = 4 << 20, 1 << 15
"""Target size of a block, which is a view: in total, or per column if there are many; each column has a fixed cost."""

_WHOLE_BYTES = 96 << 20
"""Row groups up to this size are decoded at once, column by column, in half the time of decoding slices, where each
slice goes through all columns. A million rows of twelve numbers, the row groups that pyarrow writes, take this much."""

_WIDE_BYTES = 8 << 20
"""A row group with a larger column is not decoded at once: the extra memory that pyarrow needs, twice as much for
lists, would far exceed the read-ahead, and a few large columns are decoded just as fast in slices."""

_SLICE_BYTES, _COLUMN_SLICE_BYTES = 16 << 20, 2 << 20
"""Target size of a slice, and of its largest column."""

_PAGED_BYTES, _TIMES_DECODED = 4 << 20, 16
"""Smaller slices are taken from the pages that hold them; they are no smaller than so many times less than these pages, which
are decoded for each slice."""

_PART_BYTES, _MOST_PARTS = 48 << 10, 8
"""Such slices are held in parts, so that what was used of them is free: the bytes of a part at least, and the most parts."""

_KEPT_BYTES = 64 << 20
"""So much a thread decodes for small slices until it gives back what Arrow's allocator keeps for it. What is given back
has to be had again from the system, page by page, which takes longer than decoding."""

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Parquet(NullableTable):
    """The rows of Parquet files, as dicts from column name to value.

    Only the named columns are read. Rows can be counted and reached by position from the files' footers. Numbers, booleans and
    times become arrays; strings and binary values become bytes, lists rows of varying length, lists of lists ragged tensors,
    fixed-size lists an additional axis, and structs dicts; dictionary-encoded values are decoded.

    Args:
      columns: names of the columns wanted; all when None.
      batch_rows: the most rows in a block; None: as many as take about four megabytes.
      nulls: what becomes of nulls for which NumPy has no value: it has NaN and NaT. None: where the first file holds some,
        there stand a value and a mark, see `Nullable`; a null at another place, in a later file, is an error. "error": each is
        one. "valid": `x_valid` beside `x` tells them. A dict has what to put in their place, by column; a null list becomes an
        empty one.
      schema: the columns of all files: a dict of types by column, a pyarrow Schema, or "union", that of all files together.
        What a file lacks is null there, as `nulls` has it, and numbers become wider ones. None: that of the first.
      valid: where nulls are told, in all files: a list of columns, whose values and marks are a `Nullable`, or a dict from
        columns to the names of their marks. "s.a" is field a of a struct, and "x[]" are the items of lists.

    Raises:
      NotFoundError: a file is not there.
      InvalidArgumentError: an option has an invalid value.

    >>> import distinput as di
    >>> import numpy as np
    >>> di.io.write_parquet("a.parquet", {"x": np.arange(3), "y": np.ones(3)})
    >>> di.data.ParquetDataset("a.parquet", columns=["x"]).to_list()
    [{'x': 0}, {'x': 1}, {'x': 2}]
    """

    has_columns = in_portions = lists_fragments = True
    brings_together = BRINGS_TOGETHER
    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".pq", ".parq")
    marks: ClassVar[tuple[bytes, ...]] = (b"PAR1", b"PARE")
    name: ClassVar[str] = "parquet"
    columns: Sequence[str] | None = None
    batch_rows: int | None = None
    nulls: Any = "error"
    tells: str = field(default="", repr=False)  # how the nulls of the first file are told, by another format

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_rows is not None and self.batch_rows < 1:
            raise InvalidArgumentError(f"parquet: batch_rows must be at least 1, got {self.batch_rows}")

    @staticmethod
    def conforming_table(**options: Any) -> "ConformingParquet":
        return ConformingParquet(**options)

    def held(self, paths: Iterable[str]) -> "Parquet":
        path = next(iter(paths), None) if self.tells else None
        if path is None:
            return self
        with stamped(path, stamp_of(path)):
            schema = schema_of(path)
            check_columns(path, schema, self.columns)
            found = null_paths_of(path, self.columns, structs=self.tells == "in place")
        told = told_nulls(schema, self.columns, found, self.tells, self.nulls)
        return self if told is None else ConformingParquet(told[1], self.batch_rows, self.nulls, conforming=told[0])

    def null_paths(self, path: str) -> list[str]:
        """The paths of nulls in a file in whose place nothing is put; reads all of it where its footer does not tell."""
        found = null_paths_of(path, self.columns, math.inf, structs=True, every=True)
        return unfilled(found, schema_of(path), {} if self.nulls == "error" else dict(self.nulls))

    def where(self, term: Any) -> "Parquet | None":
        return PrunedParquet(self.columns, self.batch_rows, self.nulls, term=term)

    def wants_group(self, path: str, stamp: str, group: int) -> bool:
        """Whether a row group is read at all."""
        del path, stamp, group
        return True

    def spec_of(self, path: str) -> Spec:
        stamp = stamp_of(path)
        if self.nulls != "error":
            check_nulls(path, self.nulls, schema_of(path, stamp))
        return self._spec(path, stamp)

    def _spec(self, path: str, stamp: str) -> Spec:
        """The spec of a row of one version of a file."""
        return _spec_of(path, stamp, self.columns)

    def _columns_in(self, path: str, stamp: str) -> Sequence[str] | None:
        """The columns to read of one version of a file; None: all."""
        del path, stamp
        return self.columns

    def rows(self, path: str) -> int | None:
        return rows_of(path)

    def bytes_read(self, path: str, size: int) -> int:
        if self.columns is None or not size:
            return size
        return sum(
            chunk.stop - chunk.start
            for group in chunks(path, stamp_of(path))
            for chunk in group
            if chunk.column in self.columns
        )

    def fragments(self, path: str) -> list[Fragment]:
        footer = footer_of(path)
        found, row = [], 0
        for group in range(footer.num_row_groups):
            rows, size = footer.row_group(group).num_rows, footer.row_group(group).total_byte_size
            found.append(Fragment(path, {"row": row}, {"row": row + rows}, rows, size))
            row += rows
        return found or [Fragment(path, {"row": 0}, {"row": 0}, 0, 0)]

    def read_until(self, path: str, position: Position, stop: Position) -> PlacedBlocks:
        return blocks_of(self.portions(path, position, stop, 1, 0))

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        return blocks_of(self.portions(path, position, None, size, given))

    def portions(
        self, path: str, position: Position | None, stop: Position | None, size: int, given: int
    ) -> Iterator[Portion]:
        """The rows of each row group, in slices if the row group would take too much memory."""
        begin = self.first_row(path, position)
        stamp = stamp_of(path)  # once, before the footer is read, so that a replaced file is detected
        rows = rows_of(path, stamp)
        end = rows if stop is None else min(rows, stop["row"])
        check_reached(path, rows, begin)
        readers = Readers(path, stamp, self._int96_unit(path, stamp))
        spec = self._spec(path, stamp)  # rejects columns that do not exist
        columns = self._columns_in(path, stamp)
        room = room_for(_WHOLE_BYTES)
        passing = _Pass(self, readers, spec, columns, decoding_order(path, stamp, columns), size, given - begin, room)
        try:
            before = 0
            for number, group in enumerate(groups_of(path, stamp, columns)):
                wanted = range(max(0, begin - before), min(group.rows, end - before))
                if wanted and self.wants_group(path, stamp, number):
                    yield from passing.portions(number, group, before, wanted)
                before += group.rows
        finally:
            readers.close()
        if stop is not None and stop["row"] > rows:
            raise DataLossError(
                f"{path}: ends {stop['row'] - rows} records too early, before record {stop['row']}; the file has changed"
            )

    def fetches_few(self, path: str) -> bool:
        stamp = stamp_of(path)
        return reads_by_pages(path, stamp, self._columns_in(path, stamp))

    def fetch(self, path: str, rows: Ints) -> Block:
        """The rows with these numbers, in this order; only the row groups, or their pages, that hold them are read.

        Raises:
          InvalidArgumentError: a row number is out of range.
        """
        stamp = stamp_of(path)
        wanted = rows_in(path, rows, rows_of(path, stamp))
        footer, spec, columns = footer_of(path, stamp), self._spec(path, stamp), self._columns_in(path, stamp)
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        ends = np.cumsum(sizes, dtype=np.int64)
        order = np.argsort(wanted, kind="stable")
        in_order = wanted[order]
        groups = np.searchsorted(ends, in_order, "right")
        parts = []
        with opened(path, stamp, unit=self._int96_unit(path, stamp)) as reader:
            for group in np.unique(groups).tolist():
                local = in_order[groups == group] - (ends[group] - sizes[group])
                batch = taken_rows(reader, group, columns, local)
                with reading(path, group):
                    parts.append(self._block(path, group, batch, spec, local))
        if not parts:
            parts.append(self._block(path, 0, _selected(without_rows(schema_of(path, stamp)), columns), spec, []))
        if (order[1:] > order[:-1]).all():
            return concat_blocks(parts)
        return concat_blocks(parts).take(np.argsort(order))

    def _block(self, path: str, group: int, batch: Any, spec: Spec, rows: Sequence[int] | Ints) -> Block:
        """Convert a batch to a block; `rows` are the numbers of its rows in the row group."""
        return rows_block(path, f"row group {group}", batch, spec.structure, self.nulls, rows)

    def _int96_unit(self, path: str, stamp: str) -> str:
        """As what points in time of the type INT96 are read."""
        return "ns"


@dataclass(frozen=True)
class PrunedParquet(Parquet):
    """Rows of Parquet files without the row groups in which no row can satisfy a condition, as their statistics tell.

    Args:
      columns: as for `Parquet`.
      batch_rows: as for `Parquet`.
      nulls: as for `Parquet`.
      term: the condition.
    """

    counts_rows = fetches = states_cardinality = False
    term: Any = None

    def where(self, term: Any) -> None:
        """Nothing: it has a condition already."""

    def wants_group(self, path: str, stamp: str, group: int) -> bool:
        ranges = ranges_of(path, stamp, frozenset(() if self.nulls == "error" else dict(self.nulls)))
        return group >= len(ranges) or possible(self.term, ranges[group])[0]


@dataclass(frozen=True, repr=False)
class ConformingParquet(ConformingTable, Parquet):
    """Rows of Parquet files that are brought to one schema.

    Args:
      columns: as for `Parquet`.
      batch_rows: as for `Parquet`.
      nulls: as for `Parquet`.
      conforming: the schema.
    """

    conforming: Conforming = field(default_factory=Conforming)

    @property
    def plain(self) -> Parquet:
        return Parquet(self.columns, self.batch_rows, self.nulls)

    def where(self, term: Any) -> None:
        """Nothing: statistics are those of the files, and not of what their values become."""

    def held(self, paths: Iterable[str]) -> "ConformingParquet":
        return replace(self, conforming=self.conforming.held(paths, schema_of))

    def spec_of(self, path: str) -> Spec:
        stamp = stamp_of(path)
        check_nulls(path, self.nulls, self.conforming.rows_of(path, schema_of(path, stamp), None))
        return self._spec(path, stamp)

    def _spec(self, path: str, stamp: str) -> Spec:
        return table_spec(path, self.conforming.rows_of(path, schema_of(path, stamp), self.columns), None)

    def _columns_in(self, path: str, stamp: str) -> Sequence[str] | None:
        return self.conforming.columns_in(schema_of(path, stamp), self.columns)

    def _int96_unit(self, path: str, stamp: str) -> str:
        """Microseconds where the schema states coarser units than nanoseconds for all of these columns."""
        schema = self.conforming.rows_of(path, schema_of(path, stamp), None)
        kinds = [schema.field(name).type for name in int96_columns(path, stamp) if name in schema.names]
        units = set().union(*map(_units, kinds))
        return "ns" if "ns" in units or not units else "us"

    def _block(self, path: str, group: int, batch: Any, spec: Spec, rows: Sequence[int] | Ints) -> Block:
        wanted = self.conforming.rows_of(path, schema_of(path), self.columns)
        brought = self.conforming.brought(path, batch, wanted, self.nulls)
        return rows_block(path, f"row group {group}", brought, spec.structure, self.nulls, rows)


def _units(kind: Any) -> set[str]:
    """The units of the points in time in a type of Arrow; days are none of Arrow's units."""
    if hasattr(kind, "unit") or str(kind).startswith("date"):
        return {getattr(kind, "unit", "D")}
    return set().union(*[_units(kind.field(number).type) for number in range(kind.num_fields)])


_CATEGORY = re.compile("dictionary<|extension<")
"""What the text of a type has in it that may hold categories."""

_ROWS_LOOKED_AT = 8192
LOOKED_AT = 16 << 20
"""Bytes of the row groups that are read to see where in nested columns nulls are, and in those without statistics."""


def null_paths_of(
    path: str, columns: Sequence[str] | None, most_bytes: float = LOOKED_AT, *, structs: bool, every: bool = False
) -> list[str]:
    """The paths at which a file holds nulls; `structs` and `every` as for `null_paths`.

    The statistics of the footer tell it of plain columns; of others only whether there may be some, and the first row groups
    say where.
    """
    schema = schema_of(path)
    counts = _null_counts(path)
    found, unclear = [], []
    for item in schema:
        if (
            not (item.nullable or nested(item.type))
            or (columns is not None and item.name not in columns)
            or counts.get(item.name) == 0
        ):
            continue
        if item.name not in counts or nested(item.type):
            unclear.append(item.name)
        elif every or not has_missing(item.type):
            found.append(item.name)
    footer, size = footer_of(path), 0
    with opened(path, stamp_of(path)) as reader:
        for group in range(footer.num_row_groups if unclear else 0):
            if size >= most_bytes:
                break
            with reading(path, group):
                if reader.remote is None:
                    batches = reader.file.iter_batches(_ROWS_LOOKED_AT, row_groups=[group], columns=unclear)
                else:
                    batches = reader.row_group(group, unclear).to_batches()
                for batch in batches:
                    batch = checked_batch(path, f"row group {group}", batch)
                    found = list(dict.fromkeys([*found, *null_paths(batch, structs=structs, every=every)]))
                    size += max(1, batch.nbytes)
                    if size >= most_bytes:
                        break
    return found


def _null_counts(path: str) -> dict[str, int]:
    """How many nulls columns hold, those inside of nested ones and empty lists among them; no number if that is not told.

    Arrow's writer counts no text of a category below a null struct. How often each level occurs is right everywhere.
    """
    counts: dict[str, int] = {}
    unknown = set()
    try:
        footer = decoded_footer(path, stamp_of(path))
        wrong = part_of(footer, _WRITER, bytes, b"").startswith(b"parquet-cpp")
        told_types = b"ARROW:schema" in (footer_of(path).metadata or {})  # else categories are read as texts
        right = {item.name for item in schema_of(path) if told_types and not _CATEGORY.search(str(item.type))}
        for group in part_of(footer, _ROW_GROUPS, list):
            for column in part_of(group, _COLUMNS, list):
                described = part_of(column, _META_DATA, dict)
                (name, *below), told = path_of(described), part_of(described, _STATISTICS, dict, {}).get(_NULLS)
                levels = part_of(part_of(described, _SIZES, dict, {}), _LEVELS, list, [])
                if levels and all(type(count) is int for count in levels):
                    told = sum(levels[:-1])  # the last level is that of values
                elif wrong and below and not told and name not in right and part_of(described, _TYPE, int) == _BYTES:
                    told = None
                counts[name] = counts.get(name, 0) + (told if isinstance(told, int) else 0)
                if not isinstance(told, int):
                    unknown.add(name)
    except ThriftError:
        return {}
    return {name: count for name, count in counts.items() if count or name not in unknown}


def _selected(batch: Any, columns: Sequence[str] | None) -> Any:
    """The batch with the requested columns in the requested order."""
    # Selecting takes as long as making a block, and mostly the columns are right already.
    return batch if columns is None or batch.schema.names == list(columns) else batch.select(list(columns))


class _Decoded(threading.local):
    """What this thread has decoded for small slices since it gave memory back."""

    nbytes = 0


_DECODED = _Decoded()


@dataclass(frozen=True, slots=True)
class _Pass:
    """One reading of a file.

    Args:
      format: the format with its options.
      readers: of the file.
      spec: of a row.
      columns: to read; None: all.
      order: names of the columns in decoding order; None: all.
      size: rows in a group; blocks should end where a group does.
      given: rows of the first group that come before row 0 of the file.
      room: bytes that are decoded at a time, at most.
    """

    format: Parquet
    readers: Readers
    spec: Spec
    columns: Sequence[str] | None
    order: list[str] | None
    size: int
    given: int
    room: int

    def portions(self, number: int, group: Group, before: int, wanted: range) -> Iterator[Portion]:
        """The wanted rows of a row group, which starts at row `before` of the file."""
        row_bytes = max(1, group.nbytes // group.rows)
        block_bytes = max(_BLOCK_BYTES, _COLUMN_BYTES * len(self.spec.leaves))
        in_slice = min(
            min(_SLICE_BYTES, self.room) // row_bytes, _COLUMN_SLICE_BYTES * group.rows // max(1, group.widest)
        )
        most = self.format.batch_rows or max(1, min(MOST_ROWS, block_bytes // row_bytes, in_slice))
        whole = group.nbytes <= self.room and group.widest <= _WIDE_BYTES and self.order != []
        page_bytes = 0 if whole else self._taken_bytes(number)
        first_ends = 0
        if page_bytes:
            # Readers of many files end their slices at other times, so half of each waits on average: it may be twice as long.
            in_slice = 2 * max(1, in_slice, page_bytes // _TIMES_DECODED // row_bytes)
            in_slice = -(-group.rows // max(1, -(-group.rows // in_slice) - 1))
            # The first one is a part of it, and the last one mostly the rest, or the last ones would end at the same time.
            first_ends = int(_part_of_one(self.readers.path) * in_slice)
            most = self.format.batch_rows or min(MOST_ROWS, in_slice)
        at_once = group.rows if whole else max(1, in_slice // most) * most
        batches = batches_of(self.readers, number, group.rows, self.order, None if whole else at_once)
        decode: Callable[[range], Any] = RowGroupBatches(batches, group.rows).decode
        blocks: Callable[[range, Any], PlacedBlocks] = partial(self._blocks, number, before, most)
        if page_bytes:
            decode = partial(self._taken, number, page_bytes)
            blocks = partial(self._parted, before, most)
        for first in range(-(-first_ends % at_once), wanted.stop, at_once):
            rows = range(max(first, wanted.start), min(first + at_once, wanted.stop))
            if rows:
                yield Portion(
                    len(rows),
                    len(rows) * row_bytes,
                    rows.start > wanted.start,
                    partial(decode, rows),
                    partial(blocks, rows),
                    partial(_behind, before + rows.stop),
                    local_path(self.readers.path) is None,
                )

    def _taken_bytes(self, number: int) -> int:
        """How many bytes are read to take any rows of a row group from the pages that hold them; 0: they are not taken so.

        Between slices, an open reader holds a page and a buffer of each column, which is more than small slices are.
        """
        path, stamp = self.readers.path, self.readers.stamp
        if self.room >= _PAGED_BYTES or not self.spec.leaves or local_path(self.readers.path) is None:
            return 0
        names = schema_of(path, stamp).names if self.columns is None else self.columns
        pages = [pages_of(path, stamp, number, name) for name in names]
        return sum([int(each.sizes.max()) + each.dictionary[1] for each in pages if each]) if all(pages) else 0

    def _taken(self, number: int, nbytes: int, rows: range) -> list[Block]:
        """These rows of a row group, decoded from so many bytes of pages, in parts of which each has memory of its own."""
        import pyarrow as pa

        path = self.readers.path
        with self.readers.lent(at_once=True) as reader:
            places = np.arange(rows.start, rows.stop)
            taken = taken_rows(reader, number, self.columns, places, threads=False, kept=False)
        with reading(path, number):
            block = self.format._block(path, number, taken, self.spec, rows)
        least = max(_PART_BYTES, _COLUMN_BYTES * len(self.spec.leaves))
        parts = max(1, min(_MOST_PARTS, len(rows), block.nbytes // least))
        ends = [len(rows) * part // parts for part in range(parts + 1)]
        copies: list[Block] = [block.rows(a, b).copied() for a, b in pairwise(ends)]
        del taken, block
        _DECODED.nbytes += nbytes
        if _DECODED.nbytes >= _KEPT_BYTES:  # otherwise each thread keeps what it freed: more than all slices hold
            _DECODED.nbytes = 0
            pa.default_memory_pool().release_unused()
        return copies

    def _parted(self, before: int, most: int, rows: range, parts: list[Block]) -> PlacedBlocks:
        """Blocks of these rows of a row group, from their parts, of which none is held behind its last block."""
        place = before + rows.start
        parts.reverse()
        while parts:
            block = parts.pop()
            for a, b in cut_rows(block.size, most, self.size, self.given + place):
                yield block.rows(a, b), {"row": place + b}
            place += block.size

    def _blocks(
        self, number: int, before: int, most: int, rows: range, batches: Sequence[tuple[int, Any]]
    ) -> PlacedBlocks:
        """Blocks of these rows of a row group, from the batches that hold them."""
        path = self.readers.path
        for first, batch in batches:
            held = range(max(rows.start, first), min(rows.stop, first + batch.num_rows))
            kept = batch if self.order is None else _selected(batch, self.columns)
            kept = checked_batch(path, f"row group {number}", kept)
            if len(held) < batch.num_rows:
                kept = kept.slice(held.start - first, len(held))
            with reading(path, number):
                block = self.format._block(path, number, kept, self.spec, held)
            place = before + held.start
            for a, b in cut_rows(block.size, most, self.size, self.given + place):
                yield block.rows(a, b), {"row": place + b}


def _part_of_one(path: str) -> float:
    """A number from 0 to 1 of the file, which has nothing to do with those of files with similar names."""
    return zlib.crc32(os.fsencode(path)) / (1 << 32)


@lru_cache(maxsize=256)
def _spec_of(path: str, stamp: str, columns: Sequence[str] | None) -> Spec:
    return table_spec(path, schema_of(path, stamp), columns)


def write_parquet(
    path: str | PathLike[str],
    columns: Mapping[str, Any],
    row_group_size: int | None = None,
    compression: str | Mapping[str, str | None] | None = "snappy",
) -> None:
    """Write columns as a Parquet file; a local file appears only when it is complete.

    Every page has a checksum, and an index says where pages begin.

    Args:
      path: a local path or a URL.
      columns: by name: arrays [n, ...], lists of numbers, bytes, str or arrays, `Column`s, or Arrow arrays.
      row_group_size: rows in a row group; None: pyarrow's choice.
      compression: "snappy", "zstd", "gzip", "lz4", "brotli", or None; or a dict of these by column.

    Raises:
      InvalidArgumentError: the columns differ in length, one of them is not a column, `row_group_size` is less than 1, or the
        compression is unknown.
    """
    import pyarrow as pa
    from pyarrow.parquet import write_table

    if isinstance(compression, Mapping):
        codec: Any = {name: page_codec("write_parquet", each) for name, each in compression.items()}
    else:
        codec = page_codec("write_parquet", compression)
    if row_group_size is not None:
        row_group_size = at_least("write_parquet", "row_group_size", row_group_size, 1)
    arrays = arrays_of("write_parquet", columns)
    with Sink(as_path(path)) as sink:
        target = pa.PythonFile(sink, mode="w")
        write_table(
            pa.table(arrays),
            target,
            row_group_size=row_group_size,
            compression=codec,
            write_page_checksum=True,
            write_page_index=True,
        )


def _behind(row: int, _: Position | None) -> tuple[None, Position]:
    """Behind a portion, of which nothing more can be read."""
    return None, {"row": row}
