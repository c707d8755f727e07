# SPDX-License-Identifier: Apache-2.0
"""Ways to damage a file: each is a function of its bytes and of a source of random numbers, the same for the same seed."""

import struct
from random import Random

Numbers = tuple[int, ...]

_INT32: Numbers = (0, 1, -1, 2, 7, 255, 1 << 16, 1 << 24, 2**31 - 1, -(2**31))
_INT64: Numbers = (*_INT32, 1 << 32, 1 << 40, 2**62, 2**63 - 1, -(2**63))


def damaged(content: bytes, random: Random) -> bytes:
    """The content, damaged in one of many ways, or in two or three."""
    for _ in range(random.choice((1, 1, 1, 1, 1, 2, 3))):
        content = random.choice(_WAYS)(content, random)
    return content


def flip(content: bytes, random: Random) -> bytes:
    """One bit is another one."""
    if not content:
        return content
    bit = random.randrange(8 * len(content))
    return _with(content, bit // 8, bytes([content[bit // 8] ^ 1 << bit % 8]))


def byte(content: bytes, random: Random) -> bytes:
    """A byte is another one."""
    at = random.randrange(len(content) + 1)
    return _with(content, at, bytes([random.choice((0, 1, 2, 127, 128, 254, 255, random.randrange(256)))]))


def int32(content: bytes, random: Random) -> bytes:
    """Four bytes are a number at an edge, or near the one that stood there."""
    return _number(content, random, "<i", _INT32)


def int64(content: bytes, random: Random) -> bytes:
    """Eight bytes are a number at an edge, or near the one that stood there."""
    return _number(content, random, "<q", _INT64)


def cut(content: bytes, random: Random) -> bytes:
    """The end is missing."""
    return content[: random.randrange(len(content) + 1)]


def hole(content: bytes, random: Random) -> bytes:
    """A part is missing."""
    at = random.randrange(len(content) + 1)
    return content[:at] + content[at + random.choice((1, 2, 4, 8, 64)) :]


def stuffing(content: bytes, random: Random) -> bytes:
    """There is something more."""
    at = random.randrange(len(content) + 1)
    return content[:at] + random.randbytes(random.choice((1, 2, 4, 8, 64))) + content[at:]


def zeros(content: bytes, random: Random) -> bytes:
    """A part was never written."""
    at = random.randrange(len(content) + 1)
    return _with(content, at, bytes(random.choice((4, 16, 64, 512))))


def splice(content: bytes, random: Random) -> bytes:
    """The beginning of the content, and then an end of it, so that a part is missing or is there twice."""
    return content[: random.randrange(len(content) + 1)] + content[random.randrange(len(content) + 1) :]


def swap(content: bytes, random: Random) -> bytes:
    """A part is written over another one."""
    size = random.choice((4, 8, 16, 64))
    at = random.randrange(len(content) + 1)
    return _with(content, random.randrange(len(content) + 1), content[at : at + size])


_WAYS = (flip, flip, byte, byte, int32, int32, int32, int64, int64, cut, hole, stuffing, zeros, splice, swap)


def _number(content: bytes, random: Random, form: str, edges: Numbers) -> bytes:
    size = struct.calcsize(form)
    if len(content) < size:
        return content
    at = random.randrange(len(content) - size + 1)
    if random.random() < 0.8:  # numbers mostly stand at multiples of their size
        at -= at % size
    (here,) = struct.unpack_from(form, content, at)
    value = random.choice((*edges, here + 1, here - 1, 2 * here, -here, here + len(content), len(content)))
    wide = 8 * size
    value &= (1 << wide) - 1
    return _with(content, at, value.to_bytes(size, "little"))


def _with(content: bytes, at: int, part: bytes) -> bytes:
    """The content with a part of it written over, as long as it was."""
    return (content[:at] + part + content[at + len(part) :])[: len(content)]
