# SPDX-License-Identifier: Apache-2.0
"""Compressed streams: GZIP and ZLIB, in bounded memory; damage of any kind is detected and reported."""

import zlib
from typing import Literal

from distinput.errors import DataLossError, InvalidArgumentError

__all__ = ["Compression", "Deflater", "Inflater", "as_compression"]

Compression = Literal["", "GZIP", "ZLIB"]

_WINDOW_BITS: dict[str, int] = {"GZIP": 31, "ZLIB": 15}


def as_compression(name: str | bytes | None) -> Compression:
    """A compression type as TensorFlow names it; None means no compression.

    Raises:
      InvalidArgumentError: the name is not "", "GZIP" or "ZLIB".
    """
    text = name.decode() if isinstance(name, bytes) else name
    match text:
        case None | "":
            return ""
        case "GZIP":
            return "GZIP"
        case "ZLIB":
            return "ZLIB"
    raise InvalidArgumentError(f"Unsupported compression_type: {name!r}; known are '', 'GZIP' and 'ZLIB'")


class Inflater:
    """Incremental decompression.

    Args:
      compression: "GZIP" (one or more members, optionally followed by zero padding) or "ZLIB" (one stream).
      path: of the file, for error messages.
    """

    def __init__(self, compression: Compression, path: str) -> None:
        self._compression = compression
        self._path = path
        self._stream = zlib.decompressobj(_WINDOW_BITS[compression])
        self._waiting = b""
        self._begun = False
        self._offset = 0  # bytes of the file fed so far

    @property
    def hungry(self) -> bool:
        """True if `inflate` needs more input before it can return anything."""
        return not self._waiting

    def feed(self, data: bytes) -> None:
        """Pass in the next bytes of the file; call it only when `hungry`."""
        self._waiting = data
        self._begun = self._begun or bool(data)
        self._offset += len(data)

    def inflate(self, most: int) -> bytes:
        """Return up to `most` decompressed bytes, possibly none.

        Raises:
          DataLossError: the stream is damaged, or other data follows it.
        """
        if self._stream.eof:
            self._waiting = self._waiting.lstrip(b"\0")
            if not self._waiting:
                return b""
            if self._compression != "GZIP":
                raise self._damage("something follows the end of the compressed data")
            self._stream = zlib.decompressobj(_WINDOW_BITS[self._compression])
        if not self._begun:
            return b""
        try:
            made = self._stream.decompress(self._waiting, most)
        except zlib.error as error:
            raise self._damage(str(error)) from error
        self._waiting = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return made

    def finish(self) -> None:
        """Signal the end of the file, once `inflate` returns nothing more. An empty file is an empty stream.

        Raises:
          DataLossError: the compressed data is incomplete.
        """
        if self._begun and not self._stream.eof:
            raise self._damage("the file ends before the compressed data does; it was cut short")

    def _damage(self, what: str) -> DataLossError:
        return DataLossError(
            f"{self._path}: corrupted {self._compression} data at or before byte "
            f"{self._offset - len(self._waiting)}: {what}"
        )


class Deflater:
    """Incremental compression.

    Args:
      compression: "GZIP" or "ZLIB".
      level: 0 (none) to 9 (smallest), -1 for zlib's default.
    """

    def __init__(self, compression: Compression, level: int = -1) -> None:
        self._stream = zlib.compressobj(level, zlib.DEFLATED, _WINDOW_BITS[compression])

    def deflate(self, data: bytes | memoryview) -> bytes:
        """Compress more data and return the output that is ready."""
        return self._stream.compress(data)

    def flush(self) -> bytes:
        """Return the pending output, so that everything passed in so far can be decompressed."""
        return self._stream.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        """Return the end of the stream."""
        return self._stream.flush(zlib.Z_FINISH)
