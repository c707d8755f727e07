# SPDX-License-Identifier: Apache-2.0
"""Which damaged files there are: numbered, so that processes can share them and a number is all it takes to see one again."""

import struct
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import Protocol

LENGTHS = (0, 1, -1, 0x7F, 0xFFFF, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))
"""What is written where a length, an offset or a count may stand."""

FORMS = ("<i", ">i", "<q", ">q")


class Damaged(Protocol):
    """What is known of a sample here."""

    name: str
    content: bytes
    damage: Callable[[bytes, Random], bytes]


Kind = tuple[Callable[[Damaged], int], Callable[[Damaged, int], bytes]]
"""How many files there are of a sample, and the content of each of them."""


def _cut(sample: Damaged, number: int) -> bytes:
    """The first bytes: for each number of bytes."""
    return sample.content[:number]


def _flipped(sample: Damaged, number: int) -> bytes:
    """Another bit: for each bit."""
    content = bytearray(sample.content)
    content[number // 8] ^= 1 << number % 8
    return bytes(content)


def _length(sample: Damaged, number: int) -> bytes:
    """A number at the edge of what fits into it, in either order of bytes: at each byte."""
    at, rest = divmod(number, len(FORMS) * len(LENGTHS))
    form, value = FORMS[rest % len(FORMS)], LENGTHS[rest // len(FORMS)]
    size = struct.calcsize(form)
    number = value & (1 << 8 * size) - 1
    written = number.to_bytes(size, "little" if form[0] == "<" else "big")
    return (sample.content[:at] + written + sample.content[at + size :])[: len(sample.content)]


def _random(sample: Damaged, number: int) -> bytes:
    """Anything that may happen to a file, once or several times."""
    return sample.damage(sample.content, Random(f"{sample.name} {number}"))


KINDS: dict[str, Kind] = {
    "cuts": (lambda sample: len(sample.content), _cut),
    "flips": (lambda sample: 8 * len(sample.content), _flipped),
    "lengths": (lambda sample: len(FORMS) * len(LENGTHS) * len(sample.content), _length),
}
"""Damage that can be counted, of each sample one case after the other; "random" has no end, and samples take turns."""


def count(kind: str, samples: Sequence[Damaged]) -> int:
    """How many files there are of a kind."""
    return sum(map(KINDS[kind][0], samples))


def content(kind: str, number: int, samples: Sequence[Damaged]) -> tuple[int, bytes, int]:
    """Which sample a number means, its damaged content, and a number that chooses how it is read."""
    if kind == "random":
        place, turn = number % len(samples), number // len(samples)
        return place, _random(samples[place], turn), turn
    size, made = KINDS[kind]
    ends = list(accumulate(map(size, samples)))
    place = bisect(ends, number)
    turn = number - (ends[place - 1] if place else 0)
    return place, made(samples[place], turn), turn
