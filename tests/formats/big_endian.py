# SPDX-License-Identifier: Apache-2.0
"""Arrow streams and files in the byte order of big machines, which pyarrow reads on a small one, but does not write there."""

import struct
from typing import Any

import pyarrow as pa

from distinput.formats.arrow_file import _Table

_BATCH = 3


def swapped_stream(batches: list[pa.RecordBatch]) -> bytes:
    """The stream of some batches with the byte order of their values swapped, and a schema that says so."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    content, found, at = bytearray(sink.getvalue().to_pybytes()), bytearray(), 0
    while size := struct.unpack_from("<I", content, at + 4)[0]:
        head = bytes(content[at + 8 : at + 8 + size])
        table = _Table.root(head)
        body = content[at + 8 + size : at + 8 + size + table.number(3, "<q")]
        if table.number(1, "<B") == _BATCH:
            _swap(body, table.table(2), [w for field in batches[0].schema for w in _widths(field.type)])
        else:
            head = _as_big(head)
        found += struct.pack("<II", 0xFFFFFFFF, len(head)) + head + body
        at += 8 + size + len(body)
    return bytes(found + struct.pack("<II", 0xFFFFFFFF, 0))


def _widths(kind: Any) -> list[int]:
    """The width of the values of each buffer of a column."""
    if pa.types.is_list(kind):
        return [1, 4, *_widths(kind.value_type)]
    if pa.types.is_string(kind):
        return [1, 4, 1]
    return [1, kind.bit_width // 8]


def _swap(body: bytearray, batch: _Table, widths: list[int]) -> None:
    place = batch._target(2)
    (count,) = struct.unpack_from("<I", batch.data, place)
    assert count == len(widths)
    for number, width in enumerate(widths):
        start, size = struct.unpack_from("<qq", batch.data, place + 4 + 16 * number)
        for at in range(start, start + size - size % width, width):
            body[at : at + width] = body[at : at + width][::-1]


def _as_big(head: bytes) -> bytes:
    """The message of a schema that says "big": its table of fields is written again behind it, with this one added."""
    schema = _Table.root(head).table(2)
    (back,) = struct.unpack_from("<i", head, schema.at)
    (size, inline) = struct.unpack_from("<HH", head, schema.at - back)
    places = list(struct.unpack_from(f"<{(size - 4) // 2}H", head, schema.at - back + 4))
    places += [0] * (2 - len(places))
    behind = len(head) + -len(head) % 8
    fields = struct.pack(f"<HH{len(places)}H", 4 + 2 * len(places), inline, behind - schema.at, *places[1:])
    made = bytearray(head.ljust(behind, b"\0") + struct.pack("<h", 1).ljust(8, b"\0") + fields)
    struct.pack_into("<i", made, schema.at, schema.at - behind - 8)
    return bytes(made.ljust(len(made) + -len(made) % 8, b"\0"))
