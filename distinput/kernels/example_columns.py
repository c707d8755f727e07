# SPDX-License-Identifier: Apache-2.0
"""Decoding the values of `tf.train.Example` messages into columns as soon as `locate_features` finds them.

A column is described by four numbers, see `locate_reference`.
"""

from __future__ import annotations

import numpy as np

from distinput.kernels.example_values import (
    BYTES,
    FLOAT,
    INT64,
    MALFORMED,
    OK,
    WIDTHS,
    WRONG_COUNT,
    WRONG_KIND,
    decode_list,
    read_values,
)
from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined
from distinput.kernels.machine import copy_bytes, load_u8, load_u64, signed, store_u64
from distinput.kernels.protobuf import FIRST, ends_with, long_varint

NO_ROOM = 5  # the room for the values of a feature is too small
ANY = -2  # in place of a number of values

_ZERO = np.uint64(0)


def table_bytes(kind: int, size: int, n: int) -> int:
    """The size of a column in bytes, without the room after it."""
    return 16 * n if size == ANY else n * size * WIDTHS[kind]


def decode_reference(
    content: bytes, kind: int, start: int, columns: Ints, j: int, i: int, n: int, used: list[int], out: BytesOut
) -> int:
    """Write the values of message i, which begin at `start`, to column j; `used` counts the items in its room."""
    wanted, size, place, room = columns[4 * j : 4 * j + 4].tolist()
    if kind != wanted:
        return WRONG_KIND
    values = read_values(content, kind)
    end = place + table_bytes(kind, size, n)
    dtype = {BYTES: np.uint8, FLOAT: np.float32, INT64: np.int64}[kind]
    texts = out[end : end + room // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize].view(dtype)
    if size == ANY:
        if used[j] + len(values) > len(texts):
            return NO_ROOM
        texts[used[j] : used[j] + len(values)] = values
        out[place:end].view(np.int64).reshape(2, n)[:, i] = used[j], len(values)
        used[j] += len(values)
    elif len(values) != size:
        return WRONG_COUNT
    elif kind == BYTES:
        spans = np.array(values, np.int64).reshape(-1, 2)
        both = out[place:end].view(np.int64).reshape(2, n, size)
        both[0, i], both[1, i] = spans[:, 0] + start, spans[:, 1] - spans[:, 0]
        for v, (a, b) in enumerate(spans.tolist() if room else ()):
            if used[j] + b - a > room:
                return NO_ROOM
            texts[used[j] : used[j] + b - a] = np.frombuffer(content[a:b], np.uint8)
            both[0, i, v] = used[j]
            used[j] += b - a
    else:
        out[place:end].view(dtype).reshape(n, size)[i] = values
    return OK


@inlined
def _only_piece(data: Bytes, at: int, stop: int) -> int:
    """The start of the content of a list of one string, or of one piece of packed numbers; -1 if it may be neither."""
    return ends_with(data, at + 1, stop) if at < stop and load_u8(data, at) == FIRST else -1


@inlined
def _copy_text(out: BytesOut, to: int, data: Bytes, start: int, length: int) -> None:
    """Copy a string. Most are short and are copied as four words that may overlap, without branches on the length."""
    if length > 32:
        copy_bytes(out, to, data, start, length)
    elif length >= 8:
        last = length - 8
        second, third = min(8, last), max(0, last - 8)
        store_u64(out, to, load_u64(data, start))
        store_u64(out, to + second, load_u64(data, start + second))
        store_u64(out, to + third, load_u64(data, start + third))
        store_u64(out, to + last, load_u64(data, start + last))
    else:
        for k in range(length):
            out[to + k] = load_u8(data, start + k)


@inlined
def _decode_texts(
    data: Bytes, at: int, stop: int, columns: Ints, j: int, i: int, n: int, used: IntsOut, out: BytesOut
) -> int:
    """Write the locations of the strings of a list, and copy them if the column has room; returns the status."""
    size, place, room = columns[4 * j + 1], columns[4 * j + 2], columns[4 * j + 3]
    to, also = (place >> 3) + i * size, (place >> 3) + (n + i) * size
    content = _only_piece(data, at, stop) if size == 1 else -1
    if content >= 0:
        store_u64(out, 8 * to, np.uint64(content))
        store_u64(out, 8 * also, np.uint64(stop - content))
    else:
        end = decode_list(data, BYTES, at, stop, out, to, to + size, out, also)
        if end != to + size:
            return MALFORMED if end < 0 else WRONG_COUNT
    if room == 0:
        return OK
    texts, done = place + 16 * n * size, used[j]
    for v in range(size):
        start, length = signed(load_u64(out, 8 * (to + v))), signed(load_u64(out, 8 * (also + v)))
        if length > room - done:
            used[j] = -1
            return NO_ROOM
        _copy_text(out, texts + done, data, start, length)
        store_u64(out, 8 * (to + v), np.uint64(done))
        done += length
    used[j] = done
    return OK


@inlined
def _decode_numbers(data: Bytes, at: int, stop: int, kind: int, out: BytesOut, to: int, end: int) -> int:
    """Decode a list to out[to:end], in items of its kind; returns the end of the values, or -1 if malformed."""
    content = _only_piece(data, at, stop)
    if kind == FLOAT:
        if content >= 0 and stop - content == 4 * (end - to):
            copy_bytes(out, 4 * to, data, content, stop - content)
            return end
    elif content >= 0 and end == to + 1:
        value, after = long_varint(data, content, stop)
        if after == stop:
            store_u64(out, 8 * to, value)
            return end
    return decode_list(data, kind, at, stop, out, to, end, out, to)


@inlined
def decode_row(
    data: Bytes, at: int, stop: int, kind: int, columns: Ints, j: int, i: int, n: int, used: IntsOut, out: BytesOut
) -> int:
    """Write the values of a list to row i of column j; returns the status."""
    if kind != columns[4 * j]:
        return WRONG_KIND
    if kind == BYTES:
        return _decode_texts(data, at, stop, columns, j, i, n, used, out)
    size, place = columns[4 * j + 1], columns[4 * j + 2]
    shift = 2 if kind == FLOAT else 3  # items are 4 or 8 bytes
    if size >= 0:
        to = (place >> shift) + i * size
        end = _decode_numbers(data, at, stop, kind, out, to, to + size)
        return OK if end == to + size else MALFORMED if end < 0 else WRONG_COUNT
    first = (place + 16 * n) >> shift
    to, last = first + used[j], first + (columns[4 * j + 3] >> shift)
    end = _decode_numbers(data, at, stop, kind, out, to, last)
    if end < 0:
        return MALFORMED
    if end > last:
        used[j] = -1
        return NO_ROOM
    store_u64(out, place + 8 * i, np.uint64(used[j]))
    store_u64(out, place + 8 * (n + i), np.uint64(end - to))
    used[j] += end - to
    return OK


@inlined
def any_varies(columns: Ints) -> bool:
    """True if a column has a variable number of values per message."""
    for j in range(columns.size // 4):
        if columns[4 * j + 1] == ANY:
            return True
    return False


@inlined
def begin_row(columns: Ints, i: int, n: int, used: Ints, out: BytesOut) -> None:
    """Initialize the variable-length columns of message i to no values."""
    for j in range(used.size):
        if columns[4 * j + 1] == ANY:
            store_u64(out, columns[4 * j + 2] + 8 * i, np.uint64(used[j]))
            store_u64(out, columns[4 * j + 2] + 8 * (n + i), _ZERO)


@inlined
def fullest(used: Ints) -> int:
    """The index of the key whose room was too small."""
    for j in range(used.size):
        if used[j] < 0:
            return j
    return -1


@inlined
def misplaced(columns: Ints, n: int, size: int, items: int) -> bool:
    """True if a column has an invalid kind, exceeds `size` bytes, or has no row in lists of `items` items."""
    for j in range(columns.size // 4):
        kind, values, place, room = columns[4 * j], columns[4 * j + 1], columns[4 * j + 2], columns[4 * j + 3]
        if values == -1:
            if place < 0 or (n > 0 and place >= items // n):
                return True
            continue
        if kind < BYTES or kind > INT64 or place < 0 or place % 8 != 0 or place > size or room < 0 or values < ANY:
            return True
        width = 16 if kind == BYTES else 4 if kind == FLOAT else 8
        if values == ANY:
            if kind == BYTES:
                return True
            values, width = 1, 16
        # Dividing instead of multiplying avoids overflow.
        if n > 0 and values > (size - place) // width // n:
            return True
        if room > size - place - n * values * width:
            return True
    return False
