# SPDX-License-Identifier: Apache-2.0
"""ArrayRecord files: records of bytes that are reached by their numbers, through the package `array_record`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, rows_within
from distinput.columns.column import Ints, Strings
from distinput.columns.picked import check_rows
from distinput.errors import DataLossError, EngineMissing, InvalidArgumentError, UnimplementedError
from distinput.files.manifest import FileTable
from distinput.files.paths import ask_each, local_path
from distinput.files.source import stamp_of
from distinput.formats.format import BLOCK_ROWS, Position, cut_rows
from distinput.formats.tables import TableFormat
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

__all__ = ["ArrayRecords"]

_LOOKED_AT = 16  # records read at first, to estimate the size of the others


@dataclass(frozen=True)
class ArrayRecords(TableFormat):
    """The records of ArrayRecord files, as bytes.

    The package `array_record` reads them, from local files. Records are counted, and any of them is reached by its number.

    Source: the format of the library array_record, which Grain reads.
    """

    name: ClassVar[str] = "array_record"
    spec_from_file: ClassVar[bool] = False

    def spec(self, path: str | None) -> Spec:
        del path
        return Spec.leaf((), object)

    def spec_of(self, path: str) -> Spec:
        return self.spec(path)

    def rows(self, path: str) -> int:
        """The number of records in the file."""
        return _opened(path, stamp_of(path)).rows

    def units(self, files: FileTable) -> Ints | None:
        paths = [files.path(number) for number in range(len(files))]
        return np.fromiter(ask_each(self.rows, paths), np.int64, len(files))

    def unit_bytes(self, files: FileTable) -> int:
        units = self.units(files)
        return max(1, int(files.sizes.sum()) // max(1, 0 if units is None else int(units.sum())))

    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        row, file = self.first_row(path, position), _opened(path, stamp_of(path))
        rows = file.rows
        if row > rows:
            raise DataLossError(f"{path}: has {rows} records, but reading was to go on at record {row}; it changed")
        most = _LOOKED_AT
        while row < rows:
            first, stop = next(cut_rows(rows - row, most, size, given))
            items = file.read(row + first, row + stop)
            block = ColumnBlock(LEAF, [Strings.of(items)], len(items))
            most = min(BLOCK_ROWS, 4 * most, rows_within(len(items), sum(map(len, items))))
            row, given = row + stop, given + stop
            yield block, {"row": row}

    def fetch(self, path: str, rows: Ints) -> Block:
        file, wanted = _opened(path, stamp_of(path)), np.asarray(rows, np.int64)
        try:
            check_rows(wanted, file.rows)
        except IndexError as error:
            raise InvalidArgumentError(f"{path}: {error}") from None
        items = file.read(wanted.tolist()) if len(wanted) else []
        return ColumnBlock(LEAF, [Strings.of(items)], len(items))


class _Opened:
    """An open file. Its reader is called by one thread at a time; it is not stated to allow several.

    Args:
      path: of the file.
    """

    def __init__(self, path: str) -> None:
        local = local_path(path)
        if local is None:
            raise UnimplementedError(
                f"{path}: the package array_record reads local files only; copy the file, or mount the store as a folder"
            )
        try:
            from array_record.python.array_record_module import ArrayRecordReader
        except ImportError:
            raise EngineMissing(
                "array_record: the package is not installed; `pip install 'distinput[arrayrecord]'`"
            ) from None
        self._path, self._lock = path, Lock()
        with self._naming_damage():
            # Nothing is read beside what is asked for.
            self._reader = ArrayRecordReader(local, "readahead_buffer_size:0,max_parallelism:0")
            whole = self._reader.ok()
            self.rows = int(self._reader.num_records()) if whole else 0
        if not whole:
            raise DataLossError(f"{path}: not an ArrayRecord file, damaged, or cut short: its index cannot be read")

    def read(self, *rows: Any) -> list[bytes]:
        """Records by a list of numbers, or from one number to before another."""
        with self._lock, self._naming_damage():
            found: list[bytes] = self._reader.read(*rows)
            return found

    @contextmanager
    def _naming_damage(self) -> Iterator[None]:
        """Name the file in errors of the reader."""
        try:
            yield
        except (RuntimeError, ValueError) as error:  # of the package
            raise DataLossError(f"{self._path}: damaged: {error}") from error


@lru_cache(maxsize=256)
def _opened(path: str, stamp: str) -> _Opened:
    """One version of a file, identified by `stamp`."""
    del stamp
    return _Opened(path)
