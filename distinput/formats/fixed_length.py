# SPDX-License-Identifier: Apache-2.0
"""Files of records of equal length, optionally between a header and a footer."""

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Strings
from distinput.errors import InvalidArgumentError
from distinput.files.compression import as_compression
from distinput.files.manifest import FileTable
from distinput.files.paths import local_path
from distinput.files.source import FileStream, read_spans, size_of
from distinput.formats.format import Fragment, PlacedBlocks, Position, check_reached, rows_in
from distinput.formats.span_format import Found, Ints, Piece, SpanFormat
from distinput.names.lazy import dataclass
from distinput.plan.check import integer, normalized
from distinput.values.nest import LEAF

_FRAGMENT_BYTES = 1 << 20


@dataclass(frozen=True)
class FixedLengthRecords(SpanFormat):
    """Records of `record_bytes` bytes each.

    Args:
      record_bytes: bytes in a record, at least 1; those of the decompressed file.
      header_bytes: bytes to leave out at the beginning of each file.
      footer_bytes: bytes to leave out at the end of each file.
      compression_type: "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY"; None and "AUTO" go by suffixes of names.

    Raises:
      InvalidArgumentError: a number is too small, or the compression is unknown; at iteration, a file is not a whole number of
        records.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.bin").write_bytes(b"HEADaabb")
    >>> list(di.data.FixedLengthRecordDataset("a.bin", 2, header_bytes=4))
    [b'aa', b'bb']

    Source: the meaning is that of `tf.data.FixedLengthRecordDataset`.
    """

    name: ClassVar[str] = "fixed_length"
    ends_exactly = counts_rows = fetches = True
    record_bytes: int
    header_bytes: int = 0
    footer_bytes: int = 0
    compression_type: str | None = None

    def __post_init__(self) -> None:
        as_compression(self.compression_type)
        for option, least in (("record_bytes", 1), ("header_bytes", 0), ("footer_bytes", 0)):
            value = integer("fixed_length", option, getattr(self, option))  # NumPy's small ones would overflow
            normalized(self, option, value)
            if value < least:
                raise InvalidArgumentError(f"fixed_length: {option} must be at least {least}, got {value}")

    @classmethod
    def of_options(
        cls, header_bytes: int | None = None, footer_bytes: int | None = None, **options: Any
    ) -> "FixedLengthRecords":
        return cls(header_bytes=header_bytes or 0, footer_bytes=footer_bytes or 0, **options)

    def start(self) -> Position:
        return {"row": 0}

    def after(self, byte: int, row: int) -> Position:
        del byte
        return {"row": row}

    def rows(self, path: str) -> int | None:
        """How many records the file has.

        Raises:
          InvalidArgumentError: the body of the file is not a whole number of records.
        """
        return None if self.compression else self._count(path, size_of(path))

    def seek(self, path: str, row: int) -> Position | None:
        del path
        return None if self.compression and row else {"row": row}

    def fragments(self, path: str) -> list[Fragment]:
        rows = self.rows(path)
        if rows is None:
            return super().fragments(path)
        step = max(1, _FRAGMENT_BYTES // self.record_bytes)
        cuts = [*range(0, rows, step), rows] if rows else [0, 0]
        return [Fragment(path, {"row": a}, {"row": b}, b - a, (b - a) * self.record_bytes) for a, b in pairwise(cuts)]

    def units(self, files: FileTable) -> Ints | None:
        if self.compression:
            return None
        body = files.sizes - (self.header_bytes + self.footer_bytes)
        for bad in np.flatnonzero(((body < 0) | (body % self.record_bytes > 0)) & (files.sizes > 0)):
            self._count(files.path(int(bad)), int(files.sizes[bad]))
        return np.maximum(body, 0) // self.record_bytes

    def unit_bytes(self, files: FileTable) -> int:
        return self.record_bytes

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        if self.compression or stop is None:
            return Fragment(path, {"row": start}, None, None, 0)
        return Fragment(path, {"row": start}, {"row": stop}, stop - start, (stop - start) * self.record_bytes)

    def fetch(self, path: str, rows: Ints) -> Block:
        wanted = rows_in(path, rows, self.rows(path) or 0)
        sizes = np.full(len(wanted), self.record_bytes)
        data = read_spans(path, self.header_bytes + wanted * self.record_bytes, sizes)
        return ColumnBlock(LEAF, [Strings(data, np.cumsum(sizes) - sizes, sizes)], len(wanted))

    def read_until(self, path: str, position: Position, stop: Position) -> PlacedBlocks:
        end = self.header_bytes + stop["row"] * self.record_bytes + self.footer_bytes
        return self._read(path, position, None if self.compression else end)

    def open(self, path: str, position: Position) -> tuple[FileStream, int]:
        first = self.header_bytes + position["row"] * self.record_bytes
        source = FileStream(path, self.compression, first=None if self.compression else first)
        try:
            if self.compression:
                header = source.skip(self.header_bytes)
                if header < self.header_bytes:
                    raise self._too_short(path, header)
                return source, 0
            if source.size is None:
                who = "a pipe has" if local_path(path) is not None else "its server tells"
                raise InvalidArgumentError(
                    f"{path}: {who} no size, so its last record cannot be determined; save it to a file"
                )
            check_reached(path, self._count(path, source.size), position["row"], "record")
            source.go_to(first)
        except BaseException:
            source.close()
            raise
        return source, position["row"]

    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        # The last bytes are held back: only the end of the file shows that they are the footer.
        body = len(piece.data) - piece.at - self.footer_bytes
        count = min(max(body, 0) // self.record_bytes, len(starts))
        starts[:count] = piece.at + self.record_bytes * np.arange(count)
        sizes[:count] = self.record_bytes
        after = piece.at + count * self.record_bytes
        error: Exception | None = None
        if piece.ended and count < len(starts) and body != count * self.record_bytes:
            size = piece.byte + len(piece.data) - piece.at
            error = self._excess(piece.path, size) if body >= 0 else self._too_short(piece.path, size)
        return Found(count, after, self.record_bytes + self.footer_bytes, error)

    def _count(self, path: str, size: int) -> int:
        body = size - self.header_bytes - self.footer_bytes
        if body < 0:
            raise self._too_short(path, size)
        if body % self.record_bytes:
            raise self._excess(path, size)
        return body // self.record_bytes

    def _too_short(self, path: str, size: int) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{path}: has {size} bytes, fewer than its header of {self.header_bytes} and its footer of "
            f"{self.footer_bytes}; check header_bytes and footer_bytes"
        )

    def _excess(self, path: str, size: int) -> InvalidArgumentError:
        body = size - self.header_bytes - self.footer_bytes
        return InvalidArgumentError(
            f"{path}: Excess trailing bytes: header {self.header_bytes}, body {body}, footer {self.footer_bytes} "
            f"bytes; the body must be a whole number of records of {self.record_bytes}, but "
            f"{body % self.record_bytes} bytes are left over"
        )
