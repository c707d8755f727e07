# SPDX-License-Identifier: Apache-2.0
"""Compressed streams: GZIP and ZLIB, in bounded memory, with every kind of damage found and named."""

import zlib
from typing import Literal

from distinput.errors import DataLossError, InvalidArgumentError

__all__ = ["Compression", "Deflater", "Inflater", "as_compression"]

Compression = Literal["", "GZIP", "ZLIB"]

_WINDOW_BITS: dict[str, int] = {"GZIP": 31, "ZLIB": 15}


def as_compression(name: str | bytes | None) -> Compression:
    """A compression type as TensorFlow names it; None means no compression.

    Raises:
      InvalidArgumentError: it is none of "", "GZIP" and "ZLIB".
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
    """Decompression, step by step.

    Args:
      compression: "GZIP" (one or many members, one after the other, perhaps zeros behind them) or "ZLIB" (one stream).
      path: for the messages.
    """

    def __init__(self, compression: Compression, path: str) -> None:
        self._compression = compression
        self._path = path
        self._stream = zlib.decompressobj(_WINDOW_BITS[compression])
        self._waiting = b""
        self._begun = False
        self._offset = 0  # bytes of the file handed in so far

    @property
    def hungry(self) -> bool:
        """True when nothing comes without more input."""
        return not self._waiting

    def feed(self, data: bytes) -> None:
        """Hand in the next bytes of the file; only when hungry."""
        self._waiting = data
        self._begun = self._begun or bool(data)
        self._offset += len(data)

    def inflate(self, most: int) -> bytes:
        """Up to `most` bytes of what was compressed; may be nothing.

        Raises:
          DataLossError: the stream is damaged, or something else follows it.
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
        """Say that the file has ended, after `inflate` gave nothing more. An empty file is an empty stream.

        Raises:
          DataLossError: the compressed data has not ended.
        """
        if self._begun and not self._stream.eof:
            raise self._damage("the file ends before the compressed data does; it was cut short")

    def _damage(self, what: str) -> DataLossError:
        return DataLossError(
            f"{self._path}: corrupted {self._compression} data at or before byte "
            f"{self._offset - len(self._waiting)}: {what}"
        )


class Deflater:
    """Compression, step by step.

    Args:
      compression: "GZIP" or "ZLIB".
      level: 0 (none) to 9 (smallest), -1 for zlib's default.
    """

    def __init__(self, compression: Compression, level: int = -1) -> None:
        self._stream = zlib.compressobj(level, zlib.DEFLATED, _WINDOW_BITS[compression])

    def deflate(self, data: bytes | memoryview) -> bytes:
        """Compress more."""
        return self._stream.compress(data)

    def flush(self) -> bytes:
        """Everything that was handed in so far, so that it can be read."""
        return self._stream.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        """The end of the stream."""
        return self._stream.flush(zlib.Z_FINISH)
