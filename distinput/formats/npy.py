# SPDX-License-Identifier: Apache-2.0
"""NumPy's files: the rows of one array in `.npy`, of several in `.npz`, are records."""

import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, block_rows
from distinput.columns.column import Dense, Ints
from distinput.columns.picked import RowArray, chosen
from distinput.decoders.arrays import (
    ARRAY_MARK,
    MalformedArchive,
    MalformedArray,
    NpyHeader,
    ObjectsError,
    archive_in,
    content_of,
    npy_array,
    npy_header,
)
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.manifest import FileTable
from distinput.files.paths import ask_each, local_path
from distinput.files.source import (
    EMPTY,
    FileStream,
    check_unchanged,
    naming,
    open_ranges,
    read_range,
    read_spans,
    size_of,
    stamp_of,
)
from distinput.files.whole_files import mapped
from distinput.formats.format import PlacedBlocks, Position, check_reached, cut_rows, rows_in
from distinput.formats.tables import TableFormat, as_columns
from distinput.names.lazy import dataclass
from distinput.plan.check import normalized
from distinput.values.buffers import Bytes
from distinput.values.nest import LEAF, structure_of
from distinput.values.spec import Spec, TensorSpec

# ----------------------------------------------------------------------------
# NumPy `.npy` files: every row of the array, along its first axis, is a record.
# ----------------------------------------------------------------------------


_HEADER_BYTES = 4096  # how much is read for a header; nearly all headers have 128 bytes


@dataclass(frozen=True)
class Npy(TableFormat):
    """The rows, along the first axis, of arrays in `.npy` files: [n, ...] is n records [...].

    Local files are mapped into memory: any rows in any order, as `global_shuffle` takes them, cost no more than they do in
    memory, once the system has read their pages. `Dataset.zip` puts the rows of several arrays together. Files must not be
    written in place while they are read; replace them by renaming. Numbers of any byte order, booleans and times are read, in
    native byte order.

    Args:
      memory_map: map local files into memory. False: rows are read into memory of their own, so that a file that is cut short
        while it is read is a `DataLossError` and not the end of the process; random access costs a read for each run of rows.

    Raises:
      NotFoundError: a file is not there.
      UnimplementedError: an array of text, of objects, of several fields, or stored column by column.

    >>> import distinput as di
    >>> import numpy as np
    >>> np.save("images.npy", np.arange(6).reshape(3, 2))
    >>> np.save("labels.npy", np.array([7, 8, 9]))
    >>> pairs = di.data.Dataset.zip(di.data.NpyDataset("images.npy"), di.data.NpyDataset("labels.npy"))
    >>> pairs.to_list()
    [([0, 1], 7), ([2, 3], 8), ([4, 5], 9)]

    Source: the format is that of `numpy.lib.format`, versions 1 to 3.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".npy",)
    marks: ClassVar[tuple[bytes, ...]] = (ARRAY_MARK,)
    name: ClassVar[str] = "npy"
    maps: ClassVar[bool] = True
    memory_map: bool = field(default=True, repr=False)  # no part of what a state is compared with

    def spec_of(self, path: str) -> Spec:
        header = _header(path)
        return Spec.leaf(header.shape[1:], header.native)

    def rows(self, path: str) -> int | None:
        header = _header(path)
        return header.shape[0] if header.rows_there == header.shape[0] else None

    def stated_rows(self, path: str) -> int | None:
        return _header(path).shape[0]

    def gathers(self, path: str) -> bool:
        return self._local(path) is not None and self.rows(path) is not None

    def units(self, files: FileTable) -> Ints | None:
        rows = list(ask_each(self.rows, files.paths()))
        return None if None in rows else np.array(rows, np.int64)

    def unit_bytes(self, files: FileTable) -> int:
        return max(1, _header(files.path(0)).row_bytes) if len(files) else 1

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        row = self.first_row(path, position)
        stamp = stamp_of(path)
        header = _header_of(path, stamp)
        rows = header.rows_there
        check_reached(path, rows, row)
        cuts = cut_rows(rows - row, block_rows(header.row_bytes), size, given)
        local = self._local(path)
        if local is not None:
            whole = _array_of(path, local, stamp)
            for first, stop in cuts:
                check_unchanged(path, stamp)
                yield _block(whole[row + first : row + stop], header), {"row": row + stop}
            if rows < header.shape[0]:
                raise _too_short(path, header, size_of(path))
            return
        with FileStream(path, start=header.start + row * header.row_bytes) as source:
            for first, stop in cuts:
                wanted = (stop - first) * header.row_bytes
                data, _ = source.more(EMPTY, wanted)
                if len(data) < wanted:
                    raise _too_short(path, header, source.offset)
                check_unchanged(path, stamp)
                yield _block(header.rows_of(data, stop - first), header), {"row": row + stop}
        if rows < header.shape[0]:
            raise _too_short(path, header, size_of(path))

    def fetch(self, path: str, rows: Ints) -> Block:
        """The rows with these numbers, in this order; only these rows are read.

        Raises:
          InvalidArgumentError: a row number is out of range.
        """
        stamp = stamp_of(path)
        header, local = _whole(path, stamp), self._local(path)
        positions = rows_in(path, rows, header.shape[0])
        if local is not None:
            return _picked(_array_of(path, local, stamp), positions, header)
        sizes = np.full(len(positions), header.row_bytes)
        data = read_spans(path, header.start + positions * header.row_bytes, sizes)
        return _block(header.rows_of(data, len(positions)), header)

    def sources(self, path: str) -> Sequence[RowArray] | None:
        local = self._local(path)
        if local is None:
            return None
        stamp = stamp_of(path)
        _whole(path, stamp)
        array = _array_of(path, local, stamp)
        return [array] if array.dtype.isnative else None

    def _local(self, path: str) -> str | None:
        """The path of a file to map."""
        return local_path(path) if self.memory_map else None


@dataclass(frozen=True)
class _Header:
    """The header of a file, which describes its array.

    Args:
      shape: of the array.
      dtype: as it is stored.
      start: the byte at which the values begin.
      size: of the file in bytes; 0 if it is not known.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int
    size: int

    @property
    def rows_there(self) -> int:
        """The rows that are whole; fewer than the shape says if the file was cut short."""
        rows = self.shape[0]
        return min(rows, max(0, self.size - self.start) // self.row_bytes) if self.size and self.row_bytes else rows

    @property
    def native(self) -> np.dtype[Any]:
        """The dtype in native byte order."""
        return self.dtype.newbyteorder("=")

    @property
    def row_bytes(self) -> int:
        """The size of a row in bytes."""
        return prod(self.shape[1:]) * self.dtype.itemsize

    def rows_of(self, data: Bytes, rows: int) -> np.ndarray[Any, Any]:
        """A view of bytes as rows."""
        return data.view(self.dtype).reshape(rows, *self.shape[1:])

    def array(self, file: Bytes) -> np.ndarray[Any, Any]:
        """The whole array, from the bytes of its file."""
        return self.rows_of(file[self.start : self.start + self.rows_there * self.row_bytes], self.rows_there)


def _block(rows: np.ndarray[Any, Any], header: _Header) -> Block:
    return ColumnBlock(LEAF, [Dense(rows if rows.dtype.isnative else rows.astype(header.native))], len(rows))


def _picked(array: np.ndarray[Any, Any], rows: Ints, header: _Header) -> Block:
    if array.dtype.isnative:
        return ColumnBlock(LEAF, [chosen(array, rows)], len(rows))
    return _block(array.take(rows, 0), header)


def _header(path: str) -> _Header:
    return _header_of(path, stamp_of(path))


def _whole(path: str, stamp: str) -> _Header:
    """The header of a file, of which no row may be missing: rows are fetched by their numbers."""
    header = _header_of(path, stamp)
    if header.rows_there < header.shape[0]:
        raise _too_short(path, header, header.size)
    return header


@lru_cache(maxsize=4096)
def _header_of(path: str, stamp: str) -> _Header:
    """The header of one version of a file, identified by `stamp`; cached."""
    del stamp
    parsed = _parsed(path)
    header = _Header(parsed.shape, parsed.dtype, parsed.start, size_of(path))
    if header.dtype.kind not in "biufcmM":
        raise UnimplementedError(
            f"{path}: holds values of dtype {header.dtype}, which cannot be read row by row; save text with "
            "write_arrow, and each field of a structured array as a file of its own"
        )
    if not header.shape:
        raise InvalidArgumentError(f"{path}: holds a scalar; an array needs a first axis to have rows")
    if parsed.in_columns and len(header.shape) > 1:
        raise UnimplementedError(
            f"{path}: is stored column by column (Fortran's order), so that its rows lie scattered; save it again "
            "with numpy.save(path, numpy.ascontiguousarray(array))"
        )
    end = header.start + header.shape[0] * header.row_bytes
    if header.size > end and read_range(path, end, min(header.size, end + len(ARRAY_MARK))) == ARRAY_MARK:
        raise DataLossError(
            f"{path}: another array begins at byte {end}, behind the {header.shape[0]} rows of the first one, and its rows "
            "would be lost; save each array in a file of its own, or together with numpy.savez"
        )
    return header


@lru_cache(maxsize=1024)
def _array_of(path: str, local: str, stamp: str) -> np.ndarray[Any, Any]:
    """The array of a local file, mapped into memory."""
    return _header_of(path, stamp).array(mapped(local))


def _parsed(path: str) -> NpyHeader:
    """The header of a file.

    Raises:
      DataLossError: it is not a `.npy` file.
    """
    most = _HEADER_BYTES
    while True:
        data = read_range(path, 0, most)
        try:
            return npy_header(data)
        except MalformedArray as error:
            if len(data) < most or most > 1 << 20:
                raise DataLossError(f"{path}: not a .npy file, or damaged: its header at byte 0: {error}") from error
            most *= 16  # a longer header


def _too_short(path: str, header: _Header, size: int) -> DataLossError:
    return DataLossError(
        f"{path}: has {size} bytes, but an array {header.dtype}{list(header.shape)} behind a header of {header.start} "
        f"bytes needs {header.start + header.shape[0] * header.row_bytes}; it was cut short, "
        f"and {header.shape[0] - max(0, size - header.start) // header.row_bytes} of its {header.shape[0]} rows are missing"
    )


# ----------------------------------------------------------------------------
# NumPy `.npz` archives: the rows of several arrays, along their first axes, are records.
# ----------------------------------------------------------------------------


MOST_BYTES = 4 << 30
"""The most bytes of the arrays of an archive that are in memory at once: those that are compressed or not local."""

_LOCAL_HEADER = 30


@dataclass(frozen=True)
class Npz(TableFormat):
    """The rows, along the first axis, of the arrays in `.npz` archives, as dicts by the names of the arrays.

    All arrays must have equally many rows. Local archives that `numpy.savez` wrote are mapped into memory: any rows in any
    order cost no more than they do in memory. What `savez_compressed` wrote, and what is not local, is in memory as a whole.
    Nothing is unpickled.

    Args:
      columns: names of the arrays wanted; all when None.
      memory_map: map local files into memory. False: rows are read into memory of their own, so that a file that is cut short
        while it is read is a `DataLossError` and not the end of the process; arrays are read as a whole.

    Raises:
      NotFoundError: a file is not there.
      InvalidArgumentError: arrays have different numbers of rows, or take more memory than 4 GiB.
      UnimplementedError: an array of text or of objects.

    >>> import distinput as di
    >>> import numpy as np
    >>> np.savez("train.npz", x=np.arange(6).reshape(3, 2), y=np.array([7, 8, 9]))
    >>> di.data.NpzDataset("train.npz").to_list()
    [{'x': [0, 1], 'y': 7}, {'x': [2, 3], 'y': 8}, {'x': [4, 5], 'y': 9}]

    Source: the format of `numpy.savez`.
    """

    has_columns = maps = True
    suffixes: ClassVar[tuple[str, ...]] = (".npz",)
    marks: ClassVar[tuple[bytes, ...]] = (b"PK",)
    name: ClassVar[str] = "npz"
    columns: Sequence[str] | None = None
    memory_map: bool = field(default=True, repr=False)  # no part of what a state is compared with

    def __post_init__(self) -> None:
        normalized(self, "columns", as_columns("npz", self.columns))

    def spec_of(self, path: str) -> Spec:
        arrays = self._arrays(path)
        return Spec.of(
            {name: TensorSpec(array.shape[1:], array.dtype.newbyteorder("=")) for name, array in arrays.items()}
        )

    def rows(self, path: str) -> int | None:
        return self._count(path, self._arrays(path))

    def gathers(self, path: str) -> bool:
        return True

    def units(self, files: FileTable) -> Ints | None:
        return np.fromiter(ask_each(self.rows, files.paths()), np.int64, len(files))

    def unit_bytes(self, files: FileTable) -> int:
        return max(1, _row_bytes(self._arrays(files.path(0)))) if len(files) else 1

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        row, stamp = self.first_row(path, position), stamp_of(path)
        arrays = self._arrays(path)
        rows = self._count(path, arrays)
        check_reached(path, rows, row)
        for first, stop in cut_rows(rows - row, block_rows(_row_bytes(arrays)), size, given):
            check_unchanged(path, stamp)
            yield self._block(arrays, slice(row + first, row + stop), stop - first), {"row": row + stop}

    def fetch(self, path: str, rows: Ints) -> Block:
        arrays = self._arrays(path)
        wanted = rows_in(path, rows, self._count(path, arrays))
        if all(array.dtype.isnative for array in arrays.values()):
            structure = self.spec_of(path).structure
            columns = structure.flatten({name: chosen(array, wanted) for name, array in arrays.items()})
            return ColumnBlock(structure, columns, len(wanted))
        return self._block(arrays, wanted, len(wanted))

    def sources(self, path: str) -> Sequence[RowArray] | None:
        arrays = self._arrays(path)
        if not all(array.dtype.isnative for array in arrays.values()):
            return None
        return list(self.spec_of(path).structure.flatten(dict(arrays)))

    def _block(self, arrays: Mapping[str, Any], rows: Any, count: int) -> Block:
        structure = structure_of(dict.fromkeys(arrays, 0))
        columns = {
            name: Dense(array[rows].astype(array.dtype.newbyteorder("="), copy=False)) for name, array in arrays.items()
        }
        return ColumnBlock(structure, structure.flatten(columns), count)

    def _arrays(self, path: str) -> Mapping[str, Any]:
        return _arrays(path, stamp_of(path), self.columns, local_path(path) if self.memory_map else None)

    def _count(self, path: str, arrays: Mapping[str, Any]) -> int:
        """The number of rows; where no array is wanted, as if folders have all columns, that of all arrays."""
        if not arrays and self.columns is not None:
            arrays = replace(self, columns=None)._arrays(path)
        return next((len(array) for array in arrays.values()), 0)


def _row_bytes(arrays: Mapping[str, Any]) -> int:
    return sum(prod(array.shape[1:]) * array.dtype.itemsize for array in arrays.values())


@lru_cache(maxsize=64)
def _arrays(path: str, stamp: str, columns: tuple[str, ...] | None, local: str | None) -> Mapping[str, Any]:
    """The arrays of one version of an archive, identified by `stamp`; mapped from `local`, if given."""
    del stamp
    with naming(path), open_ranges(path) as file:
        try:
            archive = archive_in(file)
        except MalformedArchive as error:
            raise DataLossError(f"{path}: not a .npz archive, or damaged: its list of members: {error}") from error
        with archive:
            members = _members(path, archive, columns, local)
            found = {name: _array(path, archive, member, name, local) for name, member in members.items()}
    lengths = {name: len(array) for name, array in found.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidArgumentError(
            f"{path}: its arrays have different numbers of rows, {lengths}; name those that belong together with columns="
        )
    return found


def _members(
    path: str, archive: zipfile.ZipFile, columns: tuple[str, ...] | None, local: str | None
) -> dict[str, zipfile.ZipInfo]:
    """The wanted members by the names of the arrays."""
    there = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in there:
            raise DataLossError(f"{path}: holds two arrays {name!r}")
        there[name] = member
    missing = [name for name in columns or () if name not in there]
    if missing:
        raise InvalidArgumentError(f"{path}: has no array {missing[0]!r}; it has {', '.join(sorted(there)) or 'none'}")
    found = there if columns is None else {name: there[name] for name in columns}
    in_memory = sum(m.file_size for m in found.values() if m.compress_type or local is None)
    if in_memory > MOST_BYTES:
        raise InvalidArgumentError(
            f"{path}: its arrays take {in_memory} bytes in memory, more than {MOST_BYTES}; save them with numpy.savez, which "
            "does not compress, on a local disk, or as .npy files"
        )
    return found


def _array(path: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, local: str | None) -> Any:
    """An array: a view of the mapped archive, or in memory."""
    if not member.filename.endswith(".npy"):
        raise InvalidArgumentError(
            f"{path}: holds {member.filename!r}, which is no array; name the arrays with columns="
        )
    if member.compress_type == zipfile.ZIP_STORED and local is not None and not member.flag_bits & 1:
        data = _stored(path, mapped(local), member)
    else:
        try:
            data = content_of(archive, member.filename)
        except MalformedArchive as error:
            raise DataLossError(f"{path}: array {name!r}: damaged: {error}") from error
    return _parsed_archive(f"{path}: array {name!r}", data)


def _stored(path: str, data: Bytes, member: zipfile.ZipInfo) -> Bytes:
    """The content of a member that is not compressed."""
    at = member.header_offset
    header = data[at : at + _LOCAL_HEADER].tobytes() if at >= 0 else b""
    if len(header) == _LOCAL_HEADER and header[:4] == b"PK\3\4":
        name, extra = struct.unpack("<HH", header[26:])
        start = at + _LOCAL_HEADER + name + extra
        if start + member.file_size <= len(data):
            return data[start : start + member.file_size]
    raise DataLossError(
        f"{path}: damaged: array {member.filename!r} is not at byte {at}, where the list of members says"
    )


def _parsed_archive(who: str, data: Bytes) -> Any:
    """The array in the bytes of a `.npy` file."""
    unread = "which cannot be read row by row; save numbers, or text in Arrow files"
    try:
        array = npy_array(data)
    except ObjectsError:
        raise UnimplementedError(f"{who} holds values of dtype object, {unread}") from None
    except MalformedArray as error:
        raise DataLossError(f"{who}: not a .npy file, or damaged: {error}") from error
    if array.dtype.kind not in "biufcmM":
        raise UnimplementedError(f"{who} holds values of dtype {array.dtype}, {unread}")
    if not array.shape:
        raise InvalidArgumentError(
            f"{who} is a scalar; an array needs a first axis to have rows; leave it out with columns="
        )
    return np.ascontiguousarray(array)  # no copy where rows lie together
