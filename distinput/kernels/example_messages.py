# SPDX-License-Identifier: Apache-2.0
"""Locating and decoding features in serialized `tf.train.Example` messages: their keys, and what has an unknown key."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from distinput.kernels.example_values import (
    ANY,
    BYTES,
    INT64,
    MALFORMED,
    MISSING,
    NO_ROOM,
    OK,
    SPLIT,
    SplitError,
    any_varies,
    begin_row,
    check_within,
    decode_reference,
    decode_row,
    fullest,
    misplaced,
    not_offsets,
    read_list,
)
from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import load_u8, load_u64, signed, store_u64
from distinput.kernels.protobuf import DELIMITED, FIRST, SECOND, MalformedError, ends_with, field, read_entries

# ----------------------------------------------------------------------------
# Finding the key of a `tf.train.Example` map entry: with a hash table, or by comparison with an earlier message.
#
# The messages of a file are usually written by one program: the map entries come in the same order in all of them, each
# with its key first, then the feature, and nothing else. So the beginning of entry e of one message is compared with the
# beginning of entry e of the next one, in a few comparisons of words:
#
#     tag, length of the entry | tag, length, key, tag of the feature | length, tag of the list, length | list
#
# Everything before the list is the same except for the three lengths, and while these are below 128, each of them increases
# by one if the list is a byte longer (`known_list`). Otherwise the middle may still be the same (`is_as_before`). Failing
# that, the entry is read field by field, and its key is looked up in the table.
# ----------------------------------------------------------------------------


Words: TypeAlias = npt.NDArray[np.uint64]

HINTS = 16  # words that describe an entry of an earlier message
# The length of its beginning (0: unknown), its first word and a mask for it, its last word, its offset, and the number
# of its key among the wanted ones, from 1 (0: none).
LENGTH, _HEAD, _MASK, _TAIL, _AT, KEY = range(6)
# Its header, everything before its list: the length (0: unknown), the kind and the length of the list, the first word
# and its increment for each additional byte of the list, the last word and its increment, and the offset.
HEADER, KIND, _SIZE, _FIRST, _FIRST_STEP, _LAST, _LAST_STEP, _HEADER_AT = range(8, 16)

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_BYTE, _LOW_7 = np.uint64(8), np.uint64(127)
_C1, _C2, _32 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)


@inlined
def _ends(data: Bytes, start: int, stop: int) -> tuple[np.uint64, np.uint64]:
    """The first and the last eight bytes of a key; with its length they identify a key of up to 16 bytes."""
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
    """True if two keys of the same length and with the same ends are equal."""
    at = 8
    while at < length - 8:
        # The last word may overlap the end of the key, which is already known to be equal.
        if load_u64(data, start + at) != load_u64(keys, key_start + at):
            return False
        at += 8
    return True


@inlined
def _place(first: np.uint64, last: np.uint64, length: int, size: int) -> int:
    """The first slot to probe for a key in a table of `size` slots, a power of two."""
    word = first * _C1 ^ (last + np.uint64(length)) * _C2
    return signed((word ^ (word >> _32)) & np.uint64(size - 1))


@inlined
def table_size(count: int) -> int:
    """The size of a table for so many keys: a power of two with a low load factor."""
    size = 4
    while size < 4 * count:
        size *= 2
    return size


@inlined
def find_key(data: Bytes, start: int, stop: int, keys: Bytes, key_offsets: Ints, ends: Words, table: Ints) -> int:
    """The index of the wanted key that equals data[start:stop]; -1: none."""
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
def make_table(keys: Bytes, key_offsets: Ints, ends: Words, table: IntsOut) -> None:
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
def is_as_before(data: Bytes, at: int, stop: int, hints: Words, e: int) -> bool:
    """True if data[at:stop] begins like the entry described by hints[e:]: with the same key and tag of the feature."""
    length = hint(hints, e + LENGTH)
    # The first word is read as a whole, even if the mask covers less.
    if length == 0 or length >= stop - at or at + 8 > data.size:
        return False
    if load_u64(data, at) & hints[np.uint64(e + _MASK)] != hints[np.uint64(e + _HEAD)]:
        return False
    if length <= 8:
        return True
    if load_u64(data, at + length - 8) != hints[np.uint64(e + _TAIL)]:
        return False
    return length <= 16 or _same_middle(data, at, data, hint(hints, e + _AT), length)


@inlined
def known_list(data: Bytes, at: int, stop: int, hints: Words, e: int) -> int:
    """The length of the list of the entry at `at` if its header matches hints[e:] except for the lengths; else < 0.

    The list then ends, with the entry, within data[:stop].
    """
    header = hint(hints, e + HEADER)
    if header == 0 or header > stop - at:
        return -1
    first, before = load_u64(data, at), hints[np.uint64(e + _FIRST)]
    # The length of the entry is the second byte. While it is below 128, the two smaller lengths are too, and no sum
    # carries into another byte; a difference that borrows yields a list of negative length.
    longer = (first >> _BYTE & _LOW_7) - (before >> _BYTE & _LOW_7)
    if first != before + longer * hints[np.uint64(e + _FIRST_STEP)]:
        return -1
    if load_u64(data, at + header - 8) != hints[np.uint64(e + _LAST)] + longer * hints[np.uint64(e + _LAST_STEP)]:
        return -1
    if header > 16 and not _same_middle(data, at, data, hint(hints, e + _HEADER_AT), header):
        return -1
    size = signed(hints[np.uint64(e + _SIZE)] + longer)
    return size if size <= stop - at - header else -1


@inlined
def hint(hints: Words, e: int) -> int:
    """A hint that is a number of bytes or a key."""
    return signed(hints[np.uint64(e)])


@inlined
def remember(data: Bytes, at: int, key_stop: int, stop: int, j: int, hints: Words, e: int) -> None:
    """Store the beginning of an entry for `is_as_before`, if it is a key and a feature; j: index of the key."""
    length = key_stop + 1 - at
    hints[e + LENGTH], hints[e + HEADER] = _ZERO, _ZERO
    if key_stop >= stop or at + 8 > data.size or load_u8(data, at) != FIRST or load_u8(data, key_stop) != SECOND:
        return
    if ends_with(data, at + 1, key_stop) < 0:
        return
    mask = ~_ZERO if length >= 8 else (_ONE << np.uint64(8 * length)) - _ONE
    hints[e + _HEAD], hints[e + _MASK] = load_u64(data, at) & mask, mask
    if length > 8:
        hints[e + _TAIL] = load_u64(data, at + length - 8)
    hints[e + LENGTH], hints[e + _AT], hints[e + KEY] = np.uint64(length), np.uint64(at), np.uint64(j + 1)


@inlined
def remember_list(data: Bytes, at: int, content: int, start: int, stop: int, kind: int, hints: Words, e: int) -> None:
    """Store the header of the entry at `at`, before its list data[start:stop], for `known_list`."""
    is_short = content - at == 2 and start - content == hint(hints, e + LENGTH) + 3  # each length is one byte
    if not is_short and hint(hints, e + HEADER) != 0:  # longer lengths must match exactly, which is less useful
        return
    if load_u8(data, at) != FIRST or ends_with(data, at + 1, stop) != content:
        return
    header = start - at
    hints[e + HEADER], hints[e + KIND], hints[e + _SIZE] = np.uint64(header), np.uint64(kind), np.uint64(stop - start)
    hints[e + _FIRST], hints[e + _LAST], hints[e + _HEADER_AT] = (
        load_u64(data, at),
        load_u64(data, start - 8),
        np.uint64(at),
    )
    first_step, last_step = _ZERO, _ZERO
    for place in (1, header - 3, header - 1):  # the positions of the lengths
        if is_short and place < 8:
            first_step |= _ONE << np.uint64(8 * place)
        if is_short and place >= header - 8:
            last_step |= _ONE << np.uint64(8 * (place - header + 8))
    hints[e + _FIRST_STEP], hints[e + _LAST_STEP] = first_step, last_step


# ----------------------------------------------------------------------------
# Locating and decoding features in serialized `tf.train.Example` messages, without the protobuf library.
#
#     Example { Features features = 1 }    Features { map<string, Feature> feature = 1 }
#
# `locate_features` finds the list of each wanted key in each of many messages. Features that can be decoded in the same
# pass go into columns (see `decode_row`); the other lists are left to the kernels of `example_values`.
#
# Rules for all messages: fields may come in any order, unknown fields are skipped, the last value of a repeated key wins,
# and so does the last of several kinds; a feature without a kind is missing. A truncated message, a number longer than ten
# bytes, field number 0 and groups (which no version of these messages has) are `MALFORMED`. Unwanted features are skipped
# without being checked.
# ----------------------------------------------------------------------------


def _read_features(message: bytes, wanted: dict[bytes, int]) -> Iterator[tuple[int, int, int, int]]:
    """For each wanted feature in the message: its index, its kind, and the start and end of its list."""
    for key, values in read_entries(message, FIRST):
        if key not in wanted:
            continue
        if len(values) > 1:
            raise SplitError
        yield wanted[key], *(read_list(message, *values[0]) if values else (MISSING, 0, 0))


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
    """Find the features with the wanted keys in many messages, and decode those whose column asks for it.

    Args:
      data: the bytes that contain the messages.
      starts: [n] start of each message.
      lengths: [n] length of each message in bytes.
      keys: the k wanted keys, concatenated, without duplicates.
      key_offsets: [k + 1] start and end of each key.
      columns: [k * 4] (that is [k, 4]): the kind of the feature, the number of values v, the offset in `out`, a
        multiple of 8, and the bytes of room after them. Numbers are [n, v] of float32 or int64. Strings are [2, n, v]
        of int64: start and length of each in `data`, or in the room if there is any, to which they are then copied one
        after the other. For `ANY` number of values there is [2, n] of int64: start in the room and number of the values
        of each message. For -1 values a feature is only located; then the offset is the number of its row in the lists.
      kinds: out, [k * n] (that is [k, n]); `MISSING`, `BYTES`, `FLOAT` or `INT64`.
      list_starts: out, [l * n] (that is [l, n], for l features that are only located); start of the BytesList,
        FloatList or Int64List in `data`; 0 if missing.
      list_lengths: out, [l * n]; length of the list in bytes.
      out: out; the values of a missing feature are unchanged or undefined.

    Returns:
      `OK` and how many of the k * n features are missing; or `MALFORMED`, `SPLIT`, `WRONG_KIND` or `WRONG_COUNT` and
      the first message at fault, or `NO_ROOM` and the key at fault; then the outputs are undefined. If a message
      repeats a key, all its values must be valid.
    """
    _check_locate(data, starts, lengths, keys, key_offsets, columns, kinds, list_starts, list_lengths, out)
    n, k = starts.size, key_offsets.size - 1
    numbers = {keys[key_offsets[j] : key_offsets[j + 1]].tobytes(): j for j in reversed(range(k))}
    for array in (kinds, list_starts, list_lengths):
        array[:] = 0
    counts = [0] * k
    for i, (message_start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        message = data[message_start : message_start + length].tobytes()
        for j in range(k):
            if columns[4 * j + 1] == ANY:
                place = columns[4 * j + 2]
                out[place : place + 16 * n].view(np.int64).reshape(2, n)[:, i] = counts[j], 0
        try:
            for j, kind, start, stop in _read_features(message, numbers):
                kinds[j * n + i] = kind
                size, place = columns[4 * j + 1 : 4 * j + 3].tolist()
                if size == -1:
                    begin = message_start + start if kind != MISSING else 0
                    list_starts[place * n + i], list_lengths[place * n + i] = begin, stop - start
                    continue
                if kind == MISSING:
                    if size == ANY:
                        out[place : place + 16 * n].view(np.int64)[n + i] = 0
                    continue
                status = decode_reference(
                    message[start:stop], kind, message_start + start, columns, j, i, n, counts, out
                )
                if status != OK:
                    return status, j if status == NO_ROOM else i
        except SplitError:
            return SPLIT, i
        except MalformedError:
            return MALFORMED, i
    return OK, k * n - int(np.count_nonzero(kinds))


@inlined
def _check_locate(
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
) -> None:
    """Raise an error for arguments of `locate_features` that do not fit together."""
    n, k = starts.size, key_offsets.size - 1
    check_within(data, starts, lengths)
    if k < 0 or kinds.size != k * n or list_starts.size != list_lengths.size:
        raise ValueError("locate_features: kinds must be [keys * messages], list_starts and list_lengths of one size")
    if not_offsets(key_offsets, keys.size):
        raise ValueError("locate_features: key_offsets must not decrease, and must stay within the keys")
    if columns.size != 4 * k:
        raise ValueError("locate_features: columns must be [keys * 4]")
    if misplaced(columns, n, out.size, list_starts.size):
        raise ValueError(
            "locate_features: each column must have a kind and lie within out at a multiple of 8, or be a row of the lists"
        )


@inlined
def map_entry(data: Bytes, at: int, stop: int) -> tuple[int, int, int, int, int]:
    """An entry of the map: start and end of the key and of the feature, and number of features (-1: malformed)."""
    key_start, key_stop, start, end, values = at, at, at, at, 0
    while at < stop:
        tag, content, at = field(data, at, stop)
        if at < 0:
            return 0, 0, 0, 0, -1
        if tag == FIRST:
            key_start, key_stop = content, at
        elif tag == SECOND:
            start, end = content, at
            values += 1
    return key_start, key_stop, start, end, values


@inlined
def feature_list(data: Bytes, at: int, stop: int) -> tuple[int, int, int, int]:
    """A feature: status, kind, start and end of its list."""
    kind, start, end = MISSING, 0, 0
    while at < stop:
        tag, content, at = field(data, at, stop)
        if at < 0:
            return MALFORMED, 0, 0, 0
        number = tag >> 3
        if tag & 7 == DELIMITED and number <= INT64:
            if number == kind:
                return SPLIT, 0, 0, 0
            kind, start, end = number, content, at
    return OK, kind, start, end


@inlined
def _only_list(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """The kind of a feature and the start of its list, if data[at:stop] is its length and content, with one list.

    Kind 0 if that is uncertain.
    """
    feature = ends_with(data, at, stop)
    if feature < 0 or feature >= stop:
        return MISSING, 0
    kind = load_u8(data, feature) >> 3
    if load_u8(data, feature) & 7 != DELIMITED or kind < BYTES or kind > INT64:
        return MISSING, 0
    start = ends_with(data, feature + 1, stop)
    return (kind, start) if start >= 0 else (MISSING, 0)


@inlined
def _take(
    data: Bytes,
    start: int,
    end: int,
    kind: int,
    j: int,
    i: int,
    n: int,
    columns: Ints,
    used: IntsOut,
    kinds: BytesOut,
    list_starts: IntsOut,
    list_lengths: IntsOut,
    out: BytesOut,
) -> int:
    """Record or decode feature j of message i, which is data[start:end]; returns the status."""
    kinds[j * n + i] = kind
    values, place = columns[4 * j + 1], columns[4 * j + 2]
    if values == -1:
        list_starts[place * n + i] = start
        list_lengths[place * n + i] = end - start
    elif kind != MISSING:
        return decode_row(data, start, end, kind, columns, j, i, n, used, out)
    elif values == ANY:  # discard an earlier value of this key
        store_u64(out, place + 8 * (n + i), _ZERO)
    return OK


@inlined
def _features(
    data: Bytes,
    at: int,
    stop: int,
    keys: Bytes,
    key_offsets: Ints,
    ends: Words,
    table: Ints,
    hints: Words,
    columns: Ints,
    used: IntsOut,
    i: int,
    n: int,
    kinds: BytesOut,
    list_starts: IntsOut,
    list_lengths: IntsOut,
    out: BytesOut,
) -> int:
    """Process the map of message i; returns the status."""
    e, most = -HINTS, hints.size - 1
    while at < stop:
        following = (e + HINTS) & most
        size = known_list(data, at, stop, hints, following)
        if size >= 0:
            e = following
            j, kind, start = hint(hints, e + KEY) - 1, hint(hints, e + KIND), at + hint(hints, e + HEADER)
            at = end = start + size
            if j < 0:
                continue
        else:
            begin = at
            tag, content, at = field(data, at, stop)
            if at < 0:
                return MALFORMED
            if tag != FIRST:
                continue
            e, j, kind, start, end = following, -1, MISSING, 0, at
            if is_as_before(data, content, at, hints, e):
                j = hint(hints, e + KEY) - 1
                kind, start = _only_list(data, content + hint(hints, e + LENGTH), at)
                if kind != MISSING:
                    remember_list(data, begin, content, start, at, kind, hints, e)
                if j < 0 and ends_with(data, content + hint(hints, e + LENGTH), at) >= 0:
                    continue
        if kind == MISSING:
            key_start, key_stop, start, end, values = map_entry(data, content, at)
            if values < 0:
                return MALFORMED
            j = find_key(data, key_start, key_stop, keys, key_offsets, ends, table)
            remember(data, content, key_stop, at, j, hints, e)
            if j < 0:
                continue
            if values > 1:
                return SPLIT
            status, kind, start, end = feature_list(data, start, end)
            if status != OK:
                return status
        status = _take(data, start, end, kind, j, i, n, columns, used, kinds, list_starts, list_lengths, out)
        if status != OK:
            return status
    return OK


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
    _check_locate(data, starts, lengths, keys, key_offsets, columns, kinds, list_starts, list_lengths, out)
    n, k = starts.size, key_offsets.size - 1
    size = table_size(k)
    table, ends = np.empty(size, np.int64), np.empty((k, 2), np.uint64)
    make_table(keys, key_offsets, ends, table)
    hints, counts = np.zeros(HINTS * size, np.uint64), np.zeros(k, np.int64)
    varying = any_varies(columns)
    kinds[:] = MISSING
    list_starts[:] = 0
    list_lengths[:] = 0
    for i in range(n):
        at, stop = starts[i], starts[i] + lengths[i]
        if varying:
            begin_row(columns, i, n, counts, out)
        while at < stop:
            tag, content, at = field(data, at, stop)
            if at < 0:
                return MALFORMED, i
            if tag == FIRST:
                status = _features(
                    data, content, at, keys, key_offsets, ends, table, hints, columns, counts, i, n,
                    kinds, list_starts, list_lengths, out,
                )  # fmt: skip
                if status == NO_ROOM:
                    return NO_ROOM, fullest(counts)
                if status != OK:
                    return status, i
    missing = 0
    for each in kinds:
        missing += each == MISSING
    return OK, missing


# ----------------------------------------------------------------------------
# Finding the first `tf.train.Example` message that has a feature of a key that is not among known ones.
# ----------------------------------------------------------------------------


UNKNOWN = 16
"""A message has another key."""


def unknown_key_reference(
    data: Bytes, starts: Ints, lengths: Ints, first: int, keys: Bytes, key_offsets: Ints
) -> tuple[int, int]:
    """Find the first message with a feature whose key is not among those that are known.

    Args:
      data: the bytes that contain the messages.
      starts: [n] start of each message.
      lengths: [n] length of each message in bytes.
      first: the message to begin with.
      keys: the k known keys, concatenated, without duplicates.
      key_offsets: [k + 1] start and end of each key.

    Returns:
      `OK` and -1 if there is none; `UNKNOWN`, or `MALFORMED`, and the number of the message.
    """
    _check_unknown(data, starts, lengths, first, keys, key_offsets)
    known = {keys[a:b].tobytes() for a, b in pairwise(key_offsets.tolist())}
    for i in range(first, starts.size):
        message = data[starts[i] : starts[i] + lengths[i]].tobytes()
        try:
            if any(key not in known for key, _ in read_entries(message, FIRST)):
                return UNKNOWN, i
        except MalformedError:
            return MALFORMED, i
    return OK, -1


@inlined
def _check_unknown(data: Bytes, starts: Ints, lengths: Ints, first: int, keys: Bytes, key_offsets: Ints) -> None:
    """Raise an error for arguments of `unknown_key` that do not fit together."""
    check_within(data, starts, lengths)
    if first < 0 or first > starts.size:
        raise ValueError("unknown_key: first must be one of the messages")
    if key_offsets.size == 0 or not_offsets(key_offsets, keys.size):
        raise ValueError("unknown_key: key_offsets must not decrease, and must stay within the keys")


@kernel(unknown_key_reference)
def unknown_key(
    data: Bytes, starts: Ints, lengths: Ints, first: int, keys: Bytes, key_offsets: Ints
) -> tuple[int, int]:
    """See `unknown_key_reference`."""
    _check_unknown(data, starts, lengths, first, keys, key_offsets)
    k = key_offsets.size - 1
    table, ends = np.empty(table_size(k), np.int64), np.empty((k, 2), np.uint64)
    make_table(keys, key_offsets, ends, table)
    for i in range(first, starts.size):
        at, stop = starts[i], starts[i] + lengths[i]
        while at < stop:
            tag, inner, at = field(data, at, stop)
            if at < 0:
                return MALFORMED, i
            while tag == FIRST and inner < at:
                entry_tag, content, inner = field(data, inner, at)
                if inner < 0:
                    return MALFORMED, i
                if entry_tag != FIRST:
                    continue
                key_start, key_stop, _, _, values = map_entry(data, content, inner)
                if values < 0:
                    return MALFORMED, i
                if find_key(data, key_start, key_stop, keys, key_offsets, ends, table) < 0:
                    return UNKNOWN, i
    return OK, -1
