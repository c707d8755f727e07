# SPDX-License-Identifier: Apache-2.0
"""NumPy `.npz` archives: the rows of several arrays, along their first axes, are records."""

import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.core.dense import Dense
from distinput.core.npy_header import MalformedArchive, MalformedArray, content_of, npy_header, reading_archive
from distinput.core.picked import RowArray, chosen
from distinput.core.row_order import check_rows
from distinput.core.sizes import block_rows
from distinput.core.spec import Spec, TensorSpec
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.concurrent_requests import ask_each
from distinput.files.mapping import mapped
from distinput.files.paths import local_path
from distinput.files.source import check_unchanged, naming, open_ranges, stamp_of
from distinput.files.table import FileTable
from distinput.formats.format import Position, cut_rows
from distinput.formats.table_format import TableFormat
from distinput.formats.tables import as_columns
from distinput.plan.check import normalized

__all__ = ["Npz"]

MOST_BYTES = 4 << 30
"""The most bytes of the arrays of an archive that are in memory at once: those that are compressed or not local."""

_LOCAL_HEADER = 30


@dataclass(frozen=True)
class Npz(TableFormat):
    """The rows of the arrays in `.npz` archives, as dicts by the names of the arrays, which have equally many rows.

    Arrays of local archives that `numpy.savez` wrote are mapped; those that are compressed, or not local, are in memory as a
    whole, up to 4 GiB. Nothing is unpickled.

    Args:
      columns: the names of the arrays to read; None: all.
      memory_map: arrays of local archives that are not compressed are mapped; otherwise all are in memory.

    Source: the format of `numpy.savez`.
    """

    has_columns: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = (".npz",)
    marks: ClassVar[tuple[bytes, ...]] = (b"PK",)
    name: ClassVar[str] = "npz"
    maps: ClassVar[bool] = True
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
        return _rows(self._arrays(path))

    def gathers(self, path: str) -> bool:
        return True

    def units(self, files: FileTable) -> Ints | None:
        paths = [files.path(number) for number in range(len(files))]
        return np.fromiter(ask_each(lambda path: _rows(self._arrays(path)), paths), np.int64, len(files))

    def unit_bytes(self, files: FileTable) -> int:
        return max(1, _row_bytes(self._arrays(files.path(0)))) if len(files) else 1

    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        row, stamp = self.first_row(path, position), stamp_of(path)
        arrays = self._arrays(path)
        rows = _rows(arrays)
        if row > rows:
            raise DataLossError(f"{path}: has {rows} rows, but reading was to go on at row {row}; it changed")
        for first, stop in cut_rows(rows - row, block_rows(_row_bytes(arrays)), size, given):
            if local_path(path) is not None:
                check_unchanged(path, stamp)
            yield self._block(arrays, slice(row + first, row + stop), stop - first), {"row": row + stop}

    def fetch(self, path: str, rows: Ints) -> Block:
        arrays = self._arrays(path)
        wanted = np.asarray(rows, np.int64)
        try:
            check_rows(wanted, _rows(arrays))
        except IndexError as error:
            raise InvalidArgumentError(f"{path}: {error}") from None
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
        structure = Spec.of(
            {name: TensorSpec(array.shape[1:], array.dtype) for name, array in arrays.items()}
        ).structure
        columns = {
            name: Dense(array[rows].astype(array.dtype.newbyteorder("="), copy=False)) for name, array in arrays.items()
        }
        return ColumnBlock(structure, structure.flatten(columns), count)

    def _arrays(self, path: str) -> Mapping[str, Any]:
        columns = None if self.columns is None else tuple(self.columns)
        return _arrays(path, stamp_of(path), columns, local_path(path) if self.memory_map else None)


def _rows(arrays: Mapping[str, Any]) -> int:
    return next((len(array) for array in arrays.values()), 0)


def _row_bytes(arrays: Mapping[str, Any]) -> int:
    return sum(prod(array.shape[1:]) * array.dtype.itemsize for array in arrays.values())


@lru_cache(maxsize=64)
def _arrays(path: str, stamp: str, columns: tuple[str, ...] | None, local: str | None) -> Mapping[str, Any]:
    """The arrays of one version of an archive, identified by `stamp`; mapped from `local`, if given."""
    del stamp
    with naming(path), open_ranges(path) as file:
        try:
            with reading_archive():
                archive = zipfile.ZipFile(file)
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
    return _parsed(f"{path}: array {name!r}", data)


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


def _parsed(who: str, data: Bytes) -> Any:
    """The array in the bytes of a `.npy` file."""
    try:
        shape, in_columns, dtype, start = npy_header(data[:20_000].tobytes())
    except MalformedArray as error:
        raise DataLossError(f"{who}: not a .npy file, or damaged: {error}") from error
    if dtype.kind not in "biufcmM":
        raise UnimplementedError(
            f"{who} holds values of dtype {dtype}, of which no rows can be read; save numbers, or text in Arrow files"
        )
    if not shape:
        raise InvalidArgumentError(
            f"{who} is a scalar; an array needs a first axis to have rows; leave it out with columns="
        )
    size = prod(shape) * dtype.itemsize
    if start + size > len(data):
        raise DataLossError(
            f"{who}: damaged: an array {dtype}{list(shape)} does not fit into {len(data) - start} bytes"
        )
    flat = data[start : start + size]
    if in_columns and len(shape) > 1:
        return np.ascontiguousarray(np.frombuffer(flat, dtype).reshape(shape[::-1]).T)
    return np.frombuffer(flat, dtype).reshape(shape)
