# SPDX-License-Identifier: Apache-2.0
"""The byte ranges of the columns of a Parquet file, from its footer.

pyarrow offers this too, but crashes the process if this part of the footer is damaged. Source: "Thrift Compact protocol
encoding" of Apache Thrift, and `parquet.thrift` of the format: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
"""

import struct
from typing import Any, NamedTuple

from distinput.errors import DataLossError

__all__ = ["Chunk", "Compact", "ThriftError", "chunks_of", "part_of", "path_of"]

_ROW_GROUPS, _COLUMNS, _META_DATA, _PATH, _COMPRESSED_SIZE, _DATA, _DICTIONARY = 4, 1, 3, 3, 7, 9, 11
"""The field numbers on the path from the footer to the bytes of a column."""


_DEEPEST = 64
"""How deep structs and lists may lie in each other."""


class ThriftError(Exception):
    """What should be a footer is none."""


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
        groups = part_of(Compact(footer).struct(), _ROW_GROUPS, list)
        return [[_chunk(column, size) for column in part_of(group, _COLUMNS, list)] for group in groups]
    except ThriftError as error:
        raise DataLossError(f"{path}: not a Parquet file, or damaged: its footer: {error}") from error


def part_of(fields: Any, number: int, kind: type, missing: Any = None) -> Any:
    """A field of a struct.

    Args:
      fields: of the struct, as `Compact.struct` returns them.
      number: of the field.
      kind: what its value must be.
      missing: its value if it is not there; None: it must be.

    Raises:
      ThriftError: it is not there, or something else.
    """
    found = fields.get(number, missing) if isinstance(fields, dict) else None
    if type(found) is not kind:
        raise ThriftError(f"field {number} should be a {kind.__name__}, and is {found!r:.40}")
    return found


def path_of(described: Any) -> list[str]:
    """The names that lead to a leaf of a column, from the top-level column down, of its metadata."""
    names = part_of(described, _PATH, list)
    try:
        found = [name.decode() for name in names if isinstance(name, bytes)]
    except UnicodeDecodeError as error:
        raise ThriftError(f"a name of a column is not UTF-8: {error}") from error
    if not found or len(found) != len(names):
        raise ThriftError(f"a column whose name is {names!r:.40}")
    return found


def _chunk(column: Any, size: int) -> Chunk:
    described = part_of(column, _META_DATA, dict)
    name, nbytes = path_of(described)[0], part_of(described, _COMPRESSED_SIZE, int)
    start, dictionary = part_of(described, _DATA, int), part_of(described, _DICTIONARY, int, 0)
    if 0 < dictionary < start:
        start = dictionary
    if not 0 <= nbytes <= size or not 0 <= start <= size - nbytes:
        raise ThriftError(f"column {name!r} cannot take {nbytes} bytes from byte {start} on")
    return Chunk(name, start, start + nbytes)


class Compact:
    """A decoder of Thrift's compact encoding.

    Args:
      data: the bytes to decode, from the beginning.

    Raises:
      ThriftError: they are something else.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self._signed()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ThriftError(f"structs that lie in each other more than {_DEEPEST} deep")
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
                return [self._value(head & 15, depth + 1) for _ in range(count)]
            case 12:
                return self.struct(depth)
        raise ThriftError(f"a value of kind {kind}")

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise ThriftError("it ends too early")
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise ThriftError(f"{count} bytes that are not there")
        return self._data[self._at - count : self._at]

    def _number(self) -> int:
        """A varint: seven bits per byte, lowest first; the highest bit means that more follow."""
        number = shift = 0
        while (byte := self._byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ThriftError("a number of more than 64 bits")
        return number | byte << shift

    def _signed(self) -> int:
        """A zigzag varint: 0, -1, 1, -2, ... are stored as 0, 1, 2, 3, ..."""
        number = self._number()
        return number >> 1 ^ -(number & 1)
