# SPDX-License-Identifier: Apache-2.0
"""Compressed streams: read and written in bounded memory; damage is reported with the file and the byte.

`CODECS` is the one table of codecs. GZIP, ZLIB, BZ2 and SNAPPY have checksums, so any damage is detected. ZSTD and LZ4 streams
have them where the program that wrote them added them; those that are written here have none.
"""

import re
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, cast

import numpy as np

from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.kernels.checksums import masked_crc32c

# ----------------------------------------------------------------------------
# Decoders and encoders of zlib, bzip2, and what pyarrow has: ZSTD and LZ4.
# ----------------------------------------------------------------------------


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


class Encoder(ABC):
    """Compresses a stream."""

    @abstractmethod
    def encode(self, data: bytes | memoryview) -> bytes:
        """Compress more data and return the output that is ready."""

    def flush(self) -> bytes:
        """Return the pending output, so that everything passed in so far can be decompressed, where the codec can."""
        return b""

    def finish(self) -> bytes:
        """Return the end of the stream."""
        return b""


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
            self._input = self._input or self._read(_READ_BYTES)
            ended = not self._input
            if ended and (self._stream.eof or not self._begun):
                return b""
            self._begun = True
            if self._stream.eof:
                self._input = self._input.lstrip(b"\0")
                if not self._input:
                    continue
                if self._window != 31:
                    raise ValueError("something follows the end of the compressed data")
                self._stream = zlib.decompressobj(self._window)
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

        file = SimpleNamespace(read=read, closed=False, close=lambda: None)
        self._stream: Any = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)

    def decode(self, most: int) -> bytes:
        try:
            return bytes(self._stream.read(most))
        except OSError as error:
            if "Truncated" in str(error):
                raise EOFError(CUT_SHORT) from error
            raise


class ZlibEncoder(Encoder):
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


class Bz2Encoder(Encoder):
    """Compresses blocks of bzip2; those that are not full stay when it is flushed.

    Args:
      level: 1 to 9, -1 for the default.
    """

    def __init__(self, level: int) -> None:
        self._stream = _bz2().BZ2Compressor(9 if level == -1 else level)

    def encode(self, data: bytes | memoryview) -> bytes:
        return bytes(self._stream.compress(data))

    def finish(self) -> bytes:
        return bytes(self._stream.flush())


def _bz2() -> Any:
    import bz2  # not in every build of Python

    return bz2


class ArrowEncoder(Encoder):
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


# ----------------------------------------------------------------------------
# Snappy's framing format: chunks of at most 64 KB, each compressed by itself and with a checksum.
#
# Source: `framing_format.txt` of Snappy.
# ----------------------------------------------------------------------------


_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED, _PLAIN, _FIRST_SKIPPABLE = 0x00, 0x01, 0x80
_CHUNK_BYTES = 65536  # of a chunk, decompressed


class SnappyDecoder:
    """Chunks of Snappy's framing format, decompressed.

    Args:
      read: of the file.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._input, self._made = bytearray(), memoryview(b"")
        self._begun = False

    @property
    def waiting(self) -> int:
        return len(self._input)

    def decode(self, most: int) -> bytes:
        while not self._made:
            if not self._has(4):
                if self._input:
                    raise EOFError(CUT_SHORT)
                return b""
            kind, size = self._input[0], int.from_bytes(self._input[1:4], "little")
            if not self._begun and self._input[:4] != _IDENTIFIER[:4]:
                raise ValueError("it does not begin as a stream of Snappy's framing format does")
            if not self._has(4 + size):
                raise EOFError(CUT_SHORT)
            self._made = memoryview(self._chunk(kind, bytes(self._input[4 : 4 + size])))
            del self._input[: 4 + size]
            self._begun = True
        made, self._made = bytes(self._made[:most]), self._made[most:]
        return made

    def _has(self, size: int) -> bool:
        """Read on until so many bytes of input are there; false at the end of the file."""
        while len(self._input) < size:
            data = self._read(_READ_BYTES)
            if not data:
                return False
            self._input += data
        return True

    def _chunk(self, kind: int, body: bytes) -> bytes:
        if kind == _IDENTIFIER[0]:
            if body != _IDENTIFIER[4:]:
                raise ValueError("the identifier of the stream is not Snappy's")
            return b""
        if kind >= _FIRST_SKIPPABLE:
            return b""
        if kind not in (_COMPRESSED, _PLAIN):
            raise ValueError(f"a chunk of the unknown kind {kind:#04x}")
        if len(body) < 4:
            raise ValueError("a chunk that is too short for its checksum")
        data = body[4:] if kind == _PLAIN else _decompressed(body[4:])
        if len(data) > _CHUNK_BYTES:
            raise ValueError(f"a chunk of {len(data)} bytes, more than the {_CHUNK_BYTES} that are allowed")
        (stored,) = struct.unpack("<I", body[:4])
        found = masked_crc32c(np.frombuffer(data, np.uint8))
        if stored != found:
            raise ValueError(f"the checksum of a chunk should be {stored:#010x}, but is {int(found):#010x}")
        return data


def _decompressed(data: bytes) -> bytes:
    size = shift = 0
    for byte in data[:5]:  # a varint before the data: how long it is, decompressed
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if size > _CHUNK_BYTES:
        raise ValueError(f"a chunk of {size} bytes, more than the {_CHUNK_BYTES} that are allowed")
    return bytes(_codec().decompress(data, decompressed_size=size, asbytes=True))


class SnappyEncoder(Encoder):
    """Writes Snappy's framing format."""

    def __init__(self) -> None:
        self._head = _IDENTIFIER

    def encode(self, data: bytes | memoryview) -> bytes:
        parts, self._head = [self._head], b""
        view = memoryview(data)
        for first in range(0, len(view), _CHUNK_BYTES):
            chunk = bytes(view[first : first + _CHUNK_BYTES])
            small = bytes(_codec().compress(chunk, asbytes=True))
            kind, body = (_COMPRESSED, small) if len(small) < len(chunk) else (_PLAIN, chunk)
            checksum = struct.pack("<I", int(masked_crc32c(np.frombuffer(chunk, np.uint8))))
            parts += [bytes([kind]), (len(body) + 4).to_bytes(3, "little"), checksum, body]
        return b"".join(parts)

    def flush(self) -> bytes:
        head, self._head = self._head, b""
        return head

    def finish(self) -> bytes:
        return self.flush()


def _codec() -> Any:
    import pyarrow as pa

    return pa.Codec("snappy")


Compression = Literal["", "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY", "AUTO"]
"""How a file is compressed. "AUTO": as the suffix of its name says."""


class Codec(NamedTuple):
    """A codec.

    Args:
      suffixes: of the files that it compresses.
      levels: lowest and highest level; None if it has none.
      decoder: makes a decoder of what a function reads.
      encoder: makes an encoder of a level, -1 for the default.
    """

    suffixes: tuple[str, ...]
    levels: tuple[int, int] | None
    decoder: Callable[[Read], Decoder]
    encoder: Callable[[int], Encoder]


CODECS: dict[str, Codec] = {
    "GZIP": Codec((".gz", ".gzip", ".tgz"), (0, 9), lambda read: ZlibDecoder(31, read), lambda n: ZlibEncoder(31, n)),
    "ZLIB": Codec((".zz", ".zlib"), (0, 9), lambda read: ZlibDecoder(15, read), lambda n: ZlibEncoder(15, n)),
    "BZ2": Codec((".bz2", ".tbz2"), (1, 9), Bz2Decoder, Bz2Encoder),
    "ZSTD": Codec(
        (".zst", ".zstd"), (1, 22), lambda read: ArrowDecoder("zstd", read), lambda n: ArrowEncoder("zstd", n)
    ),
    "LZ4": Codec((".lz4",), (1, 12), lambda read: ArrowDecoder("lz4", read), lambda n: ArrowEncoder("lz4", n)),
    "SNAPPY": Codec((".snappy", ".sz"), None, SnappyDecoder, lambda _: SnappyEncoder()),
}
"""The codecs by the names that `compression_type` takes."""

_OF_SUFFIX = {suffix: cast(Compression, codec) for codec, traits in CODECS.items() for suffix in traits.suffixes}

_MARK = re.compile(
    rb"""(?x) (?P<BZ2> BZh[1-9] (?:1AY&SY | \x17rE8P\x90) ) | (?P<GZIP> \x1f\x8b) | (?P<LZ4> \x04\x22\x4d\x18)
    | (?P<SNAPPY> \xff\x06\x00\x00sNaPpY) | (?P<ZSTD> \x28\xb5\x2f\xfd)"""
)
MARK_BYTES = 10
"""The most bytes at the beginning of a file that tell its codec."""

_OTHERS = (".br", ".lz", ".lzma", ".lzo", ".xz", ".z")
"""Suffixes of files that other programs have compressed, and that would be read as they are."""


def page_codec(op: str, compression: Any) -> str:
    """The codec of the pages of Parquet files, as pyarrow names it.

    Raises:
      InvalidArgumentError: there is none of this name.
    """
    known = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
    codec = compression.lower() if isinstance(compression, str) and compression else compression or "none"
    codec = "lz4" if codec == "lz4_raw" else codec  # pyarrow takes both for the same
    if codec not in known:
        raise InvalidArgumentError(
            f"{op}: compression of Parquet files must be one of {', '.join(known)}, got {compression!r}"
        )
    return str(codec)


def as_compression(name: str | bytes | None) -> Compression:
    """A compression type by its name; None means no compression.

    Raises:
      InvalidArgumentError: there is no such compression.
    """
    text = name.decode() if isinstance(name, bytes) else "" if name is None else name
    if text not in ("", "AUTO", *CODECS):
        known = ", ".join(repr(codec) for codec in CODECS)
        raise InvalidArgumentError(
            f"Unsupported compression_type: {name!r}; known are '' for none, {known}, and 'AUTO', which goes by suffixes"
        )
    return cast(Compression, text)


def compression_of(compression: Compression, path: str) -> Compression:
    """The compression of a file: the one that is given or, for "AUTO", the one that its suffix stands for.

    >>> compression_of("AUTO", "s3://bucket/a.json.zst"), compression_of("AUTO", "a.txt"), compression_of("GZIP", "a.txt")
    ('ZSTD', '', 'GZIP')

    Raises:
      UnimplementedError: for "AUTO", the suffix stands for a compression that is not there.
    """
    if compression != "AUTO":
        return compression
    if without_query(path).lower().endswith(_OTHERS):
        known = ", ".join(repr(traits.suffixes[0]) for traits in CODECS.values())
        raise UnimplementedError(
            f"{path}: compression_type 'AUTO' goes by suffixes, and files of this one cannot be decompressed; known are "
            f"{known}; compress it in one of these ways, or pass compression_type='' if it is not compressed"
        )
    return codec_of_suffix(path)


def codec_of_suffix(path: str) -> Compression:
    """The codec that the suffix of a path or URL stands for; "": it is none of `CODECS`.

    >>> codec_of_suffix("a.json.gz"), codec_of_suffix("simplecache::s3://bucket/a.json.zst?v=1"), codec_of_suffix("a.txt.xz")
    ('GZIP', 'ZSTD', '')
    """
    name = without_query(path).lower()
    return _OF_SUFFIX.get(name[name.rfind(".") :], "")


def codec_of_bytes(data: bytes) -> Compression:
    r"""The codec whose files begin with these bytes, as no text does; "": it is none of `CODECS`, or ZLIB, which has no mark.

    >>> codec_of_bytes(b"\x1f\x8b\x08\x00"), codec_of_bytes(b"BZhang,3")
    ('GZIP', '')
    """
    found = _MARK.match(data)
    return cast(Compression, found.lastgroup if found else "")


def without_query(path: str) -> str:
    """The part of a URL that ends with the name of the file, without a query; a local path as it is.

    In a chain, that is the first link that names a file. Folders of a store may have a `?` in their names.

    >>> without_query("zip://a.txt::s3://bucket/b.zip"), without_query("simplecache::https://host/a.txt?v=1")
    ('zip://a.txt', 'https://host/a.txt')
    """
    link = next((link for link in path.split("::") if "://" in link), None) if "://" in path else None
    if link is None:
        return path
    folder, slash, name = ("", "", link) if link.startswith(("http://", "https://")) else link.rpartition("/")
    return folder + slash + name.partition("?")[0]


class Inflater:
    """A compressed file, decompressed from front to back. An empty file is an empty stream.

    Args:
      compression: a codec; not "" and not "AUTO".
      path: of the file, for error messages.
      read: reads up to so many bytes of it; none at its end.
    """

    def __init__(self, compression: Compression, path: str, read: Read) -> None:
        self._compression, self._path, self._read = compression, path, read
        self._decoder = CODECS[compression].decoder(self._fed)
        self._offset = 0  # bytes of the file that were read
        self._failure: BaseException | None = None  # of the file, not of what it holds
        self._begun = False  # whether something was decompressed

    def readinto(self, view: memoryview) -> int:
        """Fill a buffer with the next decompressed bytes: how many there are, 0 at the end.

        Raises:
          DataLossError: the stream is damaged or incomplete, or other data follows it.
        """
        try:
            data = self._decoder.decode(len(view)) if len(view) else b""
        except (zlib.error, OSError, ValueError, EOFError) as error:
            if self._failure is not None:
                raise self._failure from None
            place = self._offset if isinstance(error, EOFError) else self._offset - self._decoder.waiting
            plain = not self._begun and not isinstance(error, EOFError)
            advice = "; pass compression_type='' if the file is not compressed" if plain else ""
            raise DataLossError(
                f"{self._path}: corrupted {self._compression} data at or before byte {place}: {error}{advice}"
            ) from error
        view[: len(data)] = data
        self._begun |= bool(data)
        return len(data)

    def _fed(self, size: int) -> bytes:
        try:
            data = self._read(size)
        except BaseException as error:
            self._failure = error
            raise
        self._offset += len(data)
        return data


def encoder_of(compression: Compression, level: int = -1) -> Encoder:
    """What compresses a stream.

    Args:
      compression: a codec; not "" and not "AUTO".
      level: of the codec, -1 for its default.

    Raises:
      InvalidArgumentError: the codec has no such level.
    """
    codec = CODECS[compression]
    if level != -1 and (codec.levels is None or not codec.levels[0] <= level <= codec.levels[1]):
        known = "has no levels" if codec.levels is None else f"has levels from {codec.levels[0]} to {codec.levels[1]}"
        raise InvalidArgumentError(f"compression {compression} {known}, got level {level}")
    return codec.encoder(level)
