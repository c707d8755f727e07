# SPDX-License-Identifier: Apache-2.0
"""Locating and decoding features in serialized `tf.train.Example` messages, without the protobuf library.

    Example { Features features = 1 }    Features { map<string, Feature> feature = 1 }

`locate_features` finds the list of each wanted key in each of many messages. Features that can be decoded in the same
pass go into columns (see `example_columns`); the other lists are left to the kernels of `example_values`.

Rules for all messages: fields may come in any order, unknown fields are skipped, the last value of a repeated key wins,
and so does the last of several kinds; a feature without a kind is missing. A truncated message, a number longer than
ten bytes, field number 0 and groups (which no version of these messages has) are `MALFORMED`. Unwanted features are
skipped without being checked.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from distinput.kernels.example_columns import (
    ANY,
    NO_ROOM,
    any_varies,
    begin_row,
    decode_reference,
    decode_row,
    fullest,
    misplaced,
    table_bytes,
)
from distinput.kernels.example_keys import (
    HEADER,
    HINTS,
    KEY,
    KIND,
    LENGTH,
    Words,
    find_key,
    hint,
    is_as_before,
    known_list,
    make_table,
    remember,
    remember_list,
    table_size,
)
from distinput.kernels.example_values import (
    BYTES,
    FLOAT,
    INT64,
    MALFORMED,
    MISSING,
    OK,
    SPLIT,
    WIDTHS,
    check_messages,
    not_offsets,
    outside,
)
from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import load_u8, store_u64
from distinput.kernels.protobuf import DELIMITED, FIRST, SECOND, MalformedError, ends_with, field, read_fields

_ZERO = np.uint64(0)


class _SplitError(Exception):
    """A list in several pieces."""


def _read_features(message: bytes, wanted: dict[bytes, int]) -> Iterator[tuple[int, int, int, int]]:
    """For each wanted feature in the message: its index, its kind, and the start and end of its list."""
    for tag, start, stop in read_fields(message):
        for entry_tag, entry_start, entry_stop in read_fields(message[:stop], start) if tag == FIRST else ():
            if entry_tag != FIRST:
                continue
            key, values = b"", []
            for part_tag, part_start, part_stop in read_fields(message[:entry_stop], entry_start):
                if part_tag == FIRST:
                    key = message[part_start:part_stop]
                if part_tag == SECOND:
                    values.append((part_start, part_stop))
            if key not in wanted:
                continue
            if len(values) > 1:
                raise _SplitError
            kind, span = MISSING, (0, 0)
            for value_start, value_stop in values:
                for list_tag, list_start, list_stop in read_fields(message[:value_stop], value_start):
                    if list_tag & 7 == DELIMITED and list_tag >> 3 in (BYTES, FLOAT, INT64):
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
    _check_locate(data, starts, lengths, keys, key_offsets, columns, (kinds, list_starts, list_lengths), out)
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
        except MalformedError:
            return MALFORMED, i
        except _SplitError:
            return SPLIT, i
    return OK, k * n - int(np.count_nonzero(kinds))


def _check_locate(
    data: Bytes,
    starts: Ints,
    lengths: Ints,
    keys: Bytes,
    key_offsets: Ints,
    columns: Ints,
    found: tuple[BytesOut, IntsOut, IntsOut],
    out: BytesOut,
) -> None:
    check_messages(data, starts, lengths)
    n, k = starts.size, key_offsets.size - 1
    kinds, list_starts, list_lengths = found
    if k < 0 or kinds.size != k * n or list_starts.size != list_lengths.size:
        raise ValueError("locate_features: kinds must be [keys * messages], list_starts and list_lengths of one size")
    if key_offsets[0] < 0 or np.any(key_offsets[1:] < key_offsets[:-1]) or key_offsets[-1] > keys.size:
        raise ValueError("locate_features: key_offsets must not decrease, and must stay within the keys")
    if columns.size != 4 * k:
        raise ValueError("locate_features: columns must be [keys * 4]")
    for kind, size, place, room in columns.reshape(k, 4).tolist():
        odd = kind not in ((FLOAT, INT64) if size == ANY else WIDTHS) or size < ANY
        if size == -1:
            odd = place < 0 or (place + 1) * n > list_starts.size
        elif not odd:
            odd = place < 0 or place % 8 != 0 or room < 0 or place + table_bytes(kind, size, n) + room > out.size
        if odd:
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
    n, k = starts.size, key_offsets.size - 1
    if n != lengths.size:
        raise ValueError("example: starts and lengths must have an item for each message")
    if outside(data, starts, lengths):
        raise ValueError("example: each message must be within the data")
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
