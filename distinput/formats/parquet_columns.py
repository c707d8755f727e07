# SPDX-License-Identifier: Apache-2.0
"""The byte ranges of the columns of a Parquet file, from its footer.

pyarrow offers this too, but crashes the process if this part of the footer is damaged. Source: "Thrift Compact protocol
encoding" of Apache Thrift, and `parquet.thrift` of the format: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
"""

import struct
from typing import Any, NamedTuple

from distinput.errors import DataLossError

__all__ = ["Chunk", "Compact", "chunks_of"]

_ROW_GROUPS, _COLUMNS, _META_DATA, _PATH, _COMPRESSED_SIZE, _DATA, _DICTIONARY = 4, 1, 3, 3, 7, 9, 11
"""The field numbers on the path from the footer to the bytes of a column."""


class Chunk(NamedTuple):
    """The values of a column, or of one leaf of a nested column, in a row group.

    Args:
      column: the name of the top-level column.
      start: the byte of the file at which the chunk begins.
      stop: the byte at which it ends.
    """

    column: str
    start: int
    stop: int


def chunks_of(path: str, footer: bytes, size: int) -> list[list[Chunk]]:
    """The chunks of each row group.

    Args:
      path: of the file, for error messages.
      footer: of the file, without the length and the magic number after it.
      size: of the file in bytes.

    Raises:
      DataLossError: the footer is damaged.
    """
    try:
        return [[_chunk(column, size) for column in group[_COLUMNS]] for group in Compact(footer).struct()[_ROW_GROUPS]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise DataLossError(f"{path}: not a Parquet file, or damaged: its footer: {error!r:.100}") from error


def _chunk(column: dict[int, Any], size: int) -> Chunk:
    described = column[_META_DATA]
    name, nbytes = described[_PATH][0].decode(), described[_COMPRESSED_SIZE]
    start = described[_DATA]
    if 0 < described.get(_DICTIONARY, 0) < start:
        start = described[_DICTIONARY]
    if not 0 <= nbytes <= size or not 0 <= start <= size - nbytes:
        raise ValueError(f"column {name!r} cannot take {nbytes} bytes from byte {start} on")
    return Chunk(name, start, start + nbytes)


class Compact:
    """A decoder of Thrift's compact encoding.

    Args:
      data: the bytes to decode, from the beginning.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> dict[int, Any]:
        """The fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self._signed()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:  # an item of a list; the value of a boolean field is in its header
                return self._byte() == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 7:
                return struct.unpack("<d", self._bytes(8))[0]
            case 8:
                return self._bytes(self._number())
            case 9 | 10:
                head = self._byte()
                count = head >> 4 if head < 0xF0 else self._number()
                return [self._value(head & 15) for _ in range(count)]
            case 12:
                return self.struct()
        raise ValueError(f"a value of kind {kind}")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise ValueError(f"{count} bytes that are not there")
        return self._data[self._at - count : self._at]

    def _number(self) -> int:
        """A varint: seven bits per byte, lowest first; the highest bit means that more follow."""
        number = shift = 0
        while (byte := self._byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")
        return number | byte << shift

    def _signed(self) -> int:
        """A zigzag varint: 0, -1, 1, -2, ... are stored as 0, 1, 2, 3, ..."""
        number = self._number()
        return number >> 1 ^ -(number & 1)
