# SPDX-License-Identifier: Apache-2.0
"""Finding the key of a `tf.train.Example` map entry: with a hash table, or by comparison with an earlier message.

The messages of a file are usually written by one program: the map entries come in the same order in all of them, each
with its key first, then the feature, and nothing else. So the beginning of entry e of one message is compared with the
beginning of entry e of the next one, in a few comparisons of words:

    tag, length of the entry | tag, length, key, tag of the feature | length, tag of the list, length | list

Everything before the list is the same except for the three lengths, and while these are below 128, each of them
increases by one if the list is a byte longer (`known_list`). Otherwise the middle may still be the same
(`is_as_before`). Failing that, the entry is read field by field, and its key is looked up in the table.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from distinput.kernels.kernel import Bytes, Ints, IntsOut, inlined
from distinput.kernels.machine import load_u8, load_u64, signed
from distinput.kernels.protobuf import FIRST, SECOND, ends_with

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
