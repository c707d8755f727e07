# SPDX-License-Identifier: Apache-2.0
"""NumPy `.npy` files: every row of the array, along its first axis, is a record."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.core.dense import Dense
from distinput.core.nest import LEAF
from distinput.core.npy_header import MalformedArray, npy_header
from distinput.core.picked import RowArray, chosen
from distinput.core.row_order import check_rows
from distinput.core.sizes import block_rows
from distinput.core.spec import Spec
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.concurrent_requests import ask_each
from distinput.files.mapping import mapped
from distinput.files.paths import local_path
from distinput.files.ranges import read_spans
from distinput.files.source import EMPTY, FileStream, check_unchanged, read_range, size_of, stamp_of
from distinput.files.table import FileTable
from distinput.formats.format import Position, cut_rows
from distinput.formats.table_format import TableFormat

__all__ = ["Npy"]

_HEADER_BYTES = 4096  # how much is read for a header; nearly all headers have 128 bytes


@dataclass(frozen=True)
class Npy(TableFormat):
    """The rows of arrays in `.npy` files: [n, ...] is n records [...].

    Supports numbers of any byte order, booleans and times; values are returned in native byte order.

    Args:
      memory_map: local files are mapped into memory; otherwise rows are read into memory of their own.

    Source: the format is that of `numpy.lib.format`, versions 1 to 3.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".npy",)
    marks: ClassVar[tuple[bytes, ...]] = (b"\x93NUMPY",)
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
        paths = [files.path(number) for number in range(len(files))]
        rows = list(ask_each(self.rows, paths))
        return None if None in rows else np.array(rows, np.int64)

    def unit_bytes(self, files: FileTable) -> int:
        return max(1, _header(files.path(0)).row_bytes) if len(files) else 1

    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        row = self.first_row(path, position)
        stamp = stamp_of(path)
        header = _header_of(path, stamp)
        rows = header.rows_there
        if row > rows:
            raise DataLossError(f"{path}: has {rows} rows, but reading was to go on at row {row}; it changed")
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
                if local_path(path) is not None:
                    check_unchanged(path, stamp)
                yield _block(header.rows_of(data, stop - first), header), {"row": row + stop}
        if rows < header.shape[0]:
            raise _too_short(path, header, size_of(path))

    def fetch(self, path: str, rows: Ints) -> Block:
        """The rows with these numbers, in this order; only these rows are read.

        Raises:
          InvalidArgumentError: a row number is out of range.
        """
        positions, stamp = np.asarray(rows, np.int64), stamp_of(path)
        header, local = _whole(path, stamp), self._local(path)
        try:
            check_rows(positions, header.shape[0])
        except IndexError as error:
            raise InvalidArgumentError(f"{path}: {error}") from None
        if local is not None:
            return _picked(_array_of(path, local, stamp), positions, header)
        # Consecutive rows are read as one span.
        begins = np.flatnonzero(np.diff(positions, prepend=-2) != 1)
        counts = np.diff(begins, append=len(positions))
        data = read_spans(path, header.start + positions[begins] * header.row_bytes, counts * header.row_bytes)
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
    size: int = 0

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
    check_rows(rows, len(array))
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
    header, in_columns = _parsed(path)
    if header.dtype.kind not in "biufcmM":
        raise UnimplementedError(
            f"{path}: holds values of dtype {header.dtype}, of which no rows can be read; save text with "
            "write_arrow, and each field of a structured array as a file of its own"
        )
    if not header.shape:
        raise InvalidArgumentError(f"{path}: holds a scalar; an array needs a first axis to have rows")
    if in_columns and len(header.shape) > 1:
        raise UnimplementedError(
            f"{path}: is stored column by column (Fortran's order), so that its rows lie scattered; save it again "
            "with numpy.save(path, numpy.ascontiguousarray(array))"
        )
    return replace(header, size=size_of(path))


@lru_cache(maxsize=1024)
def _array_of(path: str, local: str, stamp: str) -> np.ndarray[Any, Any]:
    """The array of a local file, mapped into memory."""
    return _header_of(path, stamp).array(mapped(local))


def _parsed(path: str) -> tuple[_Header, bool]:
    """The header of a file, and True if its array is stored in Fortran order.

    Raises:
      DataLossError: it is not a `.npy` file.
    """
    most = _HEADER_BYTES
    while True:
        data = read_range(path, 0, most)
        try:
            shape, in_columns, dtype, start = npy_header(data)
        except MalformedArray as error:
            if len(data) < most or most > 1 << 20:
                raise DataLossError(f"{path}: not a .npy file, or damaged: its header at byte 0: {error}") from error
            most *= 16  # a longer header
            continue
        return _Header(shape, dtype, start), in_columns


def _too_short(path: str, header: _Header, size: int) -> DataLossError:
    return DataLossError(
        f"{path}: has {size} bytes, but an array {header.dtype}{list(header.shape)} behind a header of {header.start} "
        f"bytes needs {header.start + header.shape[0] * header.row_bytes}; it was cut short, "
        f"and {header.shape[0] - max(0, size - header.start) // header.row_bytes} of its {header.shape[0]} rows are missing"
    )
