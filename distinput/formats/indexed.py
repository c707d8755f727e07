# SPDX-License-Identifier: Apache-2.0
"""What an index of the records of a file adds to its format: rows are counted, reached, fetched and cut by their numbers."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block
from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.concurrent_requests import ask_each
from distinput.files.ranges import read_spans
from distinput.files.source import EMPTY, size_of
from distinput.files.table import FileTable
from distinput.formats.built_index import built_index, index_path
from distinput.formats.format import Format, Fragment, Position

__all__ = ["Indexed"]

_FRAGMENT_BYTES = 1 << 20


@dataclass(frozen=True)
class Indexed(Format):
    """A format whose files have an index; derive from it first, and then from the format.

    The format has positions of "byte" and "row", and implements `offsets` and `parse_rows`. The index is built by reading the
    file once, when its records are first counted or reached, and kept: see `built_index`. It is compared with the size and
    time of the file before each use, and with what is read: a block that ends elsewhere than the index says is an error.

    Args:
      index_folder: where indices are kept; None: beside each file.

    Raises:
      InvalidArgumentError: the files are compressed.
    """

    counts_rows: ClassVar[bool] = True
    fetches: ClassVar[bool] = True
    states_cardinality: ClassVar[bool] = True
    stale: ClassVar[str] = "remove the index, and it is built again"
    """What to do about an index that is not of its file."""
    index_folder: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        compression = getattr(self, "compression", "")
        if compression:
            raise InvalidArgumentError(
                f"{self.name.removeprefix('indexed_')}: an index needs files without compression, got {compression!r}; read "
                "them without index"
            )

    @abstractmethod
    def offsets(self, path: str) -> Iterator[Ints]:
        """Read a file and yield the offsets of its records, in pieces, and at last the end of the last record.

        A record ends where the next one begins.

        Raises:
          DataLossError: the file is damaged.
        """

    @abstractmethod
    def parse_rows(self, path: str, data: Bytes, ends: Ints, rows: Ints) -> Block:
        """Records whose bytes are known.

        Args:
          path: the file.
          data: the bytes of the records, one after the other.
          ends: [n] where each record ends in `data`.
          rows: [n] the numbers of the records.

        Raises:
          DataLossError: these bytes are not those records.
        """

    def index(self, path: str) -> Ints:
        """[n + 1] the offset of each record of a file, and the end of the last one.

        Raises:
          NotFoundError: the file is not there.
          DataLossError: the file is damaged.
          OSError: there is no index, and none can be written.
        """
        name = self.name.removeprefix("indexed_")
        return built_index(path, index_path(path, name, self.index_folder), self._options, lambda: self.offsets(path))

    @property
    def _options(self) -> str:
        """The options of the format, which decide where records begin."""
        told: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "index_folder"}
        return f"{self.name} {told}"

    def rows(self, path: str) -> int:
        return len(self.index(path)) - 1

    def seek(self, path: str, row: int) -> Position:
        return {"byte": int(self.index(path)[row]), "row": row}

    def fragments(self, path: str) -> list[Fragment]:
        offsets = self.index(path)
        marks = np.arange(offsets[0], offsets[-1], _FRAGMENT_BYTES)
        cuts = [*dict.fromkeys(np.searchsorted(offsets, marks).tolist() or [0]), len(offsets) - 1]
        return [self.part(path, a, b) for a, b in pairwise(cuts)]

    def units(self, files: FileTable) -> Ints:
        """The number of records in each file."""
        if files.rows is not None and (files.rows >= 0).all():
            return files.rows
        paths = [files.path(number) for number in range(len(files))]
        return np.fromiter(ask_each(self.rows, paths), np.int64, len(files))

    def unit_bytes(self, files: FileTable) -> int:
        """The average size of a record of these files in bytes."""
        return max(1, int(files.sizes.sum()) // max(1, int(self.units(files).sum())))

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        offsets = self.index(path)
        end = len(offsets) - 1 if stop is None else stop
        behind = None if stop is None else self.seek(path, stop)
        begin = self.seek(path, start) if start else self.start()
        return Fragment(path, begin, behind, end - start, int(offsets[end] - offsets[start]))

    def read_fragment(self, fragment: Fragment, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        return Format.read_fragment(self, fragment, position)

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        return self._checked(path, super().read(path, position))  # type: ignore[safe-super]  # the format comes after this class

    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        return self._checked(path, super().read_groups(path, position, size, given))

    def read_until(self, path: str, position: Position, stop: Position) -> Iterator[tuple[Block, Position]]:
        return self._checked(path, super().read_until(path, position, stop))

    def _checked(self, path: str, blocks: Iterator[tuple[Block, Position]]) -> Iterator[tuple[Block, Position]]:
        """The same blocks, checked to end where the index says."""
        offsets = self.index(path)
        for block, after in blocks:
            if after["row"] >= len(offsets) or offsets[after["row"]] != after["byte"]:
                raise self.misplaced(path, after["row"])
            yield block, after

    def past(self, path: str, position: Position | None) -> Position | None:
        at, offsets = position or self.start(), self.index(path)
        known = at["row"] + 1 < len(offsets) and offsets[at["row"]] == at["byte"]
        return self.seek(path, at["row"] + 1) if known else super().past(path, position)

    def misplaced(self, path: str, row: int) -> DataLossError:
        """The error for a record that is not where the index says."""
        return DataLossError(
            f"{path}: record {row} is not where the index says, or damaged: the file has changed since the index was written; "
            f"{self.stale}"
        )

    def fetch(self, path: str, rows: Ints) -> Block:
        offsets = self.index(path)
        wanted, count = np.asarray(rows, np.int64), len(offsets) - 1
        if len(wanted) and (wanted.min() < 0 or wanted.max() >= count):
            raise InvalidArgumentError(f"{path}: records must be from 0 to {count - 1}, got {wanted.tolist()!s:.80}")
        # Consecutive records are read as one span.
        begins = np.flatnonzero(np.diff(wanted, prepend=-2) != 1)
        last = wanted[np.append(begins[1:], len(wanted)) - 1] if len(wanted) else wanted
        first = offsets[wanted[begins]]
        data = read_spans(path, first, offsets[last + 1] - first) if len(wanted) else EMPTY
        return self.parse_rows(path, data, np.cumsum(np.diff(offsets)[wanted]), wanted)

    def size(self, path: str) -> int:
        return size_of(path)
