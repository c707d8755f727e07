# SPDX-License-Identifier: Apache-2.0
"""Columns out of serialized `tf.train.Example` messages, without protobuf.

    Example { Features features = 1 }    Features { map<string, Feature> feature = 1 }
    Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3 } }
    BytesList { repeated bytes value = 1 }    FloatList { repeated float value = 1 }    Int64List likewise

Three steps, for as many messages as one likes: `locate_features` finds where in each message the list of each wanted
key is, `count_values` counts its values, and a `fill_` kernel decodes them into a column. Where the number of values is
known beforehand `locate_features` can decode them on its way.

What holds for every message: fields come in any order, numbers packed or not, unknown fields are passed over, of a key
written twice the last counts, and so does the last of several kinds; a feature with no kind is a missing one. A message
cut short, a number longer than ten bytes, field number 0 and groups (which no version of these messages has) are
`MALFORMED`. Features that are not wanted are passed over unseen.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from distinput.kernels.kernel import Bytes, BytesOut, FloatsOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import bit_count, copy_bytes, high_mask, load_u8, load_u64, signed, store_u64

# Kinds of feature; each is the number of its field.
MISSING, BYTES, FLOAT, INT64 = 0, 1, 2, 3

# What came of it.
OK = 0
MALFORMED = 1  # no such message
SPLIT = 2  # a list written in several pieces, which protobuf would join; no writer is known to do that
WRONG_KIND = 3  # the feature holds values of another kind
WRONG_COUNT = 4  # the feature has another number of values than the offsets leave room for

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_FIRST, _SECOND = 1 << 3 | _DELIMITED, 2 << 3 | _DELIMITED  # tags: a length-delimited field with number 1, 2
_NUMBER, _FLOAT = 1 << 3 | _VARINT, 1 << 3 | _FIXED32  # tags of values that are not packed
_LONGEST_TAG = np.uint64(0xFFFFFFFF)
_ZERO, _ONE, _SEVEN, _HIGH = (np.uint64(each) for each in (0, 1, 7, 128))
_HIGHS = np.uint64(0x8080808080808080)
_C1, _C2, _32 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)


# The references read messages as Python bytes.


class _MalformedError(Exception):
    """Not a message."""


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends."""
    value = 0
    for k, byte in enumerate(message[at : at + 10]):
        value |= (byte & 127) << 7 * k
        if byte < 128:
            return value & (1 << 64) - 1, at + k + 1
    raise _MalformedError


def _read_fields(message: bytes, at: int = 0) -> Iterator[tuple[int, int, int]]:
    """The tag of each field, and where its content begins and ends."""
    while at < len(message):
        tag, at = _read_varint(message, at)
        if not 8 <= tag <= _LONGEST_TAG:
            raise _MalformedError
        start = at
        match tag & 7:
            case 0:
                _, at = _read_varint(message, at)
            case 1:
                at += 8
            case 2:
                length, start = _read_varint(message, at)
                at = start + length
            case 5:
                at += 4
            case _:
                raise _MalformedError
        if at > len(message):
            raise _MalformedError
        yield tag, start, at


class _SplitError(Exception):
    """A list in several pieces."""


def _read_features(message: bytes, wanted: dict[bytes, int]) -> Iterator[tuple[int, int, int, int]]:
    """Of each wanted feature in the message: which one, its kind, and where its list begins and ends."""
    for tag, start, stop in _read_fields(message):
        for entry_tag, entry_start, entry_stop in _read_fields(message[:stop], start) if tag == _FIRST else ():
            if entry_tag != _FIRST:
                continue
            key, values = b"", []
            for part_tag, part_start, part_stop in _read_fields(message[:entry_stop], entry_start):
                if part_tag == _FIRST:
                    key = message[part_start:part_stop]
                if part_tag == _SECOND:
                    values.append((part_start, part_stop))
            if key not in wanted:
                continue
            if len(values) > 1:
                raise _SplitError
            kind, span = MISSING, (0, 0)
            for value_start, value_stop in values:
                for list_tag, list_start, list_stop in _read_fields(message[:value_stop], value_start):
                    if list_tag & 7 == _DELIMITED and list_tag >> 3 in (BYTES, FLOAT, INT64):
                        if list_tag >> 3 == kind:
                            raise _SplitError
                        kind, span = list_tag >> 3, (list_start, list_stop)
            yield wanted[key], kind, *span


def locate_reference(
    data: Bytes,
    starts: Ints,
    lengths: Ints,
    keys: Bytes,
    key_offsets: Ints,
    columns: Ints,
    kinds: BytesOut,
    list_starts: IntsOut,
    list_lengths: IntsOut,
    out: BytesOut,
) -> tuple[int, int]:
    """Find the features with the wanted keys in many messages, and decode those of which the number of values is known.

    Args:
      data: where the messages lie.
      starts: [n]; where each begins.
      lengths: [n]; how long each is, in bytes.
      keys: the k wanted keys, one after the other, none of them twice.
      key_offsets: [k + 1]; where each key begins and ends.
      columns: [k * 3] (that is [k, 3]); the kind that a feature is to have, how many values, and where in `out`, at a
        multiple of 8, they are to be: v for each message, so [n, v] of float32, of int64, or for `BYTES` [2, n, v] of
        int64, where each value begins in `data` and how long it is. With -1 values a feature is only located.
      kinds: out, [k * n] (that is [k, n]); `MISSING`, `BYTES`, `FLOAT` or `INT64`.
      list_starts: out, [k * n]; where the BytesList, FloatList or Int64List begins in `data`; 0 for a missing one, and for
        one that was decoded.
      list_lengths: out, [k * n]; how long it is, in bytes.
      out: out; what belongs to a missing feature is left as it is or undefined.

    Returns:
      `OK` and -1; or `MALFORMED`, `SPLIT`, `WRONG_KIND` or `WRONG_COUNT` and the first message at fault, and what the
      outputs hold is undefined. Where a key is there twice, all of them have to be right.
    """
    _check_messages(data, starts, lengths)
    n, k = starts.size, key_offsets.size - 1
    if k < 0 or kinds.size != k * n or list_starts.size != k * n or list_lengths.size != k * n:
        raise ValueError("locate_features: kinds, list_starts and list_lengths must be [keys * messages]")
    if key_offsets[0] < 0 or np.any(key_offsets[1:] < key_offsets[:-1]) or key_offsets[-1] > keys.size:
        raise ValueError("locate_features: key_offsets must not decrease, and must stay within the keys")
    if columns.size != 3 * k:
        raise ValueError("locate_features: columns must be [keys * 3]")
    for kind, size, place in columns.reshape(k, 3).tolist():
        width = _WIDTHS.get(kind, 0)
        if size >= 0 and (not width or place < 0 or place % 8 or place + n * size * width > out.size):
            raise ValueError("locate_features: each column must have a kind, and lie within out at a multiple of 8")
    wanted = {keys[key_offsets[j] : key_offsets[j + 1]].tobytes(): j for j in reversed(range(k))}
    for array in (kinds, list_starts, list_lengths):
        array[:] = 0
    for i, (message_start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        message = data[message_start : message_start + length].tobytes()
        try:
            for j, kind, start, stop in _read_features(message, wanted):
                kinds[j * n + i] = kind
                list_starts[j * n + i], list_lengths[j * n + i] = 0, 0
                if kind == MISSING:
                    continue
                if columns[3 * j + 1] < 0:
                    list_starts[j * n + i], list_lengths[j * n + i] = message_start + start, stop - start
                    continue
                status = _decode_reference(message[start:stop], kind, message_start + start, columns, j, i, n, out)
                if status != OK:
                    return status, i
        except _MalformedError:
            return MALFORMED, i
        except _SplitError:
            return SPLIT, i
    return OK, -1


_WIDTHS = {BYTES: 16, FLOAT: 4, INT64: 8}


def _decode_reference(
    content: bytes, kind: int, start: int, columns: Ints, j: int, i: int, n: int, out: BytesOut
) -> int:
    """Write the values of message i, which begin at `start`, to column j; the status."""
    wanted, size, place = columns[3 * j : 3 * j + 3].tolist()
    if kind != wanted:
        return WRONG_KIND
    values = _read_values(content, kind)
    if len(values) != size:
        return WRONG_COUNT
    column = out[place : place + n * size * _WIDTHS[kind]]
    if kind == BYTES:
        spans = np.array(values, np.int64).reshape(-1, 2)
        both = column.view(np.int64).reshape(2, n, size)
        both[0, i], both[1, i] = spans[:, 0] + start, spans[:, 1] - spans[:, 0]
    elif kind == FLOAT:
        column.view(np.float32).reshape(n, size)[i] = values
    else:
        column.view(np.int64).reshape(n, size)[i] = values
    return OK


def _check_messages(data: Bytes, starts: Ints, lengths: Ints) -> None:
    if starts.size != lengths.size:
        raise ValueError("example: starts and lengths must have an item for each message")
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        if start < 0 or length < 0 or start + length > data.size:
            raise ValueError("example: each message must be within the data")


def _read_values(message: bytes, kind: int) -> list[tuple[int, int]] | list[float] | list[int]:
    """The values of a list: floats, integers, or where each string begins and ends."""
    spans: list[tuple[int, int]] = []
    floats: list[float] = []
    integers: list[int] = []
    for tag, start, stop in _read_fields(message):
        content = message[start:stop]
        if kind == BYTES and tag == _FIRST:
            spans.append((start, stop))
        elif kind == FLOAT and tag in (_FIRST, _FLOAT):
            if len(content) % 4:
                raise _MalformedError
            floats += np.frombuffer(content, "<f4").tolist()
        elif kind == INT64 and tag in (_FIRST, _NUMBER):
            at = 0
            while at < len(content):
                value, at = _read_varint(content, at)
                integers.append(value - (value >> 63 << 64))
    return spans if kind == BYTES else floats if kind == FLOAT else integers


def count_reference(
    data: Bytes, kind: int, kinds: Bytes, list_starts: Ints, list_lengths: Ints, counts: IntsOut
) -> tuple[int, int]:
    """Count the values of one feature in many messages.

    Args:
      data: where the messages lie.
      kind: `BYTES`, `FLOAT` or `INT64`, what the feature is to be.
      kinds: [n]; one row of what `locate_features` found.
      list_starts: [n]; likewise.
      list_lengths: [n]; likewise.
      counts: out, [n]; 0 where the feature is missing.

    Returns:
      `OK` and -1; or `MALFORMED` or `WRONG_KIND` and the first message at fault.
    """
    _check_messages(data, list_starts, list_lengths)
    if kinds.size != counts.size or kinds.size != list_starts.size or not BYTES <= kind <= INT64:
        raise ValueError("count_values: kind must be from 1 to 3, and the arrays must have an item for each message")
    for i, (start, length) in enumerate(zip(list_starts.tolist(), list_lengths.tolist(), strict=True)):
        counts[i] = 0
        if kinds[i] not in (MISSING, kind):
            return WRONG_KIND, i
        try:
            if kinds[i] == kind:
                counts[i] = len(_read_values(data[start : start + length].tobytes(), kind))
        except _MalformedError:
            return MALFORMED, i
    return OK, -1


def _fill_reference(
    data: Bytes, kind: int, kinds: Bytes, starts: Ints, lengths: Ints, offsets: Ints, out: npt.NDArray[np.generic]
) -> tuple[int, int]:
    """Write the values of message i to out[offsets[i]:offsets[i + 1]]."""
    _check_messages(data, starts, lengths)
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
            values = _read_values(data[start : start + length].tobytes(), kind)
        except _MalformedError:
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
      data: where the messages lie.
      kinds: [n]; one row of what `locate_features` found.
      list_starts: [n]; likewise.
      list_lengths: [n]; likewise.
      offsets: [n + 1]; values of message i go to out[offsets[i]:offsets[i + 1]].
      out: out; the places of a missing feature are left as they are, so they may hold a default.

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

    Nothing is copied: `value_starts` and `value_lengths` tell where in `data` each value is, see `gather_spans`.
    """
    if value_starts.size != value_lengths.size:
        raise ValueError("example: value_starts and value_lengths must have the same size")
    both = np.stack((value_starts, value_starts + value_lengths), axis=1)
    status = _fill_reference(data, BYTES, kinds, list_starts, list_lengths, offsets, both)
    value_starts[:], value_lengths[:] = both[:, 0], both[:, 1] - both[:, 0]
    return status


# The compiled ones read the same in place. Where a function returns a place, -1 stands for malformed.


@inlined
def _varint(data: Bytes, at: int, stop: int) -> tuple[np.uint64, int]:
    """The number at `at`, and where it ends."""
    if at < stop and load_u8(data, at) < 128:
        return np.uint64(load_u8(data, at)), at + 1
    value = _ZERO
    for k in range(10):
        if at + k >= stop:
            return _ZERO, -1
        byte = np.uint64(load_u8(data, at + k))
        value |= (byte & np.uint64(127)) << np.uint64(7 * k)
        if byte < _HIGH:
            return value, at + k + 1
    return _ZERO, -1


@inlined
def _field(data: Bytes, at: int, stop: int) -> tuple[int, int, int]:
    """The tag of the field at `at`, and where its content begins and ends."""
    tag, at = _varint(data, at, stop)
    if at < 0 or tag > _LONGEST_TAG or tag < np.uint64(8):
        return 0, 0, -1
    wire = signed(tag & _SEVEN)
    start = at
    if wire == _DELIMITED:
        length, start = _varint(data, at, stop)
        if start < 0 or length > np.uint64(stop - start):
            return 0, 0, -1
        at = start + signed(length)
    elif wire == _VARINT:
        _, at = _varint(data, at, stop)
    elif wire == _FIXED32:
        at += 4
    elif wire == _FIXED64:
        at += 8
    else:
        return 0, 0, -1
    if at > stop:
        return 0, 0, -1
    return signed(tag), start, at


@inlined
def _ends(data: Bytes, start: int, stop: int) -> tuple[np.uint64, np.uint64]:
    """The first and the last eight bytes of a key; they and its length are all there is of one of up to 16 bytes."""
    length = stop - start
    if length >= 8:
        return load_u64(data, start), load_u64(data, stop - 8)
    if start + 8 <= data.size:
        return load_u64(data, start) & ((_ONE << np.uint64(8 * length)) - _ONE), _ZERO
    word = _ZERO
    for k in range(length):
        word |= np.uint64(load_u8(data, start + k)) << np.uint64(8 * k)
    return word, _ZERO


@inlined
def _same_middle(data: Bytes, start: int, keys: Bytes, key_start: int, length: int) -> bool:
    """Whether two keys of the same length and the same ends are the same."""
    at = 8
    while at < length - 8:
        # The last word may overlap the end of the key, which is known to be the same.
        if load_u64(data, start + at) != load_u64(keys, key_start + at):
            return False
        at += 8
    return True


@inlined
def _place(first: np.uint64, last: np.uint64, length: int, size: int) -> int:
    """Where in a table of `size`, a power of two, to look for a key first."""
    word = first * _C1 ^ (last + np.uint64(length)) * _C2
    return signed((word ^ (word >> _32)) & np.uint64(size - 1))


@inlined
def _find(
    data: Bytes, start: int, stop: int, keys: Bytes, key_offsets: Ints, ends: npt.NDArray[np.uint64], table: Ints
) -> int:
    """Which of the wanted keys data[start:stop] is; -1: none."""
    length = stop - start
    first, last = _ends(data, start, stop)
    place = _place(first, last, length, table.size)
    while table[place] >= 0:
        j = int(table[place])
        if ends[j, 0] == first and ends[j, 1] == last and key_offsets[j + 1] - key_offsets[j] == length:
            if length <= 16 or _same_middle(data, start, keys, key_offsets[j], length):
                return j
        place = (place + 1) & (table.size - 1)
    return -1


@inlined
def _make_table(keys: Bytes, key_offsets: Ints, ends: npt.NDArray[np.uint64], table: IntsOut) -> None:
    """Fill `ends` [k, 2] and the hash table of the wanted keys."""
    table[:] = -1
    for j in range(key_offsets.size - 1):
        start, stop = key_offsets[j], key_offsets[j + 1]
        ends[j, 0], ends[j, 1] = _ends(keys, start, stop)
        place = _place(ends[j, 0], ends[j, 1], stop - start, table.size)
        while table[place] >= 0:
            place = (place + 1) & (table.size - 1)
        table[place] = j


@inlined
def _entry(data: Bytes, at: int, stop: int) -> tuple[int, int, int, int, int]:
    """An entry of the map: where the key begins and ends, where the feature does; how many features, -1: malformed."""
    key_start, key_stop, start, end, values = at, at, at, at, 0
    while at < stop:
        tag, content, at = _field(data, at, stop)
        if at < 0:
            return 0, 0, 0, 0, -1
        if tag == _FIRST:
            key_start, key_stop = content, at
        elif tag == _SECOND:
            start, end = content, at
            values += 1
    return key_start, key_stop, start, end, values


@inlined
def _feature(data: Bytes, at: int, stop: int) -> tuple[int, int, int, int]:
    """A feature: status, kind, where its list begins and ends."""
    kind, start, end = MISSING, 0, 0
    while at < stop:
        tag, content, at = _field(data, at, stop)
        if at < 0:
            return MALFORMED, 0, 0, 0
        number = tag >> 3
        if tag & 7 == _DELIMITED and number <= INT64:
            if number == kind:
                return SPLIT, 0, 0, 0
            kind, start, end = number, content, at
    return OK, kind, start, end


@inlined
def _ends_with(data: Bytes, at: int, stop: int) -> int:
    """Where the content begins whose length stands at `at` and which ends at `stop`; -1 where it may be otherwise."""
    if at < stop:
        length, content = load_u8(data, at), at + 1
        if length >= 128:
            if content == stop or load_u8(data, content) >= 128:
                return -1
            length, content = length & 127 | load_u8(data, content) << 7, content + 1
        if content + length == stop:
            return content
    return -1


@inlined
def _is_key(data: Bytes, start: int, keys: Bytes, key_offsets: Ints, ends: npt.NDArray[np.uint64], j: int) -> bool:
    """Whether wanted key j stands at `start`, where there are eight bytes at least, and as many as it has."""
    length = key_offsets[j + 1] - key_offsets[j]
    first = load_u64(data, start)
    if length < 8:
        return bool(first & ((_ONE << np.uint64(8 * length)) - _ONE) == ends[j, 0])
    if first != ends[j, 0] or load_u64(data, start + length - 8) != ends[j, 1]:
        return False
    return length <= 16 or _same_middle(data, start, keys, key_offsets[j], length)


@inlined
def _guess(
    data: Bytes, at: int, stop: int, keys: Bytes, key_offsets: Ints, ends: npt.NDArray[np.uint64], j: int
) -> tuple[int, int]:
    """The kind of feature j and where its list begins, if data[at:stop] is its entry as all writers write it.

    That is the key, then the feature, then nothing; the feature is a list, then nothing: each length is known when the
    first one is, so that none has to be waited for. Kind 0: it may be otherwise.
    """
    length = key_offsets[j + 1] - key_offsets[j]
    value = at + 2 + length
    # The first word of the key is read whole, even if it has less.
    if length >= 128 or stop - value < 2 or data.size - at < 10:
        return MISSING, 0
    if load_u8(data, at) != _FIRST or load_u8(data, at + 1) != length or load_u8(data, value) != _SECOND:
        return MISSING, 0
    if not _is_key(data, at + 2, keys, key_offsets, ends, j):
        return MISSING, 0
    feature = _ends_with(data, value + 1, stop)
    if feature < 0 or feature >= stop:
        return MISSING, 0
    kind = load_u8(data, feature) >> 3
    if load_u8(data, feature) & 7 != _DELIMITED or kind < BYTES or kind > INT64:
        return MISSING, 0
    start = _ends_with(data, feature + 1, stop)
    return (kind, start) if start >= 0 else (MISSING, 0)


@inlined
def _decode_floats(data: Bytes, at: int, stop: int, out: FloatsOut | BytesOut, to: int, end: int) -> int:
    """Decode one list to out[to:end], in floats whatever `out` holds; the status."""
    while at < stop:
        tag, content, at = _field(data, at, stop)
        if at < 0:
            return MALFORMED
        if tag == _FIRST or tag == _FLOAT:
            if (at - content) % 4 != 0:
                return MALFORMED
            # Beyond the room only the form is looked at, since that is the graver fault.
            if to + (at - content) // 4 <= end:
                copy_bytes(out, 4 * to, data, content, at - content)
            to += (at - content) // 4
    return OK if to == end else WRONG_COUNT


@inlined
def _decode_int64s(data: Bytes, at: int, stop: int, out: IntsOut | BytesOut, to: int, end: int) -> int:
    """Decode one list to out[to:end], in words whatever `out` holds; the status."""
    while at < stop:
        tag, content, at = _field(data, at, stop)
        if at < 0:
            return MALFORMED
        if tag == _FIRST or tag == _NUMBER:
            while content < at:
                value, content = _varint(data, content, at)
                if content < 0:
                    return MALFORMED
                if to < end:
                    store_u64(out, 8 * to, value)
                to += 1
    return OK if to == end else WRONG_COUNT


@inlined
def _decode_spans(
    data: Bytes,
    at: int,
    stop: int,
    starts: IntsOut | BytesOut,
    to: int,
    end: int,
    lengths: IntsOut | BytesOut,
    also: int,
) -> int:
    """Write where the values of one list are to starts[to:end], and how long from lengths[also] on; the status."""
    also -= to
    while at < stop:
        tag, content, at = _field(data, at, stop)
        if at < 0:
            return MALFORMED
        if tag == _FIRST:
            if to < end:
                store_u64(starts, 8 * to, np.uint64(content))
                store_u64(lengths, 8 * (to + also), np.uint64(at - content))
            to += 1
    return OK if to == end else WRONG_COUNT


@inlined
def _decode(data: Bytes, at: int, stop: int, kind: int, size: int, place: int, i: int, n: int, out: BytesOut) -> int:
    """Write the `size` values of a list to row i of its column in `out`; the status."""
    if kind == FLOAT:
        to = place // 4 + i * size
        # Nearly all lists are packed in one piece, which is a copy then.
        if at < stop and load_u8(data, at) == _FIRST:
            content = _ends_with(data, at + 1, stop)
            if content >= 0 and stop - content == 4 * size:
                copy_bytes(out, 4 * to, data, content, 4 * size)
                return OK
        return _decode_floats(data, at, stop, out, to, to + size)
    to = place // 8 + i * size
    if kind == INT64:
        return _decode_int64s(data, at, stop, out, to, to + size)
    return _decode_spans(data, at, stop, out, to, to + size, out, to + n * size)


@inlined
def _features(
    data: Bytes,
    at: int,
    stop: int,
    keys: Bytes,
    key_offsets: Ints,
    ends: npt.NDArray[np.uint64],
    table: Ints,
    hints: IntsOut,
    columns: Ints,
    i: int,
    n: int,
    kinds: BytesOut,
    list_starts: IntsOut,
    list_lengths: IntsOut,
    out: BytesOut,
) -> int:
    """The map of message i; the status."""
    entry = -1
    while at < stop:
        tag, content, at = _field(data, at, stop)
        if at < 0:
            return MALFORMED
        if tag != _FIRST:
            continue
        # Messages of one file have their features in the same order, as a rule.
        entry += 1
        j = hints[entry & (hints.size - 1)]
        kind, start, end = MISSING, 0, at
        if j >= 0:
            kind, start = _guess(data, content, at, keys, key_offsets, ends, j)
        if kind == MISSING:
            key_start, key_stop, start, end, values = _entry(data, content, at)
            if values < 0:
                return MALFORMED
            j = _find(data, key_start, key_stop, keys, key_offsets, ends, table)
            if j < 0:
                continue
            hints[entry & (hints.size - 1)] = j
            if values > 1:
                return SPLIT
            status, kind, start, end = _feature(data, start, end)
            if status != OK:
                return status
        place = j * n + i
        kinds[place] = kind
        if kind != MISSING and columns[3 * j + 1] >= 0:
            if kind != columns[3 * j]:
                return WRONG_KIND
            status = _decode(data, start, end, kind, columns[3 * j + 1], columns[3 * j + 2], i, n, out)
            if status != OK:
                return status
        else:
            list_starts[place] = start
            list_lengths[place] = end - start
    return OK


@inlined
def _outside(data: Bytes, starts: Ints, lengths: Ints) -> bool:
    """Whether any span is not within the data."""
    for i in range(starts.size):
        # Without the sum, which could overflow.
        if starts[i] < 0 or lengths[i] < 0 or lengths[i] > data.size or starts[i] > data.size - lengths[i]:
            return True
    return False


@inlined
def _not_offsets(offsets: Ints, size: int) -> bool:
    """Whether offsets decrease or do not stay within 0 to `size`."""
    if offsets[0] < 0 or offsets[offsets.size - 1] > size:
        return True
    for i in range(offsets.size - 1):
        if offsets[i] > offsets[i + 1]:
            return True
    return False


@inlined
def _misplaced(columns: Ints, n: int, size: int) -> bool:
    """Whether a column of which values are to be written has no kind or does not lie within `size` bytes."""
    for j in range(columns.size // 3):
        kind, values, place = columns[3 * j], columns[3 * j + 1], columns[3 * j + 2]
        if values < 0:
            continue
        width = 16 if kind == BYTES else 4 if kind == FLOAT else 8
        if kind < BYTES or kind > INT64 or place < 0 or place % 8 != 0 or place > size:
            return True
        # The division keeps the product from overflowing.
        if n > 0 and values > (size - place) // width // n:
            return True
    return False


@kernel(locate_reference)
def locate_features(
    data: Bytes,
    starts: Ints,
    lengths: Ints,
    keys: Bytes,
    key_offsets: Ints,
    columns: Ints,
    kinds: BytesOut,
    list_starts: IntsOut,
    list_lengths: IntsOut,
    out: BytesOut,
) -> tuple[int, int]:
    """See `locate_reference`."""
    n, k = starts.size, key_offsets.size - 1
    if n != lengths.size:
        raise ValueError("example: starts and lengths must have an item for each message")
    if _outside(data, starts, lengths):
        raise ValueError("example: each message must be within the data")
    if k < 0 or kinds.size != k * n or list_starts.size != k * n or list_lengths.size != k * n:
        raise ValueError("locate_features: kinds, list_starts and list_lengths must be [keys * messages]")
    if _not_offsets(key_offsets, keys.size):
        raise ValueError("locate_features: key_offsets must not decrease, and must stay within the keys")
    if columns.size != 3 * k:
        raise ValueError("locate_features: columns must be [keys * 3]")
    if _misplaced(columns, n, out.size):
        raise ValueError("locate_features: each column must have a kind, and lie within out at a multiple of 8")
    size = 4
    while size < 4 * k:
        size *= 2
    table, ends, hints = np.empty(size, np.int64), np.empty((k, 2), np.uint64), np.empty(size, np.int64)
    _make_table(keys, key_offsets, ends, table)
    hints[:] = -1
    kinds[:] = MISSING
    list_starts[:] = 0
    list_lengths[:] = 0
    for i in range(n):
        at, stop = starts[i], starts[i] + lengths[i]
        while at < stop:
            tag, content, at = _field(data, at, stop)
            if at < 0:
                return MALFORMED, i
            if tag == _FIRST:
                status = _features(
                    data, content, at, keys, key_offsets, ends, table, hints, columns, i, n,
                    kinds, list_starts, list_lengths, out,
                )  # fmt: skip
                if status != OK:
                    return status, i
    return OK, -1


@inlined
def _count_packed(data: Bytes, start: int, stop: int) -> int:
    """How many packed integers there are: as many as bytes below 128, the last of which must be one."""
    if start == stop:
        return 0
    if load_u8(data, stop - 1) >= 128:
        return -1
    count, at = stop - start, start
    while at + 64 <= stop:
        count -= bit_count(high_mask(data, at))
        at += 64
    while at + 8 <= stop:
        count -= bit_count(load_u64(data, at) & _HIGHS)
        at += 8
    if at < stop and at + 8 <= data.size:
        return count - bit_count(load_u64(data, at) & _HIGHS & ((_ONE << np.uint64(8 * (stop - at))) - _ONE))
    while at < stop:
        count -= load_u8(data, at) >> 7
        at += 1
    return count


@inlined
def _count_list(data: Bytes, kind: int, at: int, stop: int) -> int:
    """How many values a list has; -1: malformed. Of integers that are too long only `fill_int64s` knows."""
    count = 0
    while at < stop:
        tag, content, at = _field(data, at, stop)
        if at < 0:
            return -1
        if tag == _FIRST:
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
    if _outside(data, list_starts, list_lengths):
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
def _check_fill(data: Bytes, kinds: Bytes, starts: Ints, lengths: Ints, offsets: Ints, size: int) -> None:
    if starts.size != lengths.size:
        raise ValueError("example: starts and lengths must have an item for each message")
    if _outside(data, starts, lengths):
        raise ValueError("example: each message must be within the data")
    if kinds.size != starts.size or offsets.size != kinds.size + 1:
        raise ValueError("example: the arrays must have an item for each message, and offsets one more")
    if _not_offsets(offsets, size):
        raise ValueError("example: offsets must not decrease, and must stay within out")


@kernel(floats_reference)
def fill_floats(
    data: Bytes, kinds: Bytes, list_starts: Ints, list_lengths: Ints, offsets: Ints, out: FloatsOut
) -> tuple[int, int]:
    """See `floats_reference`."""
    _check_fill(data, kinds, list_starts, list_lengths, offsets, out.size)
    for i in range(kinds.size):
        if kinds[i] == MISSING:
            continue
        if kinds[i] != FLOAT:
            return WRONG_KIND, i
        stop = list_starts[i] + list_lengths[i]
        status = _decode_floats(data, list_starts[i], stop, out, offsets[i], offsets[i + 1])
        if status != OK:
            return status, i
    return OK, -1


@kernel(int64s_reference)
def fill_int64s(
    data: Bytes, kinds: Bytes, list_starts: Ints, list_lengths: Ints, offsets: Ints, out: IntsOut
) -> tuple[int, int]:
    """See `int64s_reference`."""
    _check_fill(data, kinds, list_starts, list_lengths, offsets, out.size)
    for i in range(kinds.size):
        if kinds[i] == MISSING:
            continue
        if kinds[i] != INT64:
            return WRONG_KIND, i
        stop = list_starts[i] + list_lengths[i]
        status = _decode_int64s(data, list_starts[i], stop, out, offsets[i], offsets[i + 1])
        if status != OK:
            return status, i
    return OK, -1


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
    _check_fill(data, kinds, list_starts, list_lengths, offsets, value_starts.size)
    for i in range(kinds.size):
        if kinds[i] == MISSING:
            continue
        if kinds[i] != BYTES:
            return WRONG_KIND, i
        stop = list_starts[i] + list_lengths[i]
        status = _decode_spans(
            data, list_starts[i], stop, value_starts, offsets[i], offsets[i + 1], value_lengths, offsets[i]
        )
        if status != OK:
            return status, i
    return OK, -1
