# SPDX-License-Identifier: Apache-2.0
"""Decoders and encoders of zlib, bzip2, and what pyarrow has: ZSTD and LZ4."""

import zlib
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

__all__ = [
    "CUT_SHORT",
    "ArrowDecoder",
    "ArrowEncoder",
    "Bz2Decoder",
    "Decoder",
    "Encoder",
    "Read",
    "ZlibDecoder",
    "ZlibEncoder",
    "bz2_encoder",
]

CUT_SHORT = "the file ends before the compressed data does; it was cut short"

Read = Callable[[int], bytes]
"""Reads up to so many bytes of a file; none at its end."""

_READ_BYTES = 64 << 10


class Decoder(Protocol):
    """Decompresses a stream."""

    @property
    def waiting(self) -> int:
        """How many of the bytes that were read are not decompressed yet, as far as the codec tells."""

    def decode(self, most: int) -> bytes:
        """The next decompressed bytes, at most so many; none at the end.

        Raises:
          ValueError, OSError, EOFError, zlib.error: the stream is damaged.
        """


class Encoder(Protocol):
    """Compresses a stream; the methods are those of `Deflater`."""

    def encode(self, data: bytes | memoryview) -> bytes:
        """Compress more data."""

    def flush(self) -> bytes:
        """What is pending."""

    def finish(self) -> bytes:
        """The end of the stream."""


class ZlibDecoder:
    """Deflated data: gzip, which may have several members and zeros after them, or one zlib stream.

    Args:
      window: zlib's `wbits`: 31 for gzip, 15 for zlib.
      read: of the file.
    """

    def __init__(self, window: int, read: Read) -> None:
        self._window, self._read = window, read
        self._stream = zlib.decompressobj(window)
        self._input = b""
        self._begun = False

    @property
    def waiting(self) -> int:
        return len(self._input)

    def decode(self, most: int) -> bytes:
        while True:
            ended = False
            if not self._input:
                self._input = self._read(_READ_BYTES)
                ended = not self._input
                self._begun = self._begun or not ended
            if self._stream.eof:
                self._input = self._input.lstrip(b"\0")
                if not self._input and not ended:
                    continue
                if ended:
                    return b""
                if self._window != 31:
                    raise ValueError("something follows the end of the compressed data")
                self._stream = zlib.decompressobj(self._window)
            if not self._begun:
                return b""
            made = self._stream.decompress(self._input, most)
            self._input = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            if made:
                return made
            if ended and not self._stream.eof:
                raise EOFError(CUT_SHORT)


class Bz2Decoder:
    """Data of bzip2, one stream or several.

    Args:
      read: of the file.
    """

    def __init__(self, read: Read) -> None:
        self._read, self._stream = read, _bz2().BZ2Decompressor()
        self._begun = False

    @property
    def waiting(self) -> int:
        return len(self._stream.unused_data) if self._stream.eof else 0

    def decode(self, most: int) -> bytes:
        while True:
            if self._stream.eof:
                data = self._stream.unused_data or self._read(_READ_BYTES)
                if not data:
                    return b""
                self._stream = _bz2().BZ2Decompressor()
            else:
                data = self._read(_READ_BYTES) if self._stream.needs_input else b""
                if self._stream.needs_input and not data:
                    if self._begun:
                        raise EOFError(CUT_SHORT)
                    return b""
            self._begun = True
            made: bytes = self._stream.decompress(data, most)
            if made:
                return made


class ArrowDecoder:
    """A stream that pyarrow decompresses, which may have several frames.

    Args:
      codec: as pyarrow names it.
      read: of the file.
    """

    waiting: ClassVar[int] = 0  # pyarrow does not tell

    def __init__(self, codec: str, read: Read) -> None:
        import pyarrow as pa

        self._stream: Any = pa.CompressedInputStream(pa.PythonFile(_Readable(read), mode="r"), codec)

    def decode(self, most: int) -> bytes:
        try:
            return bytes(self._stream.read(most))
        except OSError as error:
            if "Truncated" in str(error):
                raise EOFError(CUT_SHORT) from error
            raise


class _Readable:
    """What pyarrow takes for a file."""

    closed = False

    def __init__(self, read: Read) -> None:
        self.read = read

    def close(self) -> None:
        """The file is its opener's."""


class ZlibEncoder:
    """Deflates.

    Args:
      window: zlib's `wbits`: 31 for gzip, 15 for zlib.
      level: 0 to 9, -1 for zlib's default.
    """

    def __init__(self, window: int, level: int) -> None:
        self._stream = zlib.compressobj(level, zlib.DEFLATED, window)

    def encode(self, data: bytes | memoryview) -> bytes:
        return self._stream.compress(data)

    def flush(self) -> bytes:
        return self._stream.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._stream.flush(zlib.Z_FINISH)


class _Bz2Encoder:
    def __init__(self, level: int) -> None:
        self._stream = _bz2().BZ2Compressor(level)

    def encode(self, data: bytes | memoryview) -> bytes:
        made: bytes = self._stream.compress(data)
        return made

    def flush(self) -> bytes:
        return b""  # bzip2 compresses blocks; those that are not full stay

    def finish(self) -> bytes:
        made: bytes = self._stream.flush()
        return made


def bz2_encoder(level: int) -> Encoder:
    """An encoder of bzip2, of a level from 1 to 9, -1 for its default."""
    return _Bz2Encoder(9 if level == -1 else level)


class ArrowEncoder:
    """Compresses each piece of data as a frame of its own.

    Args:
      codec: as pyarrow names it.
      level: of the codec, -1 for its default.
    """

    def __init__(self, codec: str, level: int) -> None:
        import pyarrow as pa

        self._codec: Any = pa.Codec(codec, compression_level=None if level == -1 else level)

    def encode(self, data: bytes | memoryview) -> bytes:
        return bytes(self._codec.compress(data, asbytes=True)) if len(data) else b""

    def flush(self) -> bytes:
        return b""

    def finish(self) -> bytes:
        return b""


def _bz2() -> Any:
    import bz2  # not in every build of Python

    return bz2
