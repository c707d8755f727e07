# SPDX-License-Identifier: Apache-2.0
"""Readers that take nothing on trust, slow and simple: what they give is what a file holds, until they raise an error.

They share no line with distinput: Python's own modules, pyarrow with every check that it has, NumPy without pickles.
"""

import io
import struct
import zlib
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.lib import format as npy_format
from pyarrow import ipc


class DamagedError(Exception):
    """The file is not what it should be."""


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def checksum(data: bytes) -> int:
    """A TFRecord's: a masked CRC32C."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecords(content: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        if len(content) - at < 12:
            raise DamagedError("no header")
        length, crc = struct.unpack_from("<QI", content, at)
        if checksum(content[at : at + 8]) != crc:
            raise DamagedError("checksum of a length")
        if length > len(content) - at - 16:
            raise DamagedError("no payload")
        payload = content[at + 12 : at + 12 + length]
        if struct.unpack_from("<I", content, at + 12 + length) != (checksum(payload),):
            raise DamagedError("checksum of a payload")
        yield payload
        at += 16 + length


def inflated(content: bytes, bits: int, most: int = 1 << 24) -> tuple[bytes, bool]:
    """What a compressed file holds up to its damage, and whether it has any; a GZIP file may have several members."""
    out = b""
    while content:
        stream = zlib.decompressobj(bits)
        try:
            # Little by little, so that what comes before the damage comes.
            for at in range(len(content)):
                out += stream.decompress(content[at : at + 1])
                if stream.eof or len(out) > most:
                    break
        except zlib.error:
            return out, True
        if not stream.eof:
            return out, True
        content = (stream.unused_data + content[at + 1 :]).lstrip(b"\0")
        if content and bits != 31:
            return out, True
    return out, False


def lines(content: bytes) -> Iterator[bytes]:
    *whole, last = content.split(b"\n")
    for line in whole:
        yield line.removesuffix(b"\r")
    if last.removesuffix(b"\r"):
        yield last.removesuffix(b"\r")


def packed(content: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(content) - size + 1, size):
        yield content[at : at + size]
    if len(content) % size:
        raise DamagedError("a part of a record")


def npy(content: bytes) -> Iterator[Any]:
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError):
        yield from npy(_whole_rows(content))
        raise
    if not isinstance(array, np.ndarray):
        raise DamagedError("no array")
    yield from array.tolist() if array.dtype.kind not in "mM" else array.view(np.int64).tolist()


def _whole_rows(content: bytes) -> bytes:
    """A file of the rows that are whole in one that was cut short; of none if it is not that."""
    out, file = io.BytesIO(), io.BytesIO(content)
    try:
        read = {(1, 0): npy_format.read_array_header_1_0}.get(
            npy_format.read_magic(file), npy_format.read_array_header_2_0
        )
        (_, *inner), by_columns, dtype = read(file)
        values = np.frombuffer(content, np.uint8, offset=file.tell())
        size = int(np.prod(inner, dtype=object)) * dtype.itemsize
        if dtype.hasobject or (by_columns and inner) or not size:
            raise ValueError("no rows")
        rows = len(values) // size
        np.save(out, values[: rows * size].view(dtype).reshape(rows, *inner), allow_pickle=False)
    except Exception:  # noqa: BLE001 - whatever is wrong with the header
        np.save(out, np.empty(0))
    return out.getvalue()


def _aligned(content: bytes) -> Any:
    """The content for pyarrow, at a multiple of 64 bytes as a mapped file is: on others it depends whether it takes them."""
    buffer = pa.allocate_buffer(len(content))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(content, np.uint8)
    return pa.BufferReader(buffer)


def arrow(content: bytes) -> Iterator[Any]:
    """Rows of a file or a stream, which its first bytes tell."""
    return _arrow_file(content) if content.startswith(b"ARROW1") else _arrow_stream(content)


def _arrow_file(content: bytes) -> Iterator[Any]:
    reader = ipc.open_file(_aligned(content))
    for number in range(reader.num_record_batches):
        yield from _rows(reader.get_batch(number))


def _arrow_stream(content: bytes) -> Iterator[Any]:
    for batch in ipc.open_stream(_aligned(content)):
        yield from _rows(batch)


def parquet(content: bytes) -> Iterator[Any]:
    with pa.parquet.ParquetFile(_aligned(content), page_checksum_verification=True) as file:
        rows = 0
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            rows += table.num_rows
            for batch in table.to_batches():
                yield from _rows(batch)
        if rows != file.metadata.num_rows:
            raise DamagedError("another number of rows")


def _rows(batch: Any) -> Iterator[Any]:
    columns = []
    if not batch.num_columns:
        yield from [{}] * batch.num_rows
        return
    for column in batch.columns:
        if pa.types.is_string(column.type):  # which need not be UTF-8 for us
            column = column.view(pa.binary())
        if pa.types.is_timestamp(column.type):
            column = column.view(pa.int64())
        column.validate(full=True)
        columns.append(column.to_pylist())
    for row in zip(*columns, strict=True):
        yield {name: _plain(value) for name, value in zip(batch.schema.names, row, strict=True)}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def example(message: bytes, wanted: Collection[bytes]) -> dict[bytes, tuple[int, list[Any]]]:
    """The wanted features of a tf.train.Example by name: which kind of list (1, 2, 3), and its values.

    Others are passed over unseen, and so are those that another one with the same key replaces.
    """
    found: dict[bytes, bytes] = {}
    for number, wire, features in _fields(message):
        if (number, wire) != (1, 2):
            continue
        for number, wire, entry in _fields(features):
            if (number, wire) == (1, 2):
                key, feature = b"", b""
                for number, wire, content in _fields(entry):
                    if (number, wire) == (1, 2):
                        key = content
                    if (number, wire) == (2, 2):
                        feature += content  # messages written one after the other are merged
                found[key] = feature
    return {key: _feature(feature) for key, feature in found.items() if key in wanted}


def _feature(content: bytes) -> tuple[int, list[Any]]:
    kind, values = 0, []
    for number, wire, part in _fields(content):
        if wire == 2 and number in (1, 2, 3):
            if number != kind:
                kind, values = number, []
            values += _list(number, part)
    return kind, values


def _list(kind: int, content: bytes) -> list[Any]:
    values: list[Any] = []
    for number, wire, part in _fields(content):
        if number != 1:
            continue
        if kind == 1 and wire == 2:
            values.append(part)
        elif kind == 2 and wire in (2, 5):
            if len(part) % 4:
                raise DamagedError("a part of a float")
            values += np.frombuffer(part, "<f4").tolist()
        elif kind == 3 and wire in (0, 2):
            at = 0
            while at < len(part):
                value, at = _varint(part, at)
                values.append(value - (value >> 63 << 64))
    return values


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if not 1 <= number < 1 << 29 or wire not in (0, 1, 2, 5):
            raise DamagedError("a tag")
        start = at
        if wire == 0:
            _, at = _varint(message, at)
        elif wire == 2:
            size, start = _varint(message, at)
            at = start + size
        else:
            at += 8 if wire == 1 else 4
        if at > len(message):
            raise DamagedError("the end")
        yield number, wire, message[start:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for k in range(10):
        if at + k >= len(message):
            break
        value |= (message[at + k] & 127) << 7 * k
        if message[at + k] < 128:
            return value & (1 << 64) - 1, at + k + 1
    raise DamagedError("a number")
