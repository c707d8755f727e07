# SPDX-License-Identifier: Apache-2.0
"""How many bytes of a Parquet file the columns take, from its footer.

pyarrow tells that as well, but ends the process where this part of a footer is damaged. Source: "Thrift Compact protocol
encoding" of Apache Thrift, and `parquet.thrift` of the format: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
"""

import struct
from functools import lru_cache
from typing import Any

from distinput.errors import DataLossError
from distinput.files.source import read_range, size_of

__all__ = ["bytes_of_columns"]

_ROW_GROUPS, _COLUMNS, _META_DATA, _PATH, _COMPRESSED_SIZE = 4, 1, 3, 3, 7
"""The numbers of the fields that lead from the footer to the bytes of a column."""


@lru_cache(maxsize=256)
def bytes_of_columns(path: str, stamp: str) -> dict[str, int]:
    """The bytes that each column of a file takes in it, by the name of the column that a row has.

    Args:
      path: of the file.
      stamp: of its version, as `stamp_of` gives it.

    Raises:
      DataLossError: the file is damaged.
    """
    del stamp  # it tells one version of the file from the next
    size = size_of(path)
    begin = size - 8 - int.from_bytes(read_range(path, max(0, size - 8), size)[:4], "little")
    found: dict[str, int] = {}
    try:
        for group in _Compact(read_range(path, max(0, begin), size - 8)).struct()[_ROW_GROUPS]:
            for column in group[_COLUMNS]:
                described = column[_META_DATA]
                name, nbytes = described[_PATH][0].decode(), described[_COMPRESSED_SIZE]
                if not 0 <= nbytes <= size:
                    raise ValueError(f"column {name!r} cannot take {nbytes} bytes")
                found[name] = found.get(name, 0) + nbytes
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise DataLossError(f"{path}: not a Parquet file, or damaged: its footer: {error!r:.100}") from error
    return found


class _Compact:
    """Values in Thrift's compact encoding.

    Args:
      data: which is read from its beginning on.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> dict[int, Any]:
        """The fields of a struct by their numbers."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self._signed()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:  # of a list; a field that is true or false has its value in its head
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
        """Seven bits in each byte, the lowest first; the highest bit says that there are more."""
        number = shift = 0
        while (byte := self._byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")
        return number | byte << shift

    def _signed(self) -> int:
        """0, -1, 1, -2, ... as 0, 1, 2, 3, ..."""
        number = self._number()
        return number >> 1 ^ -(number & 1)
