# SPDX-License-Identifier: Apache-2.0
"""Decoding one feature of many `tf.train.Example` messages from the lists that `locate_features` found.

    Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3 } }
    BytesList { repeated bytes value = 1 }    FloatList { repeated float value = 1 }    Int64List likewise

`count_values` counts the values, a `fill_` kernel decodes them into a column. Numbers may be packed or not; unknown
fields are skipped.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from distinput.kernels.kernel import Bytes, FloatsOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import bit_count, copy_bytes, high_mask, load_u8, load_u64, store_u64, trailing_zeros
from distinput.kernels.protobuf import (
    FIRST,
    FIXED32,
    HIGHS,
    VARINT,
    MalformedError,
    field,
    joined,
    long_varint,
    read_fields,
    read_varint,
)

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


def check_messages(data: Bytes, starts: Ints, lengths: Ints) -> None:
    """For the references: raise an error for spans that are not within the data."""
    if starts.size != lengths.size:
        raise ValueError("example: starts and lengths must have an item for each message")
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        if start < 0 or length < 0 or start + length > data.size:
            raise ValueError("example: each message must be within the data")


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
            at = 0
            while at < len(content):
                value, at = read_varint(content, at)
                integers.append(value - (value >> 63 << 64))
    return spans if kind == BYTES else floats if kind == FLOAT else integers


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
    check_messages(data, list_starts, list_lengths)
    if kinds.size != counts.size or kinds.size != list_starts.size or not BYTES <= kind <= INT64:
        raise ValueError("count_values: kind must be from 1 to 3, and the arrays must have an item for each message")
    for i, (start, length) in enumerate(zip(list_starts.tolist(), list_lengths.tolist(), strict=True)):
        counts[i] = 0
        if kinds[i] not in (MISSING, kind):
            return WRONG_KIND, i
        try:
            if kinds[i] == kind:
                counts[i] = len(read_values(data[start : start + length].tobytes(), kind))
        except MalformedError:
            return MALFORMED, i
    return OK, -1


def _fill_reference(
    data: Bytes, kind: int, kinds: Bytes, starts: Ints, lengths: Ints, offsets: Ints, out: npt.NDArray[np.generic]
) -> tuple[int, int]:
    """Write the values of message i to out[offsets[i]:offsets[i + 1]]."""
    check_messages(data, starts, lengths)
    if kinds.size != starts.size or offsets.size != kinds.size + 1:
        raise ValueError("example: the arrays must have an item for each message, and offsets one more")
    if offsets[0] < 0 or np.any(offsets[1:] < offsets[:-1]) or offsets[-1] > len(out):
        raise ValueError("example: offsets must not decrease, and must stay within out")
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
def outside(data: Bytes, starts: Ints, lengths: Ints) -> bool:
    """True if any span is not within the data."""
    for i in range(starts.size):
        # The sum is avoided because it could overflow.
        if starts[i] < 0 or lengths[i] < 0 or lengths[i] > data.size or starts[i] > data.size - lengths[i]:
            return True
    return False


@inlined
def not_offsets(offsets: Ints, size: int) -> bool:
    """True if offsets decrease or do not stay within 0 to `size`."""
    if offsets[0] < 0 or offsets[offsets.size - 1] > size:
        return True
    for i in range(offsets.size - 1):
        if offsets[i] > offsets[i + 1]:
            return True
    return False


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
    if list_starts.size != list_lengths.size:
        raise ValueError("example: starts and lengths must have an item for each message")
    if outside(data, list_starts, list_lengths):
        raise ValueError("example: each message must be within the data")
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
    if starts.size != lengths.size:
        raise ValueError("example: starts and lengths must have an item for each message")
    if outside(data, starts, lengths):
        raise ValueError("example: each message must be within the data")
    if kinds.size != starts.size or offsets.size != kinds.size + 1:
        raise ValueError("example: the arrays must have an item for each message, and offsets one more")
    if not_offsets(offsets, out.size):
        raise ValueError("example: offsets must not decrease, and must stay within out")
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
