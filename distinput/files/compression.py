# SPDX-License-Identifier: Apache-2.0
"""Compressed streams: read and written in bounded memory; damage is reported with the file and the byte.

`CODECS` is the one table of codecs. GZIP, ZLIB, BZ2 and SNAPPY have checksums, so any damage is detected. ZSTD and LZ4 streams
have them where the program that wrote them added them; those that are written here have none.
"""

import zlib
from collections.abc import Callable
from typing import Literal, NamedTuple, cast

from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.codecs import (
    ArrowDecoder,
    ArrowEncoder,
    Bz2Decoder,
    Decoder,
    Encoder,
    Read,
    ZlibDecoder,
    ZlibEncoder,
    bz2_encoder,
)
from distinput.files.snappy_frames import SnappyDecoder, SnappyEncoder

__all__ = ["Compression", "Deflater", "Inflater", "as_compression", "compression_of"]

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
    "BZ2": Codec((".bz2", ".tbz2"), (1, 9), Bz2Decoder, bz2_encoder),
    "ZSTD": Codec(
        (".zst", ".zstd"), (1, 22), lambda read: ArrowDecoder("zstd", read), lambda n: ArrowEncoder("zstd", n)
    ),
    "LZ4": Codec((".lz4",), (1, 12), lambda read: ArrowDecoder("lz4", read), lambda n: ArrowEncoder("lz4", n)),
    "SNAPPY": Codec((".snappy", ".sz"), None, SnappyDecoder, lambda _: SnappyEncoder()),
}
"""The codecs by the names that `compression_type` takes."""

_OTHERS = (".br", ".lz", ".lzma", ".lzo", ".xz", ".z")
"""Suffixes of files that other programs have compressed, and that would be read as they are."""


def as_compression(name: str | bytes | None) -> Compression:
    """A compression type by its name; None means no compression.

    Raises:
      InvalidArgumentError: there is no such compression.
    """
    text = name.decode() if isinstance(name, bytes) else name or ""
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
    name = path.partition("::")[0].partition("?")[0].lower() if "://" in path else path.lower()
    if name.endswith(_OTHERS):
        known = ", ".join(repr(traits.suffixes[0]) for traits in CODECS.values())
        raise UnimplementedError(
            f"{path}: compression_type 'AUTO' goes by suffixes, and files of this one cannot be decompressed; known are "
            f"{known}; compress it in one of these ways, or pass compression_type='' if it is not compressed"
        )
    found = (codec for codec, traits in CODECS.items() if name.endswith(traits.suffixes))
    return cast(Compression, next(found, ""))


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

    def readinto(self, view: memoryview) -> int:
        """Fill a buffer with the next decompressed bytes: how many there are, 0 at the end.

        Raises:
          DataLossError: the stream is damaged or incomplete, or other data follows it.
        """
        try:
            made = self._decoder.decode(len(view)) if len(view) else b""
        except (zlib.error, OSError, ValueError, EOFError) as error:
            if self._failure is not None:
                raise self._failure from None
            place = self._offset if isinstance(error, EOFError) else self._offset - self._decoder.waiting
            raise DataLossError(
                f"{self._path}: corrupted {self._compression} data at or before byte {place}: {error}"
            ) from error
        view[: len(made)] = made
        return len(made)

    def _fed(self, size: int) -> bytes:
        try:
            data = self._read(size)
        except BaseException as error:
            self._failure = error
            raise
        self._offset += len(data)
        return data


class Deflater:
    """Incremental compression.

    Args:
      compression: a codec; not "" and not "AUTO".
      level: of the codec, -1 for its default.

    Raises:
      InvalidArgumentError: the codec has no such level.
    """

    def __init__(self, compression: Compression, level: int = -1) -> None:
        levels = CODECS[compression].levels
        if level != -1 and (levels is None or not levels[0] <= level <= levels[1]):
            known = "has no levels" if levels is None else f"has levels from {levels[0]} to {levels[1]}"
            raise InvalidArgumentError(f"compression {compression} {known}, got level {level}")
        self._encoder = CODECS[compression].encoder(level)

    def deflate(self, data: bytes | memoryview) -> bytes:
        """Compress more data and return the output that is ready."""
        return self._encoder.encode(data)

    def flush(self) -> bytes:
        """Return the pending output, so that everything passed in so far can be decompressed, where the codec can."""
        return self._encoder.flush()

    def finish(self) -> bytes:
        """Return the end of the stream."""
        return self._encoder.finish()
