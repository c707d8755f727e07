# SPDX-License-Identifier: Apache-2.0
"""Arrow IPC files and streams: every row is a record, a dict of the requested columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.arrow import without_rows
from distinput.arrow.validity import null_paths, unfilled
from distinput.columns.block import Block, ColumnBlock, block_rows
from distinput.columns.column import Column, Dense, Ints, Strings
from distinput.columns.picked import Memory, RowArray, chosen
from distinput.columns.ragged import Ragged
from distinput.columns.regroup import concat_columns
from distinput.errors import DistinputError, InvalidArgumentError, UnimplementedError
from distinput.files.paths import as_path
from distinput.files.sink import Sink
from distinput.files.source import size_of, stamp_of
from distinput.formats.arrow_file import ArrowFile, Batches, arrow_file, reading_batch
from distinput.formats.format import Fragment, PlacedBlocks, Position, check_reached, cut_rows, rows_in
from distinput.formats.tables import (
    BRINGS_TOGETHER,
    Conforming,
    ConformingTable,
    LruCache,
    NullableTable,
    arrays_of,
    check_nulls,
    rows_block,
    table_spec,
    told_nulls,
)
from distinput.names.lazy import dataclass
from distinput.values.buffers import Bytes
from distinput.values.leaves import STRING
from distinput.values.spec import Spec, TensorSpec

_KEPT_BYTES = 64 << 20  # of decoded batches cached for `fetch`
_UNKNOWN, _ELSEWHERE = -1, -2  # special values in `ArrowFile.places`


@dataclass(frozen=True)
class ArrowIpc(NullableTable):
    """The rows of Arrow IPC files ("Feather version 2") or streams, as dicts from column name to value.

    Local files are mapped into memory: any rows in any order, as `global_shuffle` takes them, cost no more than they do in
    memory, once the system has read their pages; columns that are not read cost nothing. Compressed files, and those that are
    not local, are read a record batch at a time. A stream has no list of its batches: those of a local stream are found without
    reading the values, those of a remote one only as it is read. The types are those of Parquet files. Files must not be
    written in place while they are read; replace them by renaming, as `io.write_arrow` does.

    Args:
      columns: names of the columns wanted; all when None.
      nulls: what becomes of nulls for which NumPy has no value: it has NaN and NaT. None: where the first file holds some,
        there stand a value and a mark, see `Nullable`; a null at another place, in a later file, is an error. "error": each is
        one. "valid": `x_valid` beside `x` tells them. A dict has what to put in their place, by column; a null list becomes an
        empty one.
      trusted: skip the check made once for each record batch, before its values are used: that its offsets, views and
        indices stay within it. A damaged file may then end the process, or yield values that it does not contain.
      memory_map: map local files into memory. False: rows are read into memory of their own, so that a file that is cut short
        while it is read is a `DataLossError` and not the end of the process; random access reads whole record batches.
      schema: the columns of all files: a dict of types by column, a pyarrow Schema, or "union", that of all files together.
        What a file lacks is null there, as `nulls` has it, and numbers become wider ones. None: that of the first.
      valid: where nulls are told, in all files: a list of columns, whose values and marks are a `Nullable`, or a dict from
        columns to the names of their marks. "s.a" is field a of a struct, and "x[]" are the items of lists.

    Raises:
      NotFoundError: a file is not there.
      InvalidArgumentError: an option has an invalid value.

    >>> import distinput as di
    >>> import numpy as np
    >>> di.io.write_arrow("a.arrow", {"x": np.arange(3), "y": [b"a", b"", b"ccc"]})
    >>> di.data.ArrowDataset("a.arrow").to_list()
    [{'x': 0, 'y': b'a'}, {'x': 1, 'y': b''}, {'x': 2, 'y': b'ccc'}]
    """

    has_columns = maps = lists_fragments = one_version = True
    brings_together = BRINGS_TOGETHER
    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".arrows", ".feather", ".ipc")
    marks: ClassVar[tuple[bytes, ...]] = (b"ARROW1", b"\xff\xff\xff\xff")
    name: ClassVar[str] = "arrow"
    columns: Sequence[str] | None = None
    nulls: Any = "error"
    trusted: bool = False
    memory_map: bool = field(default=True, repr=False)  # no part of what a state is compared with
    tells: str = field(default="", repr=False)  # how the nulls of the first file are told, by another format

    @staticmethod
    def conforming_table(**options: Any) -> "ConformingArrow":
        return ConformingArrow(**options)

    def held(self, paths: Iterable[str]) -> "ArrowIpc":
        path = next(iter(paths), None) if self.tells else None
        if path is None:
            return self
        file = self._file(path)
        found = _null_paths(file, structs=self.tells == "in place")
        told = told_nulls(file.schema, self.columns, found, self.tells, self.nulls)
        if told is None:
            return self
        return ConformingArrow(
            told[1], self.nulls, trusted=self.trusted, memory_map=self.memory_map, conforming=told[0]
        )

    def null_paths(self, path: str) -> list[str]:
        """The paths at which a file holds any nulls, and nothing is put in their place; reads all of it."""
        file = self._file(path)
        found = _null_paths(file, structs=True, every=True)
        return unfilled(found, file.schema, {} if self.nulls == "error" else dict(self.nulls))

    def spec_of(self, path: str) -> Spec:
        file = self._file(path)
        check_nulls(path, self.nulls, file.schema)
        return self._spec(file)

    def _spec(self, file: ArrowFile) -> Spec:
        """The spec of a row of a file."""
        return file.spec

    def rows(self, path: str) -> int | None:
        batches = self._file(path).batches
        return None if batches is None else int(batches.ends[-1])

    def gathers(self, path: str) -> bool:
        return self._file(path).views

    def seek(self, path: str, row: int) -> Position | None:
        return {"row": row} if row == 0 or self._file(path).batches is not None else None

    def past(self, path: str, position: Position | None) -> Position | None:
        """The first row of the next record batch, where it is known where that one lies."""
        try:
            file = self._file(path)
        except (DistinputError, OSError):
            return None
        if file.batches is None or not file.single:
            return None
        behind = file.batches.ends[file.batches.ends > self.first_row(path, position)][:-1]
        return {"row": int(behind[0])} if len(behind) else None

    def fragments(self, path: str) -> list[Fragment]:
        batches = self._file(path).batches
        if batches is None or not len(batches):
            return [Fragment(path, {"row": 0}, None if batches is None else {"row": 0}, self.rows(path), size_of(path))]
        spans = zip(pairwise(batches.ends.tolist()), batches.sizes.tolist(), strict=True)
        return [Fragment(path, {"row": a}, {"row": b}, b - a, size) for (a, b), size in spans]

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        begin = self.first_row(path, position)
        file, row = self._file(path), 0
        for number, batch in file.each(begin):
            if file.batches is not None:
                row = int(file.batches.ends[number])
            over = min(max(0, begin - row), batch.num_rows)
            most = block_rows(batch.nbytes // max(1, batch.num_rows))
            for first, stop in cut_rows(batch.num_rows - over, most, size, given + row + over - begin):
                rows = range(over + first, over + stop)
                file.check_unchanged()
                yield self._block(file, number, batch.slice(rows.start, len(rows)), rows), {"row": row + rows.stop}
            row += batch.num_rows
        if file.batches is not None:
            row = int(file.batches.ends[-1])
        check_reached(path, row, begin)

    def fetch(self, path: str, rows: Ints) -> Block:
        """The rows with these numbers, in this order; reads only these rows of a mapped file, else their batches.

        Raises:
          InvalidArgumentError: a row number is out of range.
        """
        file = self._file(path)
        batches = file.batches
        if batches is None:
            raise UnimplementedError(
                f"{path}: a stream that is not a local file can only be read from its beginning; copy it to this machine, or "
                "write Arrow files"
            )
        positions = rows_in(path, rows, int(batches.ends[-1]))
        if not len(positions):
            return self._block(file, 0, file.select(without_rows(file.schema)), range(0))
        columns = self._straight(file, batches, positions)
        if None in columns:
            numbers = np.searchsorted(batches.ends, positions, "right") - 1
            used, which = np.unique(numbers, return_inverse=True)
            blocks = [self._kept(file, number) for number in used.tolist()]
            columns = _gathered(blocks, which, positions - batches.ends[numbers], columns)
        return ColumnBlock(self._spec(file).structure, columns, len(positions))  # type: ignore[arg-type]  # none is None

    def sources(self, path: str) -> Sequence[RowArray] | None:
        file = self._file(path)
        if file.batches is not None and not len(file.batches):  # no `fetch` can have set the sources
            self._sources(file, file.batches, np.empty(0, np.int64))
        found = file.sources.get(self._filled)
        return None if found is None or any(source is None for source in found) else found  # type: ignore[return-value]

    def _straight(self, file: ArrowFile, batches: Batches, rows: Ints) -> list[Column | None]:
        """The leaves that lie in the mapped file in their final form, copied at most once; None for other leaves."""
        sources = file.sources.get(self._filled)
        if sources is None:
            sources = self._sources(file, batches, rows)
        return [None if source is None else chosen(source, rows) for source in sources]

    def _sources(self, file: ArrowFile, batches: Batches, rows: Ints) -> list[RowArray | None]:
        """The mapped rows of each leaf, for the batches that hold these rows; None for a leaf not stored that way."""
        leaves = file.spec.tensors("arrow")
        whole = file.whole
        if not file.views or whole is None:
            return [None] * len(leaves)
        places = file.places.setdefault(self._filled, np.full((len(leaves), len(batches)), _UNKNOWN))
        used = np.unique(np.searchsorted(batches.ends, rows, "right") - 1)
        for number in used[(places[:, used] == _UNKNOWN).any(axis=0)].tolist():
            places[:, number] = [_place(column, whole) for column in self._kept(file, number).columns]
        complete = bool((places != _UNKNOWN).all())
        looked = places if complete else places[:, used]
        found = [
            _source(whole, begins, batches.ends, leaf) if _has_width(leaf) and bool((parts >= 0).all()) else None
            for leaf, begins, parts in zip(leaves, places, looked, strict=True)
        ]
        if complete:
            file.sources[self._filled] = found
        return found

    def _kept(self, file: ArrowFile, number: int) -> ColumnBlock:
        """All rows of a batch, cached; values are decoded only if they are not views of the file."""
        key = file, number, self._filled, self._form
        block = _DECODED.get(key)
        if block is None:
            batch = file.batch(number)
            block = self._block(file, number, batch, range(batch.num_rows))
            views = file.views and self._form is None
            own = sum(_own_bytes(column) if views else column.nbytes for column in block.columns)
            _DECODED.put(key, block, own + 1024)
        return block

    @property
    def _filled(self) -> str:
        """What stands in the place of nulls, as caches know it: values may be lists and dicts."""
        return repr(self.nulls)

    @property
    def _form(self) -> Any:
        """What decoded batches are known by, beside their file; None: they are as they are in it."""
        return None

    def _block(self, file: ArrowFile, number: int, batch: Any, rows: range) -> ColumnBlock:
        part = f"record batch {number}"
        with reading_batch(file.path, part):
            return self._converted(file, part, batch, rows)

    def _converted(self, file: ArrowFile, part: str, batch: Any, rows: range) -> ColumnBlock:
        return rows_block(file.path, part, batch, file.spec.structure, self.nulls, rows)

    def _file(self, path: str) -> ArrowFile:
        return arrow_file(path, stamp_of(path), self.columns, self.trusted, self.memory_map)


@dataclass(frozen=True, repr=False)
class ConformingArrow(ConformingTable, ArrowIpc):
    """Rows of Arrow IPC files and streams that are brought to one schema; no values are views of a file.

    Args:
      columns: as for `ArrowIpc`.
      nulls: as for `ArrowIpc`.
      trusted: as for `ArrowIpc`.
      memory_map: as for `ArrowIpc`.
      conforming: the schema.
    """

    maps: ClassVar[bool] = False
    conforming: Conforming = field(default_factory=Conforming)

    @property
    def plain(self) -> ArrowIpc:
        return ArrowIpc(self.columns, self.nulls, self.trusted, self.memory_map)

    def held(self, paths: Iterable[str]) -> "ConformingArrow":
        return replace(self, conforming=self.conforming.held(paths, self._schema))

    def spec_of(self, path: str) -> Spec:
        file = self._file(path)
        check_nulls(path, self.nulls, self.conforming.rows_of(path, file.schema, None))
        return self._spec(file)

    def gathers(self, path: str) -> bool:
        return False

    def sources(self, path: str) -> None:
        """None: values become others."""

    def _spec(self, file: ArrowFile) -> Spec:
        return table_spec(file.path, self.conforming.rows_of(file.path, file.schema, self.columns), None)

    def _straight(self, file: ArrowFile, batches: Batches, rows: Ints) -> list[Column | None]:
        return [None] * len(self._spec(file).leaves)

    @property
    def _form(self) -> Any:
        return self.columns, self.conforming

    def _converted(self, file: ArrowFile, part: str, batch: Any, rows: range) -> ColumnBlock:
        wanted = self.conforming.rows_of(file.path, file.schema, self.columns)
        brought = self.conforming.brought(file.path, batch, wanted, self.nulls)
        return rows_block(file.path, part, brought, self._spec(file).structure, self.nulls, rows)

    def _schema(self, path: str) -> Any:
        return arrow_file(path, stamp_of(path), (), self.trusted, self.memory_map).schema  # whatever is wanted of it

    def _file(self, path: str) -> ArrowFile:
        columns = self.conforming.columns_in(self._schema(path), self.columns)
        return arrow_file(path, stamp_of(path), columns, self.trusted, self.memory_map)


_LOOKED_AT = 16 << 20
"""Bytes of the record batches in which nulls are looked for where a file is not mapped, and each must be read for it."""


def _null_paths(file: ArrowFile, *, structs: bool, every: bool = False) -> list[str]:
    """The paths at which a file holds nulls; `structs` and `every` as for `null_paths`, which then looks at all of the file.

    Only batches are read whose messages count nulls. A stream that is not mapped is read once: its nulls are met as it is read.
    """
    _ = file.spec  # a type that no array can hold is told here: pyarrow cannot make arrays of some of them
    paths: dict[str, None] = {}
    size, batches = 0, file.batches
    if not every and (batches is None or not (batches.nulls or batches.dictionaries)):
        return []
    counted = batches is not None and not batches.dictionaries
    parts = map(file.batch, batches.nulls) if batches and counted else (batch for _, batch in file.each(0))
    for batch in parts:
        paths.update(dict.fromkeys(null_paths(batch, structs=structs, every=every)))
        size += batch.nbytes
        if not file.views and not every and size >= _LOOKED_AT:
            break
    return list(paths)


_DECODED: LruCache[ColumnBlock] = LruCache(_KEPT_BYTES)
"""Decoded batches for `fetch`, shared by all files."""


def _own_bytes(column: Column) -> int:
    """About how much memory a column takes apart from the pages of a mapped file."""
    if isinstance(column, Ragged | Strings):
        return 2 * column.starts.nbytes
    return column.array.nbytes if isinstance(column, Dense) and column.array.flags.writeable else 0


def _has_width(leaf: TensorSpec) -> bool:
    """Whether all rows of a leaf are of one size, also where there are none to be looked at."""
    return leaf.dtype != STRING and leaf.shape is not None and None not in leaf.shape


def _place(column: Column, whole: Bytes) -> int:
    """The byte of a mapped file at which a column begins; `_ELSEWHERE` if its rows are not contiguous there."""
    if not len(column):
        return 0
    if not isinstance(column, Dense) or not column.array.flags.c_contiguous or not column.array.nbytes:
        return _ELSEWHERE
    place = column.array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return place if 0 <= place <= len(whole) - column.array.nbytes else _ELSEWHERE


def _source(whole: Bytes, begins: Ints, ends: Ints, leaf: TensorSpec) -> RowArray:
    """The rows of a leaf in a mapped file, in parts that begin at these bytes."""
    shape: tuple[int, ...] = leaf.shape  # type: ignore[assignment]  # all sizes are known
    if len(begins) == 1:
        array = np.ndarray((int(ends[-1]), *shape), leaf.dtype, whole, int(begins[0]))
        if array.flags.aligned:  # NumPy would copy unaligned rows
            return array
    return Memory(whole, begins, ends, shape, leaf.dtype)


def _gathered(
    blocks: Sequence[ColumnBlock], which: Ints, rows: Ints, known: Sequence[Column | None]
) -> list[Column | None]:
    """Row rows[i] of blocks[which[i]] for each i, for the leaves that are None in `known`."""
    order = np.argsort(which, kind="stable")
    cuts = np.searchsorted(which[order], np.arange(len(blocks) + 1))
    back = np.argsort(order)
    found = list(known)
    for leaf in [leaf for leaf, column in enumerate(known) if column is None]:
        parts = [
            block.columns[leaf].take(rows[order[a:b]]) for block, (a, b) in zip(blocks, pairwise(cuts), strict=True)
        ]
        found[leaf] = concat_columns(parts).take(back)
    return found


def write_arrow(
    path: str | PathLike[str],
    columns: Mapping[str, Any],
    batch_rows: int | None = None,
    compression: str | None = None,
    *,
    stream: bool = False,
) -> None:
    """Write columns as an Arrow IPC file; a local file appears only when it is complete.

    Args:
      path: a local path or a URL.
      columns: by name: arrays [n, ...], lists of numbers, bytes, str or arrays, `Column`s, or Arrow arrays.
      batch_rows: rows in a record batch; None: all in one.
      compression: None, "lz4" or "zstd"; compressed values cannot be memory-mapped.
      stream: write the stream format, which has no list of batches at its end.

    Raises:
      InvalidArgumentError: the columns differ in length, one of them is not a column, or the compression is unknown.
    """
    import pyarrow as pa
    from pyarrow import ipc

    if compression not in (None, "lz4", "zstd"):
        raise InvalidArgumentError(f"write_arrow: compression must be None, 'lz4' or 'zstd', got {compression!r}")
    if batch_rows is not None and batch_rows < 1:
        raise InvalidArgumentError(f"write_arrow: batch_rows must be at least 1, got {batch_rows}")
    table = pa.table(arrays_of("write_arrow", columns))
    options = ipc.IpcWriteOptions(compression=compression)
    with Sink(as_path(path)) as sink:
        opened = (ipc.new_stream if stream else ipc.new_file)(
            pa.PythonFile(sink, mode="w"), table.schema, options=options
        )
        with opened as writer:
            writer.write_table(table.combine_chunks(), batch_rows)
