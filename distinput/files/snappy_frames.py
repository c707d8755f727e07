# SPDX-License-Identifier: Apache-2.0
"""Snappy's framing format: chunks of at most 64 KB, each compressed by itself and with a checksum.

Source: `framing_format.txt` of Snappy.
"""

import struct
from typing import Any

import numpy as np

from distinput.files.codecs import CUT_SHORT, Read
from distinput.kernels.crc32c import masked_crc32c

__all__ = ["SnappyDecoder", "SnappyEncoder"]

_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED, _PLAIN, _FIRST_SKIPPABLE = 0x00, 0x01, 0x80
_CHUNK_BYTES = 65536  # of a chunk, decompressed
_READ_BYTES = 64 << 10


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
            if not self._begun and bytes(self._input[: len(_IDENTIFIER)])[:4] != _IDENTIFIER[:4]:
                raise ValueError("it does not begin as a stream of Snappy's framing format does")
            if not self._has(4 + size):
                raise EOFError(CUT_SHORT)
            body = bytes(self._input[4 : 4 + size])
            self._made = memoryview(self._chunk(kind, body))
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


class SnappyEncoder:
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
