# SPDX-License-Identifier: Apache-2.0
"""ArrayRecord files: records of bytes that are reached by their numbers, through the package `array_record`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar

from distinput.columns.block import Block, ColumnBlock, rows_within
from distinput.columns.column import Ints, Strings
from distinput.errors import DataLossError, UnimplementedError, importing
from distinput.files.paths import local_path
from distinput.files.source import stamp_of
from distinput.formats.format import BLOCK_ROWS, PlacedBlocks, Position, check_reached, cut_rows
from distinput.formats.tables import CountedTable
from distinput.kernels.kernel import renewed
from distinput.names.lazy import dataclass
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

_LOOKED_AT = 16  # records read at first, to estimate the size of the others


@dataclass(frozen=True)
class ArrayRecords(CountedTable):
    """The records of ArrayRecord files, as bytes; the extra `arrayrecord` installs the package that reads them.

    Records are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and
    restarts go straight to their place. Files are local.

    Raises:
      NotFoundError: a file is not there.
      EngineMissing: the package `array_record` is not installed.
      DataLossError: a file is damaged or cut short.
      UnimplementedError: a file is not local.

    Source: the format of the library array_record, which Grain reads.
    """

    name: ClassVar[str] = "array_record"
    spec_from_file: ClassVar[bool] = False

    def spec(self, path: str | None) -> Spec:
        del path
        return Spec.leaf((), object)

    def spec_of(self, path: str) -> Spec:
        return self.spec(path)

    def opened(self, path: str) -> "_Opened":
        return _opened(path, stamp_of(path))

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        row, file = self.first_row(path, position), self.opened(path)
        rows = file.rows
        check_reached(path, rows, row, "record")
        most = _LOOKED_AT
        while row < rows:
            first, stop = next(cut_rows(rows - row, most, size, given))
            items = file.read(row + first, row + stop)
            block = ColumnBlock(LEAF, [Strings.of(items)], len(items))
            most = min(BLOCK_ROWS, 4 * most, rows_within(len(items), sum(map(len, items))))
            row, given = row + stop, given + stop
            yield block, {"row": row}


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
        with importing("array_record: the package is not installed; `pip install 'distinput[arrayrecord]'`"):
            from array_record.python.array_record_module import ArrayRecordReader
        self._path, self._lock = path, renewed(Lock())
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

    def block(self, rows: Ints) -> Block:
        """Records by their numbers, which are in range."""
        items = self.read(rows.tolist()) if len(rows) else []
        return ColumnBlock(LEAF, [Strings.of(items)], len(items))

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
