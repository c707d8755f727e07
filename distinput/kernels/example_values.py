# SPDX-License-Identifier: Apache-2.0
"""Decoding features of many `tf.train.Example` messages into columns, from the lists that `locate_features` has found."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from distinput.kernels.kernel import Bytes, BytesOut, FloatsOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import (
    bit_count,
    copy_bytes,
    high_mask,
    load_u8,
    load_u64,
    signed,
    store_u64,
    trailing_zeros,
)
from distinput.kernels.protobuf import (
    DELIMITED,
    FIRST,
    FIXED32,
    HIGHS,
    VARINT,
    MalformedError,
    ends_with,
    field,
    joined,
    long_varint,
    read_fields,
    read_varints,
)

# ----------------------------------------------------------------------------
# Decoding one feature of many `tf.train.Example` messages from the lists that `locate_features` found.
#
#     Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3 } }
#     BytesList { repeated bytes value = 1 }    FloatList { repeated float value = 1 }    Int64List likewise
#
# `count_values` counts the values, a `fill_` kernel decodes them into a column. Numbers may be packed or not; unknown
# fields are skipped.
# ----------------------------------------------------------------------------


# Kinds of feature; each is its field number.
MISSING, BYTES, FLOAT, INT64 = 0, 1, 2, 3

# Status codes.
OK = 0
MALFORMED = 1  # not a valid message
SPLIT = 2  # a list in several pieces, which protobuf would concatenate; no known writer produces that
WRONG_KIND = 3  # the feature holds values of another kind
WRONG_COUNT = 4  # the number of values differs from the one that the offsets allow

WIDTHS = {BYTES: 16, FLOAT: 4, INT64: 8}  # bytes of a value; for a string, of its start and length

Out: TypeAlias = npt.NDArray[np.generic]  # the decoders write bytes, whatever the dtype

_NUMBER, _FLOAT = 1 << 3 | VARINT, 1 << 3 | FIXED32  # tags of values that are not packed
_ZERO, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64((1 << 64) - 1)


class SplitError(MalformedError):
    """A list in several pieces."""


def read_list(message: bytes, start: int, stop: int) -> tuple[int, int, int]:
    """The kind of the list in the feature at message[start:stop], and its start and end; `MISSING` if there is none.

    Raises:
      SplitError: it is in several pieces.
    """
    kind, span = MISSING, (0, 0)
    for tag, list_start, list_stop in read_fields(message[:stop], start):
        if tag & 7 == DELIMITED and tag >> 3 in (BYTES, FLOAT, INT64):
            if tag >> 3 == kind:
                raise SplitError
            kind, span = tag >> 3, (list_start, list_stop)
    return kind, *span


def read_values(message: bytes, kind: int) -> list[tuple[int, int]] | list[float] | list[int]:
    """The values of a list: floats, integers, or the start and end of each string."""
    spans: list[tuple[int, int]] = []
    floats: list[float] = []
    integers: list[int] = []
    for tag, start, stop in read_fields(message):
        content = message[start:stop]
        if kind == BYTES and tag == FIRST:
            spans.append((start, stop))
        elif kind == FLOAT and tag in (FIRST, _FLOAT):
            if len(content) % 4:
                raise MalformedError
            floats += np.frombuffer(content, "<f4").tolist()
        elif kind == INT64 and tag in (FIRST, _NUMBER):
            integers += [value - (value >> 63 << 64) for value in read_varints(content)]
    return spans if kind == BYTES else floats if kind == FLOAT else integers


def read_count(message: bytes, kind: int) -> int:
    """The number of values of a list; packed integers that are too long are only detected when they are read."""
    if kind != INT64:
        return len(read_values(message, kind))
    count = 0
    for tag, start, stop in read_fields(message):
        if tag == FIRST and start < stop:
            if message[stop - 1] >= 128:
                raise MalformedError
            count += sum(byte < 128 for byte in message[start:stop])
        count += tag == _NUMBER
    return count


def count_reference(
    data: Bytes, kind: int, kinds: Bytes, list_starts: Ints, list_lengths: Ints, counts: IntsOut
) -> tuple[int, int]:
    """Count the values of one feature in many messages.

    Args:
      data: the bytes that contain the messages.
      kind: the expected kind, `BYTES`, `FLOAT` or `INT64`.
      kinds: [n]; one row of what `locate_features` found.
      list_starts: [n]; likewise.
      list_lengths: [n]; likewise.
      counts: out, [n]; 0 where the feature is missing.

    Returns:
      `OK` and -1; or `MALFORMED` or `WRONG_KIND` and the first message at fault.
    """
    check_within(data, list_starts, list_lengths)
    if kinds.size != counts.size or kinds.size != list_starts.size or not BYTES <= kind <= INT64:
        raise ValueError("count_values: kind must be from 1 to 3, and the arrays must have an item for each message")
    for i, (start, length) in enumerate(zip(list_starts.tolist(), list_lengths.tolist(), strict=True)):
        counts[i] = 0
        if kinds[i] not in (MISSING, kind):
            return WRONG_KIND, i
        try:
            if kinds[i] == kind:
                counts[i] = read_count(data[start : start + length].tobytes(), kind)
        except MalformedError:
            return MALFORMED, i
    return OK, -1


def _fill_reference(
    data: Bytes, kind: int, kinds: Bytes, starts: Ints, lengths: Ints, offsets: Ints, out: npt.NDArray[np.generic]
) -> tuple[int, int]:
    """Write the values of message i to out[offsets[i]:offsets[i + 1]]."""
    _check_lists(data, kinds, starts, lengths, offsets, len(out))
    for i, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        if kinds[i] == MISSING:
            continue
        if kinds[i] != kind:
            return WRONG_KIND, i
        try:
            values = read_values(data[start : start + length].tobytes(), kind)
        except MalformedError:
            return MALFORMED, i
        if len(values) != offsets[i + 1] - offsets[i]:
            return WRONG_COUNT, i
        if kind == BYTES:
            out[offsets[i] : offsets[i + 1]] = np.array(values, np.int64).reshape(-1, 2) + start
        else:
            out[offsets[i] : offsets[i + 1]] = values
    return OK, -1


def floats_reference(
    data: Bytes, kinds: Bytes, list_starts: Ints, list_lengths: Ints, offsets: Ints, out: FloatsOut
) -> tuple[int, int]:
    """Decode the values of one feature of kind `FLOAT` in many messages.

    Args:
      data: the bytes that contain the messages.
      kinds: [n]; one row of what `locate_features` found.
      list_starts: [n]; likewise.
      list_lengths: [n]; likewise.
      offsets: [n + 1]; values of message i go to out[offsets[i]:offsets[i + 1]].
      out: out; the items of a missing feature are left unchanged, so they may hold a default.

    Returns:
      `OK` and -1; or `MALFORMED`, `WRONG_KIND` or `WRONG_COUNT` and the first message at fault.
    """
    return _fill_reference(data, FLOAT, kinds, list_starts, list_lengths, offsets, out)


def int64s_reference(
    data: Bytes, kinds: Bytes, list_starts: Ints, list_lengths: Ints, offsets: Ints, out: IntsOut
) -> tuple[int, int]:
    """Decode the values of one feature of kind `INT64` in many messages, as `fill_floats` does floats."""
    return _fill_reference(data, INT64, kinds, list_starts, list_lengths, offsets, out)


def spans_reference(
    data: Bytes,
    kinds: Bytes,
    list_starts: Ints,
    list_lengths: Ints,
    offsets: Ints,
    value_starts: IntsOut,
    value_lengths: IntsOut,
) -> tuple[int, int]:
    """Find the values of one feature of kind `BYTES` in many messages, as `fill_floats` does floats.

    Nothing is copied: `value_starts` and `value_lengths` locate each value in `data`, see `gather_spans`.
    """
    if value_starts.size != value_lengths.size:
        raise ValueError("example: value_starts and value_lengths must have the same size")
    both = np.stack((value_starts, value_starts + value_lengths), axis=1)
    status = _fill_reference(data, BYTES, kinds, list_starts, list_lengths, offsets, both)
    value_starts[:], value_lengths[:] = both[:, 0], both[:, 1] - both[:, 0]
    return status


# The compiled implementations.


@inlined
def _decode_varints(data: Bytes, at: int, stop: int, out: Out, to: int, end: int) -> int:
    """Decode the numbers in data[at:stop] to out[to:end], as words whatever the dtype of `out`; see `decode_list`."""
    # The ends of all numbers in 64 bytes are found together, so that none of them depends on the previous one.
    while at < stop and at + 72 <= data.size:
        base, last = at, ~high_mask(data, at)
        if stop - at < 64:
            last &= (_ONE << np.uint64(stop - at)) - _ONE
        if last == _ZERO:
            return -1
        while last != _ZERO:
            after = base + trailing_zeros(last) + 1
            last &= last - _ONE
            if after - at <= 8:
                value = joined(load_u64(data, at) & (_ALL >> np.uint64(64 - 8 * (after - at))))
            else:
                value, known = long_varint(data, at, after)
                if known < 0:
                    return -1
            if to < end:
                store_u64(out, 8 * to, value)
            to += 1
            at = after
    while at < stop:
        value, at = long_varint(data, at, stop)
        if at < 0:
            return -1
        if to < end:
            store_u64(out, 8 * to, value)
        to += 1
    return to


@inlined
def decode_list(
    data: Bytes, kind: int, at: int, stop: int, out: Out, to: int, end: int, lengths: Out, also: int
) -> int:
    """Decode data[at:stop] to out[to:end], as values of its kind whatever the dtype of `out`.

    For strings, writes their starts to `out` and their lengths to lengths[also:]. Returns the end of the values, even
    if it exceeds `end`, since all values are validated; -1: malformed.
    """
    also -= to
    while at < stop:
        tag, content, at = field(data, at, stop)
        if at < 0:
            return -1
        if kind == INT64 and (tag == FIRST or tag == _NUMBER):
            to = _decode_varints(data, content, at, out, to, end)
            if to < 0:
                return -1
        elif kind == FLOAT and (tag == FIRST or tag == _FLOAT):
            if (at - content) % 4 != 0:
                return -1
            if to + (at - content) // 4 <= end:
                copy_bytes(out, 4 * to, data, content, at - content)
            to += (at - content) // 4
        elif kind == BYTES and tag == FIRST:
            if to < end:
                store_u64(out, 8 * to, np.uint64(content))
                store_u64(lengths, 8 * (to + also), np.uint64(at - content))
            to += 1
    return to


@inlined
def check_within(data: Bytes, starts: Ints, lengths: Ints) -> None:
    """Raise an error for messages that are not within the data."""
    if starts.size != lengths.size:
        raise ValueError("example: starts and lengths must have an item for each message")
    size = data.size
    for i in range(starts.size):
        start, length = starts[i], lengths[i]
        # The sum is avoided because it could overflow.
        if start < 0 or length < 0 or length > size or start > size - length:
            raise ValueError("example: each message must be within the data")


@inlined
def not_offsets(offsets: Ints, size: int) -> bool:
    """True if offsets decrease or do not stay within 0 to `size`."""
    before = offsets[0]
    if before < 0 or offsets[offsets.size - 1] > size:
        return True
    for offset in offsets:
        if offset < before:
            return True
        before = offset
    return False


@inlined
def _check_lists(data: Bytes, kinds: Bytes, starts: Ints, lengths: Ints, offsets: Ints, room: int) -> None:
    """Raise an error for lists that are not within the data, or whose values do not fit into `room` items."""
    check_within(data, starts, lengths)
    if kinds.size != starts.size or offsets.size != kinds.size + 1:
        raise ValueError("example: the arrays must have an item for each message, and offsets one more")
    if not_offsets(offsets, room):
        raise ValueError("example: offsets must not decrease, and must stay within out")


@inlined
def _count_packed(data: Bytes, start: int, stop: int) -> int:
    """The number of packed integers, which is the number of bytes below 128; the last byte must be one."""
    if start == stop:
        return 0
    if load_u8(data, stop - 1) >= 128:
        return -1
    count, at = stop - start, start
    while at + 64 <= stop:
        count -= bit_count(high_mask(data, at))
        at += 64
    while at + 8 <= stop:
        count -= bit_count(load_u64(data, at) & HIGHS)
        at += 8
    if at < stop and at + 8 <= data.size:
        return count - bit_count(load_u64(data, at) & HIGHS & ((_ONE << np.uint64(8 * (stop - at))) - _ONE))
    while at < stop:
        count -= load_u8(data, at) >> 7
        at += 1
    return count


@inlined
def _count_list(data: Bytes, kind: int, at: int, stop: int) -> int:
    """The number of values of a list; -1: malformed. Integers that are too long are only detected by `fill_int64s`."""
    count = 0
    while at < stop:
        tag, content, at = field(data, at, stop)
        if at < 0:
            return -1
        if tag == FIRST:
            if kind == BYTES:
                count += 1
            elif kind == FLOAT:
                if (at - content) % 4 != 0:
                    return -1
                count += (at - content) // 4
            else:
                packed = _count_packed(data, content, at)
                if packed < 0:
                    return -1
                count += packed
        elif (kind == FLOAT and tag == _FLOAT) or (kind == INT64 and tag == _NUMBER):
            count += 1
    return count


@kernel(count_reference)
def count_values(
    data: Bytes, kind: int, kinds: Bytes, list_starts: Ints, list_lengths: Ints, counts: IntsOut
) -> tuple[int, int]:
    """See `count_reference`."""
    check_within(data, list_starts, list_lengths)
    if kinds.size != counts.size or kinds.size != list_starts.size or kind < BYTES or kind > INT64:
        raise ValueError("count_values: kind must be from 1 to 3, and the arrays must have an item for each message")
    for i in range(kinds.size):
        counts[i] = 0
        if kinds[i] == MISSING:
            continue
        if kinds[i] != kind:
            return WRONG_KIND, i
        counts[i] = _count_list(data, kind, list_starts[i], list_starts[i] + list_lengths[i])
        if counts[i] < 0:
            return MALFORMED, i
    return OK, -1


@inlined
def _filled(
    data: Bytes,
    kind: int,
    kinds: Bytes,
    starts: Ints,
    lengths: Ints,
    offsets: Ints,
    out: Out,
    more: Out,
) -> tuple[int, int]:
    """Write the values of message i to out[offsets[i]:offsets[i + 1]]; for strings, their lengths to `more`."""
    _check_lists(data, kinds, starts, lengths, offsets, out.size)
    for i in range(kinds.size):
        if kinds[i] == MISSING:
            continue
        if kinds[i] != kind:
            return WRONG_KIND, i
        end = offsets[i + 1]
        to = decode_list(data, kind, starts[i], starts[i] + lengths[i], out, offsets[i], end, more, offsets[i])
        if to != end:
            return MALFORMED if to < 0 else WRONG_COUNT, i
    return OK, -1


@kernel(floats_reference)
def fill_floats(
    data: Bytes, kinds: Bytes, list_starts: Ints, list_lengths: Ints, offsets: Ints, out: FloatsOut
) -> tuple[int, int]:
    """See `floats_reference`."""
    return _filled(data, FLOAT, kinds, list_starts, list_lengths, offsets, out, out)


@kernel(int64s_reference)
def fill_int64s(
    data: Bytes, kinds: Bytes, list_starts: Ints, list_lengths: Ints, offsets: Ints, out: IntsOut
) -> tuple[int, int]:
    """See `int64s_reference`."""
    return _filled(data, INT64, kinds, list_starts, list_lengths, offsets, out, out)


@kernel(spans_reference)
def fill_bytes_spans(
    data: Bytes,
    kinds: Bytes,
    list_starts: Ints,
    list_lengths: Ints,
    offsets: Ints,
    value_starts: IntsOut,
    value_lengths: IntsOut,
) -> tuple[int, int]:
    """See `spans_reference`."""
    if value_starts.size != value_lengths.size:
        raise ValueError("example: value_starts and value_lengths must have the same size")
    return _filled(data, BYTES, kinds, list_starts, list_lengths, offsets, value_starts, value_lengths)


# ----------------------------------------------------------------------------
# Decoding the values of `tf.train.Example` messages into columns as soon as `locate_features` finds them.
#
# A column is described by four numbers, see `locate_reference`.
# ----------------------------------------------------------------------------


NO_ROOM = 5  # the room for the values of a feature is too small
ANY = -2  # in place of a number of values


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
