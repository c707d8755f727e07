# SPDX-License-Identifier: Apache-2.0
"""Locating the steps of feature lists in serialized `tf.train.SequenceExample` messages, without the protobuf library.

    SequenceExample { Features context = 1; FeatureLists feature_lists = 2 }
    FeatureLists { map<string, FeatureList> feature_list = 1 }    FeatureList { repeated Feature feature = 1 }

`locate_steps` finds, in one pass over many messages, the list of each step of each wanted key; the kernels of
`example_values` decode the steps of a key, over all messages, as they decode a feature of as many Examples.

The rules are those of `example_messages`: the last entry of a repeated key wins, and so does the last of several kinds of a
step; the pieces of a list of steps follow one another; a list of values in pieces, which no known writer makes, is `MALFORMED`.
"""

from __future__ import annotations

import numpy as np

from distinput.kernels.example_messages import Words, feature_list, find_key, make_table, map_entry, table_size
from distinput.kernels.example_values import (
    BYTES,
    INT64,
    MALFORMED,
    MISSING,
    NO_ROOM,
    OK,
    check_within,
    not_offsets,
    read_list,
)
from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import load_u8
from distinput.kernels.protobuf import DELIMITED, FIRST, SECOND, MalformedError, field, read_entries, read_fields

ScanStep = tuple[int, int, int]
"""Kind, start and size of the list of one step."""

ABSENT = -1  # in place of a number of steps: the message has no entry for the key


def _read_step(message: bytes, start: int, stop: int) -> ScanStep:
    """The list of the step at message[start:stop]."""
    kind, list_start, list_stop = read_list(message, start, stop)
    return kind, list_start, list_stop - list_start


def read_steps(message: bytes, wanted: dict[bytes, int]) -> dict[int, list[ScanStep]]:
    """The steps of each wanted key that the message has, by the number of the key."""
    steps: dict[int, list[ScanStep]] = {}
    for key, pieces in read_entries(message, SECOND):
        if key in wanted:
            steps[wanted[key]] = [
                _read_step(message, start, stop)
                for piece_start, piece_stop in pieces
                for tag, start, stop in read_fields(message[:piece_stop], piece_start)
                if tag == FIRST
            ]
    return steps


def steps_reference(
    data: Bytes,
    starts: Ints,
    lengths: Ints,
    keys: Bytes,
    key_offsets: Ints,
    rooms: Ints,
    counts: IntsOut,
    kinds: BytesOut,
    step_starts: IntsOut,
    step_lengths: IntsOut,
) -> tuple[int, int]:
    """Find the steps of the feature lists with the wanted keys in many messages.

    Args:
      data: the bytes that contain the messages.
      starts: [n] start of each message.
      lengths: [n] length of each message in bytes.
      keys: the k wanted keys, concatenated, without duplicates.
      key_offsets: [k + 1] start and end of each key.
      rooms: [k + 1]; the steps of key j go to the items from rooms[j] to rooms[j + 1] of the last three, message after message.
      counts: out, [k * n] (that is [k, n]); how many steps each message has, or `ABSENT`.
      kinds: out; of each step, `MISSING`, `BYTES`, `FLOAT` or `INT64`. What is behind the last step of a key is undefined, here
        and in the next two.
      step_starts: out; start of the BytesList, FloatList or Int64List of each step in `data`; 0 if missing.
      step_lengths: out; length of the list in bytes.

    Returns:
      `OK` and how many of the k * n lists are absent; `MALFORMED` and the first message at fault; or `NO_ROOM` and the first
      key at fault: then `counts` holds what room is needed, and the last three are undefined.
    """
    _check(data, starts, lengths, keys, key_offsets, rooms, counts, kinds, step_starts, step_lengths)
    n, k = starts.size, key_offsets.size - 1
    wanted = {keys[key_offsets[j] : key_offsets[j + 1]].tobytes(): j for j in reversed(range(k))}
    counts[:] = ABSENT
    steps: list[list[ScanStep]] = [[] for _ in range(k)]
    for i, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        try:
            found = read_steps(data[start : start + length].tobytes(), wanted)
        except MalformedError:
            return MALFORMED, i
        for j, each in found.items():
            counts[j * n + i] = len(each)
            steps[j] += [(kind, start + at if kind != MISSING else 0, size) for kind, at, size in each]
    for j in range(k):
        if len(steps[j]) > rooms[j + 1] - rooms[j]:
            return NO_ROOM, j
        for at, step in enumerate(steps[j], int(rooms[j])):
            kinds[at], step_starts[at], step_lengths[at] = step
    return OK, int(np.count_nonzero(counts == ABSENT))


@inlined
def _check(
    data: Bytes,
    starts: Ints,
    lengths: Ints,
    keys: Bytes,
    key_offsets: Ints,
    rooms: Ints,
    counts: IntsOut,
    kinds: BytesOut,
    step_starts: IntsOut,
    step_lengths: IntsOut,
) -> None:
    """Raise an error for arguments of `locate_steps` that do not fit together."""
    n, k = starts.size, key_offsets.size - 1
    check_within(data, starts, lengths)
    if k < 0 or rooms.size != k + 1 or counts.size != k * n:
        raise ValueError(
            "locate_steps: rooms must have an item more than the keys, and counts must be [keys * messages]"
        )
    if kinds.size != step_starts.size or kinds.size != step_lengths.size:
        raise ValueError("locate_steps: kinds, step_starts and step_lengths must be of one size")
    if not_offsets(key_offsets, keys.size) or not_offsets(rooms, kinds.size):
        raise ValueError("locate_steps: key_offsets and rooms must not decrease, and must stay within their arrays")


@inlined
def _usual_step(data: Bytes, at: int, stop: int) -> int:
    """The end of the step at `at`, if it is written as all known writers do: one list, and lengths below 128; else -1."""
    if stop - at < 4 or load_u8(data, at) != FIRST:
        return -1
    size = load_u8(data, at + 1)
    # A length of the step of at least 128 differs from that of the list by more than two.
    if size >= 128 or load_u8(data, at + 3) + 2 != size or size > stop - at - 2:
        return -1
    tag = load_u8(data, at + 2)
    return at + 2 + size if tag & 7 == DELIMITED and BYTES <= tag >> 3 and tag >> 3 <= INT64 else -1


@inlined
def _take_steps(
    data: Bytes, at: int, stop: int, to: int, room: int, kinds: BytesOut, step_starts: IntsOut, step_lengths: IntsOut
) -> int:
    """Write the steps of data[at:stop] from item `to` on; returns where they end, beyond `room` too; -1: malformed."""
    while at < stop:
        end = _usual_step(data, at, stop)
        if end >= 0:
            kind, start = load_u8(data, at + 2) >> 3, at + 4
            at = end
        else:
            tag, content, at = field(data, at, stop)
            if at < 0:
                return -1
            if tag != FIRST:
                continue
            status, kind, start, end = feature_list(data, content, at)
            if status != OK:
                return -1
        if to < room:
            kinds[to], step_starts[to], step_lengths[to] = kind, start, end - start
        to += 1
    return to


@inlined
def _take_entries(
    data: Bytes,
    at: int,
    stop: int,
    keys: Bytes,
    key_offsets: Ints,
    ends: Words,
    table: Ints,
    rooms: Ints,
    firsts: Ints,
    i: int,
    n: int,
    counts: IntsOut,
    kinds: BytesOut,
    step_starts: IntsOut,
    step_lengths: IntsOut,
) -> bool:
    """Write the steps of the map data[at:stop] of message i; False: it is malformed.

    The steps of key j begin at firsts[j], so that those of a later entry of the same key replace them.
    """
    while at < stop:
        tag, content, at = field(data, at, stop)
        if at < 0:
            return False
        if tag != FIRST:
            continue
        key_start, key_stop, start, end, values = map_entry(data, content, at)
        if values < 0:
            return False
        j = find_key(data, key_start, key_stop, keys, key_offsets, ends, table)
        if j < 0:
            continue
        to = firsts[j]
        if values == 1:
            to = _take_steps(data, start, end, to, rooms[j + 1], kinds, step_starts, step_lengths)
        else:
            while content < at and to >= 0:
                tag, start, content = field(data, content, at)
                if tag == SECOND:
                    to = _take_steps(data, start, content, to, rooms[j + 1], kinds, step_starts, step_lengths)
        if to < 0:
            return False
        counts[j * n + i] = to - firsts[j]
    return True


@kernel(steps_reference)
def locate_steps(
    data: Bytes,
    starts: Ints,
    lengths: Ints,
    keys: Bytes,
    key_offsets: Ints,
    rooms: Ints,
    counts: IntsOut,
    kinds: BytesOut,
    step_starts: IntsOut,
    step_lengths: IntsOut,
) -> tuple[int, int]:
    """See `steps_reference`."""
    _check(data, starts, lengths, keys, key_offsets, rooms, counts, kinds, step_starts, step_lengths)
    n, k = starts.size, key_offsets.size - 1
    table, ends, firsts = np.empty(table_size(k), np.int64), np.empty((k, 2), np.uint64), np.empty(k, np.int64)
    make_table(keys, key_offsets, ends, table)
    for j in range(k):
        firsts[j] = rooms[j]
    counts[:] = ABSENT
    absent = 0
    for i in range(n):
        at, stop = starts[i], starts[i] + lengths[i]
        while at < stop:
            tag, content, at = field(data, at, stop)
            if at < 0:
                return MALFORMED, i
            if tag == SECOND and not _take_entries(
                data, content, at, keys, key_offsets, ends, table, rooms, firsts, i, n,
                counts, kinds, step_starts, step_lengths,
            ):  # fmt: skip
                return MALFORMED, i
        for j in range(k):
            if counts[j * n + i] >= 0:
                firsts[j] += counts[j * n + i]
            else:
                absent += 1
    for j in range(k):
        if firsts[j] > rooms[j + 1]:
            return NO_ROOM, j
    return OK, absent
