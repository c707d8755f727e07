# SPDX-License-Identifier: Apache-2.0
"""A few rows of a row group of a Parquet file, of which only the pages that hold them are read and decoded.

pyarrow reads whole columns of a row group, or slices of them in order. So the pages that hold the rows are put behind one
another in memory, as the only column of the only row group of a file of their own, which pyarrow decodes as any other. Where
pages begin is said by the offset index of the file; without one their headers are read, one after the other.

Source: `parquet.thrift` of the format: OffsetIndex, PageHeader, FileMetaData; "Thrift Compact protocol encoding" of Thrift.
"""

import base64
import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from distinput.arrow.arrow import one_batch, taken
from distinput.columns.column import Ints
from distinput.errors import DataLossError
from distinput.files.paths import local_path
from distinput.files.source import read_range, read_spans
from distinput.formats.parquet_file import (
    Compact,
    ParquetReader,
    ThriftError,
    chunks,
    footer_bytes,
    footer_of,
    groups_of,
    opened,
    part_of,
    path_of,
    reading,
    schema_of,
)
from distinput.formats.tables import LruCache, checked_batch
from distinput.kernels.protobuf import varint_bytes
from distinput.names.lazy import library
from distinput.values.buffers import Bytes

pa = library("pyarrow")

_SMALL_BYTES = 1 << 20
"""A row group of no more bytes is read whole."""

_WHOLE_BYTES = 64 << 20
"""A row group of more bytes is decoded in slices, or page by page."""

_LOT_BYTES = 16 << 20
"""About so many bytes are decoded at a time."""

_MOST_FOOTER = 1 << 20
"""Larger footers take longer to decode here than pyarrow takes for a row group."""

_HEADER_BYTES, _MOST_HEADER = 1 << 10, 1 << 20
"""How much is read at first to decode the header of a page, and at most: it may hold the bounds of the page's values."""

_NUMBERS_IN_FOOTER = 64
"""More than the footer of a file of chosen pages holds beside names, encodings and schemas."""

_MOST_PAGES, _PAGES_BYTES = 1 << 16, 64 << 20
"""The most pages of a column of a row group, and the memory of those that are remembered."""

_SCHEMA, _ROW_GROUPS, _COLUMNS = 2, 4, 1
_NAME, _CHILDREN, _REPETITION = 4, 5, 3
_META_DATA, _INDEX_START, _INDEX_SIZE, _CRYPTO = 3, 4, 5, 8
_TYPE, _ENCODINGS, _PATH, _CODEC, _DATA, _DICTIONARY = 1, 2, 3, 4, 9, 11
_DATA_V1, _DICTIONARY_PAGE, _DATA_V2 = 0, 2, 3
_HEADER_OF = {_DATA_V1: 5, _DATA_V2: 8}
"""Kinds of pages with values, and the field of the header of a page that describes it."""

_REFER = {2, 8}
"""Encodings of values that refer to a dictionary."""


class Pages(NamedTuple):
    """The pages of a column in a row group.

    Args:
      starts: the byte of the file at which each one begins, with its header.
      sizes: of each one in bytes.
      rows: before each one, and in all.
      dictionary: the first byte, and the size, of the page with the values that others refer to; 0, 0: there is none.
    """

    starts: Ints
    sizes: Ints
    rows: Ints
    dictionary: tuple[int, int]


class _Leaf(NamedTuple):
    """A column with a single leaf.

    Args:
      number: of the leaf in each row group.
      schema: the encoded schema of a file that holds nothing but the column.
      repeats: whether a row may have several values.
    """

    number: int
    schema: bytes
    repeats: bool


class _Described(NamedTuple):
    """What a footer says of a leaf in a row group: its physical type, encodings, names, codec, and the place of its index."""

    kind: int
    encodings: list[int]
    names: list[bytes]
    codec: int
    offset_index: tuple[int, int]


def taken_rows(
    reader: ParquetReader,
    group: int,
    columns: Sequence[str] | None,
    rows: Ints,
    threads: bool = True,
    kept: bool = True,
) -> Any:
    """These rows of a row group, as a record batch.

    Args:
      reader: of the file.
      group: the number of the row group.
      columns: names of the columns to read; None: all.
      rows: their numbers in the row group, ascending, at least one.
      threads: whether several columns are decoded at a time.
      kept: whether the batch is kept; if not, it may be a view of all that was decoded, in memory of the system's allocator.

    Raises:
      DataLossError: the file is damaged.
    """
    path, stamp = reader.path, reader.stamp
    reader.check_int96(group, columns)
    names = tuple(schema_of(path, stamp).names if columns is None else columns)
    if not names:  # a table would lose the number of rows
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    sizes = groups_of(path, stamp, names)[group]
    paged: dict[str, Pages] = {}
    if sizes.nbytes > _SMALL_BYTES:
        for name in names:
            pages = pages_of(path, stamp, group, name)
            if pages is not None and _pays(pages, rows, reader.remote is None):
                paged[name] = pages
    whole = None if columns is None and not paged else [name for name in names if name not in paged]
    if not paged and sizes.nbytes <= _WHOLE_BYTES:
        (table,) = _whole(reader, group, whole, rows, sizes.nbytes, threads, kept)
        return one_batch(table if whole is None else table.select(names))
    arrays: dict[str, list[Any]] = {name: [] for name in names}
    fields = {}
    for name, pages in paged.items():
        for table in _decoded(reader, group, name, pages, rows, kept):
            arrays[name] += table.column(0).chunks
            fields[name] = table.schema.field(0)
    if whole or whole is None:
        for table in _whole(reader, group, whole, rows, sizes.nbytes, threads, kept):
            for name in table.schema.names:
                arrays[name] += table.column(name).chunks
                fields[name] = table.schema.field(name)
    table = pa.Table.from_arrays(
        [pa.chunked_array(arrays[name], fields[name].type) for name in names],
        schema=pa.schema([fields[name] for name in names]),
    )
    return one_batch(table)


def reads_by_pages(path: str, stamp: str, columns: Sequence[str] | None) -> bool:
    """Whether a row of the first row group is read without all others of it, unless these are quickly decoded."""
    names = tuple(schema_of(path, stamp).names if columns is None else columns)
    small = all(group.nbytes <= _LOT_BYTES for group in groups_of(path, stamp, names)[:1])
    return small or all(pages_of(path, stamp, 0, name) is not None for name in names)


def _pays(pages: Pages, rows: Ints, local: bool) -> bool:
    """Whether much is saved by reading only the pages of these rows; of a local file the dictionary only if it is needed."""
    hit = np.diff(np.searchsorted(rows, pages.rows)) > 0
    return bool(2 * pages.sizes[hit].sum() < pages.sizes.sum() + local * pages.dictionary[1])


def _whole(
    reader: ParquetReader, group: int, names: list[str] | None, rows: Ints, nbytes: int, threads: bool, kept: bool
) -> Iterator[Any]:
    """Tables with the rows, of columns of which everything is read: at once, or in slices where that is too much."""
    path, stamp, part = reader.path, reader.stamp, f"row group {group}"
    if nbytes <= _WHOLE_BYTES or names == []:
        with reading(path, group):
            table = reader.row_group(group, names, threads, 0 if kept else int(rows[-1]) + 1)
            if follow := _follow(rows):  # what is left out need not be looked at
                table, rows = table.slice(int(rows[0]), len(rows)), rows - rows[0]
            table = checked_batch(path, part, table)
            yield table if follow and not kept else taken(table, rows)
        return
    count, done = footer_of(path, stamp).row_group(group).num_rows, 0
    with opened(path, stamp, at_once=False, unit=reader.unit) as slices, reading(path, group):
        for batch in slices.file.iter_batches(max(1, _LOT_BYTES * count // nbytes), row_groups=[group], columns=names):
            first, last = np.searchsorted(rows, [done, done + batch.num_rows])
            if last > first:
                table, local = checked_batch(path, part, pa.Table.from_batches([batch])), rows[first:last] - done
                yield table if len(local) == batch.num_rows and _follow(local) else taken(table, local)
            done += batch.num_rows
    if done != count:
        raise DataLossError(f"{path}: {part} should have {count} rows, but has {done}")


# ---- pages


def pages_of(path: str, stamp: str, group: int, column: str) -> Pages | None:
    """Where the pages of a column of a row group are; None if that is not said, or the column has several leaves."""
    key = path, stamp, group, column
    found = _PAGES.get(key)
    if found is None:
        found = _found_pages(path, stamp, group, column) or _NONE
        _PAGES.put(key, found, 512 + 24 * len(found.starts))
    return found if len(found.starts) else None


def _found_pages(path: str, stamp: str, group: int, column: str) -> Pages | None:
    try:
        leaf = _leaves(path, stamp).get(column)
        if leaf is None:
            return None
        described = _described(path, stamp)[group][leaf.number]
        chunk = chunks(path, stamp)[group][leaf.number]
        if described is None or chunk.column != column:
            return None
        start, size = described.offset_index
        rows = footer_of(path, stamp).row_group(group).num_rows
        if start > 0 and 0 < size < 32 * _MOST_PAGES:
            return _indexed(read_range(path, start, start + size), chunk.start, chunk.stop, rows)
        local = local_path(path)
        return None if local is None else _scanned(local, chunk.start, chunk.stop, rows, leaf.repeats)
    except (ThriftError, DataLossError, OSError):
        return None  # everything is read, and damage that matters is found there


def _indexed(index: bytes, begin: int, end: int, rows: int) -> Pages | None:
    places = [
        [part_of(place, number, int) for number in (1, 2, 3)] for place in part_of(Compact(index).struct(), 1, list)
    ]
    return _checked(begin, end, rows, np.array(places, np.int64).reshape(-1, 3))


def _checked(begin: int, end: int, rows: int, places: Ints) -> Pages | None:
    """Pages whose start, size and first row are told, if they lie behind one another and have these rows."""
    if not len(places) or len(places) > _MOST_PAGES:
        return None
    starts, sizes, before = np.ascontiguousarray(places.T)
    firsts = np.append(before, rows)
    dictionary = (begin, int(starts[0]) - begin) if starts[0] > begin else (0, 0)
    sound = starts[0] >= begin and (sizes > 0).all() and (sizes <= end - begin).all() and starts[-1] <= end - sizes[-1]
    if not sound or (starts[:-1] + sizes[:-1] > starts[1:]).any() or firsts[0] != 0 or (np.diff(firsts) < 1).any():
        return None
    return Pages(starts, sizes, firsts, dictionary)


def _scanned(local: str, begin: int, end: int, rows: int, repeats: bool) -> Pages | None:
    """Pages by their headers; None where these do not say how many rows a page has."""
    places, start, before = [], begin, 0
    file = os.open(local, os.O_RDONLY)
    try:
        while start < end:
            header, size = _header_at(file, start, end)
            kind, whole = part_of(header, 1, int), size + part_of(header, 3, int)
            if kind in _HEADER_OF:
                values = part_of(header, _HEADER_OF[kind], dict)
                if repeats and kind == _DATA_V1:
                    return None
                places.append((start, whole, before))
                before += part_of(values, 3 if kind == _DATA_V2 else 1, int)
            elif kind != _DICTIONARY_PAGE or places:
                return None
            start += whole
            if whole <= size or len(places) > _MOST_PAGES:
                return None
    finally:
        os.close(file)
    return _checked(begin, end, rows, np.array(places, np.int64).reshape(-1, 3)) if before == rows else None


def _header_at(file: int, at: int, end: int) -> tuple[dict[int, Any], int]:
    """The header of the page that begins there, and its size."""
    return _header(lambda most: os.pread(file, most, at), end - at)


def _header(beginning: Callable[[int], bytes], size: int) -> tuple[dict[int, Any], int]:
    """The header of a page of at most so many bytes, and its size; `beginning` gives the first bytes of it."""
    most = _HEADER_BYTES
    while True:
        decoder = Compact(beginning(min(most, size)))
        try:
            return decoder.struct(), decoder.decoded
        except ThriftError:
            if most >= min(_MOST_HEADER, size):
                raise
            most *= 8


_NONE = Pages(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64), (0, 0))
_PAGES: LruCache[Pages] = LruCache(_PAGES_BYTES)


@lru_cache(maxsize=256)
def _described(path: str, stamp: str) -> list[list[_Described | None]]:
    """What is said of each leaf in each row group; None where values are encrypted."""
    content = footer_bytes(path, stamp)
    if len(content) > _MOST_FOOTER:
        raise ThriftError("it is large")
    groups = part_of(Compact(content).struct(), _ROW_GROUPS, list)
    return [[_described_leaf(column) for column in part_of(group, _COLUMNS, list)] for group in groups]


def _described_leaf(column: Any) -> _Described | None:
    if _CRYPTO in column:
        return None
    said = part_of(column, _META_DATA, dict)
    path_of(said)
    return _Described(
        part_of(said, _TYPE, int),
        part_of(said, _ENCODINGS, list),
        part_of(said, _PATH, list),
        part_of(said, _CODEC, int),
        (part_of(column, _INDEX_START, int, 0), part_of(column, _INDEX_SIZE, int, 0)),
    )


@lru_cache(maxsize=256)
def _leaves(path: str, stamp: str) -> dict[str, _Leaf]:
    """The columns of a file that have a single leaf, by name."""
    content = footer_bytes(path, stamp)
    if len(content) > _MOST_FOOTER:
        return {}
    encoded = Compact(content).items(_SCHEMA)
    elements = [Compact(each).struct() for each in encoded]
    leaf_of: dict[str, _Leaf] = {}
    element, leaves = 1, 0
    while element < len(elements):
        end, open_ends = element, 1  # all elements below a column stand behind it
        ends = 0
        while open_ends and end < len(elements):
            children = part_of(elements[end], _CHILDREN, int, 0)
            open_ends += children - 1
            ends += not children
            end += 1
        if ends == 1:
            repeats = any(part_of(each, _REPETITION, int, 0) == 2 for each in elements[element:end])
            root = _text(_NAME, b"schema", 0) + _number(_CHILDREN, 1, _NAME, 5) + b"\0"
            schema = _list([root, *encoded[element:end]], 12)
            leaf_of[part_of(elements[element], _NAME, bytes).decode(errors="replace")] = _Leaf(leaves, schema, repeats)
        element, leaves = end, leaves + ends
    return leaf_of


# ---- a file of chosen pages


def _decoded(reader: ParquetReader, group: int, column: str, pages: Pages, rows: Ints, kept: bool) -> Iterator[Any]:
    """Tables with these rows of a column, of so many pages each that they take little memory."""
    from pyarrow.parquet import ParquetReader as Reader

    path, stamp, part = reader.path, reader.stamp, f"row group {group}"
    begins = np.searchsorted(rows, pages.rows)  # of each page, among the rows
    hit = np.flatnonzero(np.diff(begins))
    estimate = groups_of(path, stamp, (column,))[group].nbytes / pages.rows[-1]
    decoded = np.maximum(pages.sizes[hit], np.diff(pages.rows)[hit] * estimate)
    lots = (np.cumsum(decoded) - decoded) // _LOT_BYTES
    for lot in dict.fromkeys(lots.tolist()):
        numbers = hit[lots == lot]
        counts = np.diff(pages.rows)[numbers]
        local = rows[begins[numbers[0]] : begins[numbers[-1] + 1]]
        local = local - np.repeat(pages.rows[numbers] - (np.cumsum(counts) - counts), np.diff(begins)[numbers])
        with reading(path, group):
            made = _file(reader, group, column, pages, numbers)
            compares = reader.compares(column, pages.starts[numbers].tolist())
            # Arrow's own allocator keeps 25 MB of what comes and goes here, 5 MB at a time.
            file = Reader(None if kept else pa.system_memory_pool())
            source, unit = pa.BufferReader(pa.py_buffer(made)), reader.unit
            file.open(source, page_checksum_verification=compares, coerce_int96_timestamp_unit=unit)
            if _follow(local) and not _leaves(path, stamp)[column].repeats:
                table, want = _up_to(file, int(local[0]), len(local)), len(local)
                local = np.arange(want)
            else:
                table, want = file.read_all(use_threads=False), int(counts.sum())  # it is one column
            file.close()
        if table.num_rows != want:
            raise DataLossError(
                f"{path}: {part}: damaged: pages of column {column!r} should have {want} rows, but have {table.num_rows}"
            )
        reader.note_compared(column, pages.starts[numbers].tolist())
        table = checked_batch(path, part, table)
        yield taken(table, local) if kept or not _follow(local) else table.slice(int(local[0]), len(local))


def _follow(rows: Ints) -> bool:
    """Whether these ascending rows follow each other."""
    return int(rows[-1]) - int(rows[0]) + 1 == len(rows) and bool((rows[1:] > rows[:-1]).all())


def _up_to(file: Any, first: int, count: int) -> Any:
    """A table of rows of a file that follow each other; what stands behind them is not decoded."""
    parts, at = [], 0
    for batch in file.iter_batches(max(count, (first + count) // 4), [0], use_threads=False):
        at += batch.num_rows
        if at > first:
            start = max(0, first - at + batch.num_rows)
            parts.append(batch.slice(start, first + count - at + batch.num_rows - start))
        if at >= first + count:
            break
    return pa.Table.from_batches(parts, file.schema_arrow)


def _read(reader: ParquetReader, starts: Ints, sizes: Ints, out: Bytes) -> None:
    """Read bytes of a file into `out`, behind one another; all of a remote file are asked for together."""
    remote = reader.remote
    if remote is None:
        read_spans(reader.path, starts, sizes, out)
        return
    remote.keep(starts.tolist(), (starts + sizes).tolist())
    try:
        done = 0
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            remote.seek(start)
            part = np.frombuffer(remote.read(size), np.uint8)
            if len(part) != size:
                raise DataLossError(f"{reader.path}: ends before byte {start + size}; the file has changed")
            out[done : done + size] = part
            done += size
    finally:
        remote.keep([], [])


def _file(reader: ParquetReader, group: int, column: str, pages: Pages, numbers: Ints) -> Bytes:
    """A Parquet file with these pages of a column, and before them the dictionary if they refer to it.

    Raises:
      DataLossError: a page has another size, or another number of values, than was said of it.
    """
    path, stamp = reader.path, reader.stamp
    leaf = _leaves(path, stamp)[column]
    described = _described(path, stamp)[group][leaf.number]
    assert described is not None
    counts, starts, sizes = np.diff(pages.rows)[numbers], pages.starts[numbers], pages.sizes[numbers]
    start, words = pages.dictionary
    end, schema = 4 + words + int(sizes.sum()), _arrow_schema(path, stamp, column)
    content = np.empty(end + _room_for_footer(leaf, described, schema), np.uint8)
    local = reader.remote is None
    if local or not words:
        _read(reader, starts, sizes, content[4 + words : end])
    else:  # one request more would take longer
        _read(reader, np.append(start, starts), np.append(words, sizes), content[4:end])
    try:
        values, refers = _count_values(content[4 + words : end], sizes, counts, leaf.repeats)
        if words and refers:
            if local:
                _read(reader, np.array([start]), np.array([words]), content[4 : 4 + words])
            if part_of(_page_header(content[4 : 4 + words]), 1, int) != _DICTIONARY_PAGE:
                raise ThriftError("a page of another kind where a dictionary should be")
        else:
            content, end, words = content[words:], end - words, 0
        tail = _footer(leaf, described, schema, end - 4, words, values, int(counts.sum()))
    except ThriftError as error:
        raise DataLossError(f"{path}: row group {group}: damaged: column {column!r}: {error}") from error
    content[:4] = np.frombuffer(b"PAR1", np.uint8)
    content[end : end + len(tail)] = np.frombuffer(tail, np.uint8)
    return content[: end + len(tail)]


def _room_for_footer(leaf: _Leaf, described: _Described, schema: bytes) -> int:
    """Bytes that a footer does not exceed; one of these numbers takes ten at most."""
    names = described.names
    numbers = _NUMBERS_IN_FOOTER + len(names) + len(described.encodings)
    return 10 * numbers + sum(map(len, names)) + len(leaf.schema) + len(schema)


def _footer(
    leaf: _Leaf, described: _Described, schema: bytes, nbytes: int, dictionary: int, values: int, rows: int
) -> bytes:
    """The end of a file with so many bytes of pages, the first of which are those of a dictionary."""
    rows += 1  # pyarrow reads as many as there are; of one too many it would say nothing
    fields = [
        _number(_TYPE, described.kind, 0, 5),
        _list([_zigzag(each) for each in described.encodings], 5),
        _list([varint_bytes(len(each)) + each for each in described.names], 8),
        _number(_CODEC, described.codec, _PATH, 5),
        _number(5, values, 4, 6),
        _number(6, nbytes, 5, 6),
        _number(7, nbytes, 6, 6),
        _number(_DATA, 4 + dictionary, 7, 6),
        _number(_DICTIONARY, 4, _DATA, 6) if dictionary else b"",
    ]
    described_column = _number(2, 4, 0, 6) + b"\x1c" + b"".join(fields) + b"\0\0"
    row_group = _list([described_column], 12) + _number(2, nbytes, 1, 6) + _number(3, rows, 2, 6)
    pair = _text(1, b"ARROW:schema", 0) + _text(2, schema, 1) + b"\0"
    footer = b"".join(
        [
            _number(1, 2, 0, 5),
            leaf.schema,
            _number(3, rows, 2, 6),
            _list([row_group + b"\0"], 12),
            _list([pair], 12),
            b"\0",
        ]
    )
    return b"".join([footer, len(footer).to_bytes(4, "little"), b"PAR1"])


def _count_values(content: Bytes, sizes: Ints, counts: Ints, repeats: bool) -> tuple[int, bool]:
    """The values in pages, and whether some refer to a dictionary.

    That they are pages of these sizes and numbers of rows is compared with what their headers say.
    """
    ends = np.cumsum(sizes).tolist()
    total, refers = 0, False
    for rows, start, end in zip(counts.tolist(), [0, *ends], ends, strict=False):
        header = _page_header(content[start:end])
        kind = part_of(header, 1, int)
        if kind not in _HEADER_OF:
            raise ThriftError(f"a page of kind {kind} where values should be")
        described = part_of(header, _HEADER_OF[kind], dict)
        values = part_of(described, 1, int)
        told = part_of(described, 3, int) if kind == _DATA_V2 else rows if repeats else values
        if told != rows or values < 0:
            raise ThriftError(f"a page of {told} rows that should have {rows}")
        total += values
        refers |= part_of(described, 4 if kind == _DATA_V2 else 2, int) in _REFER
    return total, refers


def _page_header(page: Bytes) -> Any:
    """The header of a page, which says how long it is."""
    header, size = _header(lambda most: page[:most].tobytes(), len(page))
    if size + part_of(header, 3, int) != len(page):
        raise ThriftError(f"a page of {len(page)} bytes has another size in its header")
    return header


@lru_cache(maxsize=256)
def _arrow_schema(path: str, stamp: str, column: str) -> bytes:
    """The schema of pyarrow of a file that has only this column, as it is written into one."""
    field = footer_of(path, stamp).schema.to_arrow_schema().field(column)
    return base64.b64encode(pa.schema([field]).serialize().to_pybytes())


def _zigzag(number: int) -> bytes:
    return varint_bytes(number << 1 if number >= 0 else -2 * number - 1)


def _number(field: int, number: int, before: int, kind: int) -> bytes:
    """A field of a struct that is an integer of 32 bits (kind 5) or 64 (6), behind field `before`."""
    return bytes([field - before << 4 | kind]) + _zigzag(number)


def _text(field: int, text: bytes, before: int) -> bytes:
    return bytes([field - before << 4 | 8]) + varint_bytes(len(text)) + text


def _list(items: Sequence[bytes], kind: int) -> bytes:
    """A field of a struct that is a list, one number behind the field before it."""
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + varint_bytes(len(items))
    return b"".join([b"\x19", head, *items])
