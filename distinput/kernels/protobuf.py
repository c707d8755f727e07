# SPDX-License-Identifier: Apache-2.0
"""The fields of protobuf messages: a tag with field number and wire type, then the content.

Numbers are *varints*: seven bits per byte, lowest first, with the highest bit set in all bytes but the last. There are
two implementations: in Python on `bytes`, which the references use, and compiled, reading in place.

Source: protobuf's "Encoding" document.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from distinput.kernels.kernel import Bytes, inlined
from distinput.kernels.machine import extract_bits, has_bit_extraction, load_u8, load_u64, signed, trailing_zeros

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
FIRST, SECOND = 1 << 3 | DELIMITED, 2 << 3 | DELIMITED  # tags: a length-delimited field with number 1, 2
LONGEST_TAG = np.uint64(0xFFFFFFFF)
HIGHS = np.uint64(0x8080808080808080)  # the highest bit of each byte

_ZERO, _ONE, _SEVEN, _HIGH = (np.uint64(each) for each in (0, 1, 7, 128))
_TWO, _FOUR = np.uint64(2), np.uint64(4)
_BYTES_1, _BYTES_2 = np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00)
_PAIRS_1, _PAIRS_2 = np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000)
_FOURS_1, _FOURS_2 = np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000)


class MalformedError(Exception):
    """The bytes are not a valid message."""


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and its end."""
    value = 0
    for k, byte in enumerate(message[at : at + 10]):
        value |= (byte & 127) << 7 * k
        if byte < 128:
            return value & (1 << 64) - 1, at + k + 1
    raise MalformedError


def read_varints(content: bytes) -> Iterator[int]:
    """The numbers that stand one behind the other."""
    at = 0
    while at < len(content):
        value, at = read_varint(content, at)
        yield value


def varint_bytes(number: int) -> bytes:
    """A number from 0 on as it is written."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def read_fields(message: bytes, at: int = 0) -> Iterator[tuple[int, int, int]]:
    """The tag of each field, and the start and end of its content."""
    while at < len(message):
        tag, at = read_varint(message, at)
        if not 8 <= tag <= LONGEST_TAG:
            raise MalformedError
        start = at
        match tag & 7:
            case 0:
                _, at = read_varint(message, at)
            case 1:
                at += 8
            case 2:
                length, start = read_varint(message, at)
                at = start + length
            case 5:
                at += 4
            case _:
                raise MalformedError
        if at > len(message):
            raise MalformedError
        yield tag, start, at


def read_entries(message: bytes, place: int) -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
    """The key of each entry of a map, and the start and end of each piece of its value.

    Args:
      message: has the map.
      place: the tag of the field that it is in.
    """
    for tag, start, stop in read_fields(message):
        for entry_tag, entry_start, entry_stop in read_fields(message[:stop], start) if tag == place else ():
            if entry_tag != FIRST:
                continue
            key, pieces = b"", []
            for part_tag, part_start, part_stop in read_fields(message[:entry_stop], entry_start):
                if part_tag == FIRST:
                    key = message[part_start:part_stop]
                elif part_tag == SECOND:
                    pieces.append((part_start, part_stop))
            yield key, pieces


# The compiled implementations. An offset of -1 means malformed.


@inlined
def varint(data: Bytes, at: int, stop: int) -> tuple[np.uint64, int]:
    """The number at `at`, which must end by `stop`, and its end."""
    if at < stop and load_u8(data, at) < 128:
        return np.uint64(load_u8(data, at)), at + 1
    return long_varint(data, at, stop)


@inlined
def joined(word: np.uint64) -> np.uint64:
    """The lower seven bits of all bytes, concatenated."""
    if has_bit_extraction():
        return extract_bits(word, ~HIGHS)
    word = word & _BYTES_1 | (word & _BYTES_2) >> _ONE
    word = word & _PAIRS_1 | (word & _PAIRS_2) >> _TWO
    return word & _FOURS_1 | (word & _FOURS_2) >> _FOUR


@inlined
def long_varint(data: Bytes, at: int, stop: int) -> tuple[np.uint64, int]:
    """`varint` without a branch for one-byte numbers: in lists the branch would often be mispredicted."""
    if at < stop and at + 8 <= data.size:
        word = load_u64(data, at)
        ends = ~word & HIGHS
        if ends != _ZERO:
            after = at + (trailing_zeros(ends) >> 3) + 1
            # Up to the first byte whose highest bit is not set.
            return joined(word & (ends ^ (ends - _ONE))), after if after <= stop else -1
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
def field(data: Bytes, at: int, stop: int) -> tuple[int, int, int]:
    """The tag of the field at `at`, and the start and end of its content."""
    tag, at = varint(data, at, stop)
    if at < 0 or tag > LONGEST_TAG or tag < np.uint64(8):
        return 0, 0, -1
    wire = signed(tag & _SEVEN)
    start = at
    if wire == DELIMITED:
        length, start = varint(data, at, stop)
        if start < 0 or length > np.uint64(stop - start):
            return 0, 0, -1
        at = start + signed(length)
    elif wire == VARINT:
        _, at = varint(data, at, stop)
    elif wire == FIXED32:
        at += 4
    elif wire == FIXED64:
        at += 8
    else:
        return 0, 0, -1
    if at > stop:
        return 0, 0, -1
    return signed(tag), start, at


@inlined
def ends_with(data: Bytes, at: int, stop: int) -> int:
    """The start of the content if its length is stored at `at` and it ends at `stop`; -1 if that is not certain."""
    if at < stop:
        length, content = load_u8(data, at), at + 1
        if length >= 128:
            if content == stop or load_u8(data, content) >= 128:
                return -1
            length, content = length & 127 | load_u8(data, content) << 7, content + 1
        if content + length == stop:
            return content
    return -1
